//! A file as a whole: its tables, and how they are read.

use std::ops::Range;

use super::*;

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
    /// Storage of [`Block`]: a count, the statements, and so on. It begins with the block without a statement.
    pub stmt_pool: Vec<StmtId>,
    /// The handlers of `try` statements, those of one side by side.
    pub handlers: Vec<Handler>,
    /// The calls.
    pub calls: Vec<KeptCall>,
    /// Storage of [`ArgList`].
    pub arg_pool: Vec<Arg>,
    /// The comprehensions.
    pub comps: Vec<Comp>,
    /// The `if` that are expressions.
    pub if_elses: Vec<IfElse>,
    /// The `:=`.
    pub walruses: Vec<Walrus>,
    /// The functions; the first is the module's own body.
    pub functions: Vec<Function>,
    /// The classes.
    pub classes: Vec<Class>,
    /// Every import statement's parts, wherever they stand, for following them.
    pub imports: Vec<Import>,
    /// The names of the attributes in the expressions, each once, in order: whether one is there is often asked.
    pub attributes: Box<[Sym]>,
    /// The texts of the strings, likewise.
    pub strings: Box<[Sym]>,
    /// The expressions that a notebook shows: each is the last statement of its cell.
    pub shown: Box<[Span]>,
    /// What is found out once it is asked for.
    pub index: Index,
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
        let start = block.0 as usize + 1;
        &self.stmt_pool[start..start + self.stmt_pool[block.0 as usize].0 as usize]
    }

    /// The handlers of a `try`.
    pub fn handlers(&self, list: HandlerList) -> &[Handler] {
        &self.handlers[list.start as usize..(list.start + list.len) as usize]
    }

    /// The parts of an import statement.
    pub fn imported(&self, list: ImportList) -> &[Import] {
        &self.imports[list.start as usize..(list.start + list.len) as usize]
    }

    /// The numbers of the statements in a compound one: each statement is numbered after those in it.
    pub fn stmts_in(&self, compound: StmtId) -> Range<usize> {
        let end = compound.0 as usize;
        let from = self.stmt_spans[end].start;
        let before = self.stmt_spans[..end].iter().rev().take_while(|at| at.start >= from).count();
        end - before..end
    }

    /// The numbers of the statements of a function.
    pub fn stmts_of(&self, function: &Function) -> Range<usize> {
        let Some(last) = self.block(function.body).last() else { return 0..0 };
        let (end, from) = (last.0 as usize + 1, function.span.start);
        // Whatever is numbered before its statements begins before it.
        self.stmt_spans[..end].partition_point(|at| at.start < from)..end
    }

    /// The numbers of the expressions in one, itself included.
    pub fn exprs_in(&self, expr: ExprId) -> Range<usize> {
        let end = expr.0 as usize + 1;
        let from = self.span(expr).start;
        let before = self.expr_spans[..end].iter().rev().take_while(|at| at.start >= from).count();
        end - before..end
    }

    /// The numbers of the expressions of a function, with those of its decorators and its signature.
    pub fn exprs_of(&self, function: &Function) -> Range<usize> {
        let decorators = self.list(function.decorators).iter().map(|&d| self.span(d).start);
        let from = decorators.fold(function.span.start, u32::min);
        let (start, end) = (function.exprs.start as usize, function.exprs.end as usize);
        let before = self.expr_spans[..start].iter().rev().take_while(|at| at.start >= from).count();
        start - before..end
    }

    /// Is there an attribute of this name, of whatever object?
    pub fn has_attribute(&self, name: Sym) -> bool {
        self.attributes.binary_search(&name).is_ok()
    }

    /// Is there a string with this text?
    pub fn has_string(&self, text: Sym) -> bool {
        self.strings.binary_search(&text).is_ok()
    }

    /// The call.
    pub fn call(&self, id: CallId) -> Call<'_> {
        self.shown(self.calls[id.0 as usize])
    }

    /// All calls, in the order of their numbers.
    pub fn calls(&self) -> impl DoubleEndedIterator<Item = Call<'_>> + ExactSizeIterator {
        self.calls.iter().map(|&call| self.shown(call))
    }

    fn shown(&self, call: KeptCall) -> Call<'_> {
        Call { func: call.func, args: self.args(call.args), paren: call.paren }
    }

    /// The arguments of a list.
    pub fn args(&self, list: ArgList) -> &[Arg] {
        &self.arg_pool[list.start as usize..(list.start + list.len) as usize]
    }

    /// The comprehension.
    pub fn comp(&self, id: CompId) -> &Comp {
        &self.comps[id.0 as usize]
    }

    /// The `if` that is an expression.
    pub fn if_else(&self, id: IfElseId) -> IfElse {
        self.if_elses[id.0 as usize]
    }

    /// The `:=`.
    pub fn walrus(&self, id: WalrusId) -> Walrus {
        self.walruses[id.0 as usize]
    }

    /// The function.
    pub fn function(&self, id: FuncId) -> &Function {
        &self.functions[id.0 as usize]
    }

    /// Does the target of an assignment or a loop bind the variable?
    pub fn binds(&self, target: ExprId, var: Var) -> bool {
        match self.expr(target) {
            Expr::Var(bound) => bound == var,
            Expr::Tuple(list) | Expr::List(list) => self.list(list).iter().any(|&t| self.binds(t, var)),
            Expr::Star(rest) => self.binds(rest, var),
            _ => false,
        }
    }

    /// Is what one expression names, a variable or a part of one, named in the test as well?
    pub fn asks_about(&self, test: ExprId, named: ExprId) -> bool {
        self.exprs_in(test).any(|n| self.names_the_same(ExprId(u32::try_from(n).unwrap_or(u32::MAX)), named))
    }

    /// Do two expressions name the same variable, or the same part of one?
    pub fn names_the_same(&self, a: ExprId, b: ExprId) -> bool {
        match (self.expr(a), self.expr(b)) {
            (Expr::Var(a), Expr::Var(b)) => a == b,
            (Expr::Attr { base: a, name: m }, Expr::Attr { base: b, name: n }) => {
                m == n && self.names_the_same(a, b)
            }
            (Expr::Index { base: a, index: m }, Expr::Index { base: b, index: n }) => {
                self.names_the_same(a, b) && (self.expr(m) == self.expr(n) || self.names_the_same(m, n))
            }
            _ => false,
        }
    }

    /// The innermost function or class body that the expression stands in; the module's own otherwise.
    pub fn function_around(&self, id: ExprId) -> FuncId {
        if let Some(owners) = self.index.owners.get() {
            return owners[id.0 as usize];
        }
        let inner = &self.functions[1.min(self.functions.len())..];
        // Functions and their expressions are numbered in the same order.
        let mut at = inner.partition_point(|f| f.exprs.start <= id.0);
        while at > 0 && !self.functions[at].exprs.contains(&id.0) {
            at = self.functions[at].parent.map_or(0, |parent| parent.0 as usize);
        }
        FuncId(u32::try_from(at).unwrap_or(0))
    }

    /// The name of the variable that an expression is; of a builtin, that.
    pub fn variable_of(&self, e: ExprId) -> Option<Sym> {
        let (func, slot) = match self.expr(e) {
            Expr::Var(Var::Local(slot)) => (self.function_around(e), slot),
            Expr::Var(Var::Global(slot)) => (FuncId(0), slot),
            Expr::Var(Var::Unbound(name)) => return Some(name),
            _ => return None,
        };
        self.function(func).slots.get(usize::from(slot)).copied()
    }

    /// Is the expression this name of Python's own, which the file does not bind?
    pub fn is_builtin(&self, e: ExprId, name: &str) -> bool {
        matches!(self.expr(e), Expr::Var(Var::Unbound(n)) if n.as_str() == name)
    }

    /// The last part of a name: of an attribute, or of a variable.
    pub fn last_name(&self, e: ExprId) -> Option<Sym> {
        match self.expr(e) {
            Expr::Attr { name, .. } => Some(name),
            _ => self.variable_of(e),
        }
    }

    /// The class.
    pub fn class(&self, id: ClassId) -> &Class {
        &self.classes[id.0 as usize]
    }
}
