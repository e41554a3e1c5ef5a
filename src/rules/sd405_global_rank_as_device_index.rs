//! SD405 global-rank-as-device-index: the global rank of a process as the index of its GPU.

use crate::assumption::Assumption;
use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::calls::CallAt;
use crate::rules::shared::code::{line_with, quoted};
use crate::rules::shared::events::{finding, with_also, with_stack};
use crate::rules::shared::test_code::in_tests;
use crate::span::Place;
use crate::world::World;

pub(super) const CODE: Code = Code(405);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::GlobalRank = &event.kind else { return None };
        // Tests run on one machine.
        if event.is_guess() || in_tests(event.place, cx) {
            return None;
        }
        let world = match event.bite.world {
            other @ World::With(_) => other,
            _ => World::Cuda,
        };
        let what = if world == World::Cuda { "GPU" } else { "device" };
        let user = quoted(cx, event.place, "this device");
        let message = format!(
            "{user} uses the global rank as the device index: the second machine has no {what} of that number"
        );
        let label = "the global rank counts the processes of all machines";
        let mut f = finding(CODE, event, message, event.place, label);
        f.world = world;
        let f = f.assume([Assumption::SeveralProcesses]);
        Some(with_stack(with_also(f, event), event).help(help(cx, event.place)))
    }
}

/// The line with the local rank.
fn help(cx: &Context<'_>, place: Place) -> String {
    const LOCAL: &str = "int(os.environ[\"LOCAL_RANK\"])";
    let old = cx.sources.text(place);
    let code = if old.contains("SLURM_PROCID") {
        Some(old.replace("SLURM_PROCID", "SLURM_LOCALID"))
    } else if ["\"RANK\"", "'RANK'"].into_iter().any(|name| old.contains(name)) {
        Some(old.replace("RANK", "LOCAL_RANK"))
    } else if old.starts_with("f\"cuda:{") && old.matches('{').count() == 1 && old.ends_with("}\"") {
        Some("f\"cuda:{os.environ['LOCAL_RANK']}\"".to_owned())
    } else {
        (!old.contains(['"', '\'', ','])).then(|| LOCAL.to_owned())
    };
    let line = code.and_then(|code| line_with(cx, place, &code)).or_else(|| {
        // `torch.device("cuda", rank)`
        let index = CallAt::new(cx, place)?.argument(1, "index")?;
        line_with(cx, index, LOCAL)
    });
    match line {
        Some(line) => format!("use the local rank: `{line}`"),
        None => format!("use the local rank: `{LOCAL}`"),
    }
}
