//! Parameters that are arrays or tensors, whichever the caller has.

use crate::flow::domain::diagram::{Cond, FALSE};
use crate::flow::domain::value::{Device, OuterId, OuterKey};
use crate::flow::machine::Interp;
use crate::ir::FuncId;
use crate::link::ModIdx;

impl Interp<'_> {
    /// `a = torch.from_numpy(a) if isinstance(a, np.ndarray) else a`, and the same of `b`: is it one parameter that is a tensor, where
    /// another one that is asked the same is none? Who calls gives both in one form.
    pub(crate) fn is_one_of_two_kinds(&mut self, d: Device, bad: Cond) -> bool {
        let Device::Of(o) = d else { return false };
        if !self.evidence.other_kinds.contains_key(&o) {
            return false;
        }
        let Some(own) = self.function_given(o) else { return false };
        let others =
            self.evidence.other_kinds.iter().filter(|&(&p, _)| p != o && self.function_given(p) == Some(own));
        let others: Vec<Cond> = others.map(|(_, &other)| other).collect();
        let here = self.d.and(self.path, bad);
        others.into_iter().any(|other| here != FALSE && self.d.implies(here, other))
    }

    /// The function that the outside thing, or what it is a part of, is given to.
    fn function_given(&self, o: OuterId) -> Option<(ModIdx, FuncId)> {
        let mut at = o;
        loop {
            match self.t.get_outer(at).key {
                OuterKey::Param { module, func, .. } => return Some((module, func)),
                OuterKey::Attr { base, .. } | OuterKey::Item { base, .. } => at = base,
                _ => return None,
            }
        }
    }
}
