//! SD107 hard-coded-autocast-device: autocast for CUDA around code that runs on a chosen device.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::remedy::Remedy;
use crate::rules::check::{Check, Context};
use crate::rules::shared::accelerators::chosen;
use crate::rules::shared::assumptions::assume_no_cuda;
use crate::rules::shared::code::quoted;
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
        let call = quoted(cx, event.place, "this");
        let message = format!("{call} has no effect on the CPU, but the device of this code may be the CPU");
        let mut f = finding(CODE, event, message, event.place, "disabled without CUDA, with a warning only");
        f.world = World::NoCuda;
        if *follows != event.place {
            f = f.related(*follows, "runs on the chosen device");
        }
        let scales = cx.sources.text(event.place).contains("GradScaler");
        let name = given.filter(|_| !scales).and_then(|given| Spot::new(cx, event.place)?.name(given));
        let remedy = name.map(|x| Remedy::Autocast { call: event.place, device: format!("{x}.device") });
        let function = if scales { "torch.amp.GradScaler" } else { "torch.autocast" };
        let help = match &remedy {
            Some(Remedy::Autocast { device, .. }) => {
                format!("pass the type of the chosen device: `{function}({device}.type)`")
            }
            _ => format!("pass the type of the chosen device to `{function}`, in place of CUDA"),
        };
        Some(assume_no_cuda(with_stack(f, event), event, cx).help(help).remedy(remedy))
    }
}
