//! What was wanted on the CPU before, for the same reason.

use super::super::event::{Kind, Later};
use super::super::value::Device;
use super::{Cond, Interp, Pending};
use crate::finding::Code;
use crate::span::Place;

impl Interp<'_> {
    /// Has something before it raised already wherever this does, since it was put on the same device that others name? Then this
    /// is another place of that.
    pub(super) fn wanted_here_before(&mut self, d: Device, bad: Cond, place: Place) -> bool {
        let now = self.d.and(self.path, bad);
        let before = std::mem::take(&mut self.watch.wanted_on_cpu);
        let first = before
            .iter()
            .find(|&&(device, when, at)| device == d && at != place && self.d.implies(now, when));
        let first = first.map(|f| f.2);
        self.watch.wanted_on_cpu = before;
        match first {
            Some(first) => {
                let through = self.call_stack().to_vec();
                let told = |p: &&mut Pending| {
                    p.event.place == first && matches!(p.event.kind, Kind::Mismatch { .. })
                };
                for told in self.events.iter_mut().filter(told) {
                    told.event.also.push(Later { place, through: through.clone() });
                }
                true
            }
            None => {
                if !self.is_silenced(&[Code(207)], place, None) {
                    self.watch.wanted_on_cpu.push((d, now, place));
                }
                false
            }
        }
    }
}
