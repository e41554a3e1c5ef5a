//! The intermediate representation of one file: what `lower` gives and `flow` interprets.
//!
//! A small tree in arenas, one [`Module`] a file. Expressions, statements, functions and classes are
//! numbers into the module's vectors; lists of them are ranges of pooled vectors. Names are resolved
//! to slots here, so that the interpreter never looks a local up by name. What cannot matter to the
//! place of a tensor (annotations' inner structure, docstrings, comments) is gone.

mod index;
mod module;
mod stmt;

pub use index::{ExprSet, Index, Setting};
pub use module::Module;
pub use stmt::{Case, Handler, Import, Stmt};

use std::ops::Range;

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

/// Binary operators. `In`, `NotIn`, `Is` and the comparisons are in [`CmpOp`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "they are Python's operators")]
pub enum BinOp {
    Add,
    Sub,
    Mul,
    MatMul,
    Div,
    Mod,
    Pow,
    LShift,
    RShift,
    BitOr,
    BitXor,
    BitAnd,
    FloorDiv,
}

/// Unary operators.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "they are Python's operators")]
pub enum UnaryOp {
    Not,
    Neg,
    Pos,
    Invert,
}

/// Comparison operators.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "they are Python's operators")]
pub enum CmpOp {
    Eq,
    NotEq,
    Lt,
    LtE,
    Gt,
    GtE,
    Is,
    IsNot,
    In,
    NotIn,
}

/// An expression. As a target of an assignment, `Var`, `Attr`, `Index`, `Tuple`, `List` and `Star` mean
/// the places that are bound.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Expr {
    /// A name.
    Var(Var),
    /// `base.name`
    Attr {
        /// The object.
        base: ExprId,
        /// The attribute.
        name: Sym,
    },
    /// `func(args)`, see [`Call`].
    Call(CallId),
    /// `base[index]`; several indices are a `Tuple`.
    Index {
        /// What is indexed.
        base: ExprId,
        /// The index.
        index: ExprId,
    },
    /// `lower:upper:step` inside an index; the parts that are there, in order.
    Slice(ExprList),
    /// `(a, b)`
    Tuple(ExprList),
    /// `[a, b]`
    List(ExprList),
    /// `{a, b}`
    Set(ExprList),
    /// `{k: v, **w}`: pairs key, value; for `**w` the pair is (`Star(w)`, `w`).
    Dict(ExprList),
    /// `left op right`
    Binary {
        /// The operator.
        op: BinOp,
        /// Left operand.
        left: ExprId,
        /// Right operand.
        right: ExprId,
    },
    /// `op operand`
    Unary {
        /// The operator.
        op: UnaryOp,
        /// The operand.
        operand: ExprId,
    },
    /// `a and b and c`; also what a chained comparison becomes.
    And(ExprList),
    /// `a or b or c`
    Or(ExprList),
    /// `left op right`
    Compare {
        /// The operator.
        op: CmpOp,
        /// Left operand.
        left: ExprId,
        /// Right operand.
        right: ExprId,
    },
    /// `then if test else orelse`, see [`IfElse`].
    IfElse(IfElseId),
    /// A string literal (implicit concatenation joined). Those of more than 200 bytes are `Opaque`.
    Str(Sym),
    /// An integer that fits; others are `Opaque`.
    Int(Whole),
    /// A floating-point number.
    Float(Real),
    /// An imaginary number: `1j`.
    Imaginary,
    /// `True`
    True,
    /// `False`
    False,
    /// `None`
    None,
    /// `...`
    Ellipsis,
    /// An f-string: the parts in order, literal text as `Str`. Conversions and formats are dropped; a part
    /// `{x=}` or with braces in its format is `Opaque`.
    Format(ExprList),
    /// `lambda`
    Lambda(FuncId),
    /// A comprehension or generator expression.
    Comp(CompId),
    /// `await e`
    Await(ExprId),
    /// `yield e`; `None` is an `Expr::None`.
    Yield(ExprId),
    /// `yield from e`
    YieldFrom(ExprId),
    /// `*e`
    Star(ExprId),
    /// `target := value`, see [`Walrus`].
    Walrus(WalrusId),
    /// Anything else (bytes, complex, big integers, template strings, broken syntax): the value is
    /// unknown, the parts are evaluated.
    Opaque(ExprList),
}

// There are more of them than of anything else: what is rare stands elsewhere.
const _: () = assert!(size_of::<Expr>() <= 12);

/// An integer that need not lie where others do: it would make all expressions larger.
#[derive(Clone, Copy, PartialEq, Debug)]
#[repr(Rust, packed(4))]
pub struct Whole(pub i64);

/// A floating-point number, likewise.
#[derive(Clone, Copy, PartialEq, Debug)]
#[repr(Rust, packed(4))]
pub struct Real(pub f64);

/// `then if test else orelse`
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct IfElse {
    /// The condition.
    pub test: ExprId,
    /// Value where it holds.
    pub then: ExprId,
    /// Value where it does not.
    pub orelse: ExprId,
}

/// `target := value`
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Walrus {
    /// The name that is bound.
    pub target: Var,
    /// The value.
    pub value: ExprId,
}

/// How an argument is passed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArgKind {
    /// `f(x)`
    Positional,
    /// `f(name=x)`
    Keyword(Sym),
    /// `f(*x)`
    Star,
    /// `f(**x)`
    DoubleStar,
}

/// An argument of a call, or a keyword of a class statement.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Arg {
    /// How it is passed.
    pub kind: ArgKind,
    /// Its value.
    pub value: ExprId,
    /// The whole argument, `name=` included.
    pub span: Span,
}

/// A run of [`Module::arg_pool`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ArgList {
    /// Index of the first argument in the pool.
    pub start: u32,
    /// Number of arguments.
    pub len: u32,
}

/// A call, as [`Module::call`] gives it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Call<'a> {
    /// What is called.
    pub func: ExprId,
    /// The arguments in source order.
    pub args: &'a [Arg],
    /// From `(` to `)`, both included.
    pub paren: Span,
}

/// A call as it is kept.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct KeptCall {
    /// What is called.
    pub func: ExprId,
    /// The arguments in source order.
    pub args: ArgList,
    /// From `(` to `)`, both included.
    pub paren: Span,
}

/// `for target in iter if conditions`
#[derive(Clone, PartialEq, Debug)]
pub struct Generator {
    /// What is bound on each round.
    pub target: ExprId,
    /// What is iterated.
    pub iter: ExprId,
    /// The filters.
    pub conditions: ExprList,
}

/// What a comprehension makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "they are Python's comprehensions")]
pub enum CompKind {
    List,
    Set,
    Dict,
    Generator,
}

/// A comprehension. Its variables are slots of the function around it that nothing else uses.
#[derive(Clone, PartialEq, Debug)]
pub struct Comp {
    /// What it makes.
    pub kind: CompKind,
    /// The element, or the key of a dict.
    pub element: ExprId,
    /// The value, in a dict.
    pub value: Option<ExprId>,
    /// The loops, outermost first.
    pub generators: Box<[Generator]>,
}

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

impl Function {
    /// See [`is_private`].
    pub fn is_private(&self) -> bool {
        is_private(self.name.as_str())
    }
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
