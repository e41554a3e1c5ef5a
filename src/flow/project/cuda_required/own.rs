//! The project's own methods with the names of PyTorch's.

use super::MOVE;
use crate::ir::FuncId;
use crate::link::{ModIdx, Program};
use crate::sym::Sym;

/// The project's own methods that have the names of PyTorch's move methods.
#[derive(Debug, Default)]
pub(super) struct Own {
    pub(super) methods: Vec<(Sym, (ModIdx, FuncId))>,
    /// Whether only methods count that the file or its direct imports define.
    pub(super) near: bool,
}

impl Own {
    /// Finds the methods in these files.
    pub(super) fn of(program: &Program, files: &[ModIdx]) -> Self {
        let classes =
            files.iter().flat_map(|&m| program.get(m).ir.classes.iter().map(move |class| (m, class)));
        let methods =
            classes.flat_map(|(m, class)| class.methods.iter().map(move |&(name, f)| (name, (m, f))));
        let methods = methods.filter(|(name, _)| matches!(name.as_str(), MOVE | "to")).collect();
        Self { methods, near: false }
    }
}
