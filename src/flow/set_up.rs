//! Methods that run once for an object: while it is made, or when it disposes of its own parts.
//!
//! What only a constructor calls belongs to making the object. A method that deletes parts which the constructor has made
//! turns the object into another one, mostly into one that is faster to run: it cannot be called a second time, and so
//! what only such methods call runs once, too.

use rustc_hash::{FxHashMap, FxHashSet};

use super::assigned::Assigned;
use super::found::Found;
use crate::ir::{Expr, ExprId, FuncId, Function, Module, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Program};
use crate::sym::Sym;

/// What frameworks call while a model is set up: PyTorch's own name for it, and the hook of Transformers' `PreTrainedModel`
/// (<https://huggingface.co/docs/transformers/custom_models>), which others have taken over.
const HOOKS: [&str; 2] = ["reset_parameters", "_init_weights"];

/// A function of a program.
type Key = (ModIdx, FuncId);

/// Which methods run once for an object.
#[derive(Debug, Default)]
pub struct SetUp {
    methods: FxHashSet<Key>,
    /// Those among them that only constructors come to, by calls that say so themselves.
    constructing: FxHashSet<Key>,
    /// Those among them that dispose of parts, and what only such ones call.
    disposing: FxHashSet<Key>,
    /// Functions that run again and again, and the methods of the same object that they come to.
    steps: FxHashSet<Key>,
}

impl SetUp {
    /// By what methods call of their own object.
    pub(super) fn of(program: &Program, found: &[Found], assigned: &Assigned) -> Self {
        let mut callers: FxHashMap<Key, Vec<Key>> = FxHashMap::default();
        for &(caller, callee) in found.iter().flat_map(|f| &f.same) {
            callers.entry(callee).or_default().push(caller);
        }
        let init = Sym::new("__init__");
        let hooks = HOOKS.map(Sym::new);
        let (mut constructors, mut disposing) = (FxHashSet::default(), FxHashSet::default());
        let mut hooked: FxHashSet<Key> = FxHashSet::default();
        for (m, linked) in program.modules.iter().enumerate() {
            let m = ModIdx(u32::try_from(m).unwrap_or(u32::MAX));
            for (n, f) in linked.ir.functions.iter().enumerate().filter(|(_, f)| f.class.is_some()) {
                let key = (m, FuncId(u32::try_from(n).unwrap_or(u32::MAX)));
                if f.name == init {
                    constructors.insert(key);
                } else if hooks.contains(&f.name) {
                    hooked.insert(key);
                } else if disposes(&linked.ir, key, assigned) {
                    disposing.insert(key);
                }
            }
        }
        let inherited = inherited(program, &callers);
        // From callers to callees; who is called by nobody who is known, or by himself, is not among them.
        let spread = |mut once: FxHashSet<Key>, inherited: &FxHashMap<Key, Vec<Key>>| {
            loop {
                let also = |(callee, callers): &(&Key, &Vec<Key>)| {
                    !once.contains(callee)
                        && callers.iter().all(|c| once.contains(c) && always_calls(program, *c, **callee))
                };
                let all = callers.iter().chain(inherited);
                let more: Vec<Key> = all.filter(also).map(|(&callee, _)| callee).collect();
                if more.is_empty() {
                    return once;
                }
                once.extend(more);
            }
        };
        let methods =
            spread(constructors.iter().chain(&disposing).chain(&hooked).copied().collect(), &inherited);
        let steps = steps(program, &callers);
        let direct = FxHashMap::default();
        let constructing = spread(constructors, &direct);
        Self { methods, constructing, disposing: spread(disposing, &direct), steps }
    }

    /// Does the function run again and again: a module's `forward`, what trains, and what such methods call of their own object?
    pub fn is_step(&self, module: ModIdx, func: FuncId) -> bool {
        self.steps.contains(&(module, func))
    }

    /// Does the method dispose of parts of its object, or do only such ones call it?
    pub fn disposes(&self, module: ModIdx, func: FuncId) -> bool {
        self.disposing.contains(&(module, func))
    }

    /// Is the method private, and do only constructors come to it?
    pub fn is_of_constructor(&self, program: &Program, module: ModIdx, func: FuncId) -> bool {
        program.get(module).ir.function(func).is_private() && self.constructing.contains(&(module, func))
    }

    /// Does the method run once for an object?
    pub fn contains(&self, module: ModIdx, func: FuncId) -> bool {
        self.methods.contains(&(module, func))
    }
}

