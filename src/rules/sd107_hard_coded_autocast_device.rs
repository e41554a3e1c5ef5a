//! SD107 hard-coded-autocast-device: autocast for CUDA around work that follows a device.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::remedy::Remedy;
use crate::rules::check::{Check, Context};
use crate::rules::shared::accelerators::chosen;
use crate::rules::shared::assumptions::assume_no_cuda;
use crate::rules::shared::events::{finding, with_stack};
use crate::rules::shared::naming::Spot;
use crate::world::World;

pub(super) const CODE: Code = Code(107);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::CudaAutocast { follows, given } = &event.kind else { return None };
        if event.is_guess() || chosen(event, cx) {
            return None;
        }
        let message =
            "this is for CUDA alone, and the work in it follows a device that may be the CPU: it is off there"
                .to_owned();
        let mut f = finding(CODE, event, message, event.place, "nothing raises; PyTorch only warns");
        f.world = World::NoCuda;
        if *follows != event.place {
            f = f.related(*follows, "works on the chosen device");
        }
        if cx.sources.text(event.place).contains("GradScaler") {
            return Some(
                assume_no_cuda(with_stack(f, event), event, cx)
                    .help("name the type of the chosen device: `torch.amp.GradScaler(…)`"),
            );
        }
        let name = given.and_then(|given| Spot::new(cx, event.place)?.name(given));
        let remedy = name.map(|x| Remedy::Autocast { call: event.place, device: format!("{x}.device") });
        Some(
            assume_no_cuda(with_stack(f, event), event, cx)
                .help("name the type of the chosen device: `torch.autocast(…)`")
                .remedy(remedy),
        )
    }
}
