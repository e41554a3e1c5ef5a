//! What rules that read the intermediate representation of a whole file, not events, start from.

use super::Context;
use crate::ir::Module;
use crate::link::ModIdx;

/// One file. Each rule that reads files adds its own questions to it.
pub(super) struct File<'a> {
    pub(super) cx: &'a Context<'a>,
    pub(super) module: ModIdx,
    pub(super) ir: &'a Module,
}

impl<'a> File<'a> {
    /// The file that is being judged; nothing if it could not be read.
    pub(super) fn of(cx: &'a Context<'a>) -> Option<Self> {
        let module = cx.program.module_of(cx.file)?;
        Some(Self { cx, module, ir: &cx.program.get(module).ir })
    }
}
