//! Statements.

use super::{BinOp, Block, ClassId, ExprId, ExprList, FuncId, HandlerList, ImportList, Var};
use crate::span::Span;
use crate::sym::Sym;

/// `except types as name: body`
#[derive(Clone, PartialEq, Debug)]
pub struct Handler {
    /// The exception classes; nothing for a bare `except`.
    pub types: Option<ExprId>,
    /// The variable.
    pub name: Option<Var>,
    /// The handler.
    pub body: Block,
    /// From `except` to the end of the body.
    pub span: Span,
    /// From `except` to the colon, that included.
    pub head: Span,
}

/// `case pattern if guard: body`. Patterns are not interpreted: what they bind is unknown.
#[derive(Clone, PartialEq, Debug)]
pub struct Case {
    /// The names that the pattern binds.
    pub binds: Box<[Var]>,
    /// When the pattern is a plain value or an or-pattern of values, those; empty otherwise.
    pub values: ExprList,
    /// Does it match whatever comes (`case _:`)? Never with a guard.
    pub irrefutable: bool,
    /// The guard.
    pub guard: Option<ExprId>,
    /// The body.
    pub body: Block,
}

/// One name of an `import` statement.
#[derive(Clone, PartialEq, Debug)]
pub struct Import {
    /// Number of leading dots; 0 for an absolute import.
    pub level: u32,
    /// The dotted module name as written; empty for `from . import x`.
    pub module: Sym,
    /// `None` for `import module`; the imported name for `from module import name`; `*` for a star.
    pub name: Option<Sym>,
    /// The variable that is bound (none for a star import). `import a.b` binds `a`; see `top`.
    pub target: Option<Var>,
    /// `import a.b.c` without `as`: the variable names the top package `a`, not `a.b.c`.
    pub top: bool,
}

impl Import {
    /// The dotted name of what is imported, without the leading dots: `a.b` for `from a import b`.
    pub fn whole(&self) -> Sym {
        match self.name {
            None => self.module,
            Some(name) if self.module.as_str().is_empty() => name,
            Some(name) => self.module.dotted(name),
        }
    }
}

/// A statement.
#[derive(Clone, PartialEq, Debug)]
pub enum Stmt {
    /// An expression.
    Expr(ExprId),
    /// `t1 = t2 = value`
    Assign {
        /// The targets.
        targets: ExprList,
        /// The value.
        value: ExprId,
    },
    /// `target op= value`
    AugAssign {
        /// The target.
        target: ExprId,
        /// The operator.
        op: BinOp,
        /// The value.
        value: ExprId,
    },
    /// `target: annotation = value`
    AnnAssign {
        /// The target.
        target: ExprId,
        /// The annotation.
        annotation: ExprId,
        /// The value, if there is one.
        value: Option<ExprId>,
    },
    /// `if`; `elif` is an `If` in `orelse`.
    If {
        /// The condition.
        test: ExprId,
        /// The branch.
        then: Block,
        /// The other branch.
        orelse: Block,
    },
    /// `while`
    While {
        /// The condition.
        test: ExprId,
        /// The body.
        body: Block,
        /// The `else` part.
        orelse: Block,
    },
    /// `for` and `async for`
    For {
        /// What is bound on each round.
        target: ExprId,
        /// What is iterated.
        iter: ExprId,
        /// The body.
        body: Block,
        /// The `else` part.
        orelse: Block,
    },
    /// `with` and `async with`
    With {
        /// The context managers, each with what it binds.
        items: Box<[(ExprId, Option<ExprId>)]>,
        /// The body.
        body: Block,
    },
    /// `try`
    Try {
        /// The body.
        body: Block,
        /// The handlers.
        handlers: HandlerList,
        /// The `else` part.
        orelse: Block,
        /// The `finally` part.
        finally: Block,
    },
    /// `return value`
    Return(Option<ExprId>),
    /// `raise exception from cause`
    Raise {
        /// The exception.
        exception: Option<ExprId>,
        /// The cause.
        cause: Option<ExprId>,
    },
    /// `assert test, message`
    Assert {
        /// The condition.
        test: ExprId,
        /// The message.
        message: Option<ExprId>,
    },
    /// `del`
    Del(ExprList),
    /// `def`; binds the variable.
    Def(FuncId, Var),
    /// `class`; binds the variable.
    Class(ClassId, Var),
    /// `import`
    Import(ImportList),
    /// `match`
    Match {
        /// The subject.
        subject: ExprId,
        /// The cases.
        cases: Box<[Case]>,
    },
    /// `break`
    Break,
    /// `continue`
    Continue,
    /// `pass`, `global`, `nonlocal`, `type`
    Pass,
}

// There are many: what is rare stands elsewhere.
const _: () = assert!(size_of::<Stmt>() <= 24);
