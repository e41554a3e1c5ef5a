//! SD402 hard-coded-device-list: a literal list of GPUs.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind, UseKind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::calls::CallAt;
use crate::rules::shared::code::line_with;
use crate::rules::shared::events::{finding, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(402);
pub(super) struct Rule;

const EVERY_GPU: &str = "list(range(torch.cuda.device_count()))";

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::Use { what, how: UseKind::DeviceList, index: Some(i), .. } = &event.kind else {
            return None;
        };
        if event.is_guess() {
            return None;
        }
        let needed = i + 1;
        let message = format!("{what} needs {needed} GPUs: no check for that number comes before it");
        let label = format!("raises with fewer than {needed} GPUs");
        let mut f = finding(CODE, event, message, event.place, &label);
        f.world = World::FewerGpus(needed);
        let list = CallAt::new(cx, event.place).and_then(|call| call.argument(usize::MAX, "device_ids"));
        let line = list.and_then(|list| line_with(cx, list, EVERY_GPU));
        let help = line.map_or_else(
            || format!("pass the GPUs that exist: `{EVERY_GPU}`"),
            |line| format!("pass the GPUs that exist: `{line}`"),
        );
        Some(with_stack(f, event).help(help))
    }
}
