//! Methods that run once for an object: those that only constructors, and the set-up hooks of frameworks, reach.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::query::relevance::graph::Found;
use crate::ir::{Expr, ExprId, FuncId, Module, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Program};
use crate::reads;
use crate::sym::Sym;

/// Methods that frameworks call while they set up a model: PyTorch's own hook, and the hook of Transformers' `PreTrainedModel`
/// (<https://huggingface.co/docs/transformers/custom_models>), which other frameworks have adopted.
const HOOKS: [&str; 2] = ["reset_parameters", "_init_weights"];

/// A function of a program.
type Key = (ModIdx, FuncId);

/// The methods that run once for an object.
#[derive(Debug, Default)]
pub struct SetUp {
    methods: FxHashSet<Key>,
}

impl SetUp {
    /// Adds the methods of a file with this number of functions to a fingerprint.
    pub(crate) fn fingerprint(&self, module: ModIdx, functions: usize, into: &mut impl Hasher) {
        (0..).map(FuncId).take(functions).filter(|&f| self.contains(module, f)).for_each(|f| f.hash(into));
    }

    /// Computes the set from the calls between methods of the same object.
    pub(crate) fn of(program: &Program, found: &[Found]) -> Self {
        let mut callers: FxHashMap<Key, Vec<Key>> = FxHashMap::default();
        for &(caller, callee) in found.iter().flat_map(|f| &f.same) {
            callers.entry(callee).or_default().push(caller);
        }
        let init = Sym::new("__init__");
        let hooks = HOOKS.map(Sym::new);
        let mut methods: FxHashSet<Key> = FxHashSet::default();
        for (m, linked) in (0..).map(ModIdx).zip(program.all()) {
            let own = (0..).map(FuncId).zip(&linked.ir.functions).filter(|(_, f)| f.class.is_some());
            let once = own.filter(|(_, f)| f.name == init || hooks.contains(&f.name));
            methods.extend(once.map(|(f, _)| (m, f)));
        }
        let inherited = inherited(program, &callers);
        // A fixpoint from callers to callees. Methods without known callers, and recursive methods, are excluded.
        loop {
            let also = |(callee, callers): &(&Key, &Vec<Key>)| {
                !methods.contains(callee)
                    && callers.iter().all(|c| methods.contains(c) && always_calls(program, *c, **callee))
            };
            let more: Vec<Key> =
                callers.iter().chain(&inherited).filter(also).map(|(&callee, _)| callee).collect();
            if more.is_empty() {
                return Self { methods };
            }
            methods.extend(more);
        }
    }

    /// Whether the method runs once for an object.
    pub fn contains(&self, module: ModIdx, func: FuncId) -> bool {
        reads::note(module.0);
        self.methods.contains(&(module, func))
    }
}

/// For methods that override others or are overridden: the callers of all methods in the family. A call of one may dispatch to any of
/// them. Calls between members of the family, with `super()`, do not count.
fn inherited(program: &Program, callers: &FxHashMap<Key, Vec<Key>>) -> FxHashMap<Key, Vec<Key>> {
    let name = |(m, f): Key| program.get(m).ir.function(f).name;
    let mut families: FxHashMap<Key, Vec<Key>> = FxHashMap::default();
    for (m, linked) in (0..).map(ModIdx).zip(program.all()) {
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

/// Whether every mention of the callee in the caller is a call, or gives it another name that no other method uses. With
/// `self.forward = self.fast_forward`, or if the method is passed on, other code may call it.
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

/// The other name that an assignment in the function gives a value: an attribute (`Some(Some(name))`) or a variable (`Some(None)`).
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
