//! Where the tensors passed to `torch.save` are: copies on the CPU, plain numbers, or on the program's device.

use crate::flow::project::CallGraph;
use crate::flow::query::call_sites::{MAX_CALLERS, Site, calls, given_for};
use crate::flow::query::reaching_values::{Given, Stored};
use crate::ir::{Expr, ExprId, FuncId, IfElse, Module, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Program, Resolved};
use crate::span::Span;
use crate::sym::Sym;
use crate::torch;
use crate::words::Words;

/// Attributes of a tensor that are tensors on its device.
static OF_TENSOR: Words = Words::of("tensors of a tensor");
/// Parts of the names of values that are not tensors.
static PLAIN_PARTS: Words = Words::of("parts of names of plain values");
/// Words in the names of values that are not tensors.
static PLAIN_WORDS: Words = Words::of("names of plain values");

/// The maximum depth of expressions that are followed.
const MAX_DEPTH: u32 = 12;

/// The analysis of saved values.
pub(crate) struct Contents<'a> {
    pub(crate) program: &'a Program,
    pub(crate) graph: &'a CallGraph,
}

impl Contents<'_> {
    /// Where the tensors in the value of the expression are.
    pub(crate) fn of(&self, site: &Site<'_>, e: ExprId) -> Stored {
        self.value(site, e, MAX_DEPTH)
    }

    pub(crate) fn value(&self, site: &Site<'_>, e: ExprId, depth: u32) -> Stored {
        let Some(depth) = depth.checked_sub(1) else { return Stored::Unknown };
        let ir = &self.program.get(site.module).ir;
        let all = |list| self.all(site, ir.list(list), depth);
        match ir.expr(e) {
            Expr::Str(_) | Expr::Int(_) | Expr::Float(_) | Expr::True | Expr::False | Expr::None => {
                Stored::Plain
            }
            Expr::Format(_) | Expr::Compare { .. } | Expr::Ellipsis => Stored::Plain,
            Expr::Dict(list) => {
                let values: Vec<ExprId> = ir.list(list).iter().skip(1).step_by(2).copied().collect();
                self.all(site, &values, depth)
            }
            Expr::List(list) | Expr::Tuple(list) | Expr::Set(list) | Expr::And(list) | Expr::Or(list) => {
                all(list)
            }
            Expr::Comp(id) => {
                let comp = ir.comp(id);
                self.value(site, comp.value.unwrap_or(comp.element), depth)
            }
            Expr::Binary { left, right, .. } => self.all(site, &[left, right], depth),
            Expr::IfElse(id) => {
                let IfElse { then, orelse, .. } = ir.if_else(id);
                self.all(site, &[then, orelse], depth)
            }
            Expr::Unary { operand, .. } => self.value(site, operand, depth),
            Expr::Star(x) | Expr::Await(x) => self.value(site, x, depth),
            Expr::Index { base, .. } => self.value(site, base, depth),
            Expr::Attr { base, name } => match name.as_str() {
                text if OF_TENSOR.has(text) => self.value(site, base, depth),
                text if is_plain_name(text) => Stored::Plain,
                _ => self.own_attribute(site, base, name, depth),
            },
            Expr::Var(var) => match self.variable(site, var, e, depth) {
                Stored::Unknown => plain_if(self.name_of(site, var).is_some_and(is_plain_name)),
                known => known,
            },
            Expr::Call(id) => self.call(site, ir.call(id), depth),
            _ => Stored::Unknown,
        }
    }

    pub(crate) fn all(&self, site: &Site<'_>, list: &[ExprId], depth: u32) -> Stored {
        list.iter().map(|&x| self.value(site, x, depth)).min().unwrap_or(Stored::Plain)
    }

    /// The name of a variable of a function.
    pub(crate) fn name_of(&self, site: &Site<'_>, var: Var) -> Option<&str> {
        let ir = &self.program.get(site.module).ir;
        let (func, slot) = match var {
            Var::Local(slot) => (site.func, slot),
            Var::Global(slot) => (FuncId(0), slot),
            Var::Enclosing { depth, slot } => {
                let around = (0..depth).try_fold(site.func, |f, _| ir.function(f).parent)?;
                (around, slot)
            }
            Var::Unbound(_) => return None,
        };
        ir.function(func).slots.get(usize::from(slot)).map(|name| name.as_str())
    }

    /// `self.t`: plain if the methods of its class assign it only plain values. Values loaded from a checkpoint do not count: they are
    /// then plain as well.
    fn own_attribute(&self, site: &Site<'_>, base: ExprId, name: Sym, depth: u32) -> Stored {
        let ir = &self.program.get(site.module).ir;
        let function = ir.function(site.func);
        let receiver = function.params.first().map(|p| Expr::Var(Var::Local(p.slot)));
        let (Some(class), true) = (function.class, receiver == Some(ir.expr(base))) else {
            return Stored::Unknown;
        };
        let key = ClassKey { module: site.module, class };
        let mut known = None;
        for k in &self.program.class(key).mro {
            let there = &self.program.get(k.module).ir;
            for &(_, f) in &there.class(k.class).methods {
                for value in assigned_to_self(there, f, name) {
                    if self.is_read(k.module, value) {
                        continue;
                    }
                    let stored = self.value(&Site::of(k.module, f), value, depth);
                    known = Some(known.map_or(stored, |k: Stored| k.min(stored)));
                }
            }
        }
        plain_if(known == Some(Stored::Plain))
    }

    /// `torch.load(…)`
    fn is_read(&self, m: ModIdx, e: ExprId) -> bool {
        let ir = &self.program.get(m).ir;
        let Expr::Call(call) = ir.expr(e) else { return false };
        matches!(self.program.resolve_expr(m, ir.call(call).func), Some(Resolved::External(path))
            if torch::canonical(path).as_str() == "torch.load")
    }

    fn variable(&self, site: &Site<'_>, var: Var, e: ExprId, depth: u32) -> Stored {
        let linked = self.program.get(site.module);
        let ir = &linked.ir;
        if !matches!(var, Var::Local(_)) {
            return Stored::Unknown;
        }
        if let Some(iter) = looped(ir, site.func, var, ir.span(e)) {
            return self.value(site, iter, depth);
        }
        let mut given = Given::new(ir, var);
        given.before(ir.function(site.func).body, ir.span(e), &mut |v| {
            self.value(site, v, depth) >= Stored::Host
        });
        let held = match given.held {
            Some(held) => held,
            None => self.parameter(site, var, depth),
        };
        let values = given.values.iter().map(|&v| self.value(site, v, depth));
        values.chain(held).min().unwrap_or(Stored::Unknown)
    }

    /// The arguments that callers pass for a parameter. `None` if the variable is not a parameter.
    fn parameter(&self, site: &Site<'_>, var: Var, depth: u32) -> Option<Stored> {
        let function = self.program.get(site.module).ir.function(site.func);
        let Var::Local(slot) = var else { return None };
        let at = function.params.iter().position(|p| p.slot == slot)?;
        if let Some((caller, given)) = site.argument(self.program, var) {
            return Some(self.value(&caller, given, depth));
        }
        let callers = site.via.is_none().then(|| calls(self.program, self.graph, (site.module, site.func)));
        let calls = callers.into_iter().flatten().take(MAX_CALLERS);
        let given = calls.map(|(caller, call)| {
            let ir = &self.program.get(caller.module).ir;
            given_for(function, at, ir, ir.call(call))
                .map_or(Stored::Unknown, |x| self.value(&caller, x, depth))
        });
        Some(given.min().unwrap_or(Stored::Unknown))
    }
}

