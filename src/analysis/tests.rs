//! A pass that panics does not lose the findings of the others. Only a unit test can break a pass on purpose.

mod again;
mod needed;

use std::path::Path;

use super::passes::Passes;
use super::{Analysis, DOUBTS, FailedPass, REFUTERS, analyzed};
use crate::config::{Overrides, Resolver, Where};
use crate::discover::{Options, discover};
use crate::rules::registry::registry;

/// The analysis of two files, one of which imports the other, if this pass panics.
fn with_broken(pass: Option<&str>) -> Analysis {
    let folder = tempfile::tempdir().expect("a folder");
    let write =
        |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("it is written");
    write("net.py", "import torch\n\n\ndef make():\n    return torch.zeros(3, device=\"cuda\")\n");
    write("main.py", "import net\n\nprint(net.make())\n");
    let place = Where::Isolated;
    let mut resolver =
        Resolver::new(folder.path(), registry(), &place, Overrides::default()).expect("no settings");
    let options = Options { cwd: folder.path().to_owned() };
    let inputs = discover(&[Path::new(".").to_owned()], &options, &mut resolver).files;
    assert_eq!(inputs.len(), 2);
    analyzed(&inputs, true, &|| (), Passes::with_broken(pass), None)
}

fn codes(analysis: &Analysis) -> Vec<String> {
    let mut codes: Vec<String> = analysis.findings.iter().map(|f| f.code.to_string()).collect();
    codes.sort();
    codes
}

#[test]
fn a_pass_that_panics_leaves_the_findings_as_they_were() {
    let whole = with_broken(None);
    assert_eq!(codes(&whole), ["SD101"]);
    assert!(whole.failed_passes.is_empty());
    let of_causes = [
        "arguments of callers",
        "copied code",
        "imported files",
        "process groups",
        "findings in copied code",
        "one finding per cause",
        "sources of generated code",
        "large projects",
    ];
    for name in of_causes.into_iter().chain(REFUTERS.map(|r| r.name)).chain(DOUBTS.map(|(name, _)| name)) {
        let analysis = with_broken(Some(name));
        let [FailedPass { name: told, panic }] = analysis.failed_passes.as_slice() else {
            panic!("`{name}` is told once: {:?}", analysis.failed_passes)
        };
        assert_eq!(*told, name);
        assert!(panic.contains("broken for a test"), "{panic}");
        assert!(codes(&analysis).contains(&"SD101".to_owned()), "`{name}` lost what was found");
    }
}

#[test]
fn so_does_one_without_which_nothing_can_be_found() {
    let analysis = with_broken(Some("follow imports"));
    assert_eq!(analysis.failed_passes.len(), 1);
    assert_eq!(analysis.sources.len(), 2, "every input has a source");
}
