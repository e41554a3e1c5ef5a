//! Calls by name: who calls a function or a method of this name, in whatever files.
//!
//! A method of what nobody knows is not followed where it is called. But if all calls of that name in the project are at
//! places where something holds, it holds in the method.

use std::cell::OnceCell;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::project::method_calls::is_of_others;
use crate::flow::project::mps_checks::is_off_mps;
use crate::flow::project::unmoved_modules::class_of;
use crate::flow::query::nodes::Target;
use crate::ir::{CallId, Expr, ExprId, FuncId, FuncKind, Module, Stmt, StmtId};
use crate::link::{ClassKey, ModIdx, Program};
use crate::span::Place;
use crate::sym::{NameSet, Sym};

/// So many functions around one another are followed.
const MAX_HANDS: u32 = 4;

/// Under these nothing is recorded for a backward pass.
const CUTS: &[&str] = &["no_grad", "inference_mode"];

/// The calls of some names.
#[derive(Debug, Default)]
pub struct NamedCalls {
    pub(crate) sites: FxHashMap<Sym, Vec<(ModIdx, CallId)>>,
    /// How often each of the names is mentioned, called or not.
    mentions: OnceCell<FxHashMap<Sym, Mentions>>,
}

/// How often a name is mentioned.
#[derive(Clone, Copy, Debug, Default)]
struct Mentions {
    /// `base.name`
    attributes: usize,
    /// `name`
    variables: usize,
}

impl NamedCalls {
    /// Looks for calls of these names in these files, and of the functions that these calls are in.
    pub fn of(program: &Program, files: &[ModIdx], names: &FxHashSet<Sym>) -> Self {
        let (mut found, mut todo) = (Self::default(), names.clone());
        for _ in 0..=MAX_HANDS {
            let mut around = FxHashSet::default();
            let wanted: NameSet = todo.iter().copied().collect();
            for &m in files {
                let ir = &program.get(m).ir;
                for (name, calls) in ir.named_calls().filter(|&(name, _)| wanted.contains(name)) {
                    found.sites.entry(name).or_default().extend(calls.iter().map(|&call| (m, call)));
                    let functions = calls.iter().filter_map(|&call| outermost(ir, ir.call(call).func));
                    around.extend(functions.map(|f| ir.function(f).name));
                }
            }
            around.retain(|name| !found.sites.contains_key(name));
            todo = around;
        }
        found
    }

    /// The names that have been looked for, and those of the functions around what was found.
    pub fn names(&self, program: &Program) -> FxHashSet<Sym> {
        let around = self.sites.values().flatten().filter_map(|&(m, call)| {
            let ir = &program.get(m).ir;
            Some(ir.function(outermost(ir, ir.call(call).func)?).name)
        });
        self.sites.keys().copied().chain(around).collect()
    }

    /// Is the function, or whoever calls it, without gradients?
    pub fn without_gradients(&self, program: &Program, target: Target) -> bool {
        self.all(program, target, MAX_HANDS, &is_without_gradients)
    }

    /// Does the process choose its GPU before it calls the function?
    pub fn after_choice(&self, program: &Program, target: Target) -> bool {
        self.all(program, target, MAX_HANDS, &chooses_before)
    }

    /// Is the function, or whoever calls it, only called where a test has said that a device is not MPS, as far as these functions run
    /// where their names stand?
    pub fn off_mps(
        &self,
        program: &Program,
        files: &[ModIdx],
        target: Target,
        by_name: &dyn Fn(Target) -> bool,
    ) -> bool {
        let off = |m: ModIdx, e: ExprId| {
            let ir = &program.get(m).ir;
            is_off_mps(ir, ir.span(e))
        };
        self.only(program, files, target, MAX_HANDS, by_name, &off)
    }

    /// Is the function called while a module is made, and by nobody else? Whoever makes it moves it afterwards.
    pub fn while_making(&self, program: &Program, target: Target) -> bool {
        let name = program.get(target.0).ir.function(target.1).name.as_str();
        // Those run without being named.
        let by_name = name != "forward" && !name.starts_with("__");
        by_name && self.all(program, target, MAX_HANDS, &is_in_constructor)
    }

    /// Is the function only called at such places, and by functions of which that is so, as far as these run where their
    /// names stand?
    pub(crate) fn only_where(
        &self,
        program: &Program,
        files: &[ModIdx],
        target: Target,
        by_name: &dyn Fn(Target) -> bool,
        holds: &dyn Fn(ModIdx, ExprId) -> bool,
    ) -> bool {
        self.only(program, files, target, MAX_HANDS, by_name, holds)
    }

    /// Counts the mentions of the names in these files, once.
    fn mentions(&self, program: &Program, files: &[ModIdx]) -> &FxHashMap<Sym, Mentions> {
        self.mentions.get_or_init(|| {
            let mut counts: FxHashMap<Sym, Mentions> =
                self.sites.keys().map(|&name| (name, Mentions::default())).collect();
            for &m in files {
                let ir = &program.get(m).ir;
                for e in (0..u32::try_from(ir.exprs.len()).unwrap_or(u32::MAX)).map(ExprId) {
                    match ir.expr(e) {
                        Expr::Attr { name, .. } => {
                            if let Some(count) = counts.get_mut(&name) {
                                count.attributes += 1;
                            }
                        }
                        Expr::Var(_) => {
                            if let Some(count) = ir.variable_of(e).and_then(|name| counts.get_mut(&name)) {
                                count.variables += 1;
                            }
                        }
                        _ => {}
                    }
                }
            }
            counts
        })
    }

