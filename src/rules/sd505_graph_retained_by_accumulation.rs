//! SD505 graph-retained-by-accumulation: what outlives a round of a loop and keeps its graph.

mod averages;
mod expressions;
mod states;
mod sums;

use crate::finding::{Code, Finding};
use crate::rules::check::{Check, Context};

pub(super) const CODE: Code = Code(505);
pub(super) struct Rule;

impl Check for Rule {
    fn on_file(&mut self, cx: &Context<'_>) -> Vec<Finding> {
        let mut found = sums::retained(cx);
        found.extend(states::carried(cx));
        found.extend(averages::averaged(cx));
        found
    }
}
