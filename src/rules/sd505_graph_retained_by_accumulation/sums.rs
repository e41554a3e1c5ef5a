//! SD505 graph-retained-by-accumulation: losses that are added up with their graphs.
//!
//! A loss whose `backward()` has run in an iteration of a loop is not differentiated again. A sum or a list that lives
//! longer than the iteration still keeps its graph.

mod dicts;
mod meters;
mod parts;

use super::CODE;
use super::expressions::{is_so_far, same, scope_of, whole};
use crate::finding::{Finding, Label};
use crate::ir::{BinOp, Block, Call, Expr, ExprId, Module, Stmt, StmtId, Var};
use crate::link::{ModIdx, Resolved};
use crate::remedy::Remedy;
use crate::rules::check::Context;
use crate::rules::shared::code::{line_with, operand, quoted};
use crate::rules::shared::test_code::has_tests;
use crate::span::{Place, Span};
use crate::sym::{Answers, Sym};
use crate::torch::{self, Kind};
use crate::words::Words;
use crate::world::World;

/// Functions that switch gradients off.
const CUTS: &[&str] = &["no_grad", "inference_mode"];

static MOMENTS: Words = Words::of("moments of a batch");

thread_local! {
    static BACKWARD: Answers = const { Answers::new() };
}

/// SD505 graph-retained-by-accumulation
pub(super) fn retained(cx: &Context<'_>) -> Vec<Finding> {
    let Some(module) = cx.program.module_of(cx.file) else { return Vec::new() };
    // A test trains a small model for a few steps.
    if has_tests(Place { file: cx.file, span: Span::default() }, cx) {
        return Vec::new();
    }
    let ir = &cx.program.get(module).ir;
    let mut found = Vec::new();
    let differentiates =
        |name: Sym| BACKWARD.with(|known| known.ask(name, |text| text.ends_with("backward")));
    if !ir.attributes.iter().any(|&name| differentiates(name)) {
        return found;
    }
    for stmt in &ir.stmts {
        if let Stmt::For { body, .. } | Stmt::While { body, .. } = stmt {
            let scope = ir.block(*body).first().map(|&s| scope_of(ir, ir.stmt_span(s))).unwrap_or_default();
            let file = File { cx, module, ir, scope };
            file.look_into(*body, file.drawn_from_variable(stmt), &mut found);
        }
    }
    found
}

/// A value that the program has differentiated.
#[derive(Clone, Copy, PartialEq)]
struct Loss {
    var: Var,
    slot: Slot,
}

/// The part of a variable that is a loss.
#[derive(Clone, Copy, PartialEq)]
enum Slot {
    Itself,
    /// The value behind this key.
    Key(Sym),
    /// All values of the dict.
    Every,
}

/// The loop variables of a loop over a dict.
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Key,
    Value,
    Both,
}

/// One file.
struct File<'a> {
    cx: &'a Context<'a>,
    module: ModIdx,
    ir: &'a Module,
    /// The function that the loop is in; empty for a whole file. Variables of other functions have the same numbers.
    scope: Span,
}

