//! What a file's text mentions, before anything is interpreted: the nodes and edges of the graph of relevance.

use rustc_hash::FxHashSet;

use crate::ir::{ExprId, FuncId, Slot};
use crate::link::ModIdx;

/// What one file's text says.
pub(crate) struct Found {
    /// What decides a device.
    pub(crate) seeds: Vec<Node>,
    /// What does so only in the function itself: callers who know more decide for themselves.
    pub(crate) own: Vec<Node>,
    /// What uses an accelerator, and leaves nothing there: `torch.cuda.synchronize()`.
    pub(crate) uses: Vec<Node>,
    /// What does not, and yet tells its caller of one: questions, and devices that somebody else has chosen.
    pub(crate) hints: Vec<Node>,
    /// From a caller (or a variable) to what it mentions.
    pub(crate) edges: Vec<(Node, Node)>,
    /// From a method to another one of the same object.
    pub(crate) same: Vec<((ModIdx, FuncId), (ModIdx, FuncId))>,
    /// From a constructor to a function that it calls.
    pub(crate) helpers: Vec<((ModIdx, FuncId), (ModIdx, FuncId))>,
    /// Calls in each function.
    pub(crate) calls: Vec<u32>,
    /// Functions that ask something about the machine.
    pub(crate) asking: FxHashSet<FuncId>,
    /// The expressions that speak of `torch.Generator`, in order.
    pub(crate) generators: Vec<ExprId>,
    /// Functions that make tensors where another one is: `device=x.device`.
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

/// An order of nodes that does not change from run to run.
pub(crate) fn key(node: Node) -> (u32, u32, u32) {
    match node {
        Node::Function(m, f) => (m.0, 0, f.0),
        Node::Variable(m, s) => (m.0, 1, u32::from(s)),
    }
}

/// Numbers of the IR are 32 bits wide; there are never more of anything in a file.
pub(crate) fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
