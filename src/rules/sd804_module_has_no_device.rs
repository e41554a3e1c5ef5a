//! SD804 module-has-no-device: `.device` of a module that has none.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::code::quoted;
use crate::rules::shared::events::{finding, with_stack};
use crate::rules::shared::naming::is_short;
use crate::world::World;

pub(super) const CODE: Code = Code(804);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::NoDevice = &event.kind else { return None };
        let read = quoted(cx, event.place, "`.device`");
        let message = format!("{read} raises: an `nn.Module` has no attribute `device`");
        let mut f = finding(CODE, event, message, event.place, "`AttributeError` on every machine");
        f.world = World::Always;
        let module = cx.sources.text(event.place).strip_suffix(".device").filter(|text| is_short(text));
        let help = match module {
            Some(module) => format!("use the device of a parameter: `next({module}.parameters()).device`"),
            None => "use the device of a parameter: `next(model.parameters()).device`".to_owned(),
        };
        Some(with_stack(f, event).help(help))
    }
}
