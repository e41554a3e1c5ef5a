//! The keys of a dict that is saved, and those that are looked for in one that is loaded: they tell one kind of file from
//! another where the name of the file does not.

use super::file_names::assigned;
use super::nodes::{Node, named};
use super::site::{Site, given_for, own_method};
use super::stored::returns;
use crate::ir::{ArgKind, Call, Expr, ExprId, FuncId, IfElse, Module, Stmt, Var};
use crate::link::{ModIdx, Program, Resolved};
use crate::sym::Sym;

/// Longest chain of expressions that is followed.
const MAX_DEPTH: u32 = 8;
/// Keys that checkpoints of all programs have: they tell none from another.
const COMMON: &[&str] = &[
    "args",
    "config",
    "epoch",
    "generator",
    "iteration",
    "model",
    "module",
    "net",
    "network",
    "optimizer",
    "params",
    "scheduler",
    "state",
    "state_dict",
    "step",
    "weights",
];

/// Does a key tell one file from another?
pub(super) fn is_telling(key: Sym) -> bool {
    let key = key.as_str();
    !COMMON.contains(&key) && !key.contains("state_dict") && key.len() > 1
}

/// What is looked for in what a call gives: `load(path)["cfg"]`, or that of the variable that holds it, also by a function of the
/// project that is given it.
pub(super) fn looked_for(program: &Program, module: ModIdx, loaded: ExprId) -> Vec<Sym> {
    let ir = &program.get(module).ir;
    let func = ir.function_around(loaded);
    let holds = ir.stmts.iter().find_map(|s| match s {
        Stmt::Assign { targets, value } if *value == loaded => match ir.list(*targets) {
            &[t] if matches!(ir.expr(t), Expr::Var(Var::Local(_))) => Some(ir.expr(t)),
            _ => None,
        },
        _ => None,
    });
    let is_it =
        |e: ExprId| e == loaded || holds.is_some_and(|v| ir.expr(e) == v) && ir.function_around(e) == func;
    let mut keys = indexed(program, module, func, &is_it);
    for call in ir.calls().filter(|call| ir.function_around(call.func) == func) {
        if !call.args.iter().any(|a| is_it(a.value)) {
            continue;
        }
        let Some(Node::Function(m, f)) = named(program, module, call.func) else { continue };
        let there = &program.get(m).ir;
        let takes = |k: &usize| given_for(there.function(f), *k, ir, call).is_some_and(&is_it);
        let Some(param) =
            (0..there.function(f).params.len()).find(takes).map(|k| &there.function(f).params[k])
        else {
            continue;
        };
        let given = |e: ExprId| there.expr(e) == Expr::Var(Var::Local(param.slot));
        keys.extend(indexed(program, m, f, &given));
    }
    keys.sort_unstable_by_key(|key| key.as_str());
    keys.dedup();
    keys
}

/// The keys that a function looks for in what is such an expression.
fn indexed(program: &Program, module: ModIdx, func: FuncId, is_it: &dyn Fn(ExprId) -> bool) -> Vec<Sym> {
    let ir = &program.get(module).ir;
    let within = ir.exprs_of(ir.function(func));
    let keys = ir.exprs[within].iter().filter_map(|e| match *e {
        Expr::Index { base, index } if is_it(base) => text(program, module, index),
        _ => None,
    });
    keys.collect()
}

/// The keys of a dict.
pub(super) struct Keys(Vec<Sym>);

impl Keys {
    /// Those of the expression's value, if it is made as a dict.
    pub(super) fn of(program: &Program, site: &Site<'_>, e: ExprId) -> Option<Self> {
        Finder { program }.keys(site, e, MAX_DEPTH).map(Self)
    }

    /// Are all of these among them?
    pub(super) fn have(&self, wanted: &[Sym]) -> bool {
        wanted.iter().all(|key| self.0.contains(key))
    }
}

struct Finder<'a> {
    program: &'a Program,
}

