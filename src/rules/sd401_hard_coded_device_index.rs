//! SD401 hard-coded-device-index: a GPU by a literal index.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind, UseKind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::accelerators::home;
use crate::rules::shared::events::{finding, with_also, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(401);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, _cx: &Context<'_>) -> Option<Finding> {
        let Kind::Use { what, origin, index: Some(i), backend: None, how, .. } = &event.kind else {
            return None;
        };
        if *i == 0 || matches!(how, UseKind::DeviceList | UseKind::Pinned) || event.is_guess() {
            return None;
        }
        let (place, _) = home(event, *origin);
        let message = format!(
            "`cuda:{i}` is written down, and nothing here has asked whether there are {} GPUs",
            i + 1
        );
        let mut f = finding(CODE, event, message, place, &format!("raises with fewer than {} GPUs", i + 1));
        f.world = World::FewerGpus(i + 1);
        if place != event.place {
            f = f.related(event.place, format!("{what} uses it"));
        }
        Some(
            with_also(with_stack(f, event), event)
                .help("take the index from the caller, or check `torch.cuda.device_count()`"),
        )
    }
}
