//! The intermediate representation of one file: what `lower` gives and `flow` interprets.
//!
//! A small tree in arenas, one [`Module`] a file. Expressions, statements, functions and classes are
//! numbers into the module's vectors; lists of them are ranges of pooled vectors. Names are resolved
//! to slots here, so that the interpreter never looks a local up by name. What cannot matter to the
//! place of a tensor (annotations' inner structure, docstrings, comments) is gone.

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

/// A run of [`Module::stmt_pool`]: statements in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Block {
    /// Index of the first statement in the pool.
    pub start: u32,
    /// Number of statements.
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
    /// `then if test else orelse`
    IfElse {
        /// The condition.
        test: ExprId,
        /// Value where it holds.
        then: ExprId,
        /// Value where it does not.
        orelse: ExprId,
    },
    /// A string literal (implicit concatenation joined). Those of more than 200 bytes are `Opaque`.
    Str(Sym),
    /// An integer that fits; others are `Opaque`.
    Int(i64),
    /// A floating-point number.
    Float(f64),
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
    /// `target := value`
    Walrus {
        /// The name that is bound.
        target: Var,
        /// The value.
        value: ExprId,
    },
    /// Anything else (bytes, complex, big integers, template strings, broken syntax): the value is
    /// unknown, the parts are evaluated.
    Opaque(ExprList),
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

/// A call.
#[derive(Clone, PartialEq, Debug)]
pub struct Call {
    /// What is called.
    pub func: ExprId,
    /// The arguments in source order.
    pub args: Box<[Arg]>,
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
        handlers: Box<[Handler]>,
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
    Import(Box<[Import]>),
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
    pub bases: Box<[Arg]>,
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

/// A file.
#[derive(Clone, PartialEq, Debug)]
pub struct Module {
    /// Which file.
    pub file: FileId,
    /// The expressions.
    pub exprs: Vec<Expr>,
    /// The span of each expression.
    pub expr_spans: Vec<Span>,
    /// Storage of [`ExprList`].
    pub expr_pool: Vec<ExprId>,
    /// The statements.
    pub stmts: Vec<Stmt>,
    /// The span of each statement.
    pub stmt_spans: Vec<Span>,
    /// Storage of [`Block`].
    pub stmt_pool: Vec<StmtId>,
    /// The calls.
    pub calls: Vec<Call>,
    /// The comprehensions.
    pub comps: Vec<Comp>,
    /// The functions; the first is the module's own body.
    pub functions: Vec<Function>,
    /// The classes.
    pub classes: Vec<Class>,
    /// Every import statement's parts, wherever they stand, for following them.
    pub imports: Vec<Import>,
}

impl Module {
    /// The expression.
    pub fn expr(&self, id: ExprId) -> Expr {
        self.exprs[id.0 as usize]
    }

    /// Its place in the text.
    pub fn span(&self, id: ExprId) -> Span {
        self.expr_spans[id.0 as usize]
    }

    /// The statement.
    pub fn stmt(&self, id: StmtId) -> &Stmt {
        &self.stmts[id.0 as usize]
    }

    /// Its place in the text.
    pub fn stmt_span(&self, id: StmtId) -> Span {
        self.stmt_spans[id.0 as usize]
    }

    /// The expressions of a list.
    pub fn list(&self, list: ExprList) -> &[ExprId] {
        &self.expr_pool[list.start as usize..(list.start + list.len) as usize]
    }

    /// The statements of a block.
    pub fn block(&self, block: Block) -> &[StmtId] {
        &self.stmt_pool[block.start as usize..(block.start + block.len) as usize]
    }

    /// The call.
    pub fn call(&self, id: CallId) -> &Call {
        &self.calls[id.0 as usize]
    }

    /// The comprehension.
    pub fn comp(&self, id: CompId) -> &Comp {
        &self.comps[id.0 as usize]
    }

    /// The function.
    pub fn function(&self, id: FuncId) -> &Function {
        &self.functions[id.0 as usize]
    }

    /// The class.
    pub fn class(&self, id: ClassId) -> &Class {
        &self.classes[id.0 as usize]
    }
}
