//! The state of lowering one file, and how it fills the arenas.

use std::cell::Cell;
use std::ops::Range;

use memchr::memmem;
use rustpython_ast::{ModModule, Stmt as AstStmt};
use rustpython_parser::Parsed;
use rustpython_text_size::Ranged;

use super::MAX_LEVELS;
use super::bindings::{Marks, bind_body, bind_globals};
use super::cut::{Cuts, is_imported, words};
use super::scope::{Scope, resolve};
use super::span;
use super::unreachable::reached;
use crate::ir::{
    Arg, Block, Expr, ExprId, ExprList, FuncId, FuncKind, Function, Index, Module, Stmt, StmtId, Var,
};
use crate::span::{FileId, Span};
use crate::sym::Sym;

/// How many levels must be free for the contents of a clause, even if it is the last of many.
const CLAUSE_LEVELS: u32 = 50;

/// The state of lowering one file.
pub(super) struct Lowerer<'a> {
    pub parsed: &'a Parsed<ModModule>,
    pub module: Module,
    /// The scopes around the current node, the module's first.
    pub scopes: Vec<Scope>,
    /// Scopes of finished bodies, whose memory is used again.
    pub spare: Vec<Scope>,
    /// The positions of `:=`.
    pub walruses: Marks<'a>,
    /// The nesting depth of the current node.
    pub depth: u32,
    /// Lists of expressions that are being collected, inner ones last; and next, of statements.
    pub exprs: Vec<ExprId>,
    stmts: Vec<StmtId>,
    /// Arguments that are being collected; those of inner calls last.
    pub args: Vec<Arg>,
    /// The docstring of the class around the current node.
    pub class_doc: Option<&'a str>,
    too_deep: bool,
    /// The statements found so far that contain something too deep.
    deep: Vec<Span>,
    /// The statements that are already known to be too deep.
    pub cuts: &'a Cuts,
    source: &'a str,
}

/// Lowers a parsed file without the statements in `cuts`. `cells`: the cells, if it is a notebook. The error: further statements that are
/// nested too deeply.
pub(super) fn module(
    file: FileId,
    text: &str,
    parsed: &Parsed<ModModule>,
    cuts: &Cuts,
    cells: &[Range<usize>],
) -> Result<Module, Vec<Span>> {
    let walruses: Vec<u32> = memmem::find_iter(text.as_bytes(), b":=").map(number).collect();
    let mut lowerer = Lowerer {
        parsed,
        module: with_room(file, text),
        scopes: Vec::with_capacity(8),
        spare: Vec::with_capacity(8),
        walruses: Marks(&walruses),
        depth: 0,
        exprs: Vec::with_capacity(64),
        stmts: Vec::with_capacity(64),
        args: Vec::with_capacity(64),
        class_doc: None,
        too_deep: false,
        deep: Vec::new(),
        cuts,
        source: text,
    };
    lowerer.module_body(text, parsed.suite());
    lowerer.module.shown = shown(text, parsed.suite(), cells);
    let name = |e: &Expr| if let Expr::Attr { name, .. } = *e { Some(name) } else { None };
    let text = |e: &Expr| if let Expr::Str(text) = *e { Some(text) } else { None };
    lowerer.module.attributes = each_once(lowerer.module.exprs.iter().filter_map(name));
    lowerer.module.strings = each_once(lowerer.module.exprs.iter().filter_map(text));
    if !lowerer.deep.is_empty() {
        return Err(lowerer.deep);
    }
    let module = fitted(&mut lowerer.module);
    ROOM.set(Some(lowerer.module));
    Ok(module)
}

thread_local! {
    /// The empty tables of the previous file. The next file is lowered into them, so that memory is only allocated for its final size.
    static ROOM: Cell<Option<Module>> = const { Cell::new(None) };
}

/// A module without statements, in tables with reserved memory.
fn with_room(file: FileId, text: &str) -> Module {
    let mut module = empty(file, text);
    if let Some(mut room) = ROOM.take() {
        room.file = file;
        room.stmt_pool.append(&mut module.stmt_pool);
        room.functions.append(&mut module.functions);
        return room;
    }
    module
}

