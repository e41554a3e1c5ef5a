//! SD505 graph-retained-by-accumulation: running averages that modules keep with their graphs.
//!
//! `self.level = 0.9 * self.level + 0.1 * y.mean()` in a method, where `y` is the output of a layer: each value keeps the
//! graphs of all earlier ones.

use super::CODE;
use super::states::THOUGHT_OF;
use crate::finding::{Finding, Label};
use crate::ir::{Arg, BinOp, Expr, ExprId, Function, Module, Stmt, Var};
use crate::link::ClassKey;
use crate::rules::check::Context;
use crate::rules::shared::code::{line_with, operand, quoted};
use crate::span::{Place, Span};
use crate::sym::Sym;
use crate::torch;
use crate::words::Words;
use crate::world::World;

static ALSO: Words = Words::of("names about the graph in an average");
static MOMENTS: Words = Words::of("moments of a batch");

/// SD505 graph-retained-by-accumulation, about averages in attributes
pub(super) fn averaged(cx: &Context<'_>) -> Vec<Finding> {
    let Some(module) = cx.program.module_of(cx.file) else { return Vec::new() };
    let linked = cx.program.get(module);
    let ir = &linked.ir;
    let mut found = Vec::new();
    for (class, info) in ir.classes.iter().zip(&linked.classes) {
        let is_module = info.externals.iter().any(|&p| {
            torch::base_class(p).is_some_and(|b| b.kind == torch::Base::Module && !b.moves_for_user)
        });
        if !is_module {
            continue;
        }
        let key = ClassKey { module, class: crate::ir::ClassId(index(&linked.ir, class.span)) };
        for &(name, func) in &class.methods {
            let function = ir.function(func);
            if name.as_str() != "__init__" {
                Method { cx, ir, key, function }.look(&mut found);
            }
        }
    }
    found
}

fn index(ir: &Module, span: Span) -> u32 {
    let at = ir.classes.iter().position(|c| c.span == span);
    at.and_then(|n| u32::try_from(n).ok()).unwrap_or_default()
}

/// A method of a module.
struct Method<'a> {
    cx: &'a Context<'a>,
    ir: &'a Module,
    key: ClassKey,
    function: &'a Function,
}

