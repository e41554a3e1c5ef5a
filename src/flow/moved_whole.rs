//! Modules of which every program that makes one moves the whole: what was left behind in one goes along.
//!
//! Where an instance goes is followed by names, as far as they say it: into the module in whose constructor it is made, back from
//! functions that return it, to classes that are handed over under a name and called by that. What nobody makes is there for
//! others, and nothing is said of it.

use super::nodes::{Node, named, silent};
use super::scan::is_module_class;
use super::unmoved::{only_looks, parent};
use crate::ir::{ArgKind, Call, Expr, ExprId, FuncId, FuncKind, Function, Module, Stmt};
use crate::link::{ClassKey, ModIdx, Program, Resolved};
use crate::span::Span;
use crate::sym::Sym;

/// Methods that move a module in place.
const MOVES: &[&str] = &["to", "cuda"];
/// What gives the module itself, whatever it does with it.
const KEEPS: &[&str] = &["eval", "train", "half", "float", "double", "bfloat16", "requires_grad_", "apply"];
/// Wrappers that move what they wrap when they are moved.
const WRAPS: &[&str] = &["DataParallel", "Sequential", "ModuleList", "ModuleDict", "compile"];
/// So many makers are followed.
const MAX_MAKERS: usize = 24;

/// Does the project make instances of the class, and move all of them, or what they are parts of?
pub fn moves_whole(program: &Program, files: &[ModIdx], class: ClassKey) -> bool {
    let mut trace = Trace { program, files, makers: vec![Maker::Node(Node::Class(class))], made: false };
    let mut at = 0;
    while let Some(&maker) = trace.makers.get(at) {
        trace.made = false;
        let all = files.iter().all(|&m| trace.in_file(m, maker));
        if !all || !trace.made || trace.makers.len() > MAX_MAKERS {
            return false;
        }
        at += 1;
    }
    true
}

/// What gives instances, or what they are parts of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Maker {
    Node(Node),
    /// A class that somebody is given under this name.
    Name(Sym),
}

struct Trace<'a> {
    program: &'a Program,
    files: &'a [ModIdx],
    makers: Vec<Maker>,
    /// Has a call of the maker been found that is looked for?
    made: bool,
}

impl Trace<'_> {
    fn add(&mut self, maker: Maker) {
        if !self.makers.contains(&maker) {
            self.makers.push(maker);
        }
    }

    /// Follows what a maker gives in a file. False if that gets out of sight without having been moved.
    fn in_file(&mut self, m: ModIdx, maker: Maker) -> bool {
        let program = self.program;
        let ir = &program.get(m).ir;
        let node = match maker {
            Maker::Name(name) => {
                let called = ir.calls().map(|call| call.func).filter(|&f| self.is_under(ir, f, name));
                let calls: Vec<ExprId> = called.collect();
                return calls.into_iter().all(|f| self.is_called(m, f));
            }
            Maker::Node(node) => node,
        };
        let name = match node {
            Node::Class(key) => program.get(key.module).ir.class(key.class).name,
            Node::Function(of, f) => program.get(of).ir.function(f).name,
        };
        // Whatever else a file calls it, it imports it by its name.
        let speaks =
            m == module_of(node) || ir.imports.iter().any(|i| i.name == Some(name)) || ir.has_attribute(name);
        if !speaks {
            return true;
        }
        let is_it = |e: ExprId| match (named(program, m, e), node) {
            (Some(Node::Class(key)), Node::Class(base)) => program.class(key).mro.contains(&base),
            (found, _) => found == Some(node),
        };
        let all = (0..ir.exprs.len()).map(|n| ExprId(u32::try_from(n).unwrap_or(u32::MAX)));
        let mentions: Vec<ExprId> =
            all.filter(|&e| matches!(ir.expr(e), Expr::Var(_) | Expr::Attr { .. }) && is_it(e)).collect();
        if mentions.is_empty() {
            return true;
        }
        let skipped = silent(ir);
        mentions.into_iter().filter(|e| !skipped.contains(e)).all(|e| self.mentioned(m, e))
    }

    /// `settings.kind(…)`, `settings["kind"](…)`
    fn is_under(&self, ir: &Module, func: ExprId, name: Sym) -> bool {
        match ir.expr(func) {
            Expr::Attr { name: attribute, .. } => attribute == name,
            Expr::Index { index, .. } => ir.expr(index) == Expr::Str(name),
            _ => false,
        }
    }

    /// A class or function is named: it is called there, or given to somebody under a name.
    fn mentioned(&mut self, m: ModIdx, e: ExprId) -> bool {
        let ir = &self.program.get(m).ir;
        let Some(around) = parent(ir, e) else { return false };
        match ir.expr(around) {
            Expr::Call(c) => {
                let call = ir.call(c);
                if call.func == e {
                    return self.is_called(m, e);
                }
                if only_looks(ir, call) {
                    return true;
                }
                self.handed(call.args.iter().find(|a| a.value == e).and_then(|a| match a.kind {
                    ArgKind::Keyword(name) => Some(name),
                    _ => None,
                }))
            }
            Expr::Dict(list) => {
                let pair = ir.list(list).chunks(2).find(|pair| pair.get(1) == Some(&e));
                self.handed(pair.and_then(|pair| match ir.expr(pair[0]) {
                    Expr::Str(name) => Some(name),
                    _ => None,
                }))
            }
            _ => false,
        }
    }

    /// Whoever is given it under the name calls it by that.
    fn handed(&mut self, name: Option<Sym>) -> bool {
        let Some(name) = name else { return false };
        self.made = true;
        self.add(Maker::Name(name));
        true
    }

    /// A maker is called: where does that go what it gives?
    fn is_called(&mut self, m: ModIdx, func: ExprId) -> bool {
        let ir = &self.program.get(m).ir;
        self.made = true;
        let Some(call) = parent(ir, func) else { return false };
        self.goes(m, call)
    }

    /// Follows what an expression gives, or what that becomes a part of.
    fn goes(&mut self, m: ModIdx, e: ExprId) -> bool {
        let ir = &self.program.get(m).ir;
        let function = ir.function(ir.function_around(e));
        if let Some(key) = self.constructs(m, function) {
            self.add(Maker::Node(Node::Class(key)));
            return true;
        }
        let Some(around) = parent(ir, e) else { return self.in_statement(m, e) };
        match ir.expr(around) {
            Expr::Attr { name, .. } if MOVES.contains(&name.as_str()) => true,
            Expr::Attr { name, .. } if KEEPS.contains(&name.as_str()) => {
                parent(ir, around).is_some_and(|call| self.goes(m, call))
            }
            Expr::Call(c) => {
                let wraps = ir.last_name(ir.call(c).func).is_some_and(|n| WRAPS.contains(&n.as_str()));
                wraps && self.goes(m, around)
            }
            Expr::List(_) | Expr::Tuple(_) | Expr::Star(_) | Expr::IfElse(_) => self.goes(m, around),
            _ => false,
        }
    }

    /// The module whose constructor the function is.
    fn constructs(&self, m: ModIdx, function: &Function) -> Option<ClassKey> {
        let class = function
            .class
            .filter(|_| function.kind == FuncKind::Function && function.name.as_str() == "__init__")?;
        let key = ClassKey { module: m, class };
        is_module_class(self.program, key).then_some(key)
    }

    fn in_statement(&mut self, m: ModIdx, e: ExprId) -> bool {
        let ir = &self.program.get(m).ir;
        let (at, f) = (ir.span(e), ir.function_around(e));
        let function = ir.function(f);
        let body = ir.stmts_of(function);
        let targets = ir.stmts[body].iter().find_map(|s| match *s {
            Stmt::Assign { targets, value } if value == e => Some(Ok(ir.list(targets))),
            Stmt::Return(Some(value)) if value == e => Some(Err(())),
            _ => None,
        });
        match targets {
            Some(Ok(&[target])) => is_moved(ir, function, target, at) || self.is_returned(m, f, target),
            Some(Err(())) => self.returned(m, f),
            _ => false,
        }
    }

    /// Does the function give back what it holds under a name?
    fn is_returned(&mut self, m: ModIdx, f: FuncId, name: ExprId) -> bool {
        let ir = &self.program.get(m).ir;
        let gives = ir.stmts[ir.stmts_of(ir.function(f))]
            .iter()
            .any(|s| matches!(*s, Stmt::Return(Some(value)) if ir.names_the_same(value, name)));
        gives && self.returned(m, f)
    }

    fn returned(&mut self, m: ModIdx, f: FuncId) -> bool {
        let plain = self.program.get(m).ir.function(f).class.is_none() && f != FuncId(0);
        if plain {
            self.add(Maker::Node(Node::Function(m, f)));
        }
        plain && self.files.contains(&m)
    }
}