    fn only(
        &self,
        program: &Program,
        files: &[ModIdx],
        (m, f): Target,
        hands: u32,
        by_name: &dyn Fn(Target) -> bool,
        holds: &dyn Fn(ModIdx, ExprId) -> bool,
    ) -> bool {
        let function = program.get(m).ir.function(f);
        let Some(sites) = self.sites.get(&function.name).filter(|_| by_name((m, f))) else { return false };
        let mentions = self.mentions(program, files).get(&function.name).copied().unwrap_or_default();
        // A function is mentioned by its bare name as well.
        let variables = if function.class.is_some() { 0 } else { mentions.variables };
        // Who only mentions it hands it on to somebody.
        if mentions.attributes + variables != sites.len() {
            return false;
        }
        let class = class_of(program, m, f);
        let mut own = sites.iter().filter(|&&(at, call)| !is_others(program, at, call, class)).peekable();
        own.peek().is_some()
            && own.all(|&(at, call)| {
                let ir = &program.get(at).ir;
                let site = ir.call(call).func;
                holds(at, site)
                    || hands > 0
                        && outermost(ir, site).is_some_and(|g| {
                            (at, g) != (m, f) && self.only(program, files, (at, g), hands - 1, by_name, holds)
                        })
            })
    }

    /// Does this hold at all calls of the function, or at all calls of the functions that they are in? False if nobody
    /// calls it.
    fn all(
        &self,
        program: &Program,
        (m, f): Target,
        hands: u32,
        holds: &dyn Fn(&Module, ExprId) -> bool,
    ) -> bool {
        let function = program.get(m).ir.function(f);
        let Some(sites) = self.sites.get(&function.name) else { return false };
        // What calls itself has been called by somebody else.
        let class = class_of(program, m, f);
        let mut others = sites.iter().filter(|&&(at, call)| {
            let ir = &program.get(at).ir;
            let itself = at == m && function.span.contains(ir.span(ir.call(call).func));
            !itself && !is_others(program, at, call, class)
        });
        let all = others.clone().all(|&(at, call)| {
            let ir = &program.get(at).ir;
            let site = ir.call(call).func;
            holds(ir, site)
                || hands > 0
                    && outermost(ir, site).is_some_and(|g| self.all(program, (at, g), hands - 1, holds))
        });
        all && others.next().is_some()
    }
}

/// Is it for certain no call of a method of that class?
fn is_others(program: &Program, at: ModIdx, call: CallId, class: Option<ClassKey>) -> bool {
    class.is_some_and(|class| is_of_others(program, at, program.get(at).ir.call(call).func, class))
}

/// The function at a place that others may call, by its number.
pub fn function_at(program: &Program, place: Place) -> Option<Target> {
    let m = program.module_of(place.file)?;
    let ir = &program.get(m).ir;
    let around = ir.functions_around(place.span).filter(|&f| ir.function(f).kind == FuncKind::Function);
    Some((m, around.last()?))
}

/// The outermost function around an expression; nothing for a file's body.
pub(crate) fn outermost(ir: &Module, e: ExprId) -> Option<FuncId> {
    let (mut f, mut found) = (ir.function_around(e), None);
    while f != FuncId(0) {
        if ir.function(f).kind == FuncKind::Function {
            found = Some(f);
        }
        f = ir.function(f).parent?;
    }
    found
}

/// Is the expression under a decorator or a `with` by which nothing is recorded?
fn is_without_gradients(ir: &Module, e: ExprId) -> bool {
    let cuts = |e: ExprId| {
        ir.exprs_in(e).any(|n| {
            let e = ExprId(u32::try_from(n).unwrap_or(u32::MAX));
            ir.last_name(e).is_some_and(|name| CUTS.contains(&name.as_str()))
        })
    };
    let at = ir.span(e);
    let decorated = ir
        .functions
        .iter()
        .any(|f| f.parent.is_some() && f.span.contains(at) && ir.list(f.decorators).iter().any(|&d| cuts(d)));
    decorated
        || ir.stmts.iter().enumerate().any(|(n, s)| match s {
            Stmt::With { items, .. } => {
                let span = ir.stmt_span(StmtId(u32::try_from(n).unwrap_or(u32::MAX)));
                span.contains(at) && items.iter().any(|&(manager, _)| cuts(manager))
            }
            _ => false,
        })
}

/// Is the expression in a constructor?
fn is_in_constructor(ir: &Module, e: ExprId) -> bool {
    outermost(ir, e)
        .is_some_and(|f| ir.function(f).class.is_some() && ir.function(f).name.as_str() == "__init__")
}

/// Has the function called `set_device` before?
pub(crate) fn chooses_before(ir: &Module, e: ExprId) -> bool {
    let (around, at) = (ir.function(ir.function_around(e)), ir.span(e));
    ir.calls().any(|call| {
        let span = ir.span(call.func);
        let chooses =
            ir.last_name(call.func).is_some_and(|n| matches!(n.as_str(), "set_device" | "set_device_idx"));
        chooses && span.end < at.start && around.span.contains(span)
    })
}
