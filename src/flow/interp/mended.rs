//! Results of what has been told: where they are hangs on how somebody mends it.

use super::super::atom::Atom;
use super::super::diagram::{Cond, TRUE};
use super::super::value::{Device, Interner, Origin, OriginId};
use super::{Interp, Test};
use crate::ir::ExprId;

impl Interp<'_> {
    /// Does a place hang on how somebody mends what has been told?
    pub(super) fn was_refused(&self, origin: OriginId) -> bool {
        is_refused(&self.t.origins, origin)
    }

    /// Does a condition hang on how somebody mends what has been told?
    pub(super) fn depends_on_mending(&self, cond: Cond) -> bool {
        let mut atoms = Vec::new();
        self.d.support(cond, &mut atoms);
        atoms.into_iter().any(|a| matches!(self.atoms.get(a), Atom::Mended))
    }

    /// The condition that what was made of tensors that do not go together is there: one way to mend that brings it there, and another
    /// one does not.
    pub(super) fn if_mended(&mut self, wanted: Device, e: ExprId) -> Cond {
        let there = match wanted {
            Device::Cuda(_) | Device::CudaSome => self.at_least(1),
            Device::Other(b) => self.available(Some(b)),
            _ => TRUE,
        };
        let test = Test::Expr(self.here().module, e, self.frame, self.pass);
        let atom = match self.tests.get(&test) {
            Some(&atom) => atom,
            None => {
                let atom = self.atoms.add(Atom::Mended);
                self.note_test(test, atom);
                atom
            }
        };
        let mended = self.d.atom(atom);
        self.d.and(mended, there)
    }
}

/// Was it made of tensors that do not go together, or is it wherever something is that was?
pub(super) fn is_refused(origins: &Interner<Origin>, mut origin: OriginId) -> bool {
    while origin != super::NO_ORIGIN {
        let Origin { reason, from, .. } = *origins.get(origin.0);
        if reason == super::Reason::Refused {
            return true;
        }
        origin = from;
    }
    false
}
