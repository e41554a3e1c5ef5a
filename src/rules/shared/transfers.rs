//! Code that the rules about the costs of transfers share.

use crate::finding::{Code, Finding};
use crate::flow::event::Event;
use crate::rules::shared::events::finding;
use crate::world::{Premise, World};

/// A finding about an event of this family.
pub fn transfer(code: Code, event: &Event, message: &str, label: &str) -> Finding {
    let mut f = finding(code, event, message.to_owned(), event.place, label);
    let also_cuda = event.bite.premises.iter().any(|p| matches!(p, Premise::AtLeastGpus(_)));
    f.world = match event.bite.world {
        World::With(b) if !also_cuda => World::With(b),
        _ => World::Cuda,
    };
    f
}
