//! Expressions, their operators and their parts.

use super::{ArgList, CallId, CompId, ExprId, ExprList, FuncId, IfElseId, Var, WalrusId};
use crate::span::Span;
use crate::sym::Sym;

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

/// A call, as [`Module::call`](super::Module::call) gives it.
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
