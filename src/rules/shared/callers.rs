//! Who decides the device of an argument: visible callers, CPU-only code, or a test.

use crate::flow::event::{DeviceName, Event, Operand};
use crate::flow::is_module_class;
use crate::ir::FuncKind;
use crate::link::ClassKey;
use crate::rules::check::Context;
use crate::rules::shared::test_code::in_tests;
use crate::span::{Place, Span};
use crate::torch::{self, Base};
use crate::words::Words;

static PREPARES_DATA: Words = Words::of("code that prepares data");

/// Is the code a test? A test chooses the device of its fixtures and parameters.
pub fn as_tests_like(event: &Event, other: &Operand, cx: &Context<'_>) -> bool {
    let given = !matches!(other.device, DeviceName::Known(_));
    let here = Place { file: cx.file, span: Span::default() };
    event.symbolic
        && (in_tests(event.place, cx) || given && in_tests(here, cx) || given && tries_itself(event, cx))
}

/// Is it a method `def test(self):` of a module, interpreted as an entry point? It decides where its tensors and the module are.
fn tries_itself(event: &Event, cx: &Context<'_>) -> bool {
    let (Some(module), Some(entry)) = (cx.program.module_of(cx.file), event.entry) else { return false };
    let function = cx.program.get(module).ir.function(entry);
    let of_module = |class| is_module_class(cx.program, ClassKey { module, class });
    function.params.len() == 1
        && function.name.as_str().split('_').any(|word| matches!(word, "test" | "selftest"))
        && function.class.is_some_and(of_module)
}

/// Do the callers decide? A helper with visible callers is judged by their arguments, and CPU-only code stays on the CPU.
pub fn callers_decide(event: &Event, other: &Operand, cx: &Context<'_>) -> bool {
    match other.device {
        // A function that CPU-only code calls also works on the CPU.
        DeviceName::Varies(_) => {
            let mut places = std::iter::once(event.place).chain(event.stack.iter().copied());
            event.callers_decide || places.any(|place| host_code(place, cx))
        }
        DeviceName::WithModule => event.callers_decide,
        DeviceName::Known(_) => false,
    }
}

/// Is the place in code that prepares data on the CPU: a data set, a collator, a tokenizer?
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

/// Common names of code that prepares data on the CPU.
fn names_host_code(name: &str) -> bool {
    PREPARES_DATA.is_part_of(&name.to_ascii_lowercase())
}
