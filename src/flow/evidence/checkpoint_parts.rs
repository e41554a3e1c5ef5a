//! What comes out of a file that `torch.load` has read to a known device: settings, counters and names as often as tensors. It is
//! on that device if it is a tensor, which its use must say.

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::value::{FrameId, OriginId, OuterId, OuterKey, Reason, Tensor, Value};
use crate::flow::machine::Interp;
use crate::ir::ExprId;

/// So many parts of parts are followed.
const MAX_LEVELS: usize = 8;

impl Interp<'_> {
    /// Is it what `torch.load` gave, as it came?
    pub(crate) fn is_out_of_file(&self, t: Tensor) -> bool {
        let loaded = |origin: OriginId| self.t.origins.get(origin.0).reason == Reason::Loaded;
        !t.certain && self.device_leaves(t.device).into_iter().all(|(.., origin)| loaded(origin))
    }

    /// A part of it: something of which nobody knows what it is.
    pub(crate) fn part_of_file(&mut self, whole: Tensor, e: ExprId) -> Value {
        let part = self.result_of(e);
        if let Value::Outer(o) = part {
            self.evidence.out_of_files.insert(o, whole.device);
        }
        part
    }

    /// Where it is if it is a tensor, of a part of such a file or of a part of that.
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

    /// The part of a file that something with this origin is, or is made of.
    pub(crate) fn file_part(&self, origin: OriginId) -> Option<OuterId> {
        self.evidence.file_parts.get(&origin).copied()
    }

    /// The entry point has ended: what its own calls have read is no more.
    pub(crate) fn forget_file_parts(&mut self) {
        let outers = &self.t;
        let of_body = |o: &OuterId| matches!(outers.get_outer(*o).key, OuterKey::Result { frame, .. } if frame == FrameId(0));
        self.evidence.out_of_files.retain(|o, _| of_body(o));
    }
}
