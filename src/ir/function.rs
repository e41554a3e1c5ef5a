//! Functions, their parameters, and classes.

use std::ops::Range;

use super::{ArgList, Block, ClassId, ExprId, ExprList, FuncId, Slot};
use crate::span::Span;
use crate::sym::Sym;

/// How a parameter takes arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParamKind {
    /// Before `/`.
    PositionalOnly,
    /// The ordinary kind.
    Normal,
    /// `*args`
    Star,
    /// After `*`.
    KeywordOnly,
    /// `**kwargs`
    DoubleStar,
}

/// A parameter.
#[derive(Clone, PartialEq, Debug)]
pub struct Param {
    /// Its name.
    pub name: Sym,
    /// Its slot.
    pub slot: Slot,
    /// How it takes arguments.
    pub kind: ParamKind,
    /// Its default, evaluated in the scope around the function.
    pub default: Option<ExprId>,
    /// Its annotation, evaluated likewise. A quoted annotation is a `Str`.
    pub annotation: Option<ExprId>,
    /// It has no annotation, and the docstring says that it is a tensor, if it is anything that lives on a device.
    pub documented: bool,
    /// The name in the source.
    pub span: Span,
}

/// What a function is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum FuncKind {
    Module,
    ClassBody,
    Function,
    Lambda,
}

/// Does the name say that it is there for its own file, class or package alone? Python mangles `__name` for its class;
/// `__name__` is Python's own.
pub fn is_private(name: &str) -> bool {
    name.starts_with('_') && !(name.starts_with("__") && name.ends_with("__"))
}

/// A function, lambda, class body or module body: something with a frame.
#[derive(Clone, PartialEq, Debug)]
pub struct Function {
    /// What it is.
    pub kind: FuncKind,
    /// Its name; `<module>`, `<lambda>` or the class's name otherwise.
    pub name: Sym,
    /// The scope around it (a class body for methods). Nothing for the module's body.
    pub parent: Option<FuncId>,
    /// The class in whose body it stands directly: set for methods, and for lambdas in a class body.
    /// For a class body, the class itself.
    pub class: Option<ClassId>,
    /// The parameters in order.
    pub params: Box<[Param]>,
    /// The decorators, outermost first, evaluated in the scope around it.
    pub decorators: ExprList,
    /// The annotation of the result.
    pub returns: Option<ExprId>,
    /// The body; a lambda's is one `Return`.
    pub body: Block,
    /// The numbers of the expressions in the body, those of functions in it included: they follow one another.
    pub exprs: Range<u32>,
    /// Names of the slots, parameters first; a comprehension's variables keep their names.
    pub slots: Box<[Sym]>,
    /// Is it `async`?
    pub is_async: bool,
    /// Does it `yield`?
    pub is_generator: bool,
    /// The whole statement, decorators included.
    pub span: Span,
    /// The name in the source; for a lambda, all of it.
    pub name_span: Span,
}

impl Function {
    /// See [`is_private`].
    pub fn is_private(&self) -> bool {
        is_private(self.name.as_str())
    }
}

/// A class.
#[derive(Clone, PartialEq, Debug)]
pub struct Class {
    /// Its name.
    pub name: Sym,
    /// The bases and keywords, evaluated in the scope around it.
    pub bases: ArgList,
    /// The decorators, outermost first.
    pub decorators: ExprList,
    /// Its body, a function of kind `ClassBody`: the slots' final values are the class's attributes.
    pub body: FuncId,
    /// The functions that stand directly in the body (also under `if`), in order; later ones win.
    pub methods: Box<[(Sym, FuncId)]>,
    /// The whole statement, decorators included.
    pub span: Span,
    /// The name in the source.
    pub name_span: Span,
}
