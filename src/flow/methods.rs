//! Who calls a method through an object: `self.policy.sample(q)`, transforms that are listed for a `Compose`, and what a data
//! set makes for itself.
//!
//! Such a call is not always followed where it is written, so it says something of a finding in the method only if what it
//! gives is seen to be on the host.

use rustc_hash::FxHashSet;

use super::behind::{Node, named};
use super::held::{Given, Stored};
use super::site::{Callers, Site, argument};
use super::stored::Contents;
use crate::ir::{Call, Expr, ExprId, FuncId, FuncKind, Module, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Program, Resolved};
use crate::sym::Sym;
use crate::torch;

/// The classes of which the object is for certain one whose method is called; none if that is not known.
pub(super) fn receivers(program: &Program, m: ModIdx, callee: ExprId) -> Vec<ClassKey> {
    let ir = &program.get(m).ir;
    let Expr::Attr { base, .. } = ir.expr(callee) else { return Vec::new() };
    match ir.expr(base) {
        Expr::Var(var @ Var::Local(_)) => {
            let mut given = Given::new(ir, var);
            let around = ir.function_around(callee);
            given.before(ir.function(around).body, ir.span(callee), &mut |_| false);
            if given.held != Some(None) {
                return Vec::new();
            }
            all_made(program, m, given.values.into_iter())
        }
        Expr::Attr { base, name } => match class_of_self(ir, m, base) {
            Some(class) => kept(program, class, name),
            None => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The class whose methods call what the expression is `self`.
fn class_of_self(ir: &Module, module: ModIdx, e: ExprId) -> Option<ClassKey> {
    let mut func = ir.function_around(e);
    while ir.function(func).kind != FuncKind::Function {
        func = ir.function(func).parent?;
    }
    let function = ir.function(func);
    let class = function.class?;
    (ir.expr(e) == Expr::Var(Var::Local(function.params.first()?.slot))).then_some(ClassKey { module, class })
}

/// The classes of what the methods of a class keep under a name, if each of them makes it there.
fn kept(program: &Program, class: ClassKey, name: Sym) -> Vec<ClassKey> {
    let mut made = Vec::new();
    for &k in &program.class(class).mro {
        let ir = &program.get(k.module).ir;
        for stmt in &ir.stmts {
            let Stmt::Assign { targets, value } = *stmt else { continue };
            let sets = |&t: &ExprId| {
                matches!(ir.expr(t), Expr::Attr { base, name: n }
                    if n == name && class_of_self(ir, k.module, base) == Some(k))
            };
            if !ir.list(targets).iter().any(sets) || ir.expr(value) == Expr::None {
                continue;
            }
            let classes = all_made(program, k.module, std::iter::once(value));
            if classes.is_empty() {
                return Vec::new();
            }
            made.extend(classes);
        }
    }
    made
}

/// The classes that these expressions make instances of; none if one of them does something else.
fn all_made(program: &Program, m: ModIdx, values: impl Iterator<Item = ExprId>) -> Vec<ClassKey> {
    let made = values.map(|v| class_made(program, m, v));
    made.collect::<Option<Vec<ClassKey>>>().unwrap_or_default()
}

/// The class of the project that the expression makes an instance of.
fn class_made(program: &Program, m: ModIdx, e: ExprId) -> Option<ClassKey> {
    let ir = &program.get(m).ir;
    let Expr::Call(call) = ir.expr(e) else { return None };
    match named(program, m, ir.call(call).func)? {
        Node::Class(key) => Some(key),
        Node::Function(..) => None,
    }
}

/// Is what the call of a method gives for this parameter on the host, as far as the source says it?
pub(super) fn gives_host(program: &Program, m: ModIdx, call: &Call, index: usize, name: Sym) -> bool {
    let Some(given) = index.checked_sub(1).and_then(|at| argument(call, at, name)) else { return false };
    let callers = Callers::default();
    let site = Site::of(m, program.get(m).ir.function_around(call.func));
    Contents { program, callers: &callers }.of(&site, given) == Stored::Host
}

/// The classes of which the file makes instances, each with whether that one works on the host: it is listed for a `Compose`, or
/// for the `transforms` of one, or a data set makes it for itself. What is given to those comes from files.
pub(super) fn made(program: &Program, m: ModIdx) -> Vec<(ClassKey, bool)> {
    let ir = &program.get(m).ir;
    let listed = listed(program, m);
    let all = (0..ir.exprs.len()).map(|n| ExprId(u32::try_from(n).unwrap_or(u32::MAX)));
    let instances = all.filter_map(|e| Some((e, class_made(program, m, e)?)));
    instances.map(|(e, key)| (key, listed.contains(&e) || is_in_data_set(program, m, e))).collect()
}

/// What the file lists for a `Compose`, or for the `transforms` of one.
fn listed(program: &Program, m: ModIdx) -> FxHashSet<ExprId> {
    let ir = &program.get(m).ir;
    let composes = |call: &Call| {
        matches!(program.resolve_expr(m, call.func),
            Some(Resolved::External(path)) if path.as_str().ends_with(".Compose"))
    };
    let composing: FxHashSet<FuncId> =
        ir.calls.iter().filter(|c| composes(c)).map(|c| ir.function_around(c.func)).collect();
    let mut listed: FxHashSet<ExprId> = FxHashSet::default();
    for e in &ir.exprs {
        if let Expr::List(list) = *e {
            let here = ir.list(list).iter().filter(|&&e| composing.contains(&ir.function_around(e)));
            listed.extend(here);
        }
    }
    for call in &ir.calls {
        let Expr::Attr { base, name } = ir.expr(call.func) else { continue };
        let transforms = matches!(ir.expr(base), Expr::Attr { name, .. } if name.as_str() == "transforms");
        if matches!(name.as_str(), "append" | "insert")
            && (transforms || composing.contains(&ir.function_around(call.func)))
        {
            listed.extend(call.args.last().map(|a| a.value));
        }
    }
    listed
}

/// Is the expression in a method of a data set?
fn is_in_data_set(program: &Program, module: ModIdx, e: ExprId) -> bool {
    let ir = &program.get(module).ir;
    let mut at = Some(ir.function_around(e));
    while let Some(f) = at {
        let function = ir.function(f);
        if let Some(class) = function.class {
            let info = program.class(ClassKey { module, class });
            let is_data_set = |&p: &Sym| torch::base_class(p).is_some_and(|b| b.kind == torch::Base::Dataset);
            return info.externals.iter().any(is_data_set);
        }
        at = function.parent;
    }
    false
}