const fn plain_if(plain: bool) -> Stored {
    if plain { Stored::Plain } else { Stored::Unknown }
}

/// Names of values in checkpoints that are not tensors.
fn is_plain_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    PLAIN_PARTS.is_part_of(&name)
        || name.split('_').any(|word| PLAIN_WORDS.has(word)) && !name.contains("state")
}

/// The values that a method assigns or adds to an attribute of its object.
fn assigned_to_self(ir: &Module, f: FuncId, name: Sym) -> Vec<ExprId> {
    let function = ir.function(f);
    let receiver = function.params.first().map(|p| Expr::Var(Var::Local(p.slot)));
    let own = |&t: &ExprId| matches!(ir.expr(t), Expr::Attr { base, name: n } if n == name && Some(ir.expr(base)) == receiver);
    let assigned = ir.stmts[ir.stmts_of(function)].iter().filter_map(|s| match *s {
        Stmt::Assign { targets, value } => ir.list(targets).iter().any(own).then_some(value),
        Stmt::AugAssign { target, value, .. } => own(&target).then_some(value),
        Stmt::AnnAssign { target, value, .. } => value.filter(|_| own(&target)),
        _ => None,
    });
    assigned.collect()
}

/// The iterable of the loop or comprehension of the function around a place that binds the variable.
fn looped(ir: &Module, func: FuncId, var: Var, at: Span) -> Option<ExprId> {
    let within = |e: ExprId| ir.span(e).contains(at);
    let function = ir.function(func);
    let exprs = function.exprs.start as usize..function.exprs.end as usize;
    let generators =
        ir.exprs[exprs.clone()].iter().zip(&ir.expr_spans[exprs]).filter_map(|(e, span)| match *e {
            Expr::Comp(id) if span.contains(at) => Some(&ir.comp(id).generators),
            _ => None,
        });
    let of_comp = generators.flatten().find(|g| ir.binds(g.target, var) && !within(g.iter));
    if let Some(generator) = of_comp {
        return Some(generator.iter);
    }
    let stmts = ir.stmts_of(function);
    let mut of_loop =
        ir.stmts[stmts.clone()].iter().zip(&ir.stmt_spans[stmts]).filter_map(|(stmt, span)| match *stmt {
            Stmt::For { target, iter, .. } if span.contains(at) && ir.binds(target, var) && !within(iter) => {
                Some(iter)
            }
            _ => None,
        });
    of_loop.next()
}
