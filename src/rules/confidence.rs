//! The confidence of a finding, for all rules: from the engine's event, and from the code around the place.
//!
//! The rest of the project is considered later (`analysis/unreached.rs`).

use std::path::Path;

use super::check::Context;
use super::shared::test_code::in_tests;
use crate::assumption::Assumption;
use crate::discover::project_root;
use crate::finding::{Confidence, Finding};
use crate::flow::event::{DeviceName, Event, Frequency, Kind};
use crate::flow::is_in_demo;
use crate::ir::{FuncId, Module};
use crate::span::Place;
use crate::words::Words;
use crate::world::World;

/// The size in bytes up to which a copy costs no more than the call itself (`rules/SD601-created-then-moved.md` has measurements).
const TINY: u64 = 128;

static VENDORED: Words = Words::of("folders with other projects");

/// Sets the confidence of a finding about an event.
pub(super) fn of_event(f: &mut Finding, event: &Event, cx: &Context<'_>) {
    let from = event.stack.first().copied().unwrap_or(event.place);
    of_place(f, from, cx);
    // A demo says where its module and inputs are. Programs put them elsewhere. Other findings do not depend on that.
    let meets = matches!(event.kind, Kind::Mismatch { .. });
    of_demo(f, if meets { from } else { f.primary.place }, cx);
    if is_cost(event) {
        of_cost(f, event);
    }
    if is_rank_chosen(event, cx) {
        f.doubt(Confidence::Low, "every process that reaches this line has its own GPU");
    }
    if event.bite.past {
        f.doubt(Confidence::Likely, "the failure before this line is corrected");
    }
    if let Some(condition) = f.condition.clone() {
        f.doubt(Confidence::Likely, format!("the program runs this line {condition}"));
    }
    if let Some((func, index)) = event.parameter
        && let Some(module) = cx.program.module_of(cx.file)
        && let Some(param) = cx.program.get(module).ir.function(func).params.get(usize::from(index))
    {
        f.doubt(Confidence::Likely, format!("a caller passes `{}` on {}", param.name, passed(event)));
    } else if event.symbolic {
        f.doubt(Confidence::Likely, called(event, cx));
    } else if let Some(name) = varies(event) {
        f.doubt(Confidence::Likely, format!("`{name}` is on another device"));
    }
    for why in f.assumptions.iter().filter_map(Assumption::doubt).collect::<Vec<_>>() {
        f.doubt(Confidence::Likely, why);
    }
}

/// Sets the confidence of a finding about a file's text.
pub(super) fn of_text(f: &mut Finding, cx: &Context<'_>) {
    let place = f.primary.place;
    of_place(f, place, cx);
    of_demo(f, place, cx);
    let function = crate::flow::function_at(cx.program, place);
    if let Some((m, func)) = function {
        f.doubt(Confidence::Likely, use_of(&cx.program.get(m).ir, func));
    }
}

/// Lowers the confidence by the code around the place, and around the place from which calls lead there.
fn of_place(f: &mut Finding, from: Place, cx: &Context<'_>) {
    let place = f.primary.place;
    if in_tests(place, cx) || in_tests(from, cx) {
        f.doubt(Confidence::Low, "it is in a test");
    }
    if is_vendored(&cx.sources.get(place.file).path, cx.root) {
        f.doubt(Confidence::Low, "it is in a vendored copy of another project");
    }
}

/// Lowers the confidence in the demo of a module, and of what only such a demo reaches from `from`.
fn of_demo(f: &mut Finding, from: Place, cx: &Context<'_>) {
    // Other files may use the same in another way. A way from there to the finding counts by itself.
    if is_in_demo(cx.program, f.primary.place, from) {
        f.doubt(Confidence::Low, "only the `__main__` demo of a file that other files import reaches it");
    }
}

/// Lowers the confidence for a copy that is made once or is tiny: it costs almost nothing.
fn of_cost(f: &mut Finding, event: &Event) {
    match event.frequency {
        Frequency::Once => f.doubt(Confidence::Low, "it runs once"),
        Frequency::EveryEpoch => f.doubt(Confidence::Low, "it runs once for each epoch"),
        Frequency::Unknown => f.doubt(Confidence::Low, "nothing in sight runs it in a loop"),
        Frequency::EveryCall | Frequency::EveryStep => {}
    }
    match event.bytes {
        Some(bytes) if bytes <= TINY => f.doubt(Confidence::Low, "the tensor has only a few bytes"),
        Some(_) => {}
        None => f.doubt(Confidence::Likely, "the tensor is large enough to matter"),
    }
}

/// Is it about lost time, and not about an error?
fn is_cost(event: &Event) -> bool {
    matches!(
        event.kind,
        Kind::CreatedThenMoved { .. }
            | Kind::Pageable { .. }
            | Kind::AlreadyThere
            | Kind::InvariantMove { .. }
            | Kind::ThereAndBack { .. }
    )
}

/// `torch.cuda.set_device(local_rank)`: does it set up a process with a GPU of its own?
fn is_rank_chosen(event: &Event, cx: &Context<'_>) -> bool {
    let Kind::Use { what, .. } = &event.kind else { return false };
    what.contains("set_device") && cx.sources.text(event.place).to_ascii_lowercase().contains("rank")
}

/// The assumption for an entry point, as a clause.
fn called(event: &Event, cx: &Context<'_>) -> String {
    let module = cx.program.module_of(cx.file);
    match event.entry.zip(module) {
        Some((func, m)) => use_of(&cx.program.get(m).ir, func),
        None => "a program creates the object".to_owned(),
    }
}

/// How a program uses the function, as a clause: "something calls `Net.forward`".
fn use_of(ir: &Module, func: FuncId) -> String {
    let function = ir.function(func);
    match function.class.map(|class| ir.class(class).name) {
        Some(class) if function.name.as_str() == "__init__" => {
            format!("a program creates an object of `{class}`")
        }
        Some(class) => format!("something calls `{class}.{}`", function.name),
        None => format!("something calls `{}`", function.name),
    }
}

/// The clause for an event that occurs only if a caller passes something.
fn passed(event: &Event) -> &'static str {
    let Kind::Mismatch { stray, .. } = &event.kind else { return "another device" };
    let on_cpu = stray.device == DeviceName::Known("cpu".to_owned());
    if on_cpu && event.bite.world == World::Cuda { "a GPU" } else { "another device" }
}

/// An outside value that is assumed to be on another device.
fn varies(event: &Event) -> Option<&str> {
    let Kind::Mismatch { stray, other, .. } = &event.kind else { return None };
    [stray, other].into_iter().find_map(|side| match &side.device {
        DeviceName::Varies(name) => Some(name.as_str()),
        _ => None,
    })
}

/// Is the file in a folder with copies of other projects, in its own project or in the project around it?
fn is_vendored(path: &Path, root: &Path) -> bool {
    let held =
        |below: &Path| below.components().any(|c| c.as_os_str().to_str().is_some_and(|c| VENDORED.has(c)));
    let below = path.strip_prefix(root).ok().and_then(Path::parent);
    if below.is_some_and(held) {
        return true;
    }
    // The project around is only searched if the root's path contains such a name.
    held(root)
        && root.parent().map(project_root).is_some_and(|outer| root.strip_prefix(&outer).is_ok_and(held))
}