/// Does the function move what it has given this name to, or a wrapper around that?
fn is_moved(ir: &Module, function: &Function, name: ExprId, after: Span) -> bool {
    let inside = function.exprs.start as usize..function.exprs.end as usize;
    ir.exprs[inside].iter().any(|e| match *e {
        Expr::Attr { base, name: method } => {
            MOVES.contains(&method.as_str()) && ir.span(base).start >= after.end && ir.asks_about(base, name)
        }
        _ => false,
    })
}

fn module_of(node: Node) -> ModIdx {
    match node {
        Node::Class(key) => key.module,
        Node::Function(m, _) => m,
    }
}

/// Constructors that are followed into one another.
const MAX_PARTS: u32 = 3;

/// Does the object that a call makes keep the device that its constructor is given? Then that stays what it was when the
/// object moves.
pub fn keeps_device(program: &Program, class: ClassKey, device: Sym) -> bool {
    keeps(program, class, device, MAX_PARTS)
}

fn keeps(program: &Program, class: ClassKey, device: Sym, depth: u32) -> bool {
    let Some((m, f)) = program.find_method(class, Sym::new("__init__")) else { return false };
    let ir = &program.get(m).ir;
    let function = ir.function(f);
    let Some(param) = function.params.iter().find(|p| p.name == device) else { return false };
    let own = |e: ExprId| ir.expr(e) == Expr::Var(crate::ir::Var::Local(param.slot));
    let kept = ir.stmts[ir.stmts_of(function)].iter().any(|s| match *s {
        Stmt::Assign { targets, value } => {
            own(value) && ir.list(targets).iter().any(|&t| matches!(ir.expr(t), Expr::Attr { .. }))
        }
        _ => false,
    });
    let inside = function.exprs.start as usize..function.exprs.end as usize;
    let handed = |call: Call<'_>| {
        let given = call.args.iter().find(|a| own(a.value));
        let name = match given.map(|a| a.kind) {
            Some(ArgKind::Keyword(name)) => name,
            Some(_) => device,
            None => return false,
        };
        match program.resolve_expr(m, call.func) {
            Some(Resolved::Class(key)) => depth == 0 || keeps(program, key, name, depth - 1),
            _ => false,
        }
    };
    kept || ir.exprs[inside].iter().any(|e| matches!(*e, Expr::Call(c) if handed(ir.call(c))))
}
