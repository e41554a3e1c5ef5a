//! Method calls through objects: `self.policy.sample(q)`.
//!
//! The interpreter does not always follow such a call. So the call affects a finding in the method only if its argument is visibly on the
//! host.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::project::checkpoints::saved_devices::Contents;
use crate::flow::project::unmoved_modules::class_of;
use crate::flow::project::{CallGraph, entries};
use crate::flow::query::call_sites::{Site, argument, own_method};
use crate::flow::query::nodes::{Node, named};
use crate::flow::query::reaching_values::{Given, Stored};
use crate::ir::{Call, CallId, Expr, ExprId, FuncId, FuncKind, Module, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Program, Resolved};
use crate::sym::Sym;

/// Calls through objects of methods of the file's own classes, by method. Includes calls of the object itself.
pub(crate) fn through_objects(program: &Program, m: ModIdx) -> FxHashMap<FuncId, Vec<CallId>> {
    let ir = &program.get(m).ir;
    let methods = ir.functions.iter().filter(|f| f.class.is_some() && f.kind == FuncKind::Function);
    let names: FxHashSet<Sym> = methods.map(|f| f.name).collect();
    let mut found: FxHashMap<FuncId, Vec<CallId>> = FxHashMap::default();
    for (n, call) in ir.calls().enumerate() {
        let (classes, name) = through_object(program, m, call, &names);
        let methods = classes.into_iter().filter_map(|class| program.find_method(class, name));
        for (_, f) in methods.filter(|&(of, _)| of == m) {
            found.entry(f).or_default().push(CallId(u32::try_from(n).unwrap_or(u32::MAX)));
        }
    }
    found
}

/// The possible classes of the receiver, and the name of the called method, if it is one of `names`. Examples: `self.masks.upto(x)`, and
/// `self.align(x)` where `self.align` is an object with a `__call__`. No classes if they are unknown.
pub(crate) fn through_object(
    program: &Program,
    m: ModIdx,
    call: Call<'_>,
    names: &FxHashSet<Sym>,
) -> (Vec<ClassKey>, Sym) {
    let itself = Sym::new("__call__");
    match program.get(m).ir.expr(call.func) {
        Expr::Attr { name, .. } if names.contains(&name) => (receivers(program, m, call.func), name),
        Expr::Attr { .. } | Expr::Var(_) if names.contains(&itself) => {
            (objects(program, m, call.func), itself)
        }
        _ => (Vec::new(), itself),
    }
}

/// The possible classes of the receiver of a method call; empty if they are unknown.
fn receivers(program: &Program, m: ModIdx, callee: ExprId) -> Vec<ClassKey> {
    let ir = &program.get(m).ir;
    let Expr::Attr { base, .. } = ir.expr(callee) else { return Vec::new() };
    objects(program, m, base)
}

/// Whether the call certainly runs no method of this class: the object is of unrelated classes, or the callee is not a method.
pub(crate) fn is_of_others(program: &Program, m: ModIdx, callee: ExprId, class: ClassKey) -> bool {
    let ir = &program.get(m).ir;
    let related = |k: ClassKey| {
        program.class(k).mro.contains(&class)
            || program.class(class).mro.contains(&k)
            || program.class(k).unknown_base
    };
    match program.resolve_expr(m, callee) {
        Some(Resolved::External(_)) => return true,
        Some(Resolved::Function(k, f)) => return !class_of(program, k, f).is_some_and(related),
        _ => {}
    }
    let Expr::Attr { base, .. } = ir.expr(callee) else { return false };
    let made = match ir.expr(base) {
        Expr::Attr { base: object, name } => match class_of_self(ir, m, object) {
            Some(_) if is_unpacked(ir, name) => return false,
            Some(owner) => set_to(program, owner, name),
            None => return false,
        },
        _ => set_before(ir, base).into_iter().map(|e| (m, e)).collect(),
    };
    let another = |&(m, e): &(ModIdx, ExprId)| {
        classes_made(program, m, e).is_some_and(|classes| !classes.into_iter().any(related))
    };
    !made.is_empty() && made.iter().all(another)
}

/// Whether a statement of the file unpacks a value into attributes of this name, or loops with one as its variable.
pub(crate) fn is_unpacked(ir: &Module, name: Sym) -> bool {
    let named = |e: ExprId| matches!(ir.expr(e), Expr::Attr { name: n, .. } if n == name);
    ir.has_attribute(name) && ir.stmts.iter().any(|s| match *s {
        Stmt::Assign { targets, .. } => ir.list(targets).iter().any(|&t| {
            matches!(ir.expr(t), Expr::Tuple(list) | Expr::List(list) if ir.list(list).iter().any(|&t| named(t)))
        }),
        Stmt::For { target, .. } => named(target),
        _ => false,
    })
}