/// What runs again and again: modules' `forward`, what walks a graph back or takes an optimizer's step, and what such methods call
/// of their own object.
fn steps(program: &Program, callers: &FxHashMap<Key, Vec<Key>>) -> FxHashSet<Key> {
    let mut found = FxHashSet::default();
    for (m, linked) in (0..).map(ModIdx).zip(&program.modules) {
        let ir = &linked.ir;
        let trains = |e: &Expr| {
            let Expr::Call(call) = *e else { return false };
            matches!(ir.expr(ir.call(call).func), Expr::Attr { name, .. }
                if matches!(name.as_str(), "backward" | "manual_backward" | "step"))
        };
        let known = (0..).map(FuncId).zip(&ir.functions).skip(1).filter(|(_, f)| {
            matches!(f.name.as_str(), "forward" | "__call__") || ir.exprs[ir.exprs_of(f)].iter().any(trains)
        });
        found.extend(known.map(|(f, _)| (m, f)));
    }
    loop {
        let reached = |(callee, callers): &(&Key, &Vec<Key>)| {
            !found.contains(*callee) && callers.iter().any(|caller| found.contains(caller))
        };
        let more: Vec<Key> = callers.iter().filter(reached).map(|(&callee, _)| callee).collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// The callers of methods that take the place of inherited ones, or whose place others take: whoever calls one of a family may
/// come to any of it. What its members do for one another, with `super()`, is no call from outside.
fn inherited(program: &Program, callers: &FxHashMap<Key, Vec<Key>>) -> FxHashMap<Key, Vec<Key>> {
    let name = |(m, f): Key| program.get(m).ir.function(f).name;
    let mut families: FxHashMap<Key, Vec<Key>> = FxHashMap::default();
    for (m, linked) in (0..).map(ModIdx).zip(&program.modules) {
        for (f, function) in (0..).map(FuncId).zip(&linked.ir.functions) {
            let Some(class) = function.class.map(|class| ClassKey { module: m, class }) else { continue };
            let of = |base: &ClassKey| Some((base.module, program.own_method(*base, function.name)?));
            let first = program.class(class).mro.iter().rev().find_map(of);
            if of(&class) == Some((m, f)) {
                families.entry(first.unwrap_or((m, f))).or_default().push((m, f));
            }
        }
    }
    let mut found = FxHashMap::default();
    for family in families.into_values().filter(|family| family.len() > 1) {
        let all = family.iter().filter_map(|of| callers.get(of)).flatten().copied();
        let outside: Vec<Key> = all.filter(|&caller| name(caller) != name(family[0])).collect();
        if !outside.is_empty() {
            found.extend(family.into_iter().map(|of| (of, outside.clone())));
        }
    }
    found
}

/// Does a method call the other one wherever it speaks of it, be it under a name that no other method knows? With
/// `self.forward = self.fast_forward`, or what is handed over, others will.
fn always_calls(program: &Program, (m, caller): Key, (callee_module, callee): Key) -> bool {
    let ir = &program.get(m).ir;
    let name = program.get(callee_module).ir.function(callee).name;
    let within = ir.exprs_of(ir.function(caller));
    let speaks = |n: usize, name: Sym| matches!(ir.exprs[n], Expr::Attr { name: other, .. } if other == name);
    let known = |alias: Sym| {
        alias.as_str() == "forward" || (0..ir.exprs.len()).any(|n| !within.contains(&n) && speaks(n, alias))
    };
    let called = |e: ExprId| ir.calls().any(|call| call.func == e);
    within.clone().filter(|&n| speaks(n, name)).all(|n| {
        let e = ExprId(u32::try_from(n).unwrap_or(u32::MAX));
        called(e) || other_name(ir, caller, e).is_some_and(|alias| alias.is_none_or(|alias| !known(alias)))
    })
}

/// The other name that a statement of the function gives a value: of an attribute, or of a variable (`Some(None)`).
fn other_name(ir: &Module, func: FuncId, value: ExprId) -> Option<Option<Sym>> {
    let target = ir.stmts[ir.stmts_of(ir.function(func))].iter().find_map(|s| match *s {
        Stmt::Assign { targets, value: v } if v == value => match ir.list(targets) {
            &[target] => Some(target),
            _ => None,
        },
        Stmt::AnnAssign { target, value: Some(v), .. } if v == value => Some(target),
        _ => None,
    });
    match ir.expr(target?) {
        Expr::Var(Var::Local(_)) => Some(None),
        Expr::Attr { name, .. } => Some(Some(name)),
        _ => None,
    }
}

/// Does the method delete a part of its object that the constructor has made, and that no other method makes?
fn disposes(ir: &Module, (module, func): Key, assigned: &Assigned) -> bool {
    let function = ir.function(func);
    if matches!(function.name.as_str(), "forward" | "__call__" | "__del__" | "__exit__") {
        return false;
    }
    let makers = |name: Sym| {
        let methods = ir.functions.iter().enumerate().filter(|(_, f)| f.class == function.class);
        let those = methods.filter(move |&(n, _)| {
            assigned.to_self(module, FuncId(u32::try_from(n).unwrap_or(u32::MAX))).contains(&name)
        });
        those.map(|(_, f)| f.name.as_str()).filter(|name| *name != function.name.as_str())
    };
    deleted(ir, function).into_iter().any(|name| {
        let mut makers = makers(name).peekable();
        makers.peek().is_some() && makers.all(|maker| maker == "__init__")
    })
}

/// The attributes of its own object that a method deletes: `del self.parts`, `self.__delattr__("parts")`.
fn deleted(ir: &Module, function: &Function) -> Vec<Sym> {
    let Some(receiver) = function.params.first().map(|p| Expr::Var(Var::Local(p.slot))) else {
        return Vec::new();
    };
    let own = |e: ExprId| match ir.expr(e) {
        Expr::Attr { base, name } if ir.expr(base) == receiver => Some(name),
        _ => None,
    };
    let mut names = Vec::new();
    for stmt in &ir.stmts[ir.stmts_of(function)] {
        match *stmt {
            Stmt::Del(list) => names.extend(ir.list(list).iter().filter_map(|&t| own(t))),
            Stmt::Expr(e) => {
                let Expr::Call(id) = ir.expr(e) else { continue };
                let call = ir.call(id);
                let text = |at: usize| match call.args.get(at).map(|a| ir.expr(a.value)) {
                    Some(Expr::Str(name)) => Some(name),
                    _ => None,
                };
                let builtin = |name: &str| ir.expr(call.func) == Expr::Var(Var::Unbound(Sym::new(name)));
                let of_it = call.args.first().is_some_and(|a| ir.expr(a.value) == receiver);
                if own(call.func).is_some_and(|name| name.as_str() == "__delattr__") {
                    names.extend(text(0));
                } else if of_it && builtin("delattr") {
                    names.extend(text(1));
                }
            }
            _ => {}
        }
    }
    names
}