impl Finder<'_> {
    fn keys(&self, site: &Site<'_>, e: ExprId, depth: u32) -> Option<Vec<Sym>> {
        let depth = depth.checked_sub(1)?;
        let ir = &self.program.get(site.module).ir;
        match ir.expr(e) {
            Expr::Dict(list) => {
                let keys = ir.list(list).iter().step_by(2);
                Some(keys.filter_map(|&key| text(self.program, site.module, key)).collect())
            }
            Expr::IfElse(id) => {
                let IfElse { then, orelse, .. } = ir.if_else(id);
                self.keys(site, then, depth).or_else(|| self.keys(site, orelse, depth))
            }
            Expr::Var(var @ Var::Local(_)) => self.of_variable(site, var, depth),
            Expr::Call(id) => self.of_call(site, ir.call(id), depth),
            _ => None,
        }
    }

    /// What a variable is given, and what is put into it.
    fn of_variable(&self, site: &Site<'_>, var: Var, depth: u32) -> Option<Vec<Sym>> {
        let ir = &self.program.get(site.module).ir;
        let given = assigned(ir, site.func, var);
        let mut keys = match given.as_slice() {
            [] => {
                let (caller, given) = site.argument(self.program, var)?;
                return self.keys(&caller, given, depth);
            }
            given => given.iter().find_map(|&value| self.keys(site, value, depth))?,
        };
        let put = |t: ExprId| match ir.expr(t) {
            Expr::Index { base, index } if ir.expr(base) == Expr::Var(var) => {
                text(self.program, site.module, index)
            }
            _ => None,
        };
        for stmt in stmts(ir, site.func) {
            if let Stmt::Assign { targets, .. } = stmt {
                keys.extend(ir.list(*targets).iter().filter_map(|&t| put(t)));
            }
        }
        Some(keys)
    }

    /// `dict(epoch=1)`, what a function of the project gives, or makes of what it is given.
    fn of_call(&self, site: &Site<'_>, call: Call<'_>, depth: u32) -> Option<Vec<Sym>> {
        let module = site.module;
        let ir = &self.program.get(module).ir;
        let called = match named(self.program, module, call.func) {
            Some(Node::Function(m, f)) => Some((m, f)),
            Some(Node::Class(_)) => return None,
            None => own_method(self.program, module, site.func, call.func),
        };
        if let Some((m, f)) = called {
            let there = Site::of(m, f);
            let theirs = &self.program.get(m).ir;
            // An empty one is for nothing, or is filled by what it is handed to.
            let some = |keys: &Vec<Sym>| !keys.is_empty();
            let made = |e| self.keys(&there, e, depth).filter(some);
            let given = returns(theirs, f).into_iter().flatten().find_map(made);
            return given.or_else(|| call.args.iter().find_map(|a| self.keys(site, a.value, depth)));
        }
        match self.program.resolve_expr(module, call.func) {
            Some(Resolved::External(path)) => match path.as_str() {
                "builtins.dict" | "collections.OrderedDict" => {
                    let keyword = |kind| match kind {
                        ArgKind::Keyword(key) => Some(key),
                        _ => None,
                    };
                    let mut keys: Vec<Sym> = call.args.iter().filter_map(|a| keyword(a.kind)).collect();
                    let first = call.args.first().filter(|a| a.kind == ArgKind::Positional);
                    keys.extend(first.and_then(|a| self.keys(site, a.value, depth)).unwrap_or_default());
                    Some(keys)
                }
                "copy.copy" | "copy.deepcopy" => self.keys(site, call.args.first()?.value, depth),
                _ => None,
            },
            // Names of parameters.
            _ => match ir.expr(call.func) {
                Expr::Attr { name, .. } if name.as_str() == "state_dict" => Some(Vec::new()),
                _ => None,
            },
        }
    }
}

/// The statements of a function, or of the file's body.
fn stmts(ir: &Module, func: FuncId) -> &[Stmt] {
    if func == FuncId(0) { &ir.stmts } else { &ir.stmts[ir.stmts_of(ir.function(func))] }
}

/// A text that is written down, here or under a name at the top of a file.
fn text(program: &Program, module: ModIdx, e: ExprId) -> Option<Sym> {
    let ir = &program.get(module).ir;
    match ir.expr(e) {
        Expr::Str(s) => Some(s),
        Expr::Var(_) | Expr::Attr { .. } => {
            let (m, value) = program.bound_to(module, e)?;
            if let Expr::Str(s) = program.get(m).ir.expr(value) { Some(s) } else { None }
        }
        _ => None,
    }
}
