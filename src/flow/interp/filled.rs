//! What is made on the CPU, filled from a tensor that was given, and takes its place in some branches: the result is wherever
//! the caller's tensor is, or else on the host.

use super::super::diagram::FALSE;
use super::super::dims::Dims;
use super::super::event::Meeting;
use super::super::value::{Device, FrameId, OriginId, OuterId, Reason, Value};
use super::Interp;
use super::meet::{Party, Rule};
use crate::ir::{ExprId, FuncId};
use crate::link::ModIdx;

/// A tensor on the CPU that was filled from one that is wherever a caller wants it.
#[derive(Clone, Copy)]
pub(super) struct Filled {
    /// The filled one's place, with how it came to be.
    leaf: u32,
    /// Whose place the other one's is.
    from: OuterId,
    /// What it is filled with, and in which function.
    at: ExprId,
    frame: FrameId,
    function: (ModIdx, FuncId),
}

/// More are not remembered.
const MAX_FILLED: usize = 64;

impl Interp<'_> {
    /// `whole[…] = value`
    pub(super) fn note_filled(&mut self, whole: Value, value: Value, at: ExprId) {
        let Some(leaf) = self.made_on_host(whole) else { return };
        let Some(from) = self.lives_with(value, at) else { return };
        let (frame, function) = (self.frame, self.running());
        if self.watch.filled.len() < MAX_FILLED {
            self.watch.filled.push(Filled { leaf, from, at, frame, function });
        }
    }

    fn running(&self) -> (ModIdx, FuncId) {
        (self.here().module, self.here().func)
    }

    /// The place of a tensor that was made without a word about where.
    fn made_on_host(&self, v: Value) -> Option<u32> {
        let Value::Tensor(t) = v else { return None };
        let leaf = self.d.as_leaf(self.get_tensor(t).device)?;
        let (device, origin) = *self.t.places.get(leaf);
        let made = self.chain(origin);
        (device == Device::Cpu && made.iter().all(|s| s.reason == Reason::Default)).then_some(leaf)
    }

    /// The outside thing that a tensor is with, whose place is the caller's choice.
    fn lives_with(&mut self, v: Value, at: ExprId) -> Option<OuterId> {
        let (device, _) = self.tensor_place(v, at)?;
        let Device::Of(o) = self.t.places.get(self.d.as_leaf(device)?).0 else { return None };
        let outer = self.t.get_outer(o);
        (outer.varies || outer.with.is_some()).then_some(o)
    }

    /// A function that is interpreted for itself returns: on some paths what is where its caller has it, and on others a copy of
    /// that on the host?
    pub(super) fn check_copies_returned(&mut self, result: Value) {
        // The number of an activation that is over is another one's.
        let (frame, function) = (self.frame, self.running());
        let own = |f: &Filled| f.frame == frame && f.function == function;
        let filled: Vec<Filled> = self.watch.filled.iter().copied().filter(own).collect();
        let Some(&Filled { at, .. }) = filled.first() else { return };
        let Some((device, _)) = self.tensor_place(result, at) else { return };
        let leaves = self.device_leaves(device);
        let before = self.path;
        for Filled { leaf, from, at, .. } in filled {
            let other = leaves.iter().find(|&&(_, d, _)| d == Device::Of(from)).map(|&(other, ..)| other);
            let Some(other) = other else { continue };
            let copied = self.d.where_leaf(device, &mut |p| p == leaf);
            if copied == FALSE {
                continue;
            }
            let party = |device| Party { expr: at, device, dims: Dims::SOME, rule: Rule::STRICT };
            let parties = [party(self.d.leaf(leaf)), party(self.d.leaf(other))];
            self.path = copied;
            self.meet(Meeting::Replaced, "", at, &parties);
        }
        self.path = before;
    }

    /// Is the first device that of a copy of what is on the second one, or lives with it?
    pub(super) fn is_copy_of(&self, copy: (Device, OriginId), other: Device) -> bool {
        let Device::Of(there) = other else { return false };
        self.watch.filled.iter().any(|f| {
            let with = self.t.get_outer(f.from).with;
            *self.t.places.get(f.leaf) == copy && (f.from == there || with == Some(there))
        })
    }
}