/// Moves the contents into tables of exactly their size, and leaves the old tables empty.
fn fitted(module: &mut Module) -> Module {
    fn fit<T>(table: &mut Vec<T>) -> Vec<T> {
        let mut fitted = Vec::with_capacity(table.len());
        fitted.append(table);
        fitted
    }
    Module {
        file: module.file,
        exprs: fit(&mut module.exprs),
        expr_spans: fit(&mut module.expr_spans),
        expr_pool: fit(&mut module.expr_pool),
        stmts: fit(&mut module.stmts),
        stmt_spans: fit(&mut module.stmt_spans),
        stmt_pool: fit(&mut module.stmt_pool),
        handlers: fit(&mut module.handlers),
        calls: fit(&mut module.calls),
        arg_pool: fit(&mut module.arg_pool),
        comps: fit(&mut module.comps),
        if_elses: fit(&mut module.if_elses),
        walruses: fit(&mut module.walruses),
        functions: fit(&mut module.functions),
        classes: fit(&mut module.classes),
        imports: fit(&mut module.imports),
        attributes: std::mem::take(&mut module.attributes),
        strings: std::mem::take(&mut module.strings),
        shown: std::mem::take(&mut module.shown),
        index: Index::default(),
    }
}

/// The names, each once, sorted. A small table drops recent repetitions first. Then sorting is faster than a set.
fn each_once(names: impl Iterator<Item = Sym>) -> Box<[Sym]> {
    let mut lately = [None; 256];
    let mut is_new = |name: Sym| lately[name.slot(256)].replace(name) != Some(name);
    let mut names: Vec<Sym> = names.filter(|&name| is_new(name)).collect();
    names.sort_unstable();
    names.dedup();
    names.into()
}

/// A module without a statement.
pub(super) fn empty(file: FileId, text: &str) -> Module {
    let end = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let body = Function {
        kind: FuncKind::Module,
        name: Sym::new("<module>"),
        parent: None,
        class: None,
        params: Box::default(),
        decorators: ExprList::default(),
        returns: None,
        body: Block::default(),
        exprs: 0..0,
        slots: Box::default(),
        is_async: false,
        is_generator: false,
        span: Span::new(0, end),
        name_span: Span::new(0, 0),
    };
    Module {
        file,
        exprs: Vec::new(),
        expr_spans: Vec::new(),
        expr_pool: Vec::new(),
        stmts: Vec::new(),
        stmt_spans: Vec::new(),
        stmt_pool: vec![StmtId(0)],
        handlers: Vec::new(),
        calls: Vec::new(),
        arg_pool: Vec::new(),
        comps: Vec::new(),
        if_elses: Vec::new(),
        walruses: Vec::new(),
        functions: vec![body],
        classes: Vec::new(),
        imports: Vec::new(),
        attributes: Box::default(),
        strings: Box::default(),
        shown: Box::default(),
        index: Index::default(),
    }
}

/// The last statement of each cell, if it is an expression: IPython shows its value, unless a semicolon follows.
fn shown(text: &str, body: &[AstStmt], cells: &[Range<usize>]) -> Box<[Span]> {
    let last = |cell: &Range<usize>| {
        let after = body.partition_point(|s| s.start().to_usize() < cell.end);
        let last = body.get(after.checked_sub(1)?).filter(|s| s.is_expr_stmt())?;
        let end = last.end().to_usize();
        let rest = text.get(end..cell.end)?.trim_start_matches([' ', '\t']);
        (last.start().to_usize() >= cell.start && !rest.starts_with(';')).then(|| span(last))
    };
    cells.iter().filter_map(last).collect()
}

impl<'a> Lowerer<'a> {
    fn module_body(&mut self, text: &str, body: &'a [AstStmt]) {
        let mut scope = Scope::new(FuncId(0), FuncKind::Module, None);
        bind_body(&mut scope, body, self.walruses);
        let declarations: Vec<u32> = declarations(text.as_bytes()).collect();
        if !declarations.is_empty() {
            bind_globals(&mut scope, body, self.walruses, Marks(&declarations));
        }
        self.scopes.push(scope);
        let block = self.block(body);
        if let Some(scope) = self.scopes.pop() {
            let function = &mut self.module.functions[0];
            function.body = block;
            function.exprs = 0..number(self.module.exprs.len());
            function.is_generator = scope.is_generator;
            function.slots = scope.slots.into();
        }
    }

    /// The innermost scope.
    pub fn scope(&mut self) -> &mut Scope {
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }

    /// The variable of a name at the current node.
    pub fn var(&self, name: &str) -> Var {
        resolve(&self.scopes, Sym::new(name))
    }

