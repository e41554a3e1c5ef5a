//! A cache of the meanings of all expressions of a file, for passes that look at whole files.

use rayon::prelude::*;

use super::{MAX_ALIASES, ModIdx, Program, Resolved};
use crate::ir::{Expr, ExprId};
use crate::work::spend;

/// The meanings of a file's expressions.
pub(super) struct Meanings {
    /// For each expression, 0, or one more than the index of its meaning.
    places: Box<[u32]>,
    meant: Vec<Resolved>,
}

impl Meanings {
    /// The meaning of an expression of the file.
    pub(super) fn get(&self, e: ExprId) -> Option<Resolved> {
        let place = self.places[e.0 as usize].checked_sub(1)?;
        self.meant.get(place as usize).copied()
    }
}

impl Program {
    /// Caches for these files the meaning of each expression, and the function that contains it. This changes no answer, only the time that
    /// it takes.
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
                // The parts of an expression have lower numbers than the expression.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{FuncId, Module};
    use crate::link::Resolved;
    use crate::lower::{Kind, lower};
    use crate::span::FileId;

    const NET: &str =
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    pass\n\n\nBase = nn.Module\n";
    const MAIN: &str = "\
import torch as t
import net
from net import Base, Net as N

a = lambda x=t.zeros(2): [y.net for y in x if y]


class Own(Base[int]):
    scale = t.ones(1)

    def run(self, device: t.device):
        import numpy as np

        def inner():
            return np.zeros(3), N(), net.Net, self.scale, len(t.cuda.FloatTensor)

        return inner
";

    fn program() -> Program {
        let read = |(n, text): (u32, &str)| -> Module { lower(FileId(n), text, Kind::Script).module };
        let modules = [(0, MAIN), (1, NET)].map(read).into();
        Program::link(modules, &mut |_, _, name| (name.as_str() == "net").then_some(FileId(1)))
    }

    fn answers(program: &Program, m: ModIdx) -> Vec<(Option<Resolved>, FuncId)> {
        let ir = &program.get(m).ir;
        let all = (0..ir.exprs.len()).map(|n| ExprId(u32::try_from(n).unwrap_or(u32::MAX)));
        all.map(|e| (program.resolve_expr(m, e), ir.function_around(e))).collect()
    }

    #[test]
    fn what_is_noted_is_what_is_found_without_it() {
        let (fresh, noted) = (program(), program());
        let files = [ModIdx(0), ModIdx(1)];
        noted.note(&files);
        for m in files {
            let (before, after) = (answers(&fresh, m), answers(&noted, m));
            assert_eq!(before, after);
            assert!(before.iter().filter(|(meant, _)| meant.is_some()).count() > 3);
        }
    }
}
