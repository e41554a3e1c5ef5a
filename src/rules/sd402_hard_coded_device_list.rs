//! SD402 hard-coded-device-list: a literal list of GPUs.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind, UseKind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::events::{finding, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(402);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, _cx: &Context<'_>) -> Option<Finding> {
        let Kind::Use { what, how: UseKind::DeviceList, index: Some(i), .. } = &event.kind else {
            return None;
        };
        if event.is_guess() {
            return None;
        }
        let message =
            format!("{what} names {} GPUs, and nothing here has asked whether there are that many", i + 1);
        let mut f = finding(CODE, event, message, event.place, "raises with fewer GPUs");
        f.world = World::FewerGpus(i + 1);
        Some(with_stack(f, event).help("take what is there: `list(range(torch.cuda.device_count()))`"))
    }
}
