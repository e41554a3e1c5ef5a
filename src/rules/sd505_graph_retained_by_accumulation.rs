//! SD505 graph-retained-by-accumulation: values that keep the graph of an iteration after its end.

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
