//! SD105 load-without-map-location: a checkpoint that goes back to the device that it was saved from.

use crate::assumption::{Assumption, Spot, Way};
use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::flow::function_at;
use crate::remedy::Remedy;
use crate::rules::check::{Check, Context};
use crate::rules::sd210_ignored_device_parameter;
use crate::rules::shared::accelerators::written_for;
use crate::rules::shared::assumptions::assume_no_cuda;
use crate::rules::shared::events::{finding, with_stack};
use crate::rules::shared::test_code::in_tests;
use crate::world::World;

pub(super) const CODE: Code = Code(105);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::Load { program, explicit_none, several, met } = &event.kind else { return None };
        // What tests load, they have written themselves.
        if in_tests(event.place, cx) || event.stack.iter().any(|&call| in_tests(call, cx)) {
            return None;
        }
        // Checkpoints of other back ends have no CUDA tensors.
        if ["xla", "mps", "npu", "hpu", "xpu"].iter().any(|b| written_for(event.place, b, cx)) {
            return None;
        }
        let what = if *explicit_none { "`map_location=None`" } else { "no `map_location`" };
        let message = |world| {
            let then = match world {
                World::NoCuda => "goes back to that GPU, or fails to load",
                _ => "goes back to that GPU, whichever this process uses",
            };
            let (function, read) =
                if *program { ("torch.jit.load", "program") } else { ("torch.load", "checkpoint") };
            format!("`{function}` with {what}: a {read} saved on a GPU {then}")
        };
        let text = message(event.bite.world);
        let mut f =
            finding(CODE, event, text, event.place, "restores tensors to the device they were saved from");
        if *several {
            f.where_cuda_is = Some(message(World::Cuda));
        }
        let help = if *program {
            "load to the CPU, then move the model: `torch.jit.load(path, map_location=\"cpu\")`"
        } else {
            "load to the CPU, then move the model: `torch.load(path, map_location=\"cpu\")`"
        };
        let mut f = assume_no_cuda(with_stack(f, event), event, cx).assume([Assumption::SavedFromGpu]);
        for &place in met {
            if f.places().all(|p| p != place) {
                f = f.related(
                    place,
                    "what was taken out of the file meets a tensor of this process's GPU here",
                );
            }
        }
        Some(f.help(help).remedy([Remedy::MapLocation(event.place)]))
    }

    fn on_file(&mut self, cx: &Context<'_>) -> Vec<Finding> {
        let found = sd210_ignored_device_parameter::loads_elsewhere(cx).into_iter();
        found.map(|f| with_way(f, cx).assume([Assumption::SavedFromGpu])).collect()
    }
}

/// A load that does not look at the device which its function is given hangs on the callers like any other.
fn with_way(f: Finding, cx: &Context<'_>) -> Finding {
    let place = f.primary.place;
    let way = function_at(cx.program, place).map(|(_, entry)| {
        let spot = Spot { file: place.file, entry, at: place.span.start };
        Assumption::CudaMissing(Way { spot, places: [place].into() })
    });
    f.assume(way)
}
