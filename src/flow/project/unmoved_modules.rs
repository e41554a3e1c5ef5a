//! Modules that a project creates and never moves: they stay on the CPU.
//!
//! The analysis follows an instance by names, through all files. It follows variables, attributes and parameters that hold it, functions
//! that return it, and modules that contain it. If the instance may be moved, or escapes, nothing is concluded.

use rustc_hash::FxHashSet;

use crate::flow::query::nodes::{Node, Target, named, node_of};
use crate::flow::query::relevance::file_scan::is_module_class;
use crate::ir::{ArgKind, Call, Expr, ExprId, FuncId, FuncKind, Module, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Program, Resolved};
use crate::sym::Sym;
use crate::words::Words;
use crate::world::Backend;

/// The maximum number of names for the instances. With more, they count as escaped.
const MAX_NAMES: usize = 24;
/// Methods that move a module, or through which it escapes.
static MOVES: Words = Words::of("move a module or share it");
/// Methods that return the module itself, without moving it to an accelerator (`torch/nn/modules/module.py`).
static GIVE_ITSELF: Words = Words::of("return the module itself");
/// Functions that only inspect their argument.
static LOOKS: Words = Words::of("inspect an argument");

/// Whether the project creates instances of the class and moves none of them.
pub fn stays(program: &Program, files: &[ModIdx], class: ClassKey) -> bool {
    let (names, makers, made) = (FxHashSet::default(), FxHashSet::default(), FxHashSet::default());
    let mut trace = Trace { program, names, makers, made };
    trace.makers.insert(Node::Class(class));
    loop {
        let before = (trace.names.len(), trace.makers.len());
        if !files.iter().all(|&m| trace.file(m)) || trace.names.len() > MAX_NAMES {
            return false;
        }
        if (trace.names.len(), trace.makers.len()) == before {
            // Without a visible construction, the class, and everything that contains it, is for other projects.
            return trace.makers.iter().all(|maker| trace.made.contains(maker));
        }
    }
}

/// The flow of instances.
struct Trace<'a> {
    program: &'a Program,
    /// The names that hold them.
    names: FxHashSet<Sym>,
    /// The nodes that create or return them: their classes, classes with one as a part, and functions.
    makers: FxHashSet<Node>,
    /// The makers that are called.
    made: FxHashSet<Node>,
}

