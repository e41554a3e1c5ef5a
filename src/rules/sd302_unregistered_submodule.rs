//! SD302 unregistered-submodule: modules or parameters in a plain container.

mod list_of_given;
mod list_of_resolved;

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::remedy::Remedy;
use crate::rules::check::{Check, Context};
use crate::rules::shared::code::variable;
use crate::rules::shared::events::{finding, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(302);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::Unregistered { container, parameters } = &event.kind else { return None };
        let what = if *parameters { "parameters" } else { "modules" };
        let name = variable(cx, event.place);
        let message = format!(
            "{} is a plain {container}: `.to()`, `parameters()` and `state_dict()` do not see its {what}",
            name.map_or_else(|| "this".to_owned(), |name| format!("`{name}`"))
        );
        let mut f = finding(CODE, event, message, event.place, &format!("does not register its {what}"));
        f.world = World::Always;
        let kind = match (*container, *parameters) {
            ("dict", true) => "ParameterDict",
            ("dict", false) => "ModuleDict",
            (_, true) => "ParameterList",
            (_, false) => "ModuleList",
        };
        let help = format!("make it an `nn.{kind}`, which registers its {what}");
        Some(with_stack(f, event).help(help).remedy([Remedy::Hold { attribute: event.place, class: kind }]))
    }

    fn on_file(&mut self, cx: &Context<'_>) -> Vec<Finding> {
        let mut found = list_of_resolved::resolved(cx);
        found.extend(list_of_given::kept(cx));
        found
    }
}
