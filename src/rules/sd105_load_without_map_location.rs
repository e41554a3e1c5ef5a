//! SD105 load-without-map-location: a checkpoint is loaded to the device that it was saved from.

use crate::assumption::{Assumption, Spot, Way};
use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::flow::function_at;
use crate::remedy::Remedy;
use crate::rules::check::{Check, Context};
use crate::rules::sd210_ignored_device_parameter;
use crate::rules::shared::accelerators::written_for;
use crate::rules::shared::assumptions::assume_no_cuda;
use crate::rules::shared::code::{quoted, text};
use crate::rules::shared::events::{finding, with_stack};
use crate::rules::shared::test_code::in_tests;
use crate::words::Words;
use crate::world::World;

static OTHER_BACK_ENDS: Words = Words::of("back ends other than CUDA");

pub(super) const CODE: Code = Code(105);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::Load { program, explicit_none, several, met } = &event.kind else { return None };
        // Tests load files that they have written themselves.
        if in_tests(event.place, cx) || event.stack.iter().any(|&call| in_tests(call, cx)) {
            return None;
        }
        // Checkpoints of other back ends have no CUDA tensors.
        if OTHER_BACK_ENDS.all().iter().any(|b| written_for(event.place, b, cx)) {
            return None;
        }
        let (function, read) =
            if *program { ("torch.jit.load", "program") } else { ("torch.load", "checkpoint") };
        let message = |world| {
            let call = text(cx, event.place).filter(|text| is_load(text));
            let call = call.map_or_else(|| format!("`{function}()`"), |text| format!("`{text}`"));
            let how = if *explicit_none { "with `map_location=None`" } else { "without `map_location`" };
            match world {
                World::NoCuda => format!("{call} {how} raises if the {read} was saved on a GPU"),
                _ => format!(
                    "{call} {how} loads the {read} onto the GPU that it was saved from, not onto the GPU of this process"
                ),
            }
        };
        let said = message(event.bite.world);
        let mut f =
            finding(CODE, event, said, event.place, "loads every tensor to the device it was saved from");
        if *several {
            f.where_cuda_is = Some(message(World::Cuda));
        }
        let call = text(cx, event.place).and_then(|text| loaded_to(text, "\"cpu\""));
        let call = call.unwrap_or_else(|| format!("{function}(path, map_location=\"cpu\")"));
        let help = format!("load to the CPU, then move the model: `{call}`");
        let mut f = assume_no_cuda(with_stack(f, event), event, cx).assume([Assumption::SavedFromGpu]);
        for &place in met {
            if f.places().all(|p| p != place) {
                f = f.related(place, "a tensor from the file meets a tensor on the GPU of this process here");
            }
        }
        Some(f.help(help).remedy([Remedy::MapLocation(event.place)]))
    }

    fn on_file(&mut self, cx: &Context<'_>) -> Vec<Finding> {
        let found = sd210_ignored_device_parameter::loads_elsewhere(cx).into_iter();
        found.map(|f| with_way(in_words(f, cx), cx).assume([Assumption::SavedFromGpu])).collect()
    }
}

/// Is it a call of a load function whose arguments are visible?
fn is_load(text: &str) -> bool {
    let name = text.split('(').next().and_then(|function| function.rsplit('.').next());
    text.ends_with(')') && name.is_some_and(|name| name.contains("load"))
}

/// `torch.load(path)` → `torch.load(path, map_location="cpu")`
fn loaded_to(text: &str, location: &str) -> Option<String> {
    const NONE: &str = "map_location=None";
    if !is_load(text) || text.contains('*') {
        return None;
    }
    if text.contains(NONE) {
        return Some(text.replace(NONE, &format!("map_location={location}")));
    }
    let arguments = text.strip_suffix(')')?.trim_end_matches([',', ' ']);
    (!text.contains("map_location") && !arguments.ends_with('('))
        .then(|| format!("{arguments}, map_location={location})"))
}

/// Sets the message for a load in a function that ignores its device parameter.
fn in_words(f: Finding, cx: &Context<'_>) -> Finding {
    let place = f.primary.place;
    let Some((module, function)) = function_at(cx.program, place) else { return f };
    let function = cx.program.get(module).ir.function(function);
    let named = |name: &str| function.params.iter().any(|p| p.name.as_str() == name);
    let Some(param) = ["map_location", "device"].into_iter().find(|name| named(name)) else { return f };
    let call = quoted(cx, place, "`torch.load()`");
    let mut f = f.help(match text(cx, place).and_then(|text| loaded_to(text, param)) {
        Some(call) => format!("pass it on: `{call}`"),
        None => format!("pass it on: `map_location={param}`"),
    });
    f.message = format!(
        "{call} ignores the parameter `{param}` of `{}` and loads to the device that the tensors were saved from",
        function.name
    );
    f.primary.text = "loads every tensor to the device it was saved from".into();
    f
}

/// Adds the assumption about callers: a load in a function that ignores its device parameter depends on them like any other load.
fn with_way(f: Finding, cx: &Context<'_>) -> Finding {
    let place = f.primary.place;
    let way = function_at(cx.program, place).map(|(_, entry)| {
        let spot = Spot { file: place.file, entry, at: place.span.start };
        Assumption::CudaMissing(Way { spot, places: [place].into() })
    });
    f.assume(way)
}

#[cfg(test)]
mod tests {
    use super::loaded_to;

    #[test]
    fn the_location_is_added() {
        let corrected = |text| loaded_to(text, "\"cpu\"");
        assert_eq!(corrected("torch.load(path)").as_deref(), Some("torch.load(path, map_location=\"cpu\")"));
        assert_eq!(corrected("load(f, map_location=None)").as_deref(), Some("load(f, map_location=\"cpu\")"));
        assert_eq!(corrected("torch.load(f, map_location=where)"), None);
        assert_eq!(corrected("read(path)"), None);
    }
}
