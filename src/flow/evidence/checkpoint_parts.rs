//! Parts of a file that `torch.load` reads to a known device. They are settings, counters and names as often as
//! tensors. If a part is a tensor, it is on that device; only its use shows whether it is one.

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::value::{FrameId, OriginId, OuterId, OuterKey, Reason, Tensor, Value};
use crate::flow::machine::Interp;
use crate::ir::ExprId;

/// The maximum number of levels of nested parts that are followed.
const MAX_LEVELS: usize = 8;

impl Interp<'_> {
    /// Whether the tensor is the unchanged result of `torch.load`.
    pub(crate) fn is_out_of_file(&self, t: Tensor) -> bool {
        let loaded = |origin: OriginId| self.t.origins.get(origin.0).reason == Reason::Loaded;
        !t.certain && self.device_leaves(t.device).into_iter().all(|(.., origin)| loaded(origin))
    }

    /// A part of the loaded value. It is unknown what the part is.
    pub(crate) fn part_of_file(&mut self, whole: Tensor, e: ExprId) -> Value {
        let part = self.result_of(e);
        if let Value::Outer(o) = part {
            self.evidence.out_of_files.insert(o, whole.device);
        }
        part
    }

    /// The device of a part of a loaded file, at any depth, in case the part is a tensor.
    pub(crate) fn device_out_of_file(&mut self, o: OuterId, e: ExprId) -> Option<Dd> {
        if self.evidence.out_of_files.is_empty() {
            return None;
        }
        let mut at = o;
        for _ in 0..MAX_LEVELS {
            if let Some(&device) = self.evidence.out_of_files.get(&at) {
                let device = self.because(device, e, Reason::Loaded);
                for (.., origin) in self.device_leaves(device) {
                    self.evidence.file_parts.insert(origin, o);
                }
                return Some(device);
            }
            match self.t.get_outer(at).key {
                OuterKey::Attr { base, .. } | OuterKey::Item { base, .. } => at = base,
                _ => return None,
            }
        }
        None
    }

    /// The part of a loaded file that a value with this origin is, or is made of.
    pub(crate) fn file_part(&self, origin: OriginId) -> Option<OuterId> {
        self.evidence.file_parts.get(&origin).copied()
    }

    /// Removes the parts of files that an entry point's own calls have read. The engine calls it when the entry point
    /// ends.
    pub(crate) fn forget_file_parts(&mut self) {
        let outers = &self.t;
        let of_body = |o: &OuterId| matches!(outers.get_outer(*o).key, OuterKey::Result { frame, .. } if frame == FrameId(0));
        self.evidence.out_of_files.retain(|o, _| of_body(o));
    }
}
