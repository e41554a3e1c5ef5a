//! The intermediate representation of one file: what `lower` gives and `flow` interprets.
//!
//! A small tree in arenas, one [`Module`] a file. Expressions, statements, functions and classes are
//! numbers into the module's vectors; lists of them are ranges of pooled vectors. Names are resolved
//! to slots here, so that the interpreter never looks a local up by name. What cannot matter to the
//! place of a tensor (annotations' inner structure, docstrings, comments) is gone.

mod expr;
mod function;
mod index;
mod module;
mod stmt;

pub use expr::{
    Arg, ArgKind, BinOp, Call, CmpOp, Comp, CompKind, Expr, Generator, IfElse, KeptCall, Real, UnaryOp,
    Walrus, Whole,
};
pub use function::{Class, FuncKind, Function, Param, ParamKind, is_private};
pub use index::{ExprSet, Index, Setting};
pub use module::Module;
pub use stmt::{Case, Handler, Import, Stmt};

use crate::span::{FileId, Span};
use crate::sym::Sym;

/// Number of an expression in its module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ExprId(pub u32);

/// Number of a statement in its module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct StmtId(pub u32);

/// Number of a function in its module. `FuncId(0)` is the module's own body.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct FuncId(pub u32);

/// Number of a class in its module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ClassId(pub u32);

/// Number of a call in its module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct CallId(pub u32);

/// Number of a comprehension in its module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct CompId(pub u32);

/// Number of an `if` expression in its module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct IfElseId(pub u32);

/// Number of a `:=` in its module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct WalrusId(pub u32);

/// Index of a variable in its function's frame.
pub type Slot = u16;

/// A run of [`Module::expr_pool`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExprList {
    /// Index of the first element in the pool.
    pub start: u32,
    /// Number of elements.
    pub len: u32,
}

/// Statements in order: the place in [`Module::stmt_pool`] of their count, which they follow. By default there are none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Block(pub u32);

/// A run of [`Module::handlers`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HandlerList {
    /// Index of the first handler.
    pub start: u32,
    /// Number of handlers.
    pub len: u32,
}

/// A run of [`Module::imports`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ImportList {
    /// Index of the first part.
    pub start: u32,
    /// Number of parts.
    pub len: u32,
}

/// Where a name lives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Var {
    /// A slot of the function that the expression is in. In module-level code (`FuncId(0)`) this is a
    /// slot of the module's frame.
    Local(Slot),
    /// A slot of an enclosing function or, for a comprehension's variable, of an enclosing class body.
    /// [`Function::parent`] applied `depth` times to the function that the expression is in gives its
    /// owner: class bodies between the two are counted, though methods do not see their names.
    Enclosing {
        /// How many times to follow [`Function::parent`], at least 1.
        depth: u8,
        /// The slot there.
        slot: Slot,
    },
    /// A slot of the module's frame, seen from a function or class body.
    Global(Slot),
    /// Bound nowhere in the file: a builtin, or a name from a star import.
    Unbound(Sym),
}

/// A run of [`Module::arg_pool`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ArgList {
    /// Index of the first argument in the pool.
    pub start: u32,
    /// Number of arguments.
    pub len: u32,
}