    /// Goes one level down. Returns false if that is too deep.
    pub fn enter(&mut self) -> bool {
        self.too_deep |= self.depth >= MAX_LEVELS;
        self.depth += u32::from(!self.too_deep);
        !self.too_deep
    }

    /// The same for a clause of an `if`. Also returns false if few levels would be left for its contents.
    pub fn enter_clause(&mut self) -> bool {
        self.too_deep |= self.depth + CLAUSE_LEVELS >= MAX_LEVELS;
        self.enter()
    }

    /// Whether something was too deep since the last call. If so, notes the statement or clause at this place to be cut.
    pub fn was_too_deep(&mut self, place: Span) -> bool {
        let was = std::mem::take(&mut self.too_deep);
        self.deep.extend(was.then_some(place));
        was
    }

    /// The statement that replaces a cut statement or clause: it makes all mentioned variables unknown.
    pub fn cut(&mut self, place: Span) -> StmtId {
        let variables = words(place.slice(self.source)).into_iter().map(|name| resolve(&self.scopes, name));
        let known = |var: &Var| !matches!(var, Var::Unbound(_)) && !is_imported(&self.module, *var);
        let variables: Vec<Var> = variables.filter(known).collect();
        let mark = self.exprs.len();
        for var in variables {
            let target = self.add(Expr::Var(var), place);
            self.exprs.push(target);
        }
        let targets = self.list_since(mark);
        let value = self.add(Expr::Opaque(ExprList::default()), place);
        let stmt = if targets.len == 0 { Stmt::Pass } else { Stmt::Assign { targets, value } };
        self.add_stmt(stmt, place)
    }

    /// Adds an expression.
    pub fn add(&mut self, expr: Expr, span: Span) -> ExprId {
        let id = ExprId(number(self.module.exprs.len()));
        self.module.exprs.push(expr);
        self.module.expr_spans.push(span);
        id
    }

    /// The list of the expressions that were collected after [`Lowerer::exprs`] had this length.
    pub fn list_since(&mut self, mark: usize) -> ExprList {
        let start = number(self.module.expr_pool.len());
        self.module.expr_pool.extend(self.exprs.drain(mark..));
        ExprList { start, len: number(self.module.expr_pool.len()) - start }
    }

    /// Lowers these statements as a block.
    pub fn block(&mut self, body: &'a [AstStmt]) -> Block {
        let mark = self.stmts.len();
        let function = self.scopes.iter().any(|scope| scope.kind == FuncKind::Function);
        for stmt in if function { reached(body) } else { body } {
            if let Some(id) = self.stmt(stmt) {
                self.stmts.push(id);
            }
        }
        self.block_since(mark)
    }

    /// A block with a statement that has been lowered.
    pub fn block_with(&mut self, id: StmtId) -> Block {
        let mark = self.stmts.len();
        self.stmts.push(id);
        self.block_since(mark)
    }

    /// A block with one new statement.
    pub fn block_of(&mut self, stmt: Stmt, span: Span) -> Block {
        let mark = self.stmts.len();
        let id = self.add_stmt(stmt, span);
        self.stmts.push(id);
        self.block_since(mark)
    }

    /// Adds a statement.
    pub fn add_stmt(&mut self, stmt: Stmt, span: Span) -> StmtId {
        let id = StmtId(number(self.module.stmts.len()));
        self.module.stmts.push(stmt);
        self.module.stmt_spans.push(span);
        id
    }

    fn block_since(&mut self, mark: usize) -> Block {
        let count = number(self.stmts.len() - mark);
        if count == 0 {
            return Block::default();
        }
        let block = Block(number(self.module.stmt_pool.len()));
        self.module.stmt_pool.push(StmtId(count));
        self.module.stmt_pool.extend(self.stmts.drain(mark..));
        block
    }
}

/// The positions of possible `global` statements: the word, followed by white space.
fn declarations(text: &[u8]) -> impl Iterator<Item = u32> {
    const WORD: &[u8] = b"global";
    let spaced = |at: &usize| matches!(text.get(at + WORD.len()), Some(b' ' | b'\t' | b'\x0c' | b'\\'));
    memmem::find_iter(text, WORD).filter(spaced).map(number)
}

/// An index in the type that the arenas store. A text of less than 2 GiB has fewer nodes.
pub(super) fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
