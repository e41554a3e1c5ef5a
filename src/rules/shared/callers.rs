//! Who decides on which device an argument is: callers in sight, code of the host, a test.

use crate::flow::event::{DeviceName, Event, Operand};
use crate::flow::is_module_class;
use crate::ir::FuncKind;
use crate::link::ClassKey;
use crate::rules::check::Context;
use crate::rules::shared::test_code::in_tests;
use crate::span::{Place, Span};
use crate::torch::{self, Base};

/// Is it as a test likes it? Fixtures and parameters are the project's own, wherever that stands to which they are given.
pub fn as_tests_like(event: &Event, other: &Operand, cx: &Context<'_>) -> bool {
    let given = !matches!(other.device, DeviceName::Known(_));
    let here = Place { file: cx.file, span: Span::default() };
    event.symbolic
        && (in_tests(event.place, cx) || given && in_tests(here, cx) || given && tries_itself(event, cx))
}

/// Is it the method by which a module tries itself out that is looked at for itself: `def test(self):`? What it makes is
/// where it likes the module.
fn tries_itself(event: &Event, cx: &Context<'_>) -> bool {
    let (Some(module), Some(entry)) = (cx.program.module_of(cx.file), event.entry) else { return false };
    let function = cx.program.get(module).ir.function(entry);
    let of_module = |class| is_module_class(cx.program, ClassKey { module, class });
    function.params.len() == 1
        && function.name.as_str().split('_').any(|word| matches!(word, "test" | "selftest"))
        && function.class.is_some_and(of_module)
}

/// A helper whose callers are in sight is judged by what they give it; host code stays on the host.
pub fn callers_decide(event: &Event, other: &Operand, cx: &Context<'_>) -> bool {
    match other.device {
        // What code of the host calls is on the host, too.
        DeviceName::Varies(_) => {
            let mut places = std::iter::once(event.place).chain(event.stack.iter().copied());
            event.callers_decide || places.any(|place| host_code(place, cx))
        }
        DeviceName::WithModule => event.callers_decide,
        DeviceName::Known(_) => false,
    }
}

/// Is the place in code that prepares data on the host: a data set, a collator, a tokenizer?
fn host_code(place: Place, cx: &Context<'_>) -> bool {
    let Some(module) = cx.program.module_of(place.file) else { return false };
    let file = cx.sources.get(place.file);
    if file.path.file_stem().is_some_and(|s| names_host_code(&s.to_string_lossy())) {
        return true;
    }
    let linked = cx.program.get(module);
    let by_class = linked.ir.classes.iter().zip(&linked.classes).any(|(class, info)| {
        class.span.contains(place.span)
            && (names_host_code(class.name.as_str())
                || info.externals.iter().any(|&p| {
                    torch::base_class(p).is_some_and(|b| matches!(b.kind, Base::Dataset | Base::HostData))
                }))
    });
    by_class
        || linked.ir.functions.iter().any(|f| {
            f.kind == FuncKind::Function && f.span.contains(place.span) && names_host_code(f.name.as_str())
        })
}

/// Names that the field gives to host code.
fn names_host_code(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "collat",
        "dataset",
        "dataloader",
        "loader",
        "tokeniz",
        "processor",
        "preprocess",
        "augment",
        "__getitem__",
    ]
    .iter()
    .any(|w| name.contains(w))
}
