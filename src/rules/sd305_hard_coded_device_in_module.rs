//! SD305 hard-coded-device-in-module: a CUDA device that a module fixes.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind, UseKind};
use crate::ir::ClassId;
use crate::link::ClassKey;
use crate::rules::check::{Check, Context};
use crate::rules::shared::accelerators::{chosen, home};
use crate::rules::shared::assumptions::assume_no_cuda;
use crate::rules::shared::events::{finding, with_also, with_stack};
use crate::rules::shared::test_code::in_tests;
use crate::span::Place;
use crate::torch::{self, Base};

pub(super) const CODE: Code = Code(305);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::Use { what, origin, backend: None, how, .. } = &event.kind else { return None };
        // The device was decided outside of modules: that is where it is hard-coded.
        if origin.is_some_and(|o| o.file != event.place.file || !in_module_class(o, cx)) {
            return None;
        }
        if !matches!(how, UseKind::Transfer | UseKind::Move | UseKind::Factory | UseKind::Pinned) {
            return None;
        }
        // The tests that make it may be there for CUDA alone.
        if event.is_guess() && in_tests(event.place, cx) {
            return None;
        }
        if !event.in_module
            || chosen(event, cx)
            || event.symbolic && (event.stack.len() > 1 || event.asked_for)
        {
            return None;
        }
        let (place, other) = home(event, *origin);
        let message = format!("{what} fixes a CUDA device inside a module");
        let mut f = finding(CODE, event, message, place, "the module cannot run elsewhere");
        if let Some(o) = other {
            f = f.related(o, format!("{what} uses it"));
        }
        Some(
            with_also(assume_no_cuda(with_stack(f, event), event, cx), event)
                .help("follow an input or a parameter of the module instead, by its `.device`"),
        )
    }
}

/// Is the place in a class that may be a module's? A test that makes modules has chosen the device, not they.
fn in_module_class(place: Place, cx: &Context<'_>) -> bool {
    let Some(module) = cx.program.module_of(place.file) else { return false };
    let linked = cx.program.get(module);
    let forward = crate::sym::Sym::new("forward");
    (0_u32..).zip(linked.ir.classes.iter().zip(&linked.classes)).any(|(n, (class, info))| {
        let module_base = |&path: &_| torch::base_class(path).is_some_and(|b| b.kind == Base::Module);
        let key = ClassKey { module, class: ClassId(n) };
        class.span.contains(place.span)
            && (info.externals.iter().any(module_base) || cx.program.find_method(key, forward).is_some())
    })
}
