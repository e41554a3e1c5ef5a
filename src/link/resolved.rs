//! What the names in a file mean, noted for all of its expressions: whoever looks through whole files asks for each of them.

use rayon::prelude::*;

use super::{MAX_ALIASES, ModIdx, Program, Resolved};
use crate::ir::{Expr, ExprId};
use crate::work::spend;

/// What expressions of a file mean.
pub(super) struct Meanings {
    /// For each expression, 0 or one more than the place of what it means.
    places: Box<[u32]>,
    meant: Vec<Resolved>,
}

impl Meanings {
    /// Of an expression of the file.
    pub(super) fn get(&self, e: ExprId) -> Option<Resolved> {
        let place = self.places[e.0 as usize].checked_sub(1)?;
        self.meant.get(place as usize).copied()
    }
}

impl Program {
    /// Notes for these files what their expressions mean, and in which function each stands. The answers are the same without that; to
    /// look them up takes less.
    pub fn note(&self, files: &[ModIdx]) {
        files.par_iter().for_each(|&m| {
            self.get(m).ir.note_owners();
            self.get(m).noted.get_or_init(|| self.meanings_of(m));
        });
    }

    fn meanings_of(&self, module: ModIdx) -> Meanings {
        let ir = &self.get(module).ir;
        spend(ir.exprs.len());
        let mut noted = Meanings { places: vec![0; ir.exprs.len()].into(), meant: Vec::new() };
        for (n, &e) in ir.exprs.iter().enumerate() {
            let id = ExprId(u32::try_from(n).unwrap_or(u32::MAX));
            let meant = match e {
                Expr::Var(_) => self.resolve_through(module, id, MAX_ALIASES),
                // Parts are numbered before the whole.
                Expr::Attr { base, name } => {
                    noted.get(base).and_then(|base| self.resolve_attribute(module, base, name))
                }
                Expr::Index { base, .. } => {
                    noted.places[n] = noted.places[base.0 as usize];
                    continue;
                }
                _ => continue,
            };
            if let Some(meant) = meant {
                noted.meant.push(meant);
                noted.places[n] = u32::try_from(noted.meant.len()).unwrap_or(0);
            }
        }
        noted
    }
}
