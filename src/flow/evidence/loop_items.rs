//! Parts of one loop item start on one device. If the program has to move one part of a batch, the others are on the
//! host.

use crate::flow::domain::diagram::{Cond, FALSE};
use crate::flow::domain::dims::Dims;
use crate::flow::domain::value::{Device, OuterId, OuterKey, Reason};
use crate::flow::machine::Interp;
use crate::flow::observers::mismatch::clash::refused;
use crate::flow::observers::mismatch::meet::{Clash, Difference, Party};

impl Interp<'_> {
    /// Records that the program moves a part of a loop item.
    pub(crate) fn part_moves(&mut self, o: OuterId) {
        match self.drawn_with(o) {
            Some(whole) => {
                let parts = self.evidence.moved_parts.entry(whole).or_default();
                if !parts.contains(&o) {
                    parts.push(o);
                }
            }
            // It moves all parts at once, or an unknown one.
            None => {
                let whole = match self.t.get_outer(o).key {
                    OuterKey::Item { base, key: None } if self.is_drawn(base) => base,
                    _ => o,
                };
                self.evidence.moved_wholes.insert(whole);
            }
        }
    }

    /// The loop item that contains the value under a known key.
    pub(crate) fn drawn_with(&self, o: OuterId) -> Option<OuterId> {
        match self.t.get_outer(o).key {
            OuterKey::Item { base, key: Some(_) } if self.is_drawn(base) => Some(base),
            _ => None,
        }
    }

    /// Whether the value is an item of a loop over an outside value.
    fn is_drawn(&self, o: OuterId) -> bool {
        matches!(self.t.get_outer(o).key, OuterKey::Item { key: None, .. })
    }

    /// The clashes between one party that was moved with a part of a batch, and another part of the same batch that was
    /// not moved.
    pub(crate) fn left_of_batch(&mut self, a: &Party, b: &Party) -> Vec<Clash> {
        if self.evidence.moved_parts.is_empty() {
            return Vec::new();
        }
        let mut found = Vec::new();
        for (stray, other, first) in [(a, b, true), (b, a, false)] {
            for (leaf, device, origin) in self.device_leaves(stray.device) {
                let Device::Of(part) = device else { continue };
                let Some(siblings) = self.moved_siblings(part) else { continue };
                // A batch from a loader has one dimension more than its items.
                let itself = self.t.origins.get(origin.0).place == self.place(stray.expr);
                let collated = itself && self.is_of_batch_outside(part);
                let dims = if collated { Dims::SOME } else { stray.dims };
                let stray = &Party { dims, ..*stray };
                for (there, target, reason) in self.device_leaves(other.device) {
                    let cpu = Difference::Cpu { first };
                    let rules = if first { (stray, other) } else { (other, stray) };
                    if !is_elsewhere(target) || !refused(cpu, rules.0, rules.1) {
                        continue;
                    }
                    let moved = self.any_went(&siblings, target, stray);
                    let (places, d) = (&mut self.d, (stray.device, other.device));
                    let here = places.zip(d.0, d.1, &mut |p, q| u32::from(p == leaf && q == there));
                    let bad = here.map_or(FALSE, |here| self.d.and(here, moved));
                    if bad == FALSE || self.d.and(self.path, bad) == FALSE {
                        continue;
                    }
                    let place = self.place(stray.expr);
                    let origin = self.origin(place, Reason::Batch, crate::flow::domain::value::NO_ORIGIN);
                    let pair = match first {
                        true => (Device::Cpu, origin, target, reason),
                        false => (target, reason, Device::Cpu, origin),
                    };
                    found.push(Clash {
                        bad,
                        here: bad,
                        pair,
                        first_is_stray: first,
                        difference: cpu,
                        part: Some(part),
                    });
                }
            }
        }
        found
    }

    /// The moved parts of the batch that contains `part`, if nothing shows where `part` itself is.
    fn moved_siblings(&self, part: OuterId) -> Option<Vec<OuterId>> {
        let whole = self.drawn_with(part)?;
        let brought = self.evidence.brought_along.contains(&part);
        let asked = brought
            || self.evidence.asked_for_device.contains(&part)
            || self.evidence.no_tensors.contains_key(&part);
        if asked || self.evidence.moved_wholes.contains(&whole) {
            return None;
        }
        let siblings = self.evidence.moved_parts.get(&whole)?.iter().copied().filter(|&o| o != part);
        Some(siblings.collect())
    }

    /// The condition under which one of the siblings was moved to this device on the way here.
    fn any_went(&mut self, siblings: &[OuterId], target: Device, at: &Party) -> Cond {
        let mut moved = FALSE;
        for &sibling in siblings {
            let Some(place) = self.moved_to(sibling, at.expr) else { continue };
            let places = &self.t.places;
            let alike = |d: Device| match (d, target) {
                (Device::Cuda(_) | Device::CudaSome, Device::Cuda(_) | Device::CudaSome) => true,
                (d, target) => d == target,
            };
            let there = self.d.where_leaf(place, &mut |p| alike(places.get(p).0));
            moved = self.d.or(moved, there);
        }
        moved
    }
}

/// Whether the device certainly differs from the host's, or is a device that the program names.
const fn is_elsewhere(device: Device) -> bool {
    matches!(device, Device::Cuda(_) | Device::CudaSome | Device::Other(_) | Device::Named(_))
}