impl Trace<'_> {
    /// Follows the instances through a file. False if they may be moved there, or escape.
    fn file(&mut self, m: ModIdx) -> bool {
        let ir = &self.program.get(m).ir;
        let skipped = ir.silent();
        let all = (0..ir.exprs.len()).map(|n| ExprId(u32::try_from(n).unwrap_or(u32::MAX)));
        for e in all.filter(|&e| !skipped.contains(e)) {
            let goes = match ir.expr(e) {
                Expr::Var(_) | Expr::Attr { .. } => match named(self.program, m, e) {
                    Some(node) => self.made_by(m, e, node),
                    None => !self.is_name(m, e) || self.goes(m, e),
                },
                _ => true,
            };
            if !goes {
                return false;
            }
        }
        true
    }

    /// Handles a mention. If it refers to a maker, or to a subclass of one, follows the result of the call. False if the maker may be
    /// called elsewhere.
    fn made_by(&mut self, m: ModIdx, mention: ExprId, node: Node) -> bool {
        let bases = match node {
            Node::Class(key) => self.program.class(key).mro.iter().map(|&k| Node::Class(k)).collect(),
            Node::Function(..) => vec![node],
        };
        let given: Vec<Node> = bases.into_iter().filter(|n| self.makers.contains(n)).collect();
        if given.is_empty() {
            return true;
        }
        let ir = &self.program.get(m).ir;
        let Some(around) = parent(ir, mention) else { return false };
        match ir.expr(around) {
            Expr::Call(c) if ir.call(c).func == mention => {
                self.made.extend(given);
                self.goes(m, around)
            }
            Expr::Call(c) => only_looks(ir, ir.call(c)),
            _ => false,
        }
    }

    fn is_name(&self, m: ModIdx, e: ExprId) -> bool {
        if self.names.is_empty() {
            return false;
        }
        let name = self.program.get(m).ir.last_name(e);
        let elsewhere =
            || matches!(self.program.resolve_expr(m, e), Some(Resolved::Module(_) | Resolved::External(_)));
        name.is_some_and(|name| self.names.contains(&name)) && !elsewhere()
    }

    /// Follows the value of an expression. False if it may be moved, or escapes.
    fn goes(&mut self, m: ModIdx, e: ExprId) -> bool {
        let ir = &self.program.get(m).ir;
        let Some(around) = parent(ir, e) else { return self.in_statement(m, e) };
        match ir.expr(around) {
            Expr::Attr { name, .. } => self.goes_by(m, around, name.as_str()),
            Expr::Call(id) => {
                let call = ir.call(id);
                call.func == e || self.handed(m, call, e)
            }
            Expr::Compare { .. } | Expr::Index { .. } => true,
            Expr::Unary { .. } => true,
            Expr::IfElse(id) => ir.if_else(id).test == e || self.goes(m, around),
            _ => false,
        }
    }

    /// Whether the instance stays on its device when this attribute of it is read or called.
    fn goes_by(&mut self, m: ModIdx, attribute: ExprId, name: &str) -> bool {
        let ir = &self.program.get(m).ir;
        let call = parent(ir, attribute).and_then(|around| match ir.expr(around) {
            Expr::Call(id) if ir.call(id).func == attribute => Some((around, ir.call(id))),
            _ => None,
        });
        if let Some((result, call)) = call {
            let cpu = |e: ExprId| matches!(ir.expr(e), Expr::Str(s) if s.as_str() == "cpu");
            let to_cpu = name == "to" && call.args.first().is_some_and(|arg| cpu(arg.value));
            if to_cpu || GIVE_ITSELF.has(name) {
                return self.goes(m, result);
            }
        }
        !MOVES.has(name) && Backend::from_name(name).is_none()
    }

    fn in_statement(&mut self, m: ModIdx, e: ExprId) -> bool {
        let ir = &self.program.get(m).ir;
        let at = ir.span(e);
        // Statements are numbered by their end positions.
        let first = ir.stmt_spans.partition_point(|span| span.end < at.end);
        let mut later = ir.stmts[first..].iter().zip(&ir.stmt_spans[first..]);
        let holder = later.find(|(s, span)| span.contains(at) && is_of(ir, s, e));
        match holder.map(|(s, _)| s) {
            Some(Stmt::Assign { targets, value }) if *value == e => {
                ir.list(*targets).iter().all(|&t| self.bound(m, t))
            }
            Some(&Stmt::AnnAssign { target, value: Some(value), .. }) if value == e => self.bound(m, target),
            Some(Stmt::Return(_)) => match self.owner(m, e) {
                Some(Node::Function(m, f)) => {
                    self.makers.insert(Node::Function(m, f));
                    true
                }
                _ => false,
            },
            Some(_) => true,
            None => false,
        }
    }

    /// The outermost function or class around an expression.
    fn owner(&self, m: ModIdx, e: ExprId) -> Option<Node> {
        let ir = &self.program.get(m).ir;
        node_of(ir, m, ir.function_around(e))
    }

    /// Records that the instance is bound to a variable, or to an attribute, whose object it may become a part of.
    fn bound(&mut self, m: ModIdx, target: ExprId) -> bool {
        let ir = &self.program.get(m).ir;
        match ir.expr(target) {
            Expr::Var(_) => self.names.extend(ir.variable_of(target)),
            Expr::Attr { base, name } => {
                self.names.insert(name);
                match self.owner(m, target) {
                    Some(Node::Class(key)) if is_self(ir, base) => {
                        if self.is_module(key) {
                            self.makers.insert(Node::Class(key));
                        }
                    }
                    _ => return false,
                }
            }
            _ => return false,
        }
        true
    }

    fn is_module(&self, key: ClassKey) -> bool {
        self.program.class(key).unknown_base || is_module_class(self.program, key)
    }

    /// Records that the instance is passed to a function: the parameter's name now holds it.
    fn handed(&mut self, m: ModIdx, call: Call<'_>, e: ExprId) -> bool {
        let ir = &self.program.get(m).ir;
        if only_looks(ir, call) {
            return true;
        }
        let (target, bound): (Target, bool) = match named(self.program, m, call.func) {
            Some(Node::Function(m, f)) => ((m, f), false),
            Some(Node::Class(key)) => match self.program.find_method(key, Sym::new("__init__")) {
                Some(init) => (init, true),
                None => return false,
            },
            None => return false,
        };
        let Some(at) = call.args.iter().position(|a| a.value == e) else { return false };
        let params = &self.program.get(target.0).ir.function(target.1).params;
        let name = match call.args[at].kind {
            ArgKind::Keyword(name) => params.iter().find(|p| p.name == name),
            ArgKind::Positional if call.args[..at].iter().all(|a| a.kind == ArgKind::Positional) => {
                params.get(at + usize::from(bound))
            }
            _ => None,
        };
        self.names.extend(name.map(|p| p.name));
        name.is_some()
    }
}

/// `isinstance(x, Net)`, `super(Net, self)`
pub(crate) fn only_looks(ir: &Module, call: Call<'_>) -> bool {
    matches!(ir.expr(call.func), Expr::Var(Var::Unbound(name)) if LOOKS.has(name.as_str()))
}

/// Whether the expression is `self` in a method.
fn is_self(ir: &Module, e: ExprId) -> bool {
    let function = ir.function(ir.function_around(e));
    let first = function.params.first().map(|p| Expr::Var(Var::Local(p.slot)));
    function.kind == FuncKind::Function && function.class.is_some() && Some(ir.expr(e)) == first
}

/// The expression that directly contains this one. Parts have lower numbers.
pub(crate) fn parent(ir: &Module, e: ExprId) -> Option<ExprId> {
    ir.parent(e)
}

/// Whether the expression is a direct operand of the statement.
fn is_of(ir: &Module, s: &Stmt, e: ExprId) -> bool {
    match *s {
        Stmt::Expr(x) | Stmt::Return(Some(x)) => x == e,
        Stmt::Assign { targets, value } => value == e || ir.list(targets).contains(&e),
        Stmt::AnnAssign { target, value, .. } => target == e || value == Some(e),
        Stmt::If { test, .. } | Stmt::While { test, .. } | Stmt::Assert { test, .. } => test == e,
        Stmt::Del(list) => ir.list(list).contains(&e),
        _ => false,
    }
}

/// The class on whose instances a function of a file is interpreted.
pub fn class_of(program: &Program, m: ModIdx, f: FuncId) -> Option<ClassKey> {
    match node_of(&program.get(m).ir, m, f)? {
        Node::Class(key) => Some(key),
        Node::Function(..) => None,
    }
}
