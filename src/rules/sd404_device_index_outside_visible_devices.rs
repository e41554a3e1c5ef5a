//! SD404 device-index-outside-visible-devices: an index that is counted as the machine counts its GPUs.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::events::{finding, with_stack};
use crate::world::World;

pub(super) const CODE: Code = Code(404);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, _cx: &Context<'_>) -> Option<Finding> {
        let Kind::OutsideVisible { index, visible, set } = &event.kind else { return None };
        let message = match (index, visible) {
            (Some(i), Some(v)) => {
                format!(
                    "`cuda:{i}` does not exist where `CUDA_VISIBLE_DEVICES` is `{v}`: visible GPUs are numbered from zero"
                )
            }
            _ => "this index comes from `CUDA_VISIBLE_DEVICES`, and visible GPUs are numbered from zero"
                .to_owned(),
        };
        let mut f = finding(CODE, event, message, event.place, "another GPU, or none");
        f.world = World::Cuda;
        if let Some(set) = set.filter(|s| *s != event.place) {
            f = f.related(set, "the visible GPUs are chosen here");
        }
        Some(
            with_stack(f, event)
                .help("count from zero: with `CUDA_VISIBLE_DEVICES=\"2,3\"` they are `cuda:0` and `cuda:1`"),
        )
    }
}