impl File<'_> {
    /// The loop variable of `for part in parts:`. All parts exist with their graphs before the first iteration.
    fn drawn_from_variable(&self, stmt: &Stmt) -> Option<Var> {
        let Stmt::For { target, iter, .. } = *stmt else { return None };
        match (self.ir.expr(target), self.ir.expr(iter)) {
            (Expr::Var(target), Expr::Var(_)) => Some(target),
            _ => None,
        }
    }

    /// `given`: the loop variable whose values exist before the loop.
    fn look_into(&self, body: Block, given: Option<Var>, found: &mut Vec<Finding>) {
        let spans: Vec<Span> = self.ir.block(body).iter().map(|&s| self.ir.stmt_span(s)).collect();
        // The statements of a block follow one another.
        let within = |at: Span| {
            let next = spans.partition_point(|s| s.start <= at.start);
            next.checked_sub(1).is_some_and(|n| spans[n].contains(at))
        };
        let mut losses: Vec<(Loss, Span)> = self
            .calls()
            .filter(|(_, at)| within(*at))
            .filter_map(|(call, at)| Some((self.differentiated(call)?, at)))
            .collect();
        let summed: Vec<_> = losses
            .iter()
            .flat_map(|(l, at)| self.summed(*l, &within).into_iter().map(|s| (s, *at)))
            .collect();
        losses.extend(summed);
        self.put_into_dicts(&mut losses, &within);
        losses.retain(|(l, at)| !self.rebound(l.var, &|x| within(x) && x.start > at.start));
        let losses: Vec<Loss> = losses.into_iter().map(|(l, _)| l).filter(|l| Some(l.var) != given).collect();
        if losses.is_empty() {
            return;
        }
        // In another statement than the one that adds to it.
        let fresh = |target: ExprId, adds: Span| {
            self.is_begun_each_round(target, adds, &within)
                || self.is_reset(target, &within)
                || self.is_one_step(body, target)
        };
        for (n, stmt) in self.ir.stmts.iter().enumerate() {
            let at = self.ir.stmt_span(StmtId(u32::try_from(n).unwrap_or(u32::MAX)));
            if !within(at) {
                continue;
            }
            let kept = match stmt {
                Stmt::AugAssign { target, op: BinOp::Add, value } => Some((*target, *value)),
                Stmt::Assign { targets, value } => match (self.ir.list(*targets), self.ir.expr(*value)) {
                    ([target], Expr::Binary { op: BinOp::Add, left, right }) => {
                        let (target, ir) = (*target, self.ir);
                        if is_so_far(ir, left, target) {
                            Some((target, right))
                        } else {
                            is_so_far(ir, right, target).then_some((target, left))
                        }
                    }
                    _ => None,
                },
                Stmt::Expr(e) => {
                    self.handed_over(*e, &losses, &fresh, found);
                    self.appended(*e)
                }
                _ => None,
            };
            let Some((target, value)) = kept else { continue };
            // A list keeps the tensor itself; a sum is a new tensor.
            let bare = self.without_graph(at);
            let recorded = !bare || matches!(stmt, Stmt::Expr(_)) && !self.is_made_bare(value, at);
            if recorded && self.holds(value, &losses) && !fresh(target, at) && !self.is_differentiated(target)
            {
                let value = Place { file: self.cx.file, span: self.ir.span(value) };
                found.push(
                    self.finding(Place { file: self.cx.file, span: at }, Some(value))
                        .remedy([Remedy::Detach(value)]),
                );
            }
        }
    }

    /// Does the statement assign a new value to the sum, or to the container of the sum?
    fn is_given_anew(&self, stmt: &Stmt, sum: ExprId) -> bool {
        let ir = self.ir;
        let is_it = |&t: &ExprId| same(ir, t, sum) || same(ir, t, whole(ir, sum));
        let binds = |t: &ExprId| match ir.expr(*t) {
            Expr::Tuple(parts) | Expr::List(parts) => ir.list(parts).iter().any(is_it),
            _ => is_it(t),
        };
        matches!(*stmt, Stmt::Assign { targets, .. } if ir.list(targets).iter().any(binds))
    }

    /// Does the sum start again in each iteration of the loop, or of an inner loop around the addition, in another statement?
    fn is_begun_each_round(&self, sum: ExprId, adds: Span, within: &dyn Fn(Span) -> bool) -> bool {
        let ir = self.ir;
        let anew = |s: &StmtId| ir.stmt_span(*s) != adds && self.is_given_anew(ir.stmt(*s), sum);
        let around = |s: &StmtId| within(ir.stmt_span(*s)) && ir.stmt_span(*s).contains(adds);
        ir.stmts.iter().any(|s| match *s {
            Stmt::For { body, .. } | Stmt::While { body, .. } => {
                ir.block(body).iter().any(around) && ir.block(body).iter().any(anew)
            }
            _ => false,
        })
    }

    /// Does the sum start again under a condition that is true every few iterations, such as `if (i + 1) % steps == 0`? Only these
    /// graphs stay together. A test of the sum itself, or of a variable against a constant, is a test for the first iteration.
    fn is_reset(&self, sum: ExprId, within: &dyn Fn(Span) -> bool) -> bool {
        let ir = self.ir;
        let mentions =
            |e: ExprId| ir.exprs_in(e).any(|n| same(ir, ExprId(u32::try_from(n).unwrap_or(u32::MAX)), sum));
        let first = |test: ExprId| {
            let constant = |e: ExprId| matches!(ir.expr(e), Expr::Int(_) | Expr::None);
            mentions(test)
                || matches!(ir.expr(test), Expr::Compare { left, right, .. }
                    if matches!(ir.expr(left), Expr::Var(_) | Expr::Attr { .. }) && constant(right))
        };
        ir.stmts.iter().zip(&ir.stmt_spans).any(|(s, &at)| match *s {
            Stmt::If { test, then, .. } if within(at) && !first(test) => ir.block(then).iter().any(|&s| {
                let anew = matches!(*ir.stmt(s), Stmt::Assign { value, .. } if !mentions(value));
                anew && self.is_given_anew(ir.stmt(s), sum)
            }),
            _ => false,
        })
    }

    /// `value`: the added expression, if a change there fixes the finding.
    fn finding(&self, place: Place, value: Option<Place>) -> Finding {
        let label = Label::new(place, "keeps the graph of every iteration");
        let what = quoted(self.cx, place, "this statement");
        let message = format!("{what} keeps the autograd graph of every loss in memory");
        let cut = value
            .and_then(|value| line_with(self.cx, value, &format!("{}.item()", operand(self.cx, value)?)));
        let help = match cut {
            Some(line) => format!(
                "keep the number: `{line}`; `.detach()` in place of `.item()` leaves it on the device"
            ),
            None => {
                "keep the number with `.item()`, or the tensor without its graph with `.detach()`".to_owned()
            }
        };
        Finding::new(CODE, World::Cuda, message, label).help(help)
    }

    fn calls(&self) -> impl Iterator<Item = (Call<'_>, Span)> {
        self.ir.exprs.iter().zip(&self.ir.expr_spans).filter_map(|(e, &at)| match *e {
            Expr::Call(c) => Some((self.ir.call(c), at)),
            _ => None,
        })
    }

    /// The loss that a call differentiates: `loss.backward()`, `scaler.scale(loss).backward()`,
    /// `accelerator.backward(loss)`, `losses["total"].backward()`.
    fn differentiated(&self, call: Call<'_>) -> Option<Loss> {
        let ir = self.ir;
        let Expr::Attr { base, name } = ir.expr(call.func) else { return None };
        if !matches!(name.as_str(), "backward" | "manual_backward") {
            return None;
        }
        let keeps = call
            .args
            .iter()
            .any(|a| matches!(a.kind, crate::ir::ArgKind::Keyword(k) if k.as_str() != "gradient"));
        let through = |e: ExprId| match ir.expr(e) {
            Expr::Var(var @ Var::Local(_)) => Some(Loss { var, slot: Slot::Itself }),
            Expr::Index { base, index } => match (ir.expr(base), ir.expr(index)) {
                (Expr::Var(var @ Var::Local(_)), Expr::Str(key)) => Some(Loss { var, slot: Slot::Key(key) }),
                _ => None,
            },
            _ => None,
        };
        if keeps {
            return None;
        }
        match (ir.expr(base), call.args) {
            (Expr::Call(c), []) => match (ir.expr(ir.call(c).func), ir.call(c).args) {
                (Expr::Attr { name, .. }, [a]) if name.as_str() == "scale" => through(a.value),
                // `sum(losses.values()).backward()`
                _ => self.dict_summed(base).map(|var| Loss { var, slot: Slot::Every }),
            },
            (_, []) => through(base),
            (Expr::Var(_) | Expr::Attr { .. }, [a]) => through(a.value),
            _ => None,
        }
    }

    /// Does the program replace the variable with a value made from it, such as `loss = loss.item()`, or one of its items?
    fn rebound(&self, v: Var, within: &dyn Fn(Span) -> bool) -> bool {
        let mentions = |at: Span| {
            self.ir.exprs.iter().zip(&self.ir.expr_spans).any(|(e, &x)| at.contains(x) && *e == Expr::Var(v))
        };
        self.ir.stmts.iter().any(|s| match s {
            Stmt::Assign { targets, value } => {
                let at = self.ir.span(*value);
                within(at)
                    && self.ir.list(*targets).iter().any(|&t| match self.ir.expr(t) {
                        Expr::Var(x) => x == v && mentions(at),
                        Expr::Index { base, .. } => self.ir.expr(base) == Expr::Var(v),
                        _ => false,
                    })
            }
            _ => false,
        })
    }

    /// Is the value one of the losses, perhaps weighted, moved or averaged?
    fn holds(&self, e: ExprId, losses: &[Loss]) -> bool {
        match self.ir.expr(e) {
            Expr::Var(v) => {
                losses.contains(&Loss { var: v, slot: Slot::Itself })
                    || matches!(self.turn_of(v, self.ir.span(e)), Some((dict, Part::Value))
                        if losses.iter().any(|l| l.var == dict && l.slot != Slot::Itself)
                            && !self.rebound(v, &|at| self.in_scope(at)))
            }
            Expr::Index { base, index } => {
                let Expr::Var(var) = self.ir.expr(base) else { return false };
                let of_it = losses.iter().filter(|l| l.var == var && l.slot != Slot::Itself);
                match self.ir.expr(index) {
                    Expr::Str(key) => {
                        of_it.into_iter().any(|l| l.slot == Slot::Every || l.slot == Slot::Key(key))
                    }
                    Expr::Var(k) => {
                        of_it.count() > 0 && self.turn_of(k, self.ir.span(e)) == Some((var, Part::Key))
                    }
                    _ => false,
                }
            }
            Expr::Binary { op: BinOp::Mul, left, right } => {
                self.holds(left, losses) || self.holds(right, losses)
            }
            Expr::Binary { op: BinOp::Div, left, .. } => self.holds(left, losses),
            // `loss.cpu()`, `loss.mean()`: a copy on the CPU has a graph as well.
            Expr::Call(call) => match self.ir.expr(self.ir.call(call).func) {
                Expr::Attr { base, name } => {
                    let moves = torch::method(name).is_some_and(|op| op.kind == Kind::Transfer);
                    (moves || MOMENTS.has(name.as_str())) && self.holds(base, losses)
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// `losses.append(loss)`
    fn appended(&self, e: ExprId) -> Option<(ExprId, ExprId)> {
        let Expr::Call(c) = self.ir.expr(e) else { return None };
        let call = self.ir.call(c);
        match (self.ir.expr(call.func), call.args) {
            (Expr::Attr { base, name }, [a]) if name.as_str() == "append" => Some((base, a.value)),
            _ => None,
        }
    }

    /// Is it under `with torch.no_grad():`, where a sum has no graph?
    fn without_graph(&self, at: Span) -> bool {
        let ir = self.ir;
        let named = |n: usize| {
            matches!(ir.exprs[n], Expr::Attr { name, .. } | Expr::Var(Var::Unbound(name)) if CUTS.contains(&name.as_str()))
                || matches!(self.cx.program.resolve_expr(self.module, ExprId(u32::try_from(n).unwrap_or(u32::MAX))),
                    Some(Resolved::External(path)) if CUTS.iter().any(|cut| path.as_str().ends_with(cut)))
        };
        ir.stmts.iter().zip(&ir.stmt_spans).any(|(stmt, span)| match stmt {
            Stmt::With { items, .. } => {
                span.contains(at) && items.iter().any(|&(manager, _)| ir.exprs_in(manager).any(named))
            }
            _ => false,
        })
    }

    /// Does a block without gradients assign the variable? It may have the same name as a loss
    /// that the program has differentiated before.
    fn is_made_bare(&self, e: ExprId, at: Span) -> bool {
        let ir = self.ir;
        let Expr::Var(var) = ir.expr(e) else { return false };
        ir.stmts.iter().zip(&ir.stmt_spans).any(|(stmt, &made)| match *stmt {
            Stmt::Assign { targets, .. } => {
                made.start < at.start
                    && self.in_scope(made)
                    && ir.list(targets).iter().any(|&t| ir.expr(t) == Expr::Var(var))
                    && self.without_graph(made)
            }
            _ => false,
        })
    }

    fn in_scope(&self, at: Span) -> bool {
        self.scope == Span::default() || self.scope.contains(at)
    }

    /// Does the program differentiate the sum, or a value made from it?
    fn is_differentiated(&self, target: ExprId) -> bool {
        let ir = self.ir;
        self.calls().filter(|(_, at)| self.in_scope(*at)).any(|(call, _)| {
            let Expr::Attr { base, name } = ir.expr(call.func) else { return false };
            if !name.as_str().ends_with("backward") {
                return false;
            }
            let spans = std::iter::once(base).chain(call.args.iter().map(|a| a.value)).map(|e| ir.span(e));
            spans.into_iter().any(|span| {
                (0..ir.exprs.len()).any(|n| {
                    let e = ExprId(u32::try_from(n).unwrap_or(u32::MAX));
                    span.contains(ir.expr_spans[n]) && (same(ir, e, target) || same(ir, e, whole(ir, target)))
                })
            })
        })
    }
}
