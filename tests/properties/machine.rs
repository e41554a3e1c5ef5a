//! The saved report of a machine.

use std::path::Path;

use samedevice::finding::{Code, Finding, Label};
use samedevice::span::{FileId, Place, Span};
use samedevice::verify::judge::Judge;
use samedevice::verify::machine::Machine;
use samedevice::verify::{parse, text};
use samedevice::world::{Backend, Premise, World};

/// The bytes of a report.
pub fn check(data: &[u8]) {
    let Ok(machine) = parse(&String::from_utf8_lossy(data)) else { return };
    let written = serde_json::to_string(&machine).expect("JSON");
    assert_eq!(parse(&written).as_ref(), Ok(&machine), "{written}");
    of_text(&machine);
    of_judgements(&machine);
}

/// For people it has nothing in it that a terminal acts on.
fn of_text(machine: &Machine) {
    for unicode in [false, true] {
        let mut out = Vec::new();
        text::write(machine, text::Look { color: false, unicode }, &mut out).expect("memory");
        let text = String::from_utf8(out).expect("UTF-8");
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    }
}

/// Every finding has a verdict with a reason.
fn of_judgements(machine: &Machine) {
    let judge = Judge::saved(machine, Path::new("machine.json"));
    let place = Place { file: FileId(0), span: Span::new(0, 0) };
    for world in [
        World::Always,
        World::Cuda,
        World::NoCuda,
        World::No(Backend::Mps),
        World::With(Backend::Xla),
        World::FewerGpus(2),
        World::FreeBelow(1 << 33),
        World::CapabilityBelow(8, 0),
    ] {
        let mut finding = Finding::new(Code(101), world, "m", Label::new(place, ""));
        for premise in [Premise::AtLeastGpus(2), Premise::FewerGpus(9), Premise::Without(Backend::Mps)] {
            finding.also.push(finding.premises.clone());
            finding.premises.push(premise);
            judge.judge(&finding);
        }
    }
}
