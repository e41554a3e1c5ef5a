//! The nodes and edges of the relevance graph, as far as the text of one file determines them.

use rustc_hash::FxHashSet;

use crate::ir::{ExprId, FuncId, Slot};
use crate::link::ModIdx;

/// The result of the scan of one file.
pub(crate) struct Found {
    /// Nodes that decide a device.
    pub(crate) seeds: Vec<Node>,
    /// Nodes that are worth interpreting but not propagated: callers with more information decide themselves.
    pub(crate) own: Vec<Node>,
    /// Nodes that use an accelerator and leave no value there: `torch.cuda.synchronize()`.
    pub(crate) uses: Vec<Node>,
    /// Nodes that decide no device but carry information to their callers: queries, and devices that other code has chosen.
    pub(crate) hints: Vec<Node>,
    /// From a caller (or a variable) to the nodes that it mentions.
    pub(crate) edges: Vec<(Node, Node)>,
    /// From a method to another method of the same object.
    pub(crate) same: Vec<((ModIdx, FuncId), (ModIdx, FuncId))>,
    /// From a constructor to a function that it calls.
    pub(crate) helpers: Vec<((ModIdx, FuncId), (ModIdx, FuncId))>,
    /// The number of calls in each function.
    pub(crate) calls: Vec<u32>,
    /// Functions that query the machine.
    pub(crate) asking: FxHashSet<FuncId>,
    /// The expressions that mention `torch.Generator`, in order.
    pub(crate) generators: Vec<ExprId>,
    /// Functions that create tensors on the device of another one: `device=x.device`.
    pub(crate) beside: FxHashSet<FuncId>,
}

/// A function, or a module-level variable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Node {
    Function(ModIdx, FuncId),
    Variable(ModIdx, Slot),
}

impl Node {
    /// The file that it is in.
    pub(crate) const fn module(self) -> ModIdx {
        match self {
            Self::Function(module, _) | Self::Variable(module, _) => module,
        }
    }
}

/// A sort key for nodes that is the same in every run.
pub(crate) fn key(node: Node) -> (u32, u32, u32) {
    match node {
        Node::Function(m, f) => (m.0, 0, f.0),
        Node::Variable(m, s) => (m.0, 1, u32::from(s)),
    }
}

/// Converts to the 32-bit numbers of the IR. No file has more items of any kind.
pub(crate) fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