/// The possible classes of the object; empty if they are unknown.
fn objects(program: &Program, m: ModIdx, e: ExprId) -> Vec<ClassKey> {
    let ir = &program.get(m).ir;
    match ir.expr(e) {
        Expr::Var(Var::Local(_)) => all_made(program, m, set_before(ir, e).into_iter()),
        Expr::Attr { base, name } => match class_of_self(ir, m, base) {
            Some(class) => kept(program, class, name),
            None => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// The values that a local variable may hold where it is read; empty if that is unknown.
fn set_before(ir: &Module, e: ExprId) -> Vec<ExprId> {
    let Expr::Var(var @ Var::Local(_)) = ir.expr(e) else { return Vec::new() };
    let mut given = Given::new(ir, var);
    let around = ir.function_around(e);
    given.before(ir.function(around).body, ir.span(e), &mut |_| false);
    match given.held {
        Some(None) => given.values,
        _ => Vec::new(),
    }
}

/// The class in whose methods the expression is `self`.
pub(crate) fn class_of_self(ir: &Module, module: ModIdx, e: ExprId) -> Option<ClassKey> {
    let mut func = ir.function_around(e);
    while ir.function(func).kind != FuncKind::Function {
        func = ir.function(func).parent?;
    }
    let function = ir.function(func);
    let class = function.class?;
    (ir.expr(e) == Expr::Var(Var::Local(function.params.first()?.slot))).then_some(ClassKey { module, class })
}

/// The classes of an attribute's values, if the class's methods create all of them.
fn kept(program: &Program, class: ClassKey, name: Sym) -> Vec<ClassKey> {
    let made = set_to(program, class, name).into_iter().map(|(m, e)| classes_made(program, m, e));
    made.collect::<Option<Vec<Vec<ClassKey>>>>().unwrap_or_default().concat()
}

/// The values other than `None` that the methods of a class assign to an attribute.
pub(crate) fn set_to(program: &Program, class: ClassKey, name: Sym) -> Vec<(ModIdx, ExprId)> {
    let mut values = Vec::new();
    for &k in &program.class(class).mro {
        let ir = &program.get(k.module).ir;
        if !ir.has_attribute(name) {
            continue;
        }
        // The statements of methods are in the range of the class's body.
        for stmt in &ir.stmts[ir.stmts_of(ir.function(ir.class(k.class).body))] {
            let Stmt::Assign { targets, value } = *stmt else { continue };
            let sets = |&t: &ExprId| {
                matches!(ir.expr(t), Expr::Attr { base, name: n }
                    if n == name && class_of_self(ir, k.module, base) == Some(k))
            };
            if ir.list(targets).iter().any(sets) && ir.expr(value) != Expr::None {
                values.push((k.module, value));
            }
        }
    }
    values
}

/// The classes that these expressions instantiate; empty if one of them does something else.
fn all_made(program: &Program, m: ModIdx, values: impl Iterator<Item = ExprId>) -> Vec<ClassKey> {
    let made = values.map(|v| classes_made(program, m, v));
    made.collect::<Option<Vec<Vec<ClassKey>>>>().unwrap_or_default().concat()
}

/// The class of the project that the expression instantiates, or all classes of a table that it picks from: `SOLVERS[name](args)`.
fn classes_made(program: &Program, m: ModIdx, e: ExprId) -> Option<Vec<ClassKey>> {
    let ir = &program.get(m).ir;
    let Expr::Call(call) = ir.expr(e) else { return None };
    let callee = ir.call(call).func;
    if let Expr::Index { base, .. } = ir.expr(callee) {
        return classes_in_table(program, program.resolve_expr(m, base)?);
    }
    match named(program, m, callee)? {
        Node::Class(key) => Some(vec![key]),
        Node::Function(..) => None,
    }
}

/// The classes in a table at the top of a file, if the table contains only classes of the project: `{"ridge": Ridge}`.
fn classes_in_table(program: &Program, table: Resolved) -> Option<Vec<ClassKey>> {
    let Resolved::Variable(m, slot) = table else { return None };
    let ir = &program.get(m).ir;
    let within = entries(ir);
    let named = within
        .iter()
        .filter(|&(&e, &of)| of == slot && matches!(ir.expr(e), Expr::Var(_) | Expr::Attr { .. }));
    let class = |e: ExprId| match program.resolve_expr(m, e) {
        Some(Resolved::Class(key)) => Some(key),
        _ => None,
    };
    let classes: Vec<ClassKey> = named.map(|(&e, _)| class(e)).collect::<Option<_>>()?;
    (!classes.is_empty()).then_some(classes)
}

/// Whether the argument that a method call passes for this parameter is visibly on the host.
pub(crate) fn gives_host(program: &Program, m: ModIdx, call: Call<'_>, index: usize, name: Sym) -> bool {
    let Some(given) = index.checked_sub(1).and_then(|at| argument(call, at, name)) else { return false };
    let graph = CallGraph::default();
    let site = Site::of(m, program.get(m).ir.function_around(call.func));
    Contents { program, graph: &graph }.of(&site, given) == Stored::Host
}

/// Whether the value, or a value that it is a part of, is the result of an unknown call: `self.net(x)[0]`.
pub(crate) fn unknown_makes(program: &Program, m: ModIdx, e: ExprId) -> bool {
    let ir = &program.get(m).ir;
    let around = ir.function_around(e);
    match ir.expr(e) {
        Expr::Var(var @ Var::Local(_)) => {
            let mut given = Given::new(ir, var);
            given.before(ir.function(around).body, ir.span(e), &mut |_| false);
            given.values.into_iter().any(|v| unknown_makes(program, m, v))
        }
        Expr::Index { base, .. } | Expr::Attr { base, .. } => unknown_makes(program, m, base),
        Expr::Call(call) => {
            let callee = ir.call(call).func;
            let known =
                program.resolve_expr(m, callee).is_some() || own_method(program, m, around, callee).is_some();
            match ir.expr(callee) {
                _ if known => false,
                Expr::Attr { base, .. } if class_of_self(ir, m, base).is_none() => {
                    unknown_makes(program, m, base)
                }
                _ => true,
            }
        }
        _ => false,
    }
}