impl Method<'_> {
    fn look(&self, found: &mut Vec<Finding>) {
        let ir = self.ir;
        let mut candidates = Vec::new();
        for n in ir.stmts_of(self.function) {
            if let Stmt::Assign { targets, value } = ir.stmts[n]
                && let [target] = *ir.list(targets)
                && let (Some(name), Some(rest)) = (self.own(target), self.added_to(target, value))
            {
                candidates.push((ir.stmt_spans[n], name, rest));
            }
        }
        found.extend(self.in_place().into_iter().map(|at| self.finding(at, None)));
        if candidates.is_empty() || self.thinks() {
            return;
        }
        for (at, name, rest) in candidates {
            if self.has_graph(rest) && !self.is_set_elsewhere(name, at) {
                found.push(self.finding(at, Some(rest)));
            }
        }
    }

    /// `self.level.mul_(0.9).add_(0.1 * m)` in `forward`, where `m` is a mean or a variance of the input. In training, the input of a
    /// layer has a graph, and then the buffer has one.
    fn in_place(&self) -> Vec<Span> {
        let ir = self.ir;
        let adds = ["mul_", "add_"].iter().all(|name| ir.has_attribute(Sym::new(name)));
        if !adds || self.function.name.as_str() != "forward" || self.thinks() {
            return Vec::new();
        }
        let moments = self.moments();
        let taken = |n: usize| matches!(ir.exprs[n], Expr::Var(v) if moments.contains(&v));
        let averages = |e: ExprId| {
            let Some((kept, "add_", given)) = self.method(e) else { return false };
            let Some((level, "mul_", _)) = self.method(kept) else { return false };
            self.own(level).is_some() && given.iter().any(|a| ir.exprs_in(a.value).any(taken))
        };
        ir.stmts_of(self.function)
            .filter(|&n| matches!(ir.stmts[n], Stmt::Expr(e) if averages(e)))
            .map(|n| ir.stmt_spans[n])
            .collect()
    }

    /// `base.name(args)`
    fn method(&self, e: ExprId) -> Option<(ExprId, &'static str, &[Arg])> {
        let Expr::Call(c) = self.ir.expr(e) else { return None };
        let call = self.ir.call(c);
        let Expr::Attr { base, name } = self.ir.expr(call.func) else { return None };
        Some((base, name.as_str(), call.args))
    }

    /// Variables that are means or variances of the arguments only.
    fn moments(&self) -> Vec<Var> {
        let ir = self.ir;
        let params: Vec<Var> = self.function.params.iter().skip(1).map(|p| Var::Local(p.slot)).collect();
        let moment = |e: ExprId| {
            self.method(e).is_some_and(|(base, name, _)| {
                let given = matches!(ir.expr(base), Expr::Var(v) if params.contains(&v));
                given && MOMENTS.has(name)
            })
        };
        let mut found = Vec::new();
        for n in ir.stmts_of(self.function) {
            let Stmt::Assign { targets, value } = ir.stmts[n] else { continue };
            let [target] = *ir.list(targets) else { continue };
            let pairs = match (ir.expr(target), ir.expr(value)) {
                (Expr::Tuple(t), Expr::Tuple(v)) => {
                    ir.list(t).iter().copied().zip(ir.list(v).iter().copied()).collect()
                }
                _ => vec![(target, value)],
            };
            found.extend(pairs.into_iter().filter_map(|(t, v)| match ir.expr(t) {
                Expr::Var(var) if moment(v) => Some(var),
                _ => None,
            }));
        }
        found
    }

    /// `self.name`
    fn own(&self, e: ExprId) -> Option<Sym> {
        let this = self.function.params.first()?.slot;
        match self.ir.expr(e) {
            Expr::Attr { base, name } if self.ir.expr(base) == Expr::Var(Var::Local(this)) => Some(name),
            _ => None,
        }
    }

    /// The other operand of `decay * self.level + …`.
    fn added_to(&self, target: ExprId, value: ExprId) -> Option<ExprId> {
        let Expr::Binary { op: BinOp::Add, left, right } = self.ir.expr(value) else { return None };
        let part = |e: ExprId| match self.ir.expr(e) {
            Expr::Binary { op: BinOp::Mul, left, right } => {
                [left, right].into_iter().any(|x| self.own(x) == self.own(target))
            }
            _ => false,
        };
        match (part(left), part(right)) {
            (true, false) => Some(right),
            (false, true) => Some(left),
            _ => None,
        }
    }

    /// Does the method mention graphs or gradients?
    fn thinks(&self) -> bool {
        let ir = self.ir;
        ir.exprs_of(self.function).any(|n| match ir.exprs[n] {
            Expr::Attr { name, .. } => {
                let name = name.as_str();
                THOUGHT_OF.has(name) || ALSO.has(name)
            }
            Expr::Call(c) => {
                matches!(ir.expr(ir.call(c).func), Expr::Var(Var::Unbound(n)) if n.as_str() == "float")
            }
            _ => false,
        })
    }

    /// Is it the output of a layer of the module, or made from a variable with such an output?
    fn has_graph(&self, e: ExprId) -> bool {
        let ir = self.ir;
        let from_layers = |e: ExprId| ir.exprs_in(e).any(|n| self.calls_layer(ir.exprs[n]));
        let given = |var: Var| {
            ir.stmts_of(self.function).any(|n| match ir.stmts[n] {
                Stmt::Assign { targets, value } => {
                    matches!(*ir.list(targets), [t] if ir.expr(t) == Expr::Var(var)) && from_layers(value)
                }
                _ => false,
            })
        };
        from_layers(e)
            || ir.exprs_in(e).any(|n| match ir.exprs[n] {
                Expr::Var(var @ Var::Local(_)) => given(var),
                _ => false,
            })
    }

    /// `self.layer(x)`, where `layer` is not a method.
    fn calls_layer(&self, e: Expr) -> bool {
        let Expr::Call(c) = e else { return false };
        self.own(self.ir.call(c).func).is_some_and(|name| {
            self.cx.program.find_method(self.key, name).is_none() && !name.as_str().starts_with("register")
        })
    }

    /// Does code other than the constructor set the attribute again?
    fn is_set_elsewhere(&self, name: Sym, at: Span) -> bool {
        let ir = self.ir;
        let constructors: Vec<Span> =
            ir.functions.iter().filter(|f| f.name.as_str() == "__init__").map(|f| f.span).collect();
        ir.stmts.iter().zip(&ir.stmt_spans).any(|(s, &span)| match *s {
            Stmt::Assign { targets, value } => {
                let goes_on = ir
                    .exprs_in(value)
                    .any(|n| matches!(ir.exprs[n], Expr::Attr { name: n, .. } if n == name));
                span != at
                    && !goes_on
                    && !constructors.iter().any(|c| c.contains(span))
                    && ir
                        .list(targets)
                        .iter()
                        .any(|&t| matches!(ir.expr(t), Expr::Attr { name: n, .. } if n == name))
            }
            _ => false,
        })
    }

    /// `added`: the value that the statement adds to the average, if it is one expression.
    fn finding(&self, at: Span, added: Option<ExprId>) -> Finding {
        let place = Place { file: self.cx.file, span: at };
        let label = Label::new(place, "keeps the graph of every call");
        let what = quoted(self.cx, place, "this running average");
        let message = format!("{what} keeps the autograd graph of every earlier call in memory");
        let cut = added.and_then(|added| {
            let added = Place { span: self.ir.span(added), ..place };
            line_with(self.cx, added, &format!("{}.detach()", operand(self.cx, added)?))
        });
        let help = match cut {
            Some(line) => format!("detach the new value: `{line}`"),
            None => "detach the new value: `.detach()`".to_owned(),
        };
        Finding::new(CODE, World::Cuda, message, label).help(help)
    }
}
