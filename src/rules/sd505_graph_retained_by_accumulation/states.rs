//! SD505 graph-retained-by-accumulation: recurrent states that pass from iteration to iteration with their graphs.
//!
//! After `out, state = cell(x, state)`, each state keeps the graphs of all earlier ones. That is right if the program differentiates the
//! loss of all iterations at the end. It is a leak if the program differentiates each iteration, or stores the states for later.

use std::ops::Range;

use super::CODE;
use super::expressions::same;
use crate::finding::{Finding, Label};
use crate::ir::{Call, Expr, ExprId, Module, Stmt, StmtId};
use crate::link::{ModIdx, Resolved};
use crate::remedy::Remedy;
use crate::rules::check::Context;
use crate::span::{Place, Span};
use crate::sym::Sym;
use crate::torch;
use crate::words::Words;
use crate::world::World;

pub(super) static THOUGHT_OF: Words = Words::of("names about the graph");

static RECURRENT: Words = Words::of("recurrent modules");
static RETURNS_MODULE: Words = Words::of("methods that return the module");

/// SD505 graph-retained-by-accumulation, about states
pub(super) fn carried(cx: &Context<'_>) -> Vec<Finding> {
    let Some(module) = cx.program.module_of(cx.file) else { return Vec::new() };
    let ir = &cx.program.get(module).ir;
    let mut found = Vec::new();
    for (n, stmt) in ir.stmts.iter().enumerate() {
        if matches!(stmt, Stmt::For { .. } | Stmt::While { .. }) {
            let id = StmtId(u32::try_from(n).unwrap_or(u32::MAX));
            let around = File { cx, module, ir, round: ir.stmt_span(id), body: ir.stmts_in(id) };
            around.look(&mut found);
        }
    }
    found
}

/// One loop of a file.
struct File<'a> {
    cx: &'a Context<'a>,
    module: ModIdx,
    ir: &'a Module,
    round: Span,
    /// The indices of its statements.
    body: Range<usize>,
}

impl File<'_> {
    fn look(&self, found: &mut Vec<Finding>) {
        for (stmt, at) in self.stmts() {
            let Stmt::Assign { targets, value } = *stmt else { continue };
            let Expr::Call(c) = self.ir.expr(value) else { continue };
            let call = self.ir.call(c);
            let made = self.names(self.ir.list(targets));
            let Some((state, carried)) = self.carries(value, call, &made) else { continue };
            if !self.is_innermost(at) || self.thinks() || self.is_cut(state, at) || !self.is_recurrent(call) {
                continue;
            }
            let Some((what, kept)) = self.leaks(state, &made) else { continue };
            let place = Place { file: self.cx.file, span: at };
            let label = Label::new(place, "takes the state of the previous iteration with its graph");
            let name = self.cx.sources.text(Place { span: self.ir.span(state), ..place });
            let message =
                format!("`{name}` carries the autograd graphs of all earlier iterations into the next one");
            let detached = match self.gives_pairs(call) {
                Some(false) => format!(": `{name} = {name}.detach()`"),
                Some(true) => format!(": `{name} = tuple(s.detach() for s in {name})`"),
                None => " with `.detach()`".to_owned(),
            };
            let mut f = Finding::new(CODE, World::Cuda, message, label)
                .related(Place { file: self.cx.file, span: kept }, what)
                .help(format!("detach the state in each iteration{detached}"));
            if let Some((value, moved)) = carried {
                f = f.related(
                    Place { file: self.cx.file, span: moved },
                    "passes the state to the next iteration",
                );
                let value = Place { file: self.cx.file, span: self.ir.span(value) };
                f = f.remedy(self.gives_pairs(call).map(|pairs| match pairs {
                    true => Remedy::DetachParts(value),
                    false => Remedy::Detach(value),
                }));
            }
            found.push(f);
        }
    }

    /// The statements of an iteration.
    fn stmts(&self) -> impl Iterator<Item = (&Stmt, Span)> {
        let body = self.body.clone();
        self.ir.stmts[body.clone()].iter().zip(self.ir.stmt_spans[body].iter().copied())
    }

    /// Is this loop the innermost one around the place, and in the same function?
    fn is_innermost(&self, at: Span) -> bool {
        let inside = |s: Span| self.round.contains(s) && s != self.round && s.contains(at);
        self.round.contains(at)
            && !self
                .stmts()
                .any(|(s, span)| matches!(s, Stmt::For { .. } | Stmt::While { .. }) && inside(span))
            && !self.ir.functions.iter().any(|f| inside(f.span))
    }

    /// The variables and attributes among targets, tuples included.
    fn names(&self, targets: &[ExprId]) -> Vec<ExprId> {
        let mut names = Vec::new();
        for &t in targets {
            match self.ir.expr(t) {
                Expr::Var(_) | Expr::Attr { .. } => names.push(t),
                Expr::Tuple(list) | Expr::List(list) => names.extend(self.names(self.ir.list(list))),
                _ => {}
            }
        }
        names
    }

    /// The argument that becomes one of the results, in the call itself or by the only other assignment of the iteration.
    fn carries(
        &self,
        at: ExprId,
        call: Call<'_>,
        made: &[ExprId],
    ) -> Option<(ExprId, Option<(ExprId, Span)>)> {
        let [_, rest @ ..] = call.args else { return None };
        rest.iter().find_map(|a| {
            let state = a.value;
            if !matches!(self.ir.expr(state), Expr::Var(_) | Expr::Attr { .. }) {
                return None;
            }
            let given = self.given_to(state, at);
            if made.iter().any(|&m| same(self.ir, m, state)) {
                return given.is_empty().then_some((state, None));
            }
            match given.as_slice() {
                &[(value, at)] => {
                    let result = made.iter().any(|&m| same(self.ir, m, value));
                    result.then_some((state, Some((value, at))))
                }
                _ => None,
            }
        })
    }

    /// The values that the loop assigns to a variable, without the results of this call.
    fn given_to(&self, state: ExprId, cell: ExprId) -> Vec<(ExprId, Span)> {
        let mut given = Vec::new();
        for (s, at) in self.stmts() {
            let Stmt::Assign { targets, value } = *s else { continue };
            for &t in self.ir.list(targets) {
                match (self.ir.expr(t), self.ir.expr(value)) {
                    // Not `state = cell(x, state)` itself; another call detaches or creates the state.
                    (_, Expr::Call(_)) if same(self.ir, t, state) && value == cell => {}
                    (Expr::Var(_) | Expr::Attr { .. }, _) if same(self.ir, t, state) => {
                        given.push((value, at));
                    }
                    (Expr::Tuple(names), Expr::Tuple(values)) => {
                        for (&n, &v) in self.ir.list(names).iter().zip(self.ir.list(values)) {
                            if same(self.ir, n, state) {
                                given.push((v, at));
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        given
    }

    fn mentions(&self, e: ExprId, place: ExprId) -> bool {
        self.ir.exprs_in(e).any(|n| same(self.ir, ExprId(u32::try_from(n).unwrap_or(u32::MAX)), place))
    }

    /// Is an attribute detached elsewhere: in a method that the loop calls and that assigns it, or in an expression that takes a
    /// detached copy?
    fn is_cut(&self, state: ExprId, at: Span) -> bool {
        let ir = self.ir;
        let Expr::Attr { name: state, .. } = ir.expr(state) else { return false };
        let is_it = |e: ExprId| matches!(ir.expr(e), Expr::Attr { name, .. } if name == state);
        let detached = ir.exprs.iter().any(|e| match *e {
            Expr::Attr { base, name } if THOUGHT_OF.has(name.as_str()) => {
                ir.exprs_in(base).any(|n| is_it(ExprId(u32::try_from(n).unwrap_or(u32::MAX))))
            }
            _ => false,
        });
        let called = |name: Sym| {
            ir.exprs.iter().zip(&ir.expr_spans).any(|(e, &span)| {
                self.round.contains(span)
                    && matches!(*e, Expr::Call(c)
                        if matches!(ir.expr(ir.call(c).func), Expr::Attr { name: n, .. } if n == name))
            })
        };
        detached
            || ir.stmts.iter().zip(&ir.stmt_spans).any(|(s, &span)| match *s {
                Stmt::Assign { targets, .. } if span != at => ir
                    .list(targets)
                    .iter()
                    .any(|&t| is_it(t) && called(ir.function(ir.function_around(t)).name)),
                _ => false,
            })
    }

    /// Does the function around the loop mention graphs or gradients?
    fn thinks(&self) -> bool {
        let around = self.ir.functions.iter().filter(|f| f.parent.is_some() && f.span.contains(self.round));
        let around = around.max_by_key(|f| f.span.start).map_or(self.round, |f| f.span);
        let decorators = self.ir.functions.iter().filter(|f| f.span == around);
        let heads: Vec<Span> =
            decorators.flat_map(|f| self.ir.list(f.decorators).iter().map(|&d| self.ir.span(d))).collect();
        self.ir.exprs.iter().zip(&self.ir.expr_spans).any(|(e, &at)| {
            (around.contains(at) || heads.iter().any(|h| h.contains(at)))
                && match *e {
                    Expr::Attr { name, .. } => THOUGHT_OF.has(name.as_str()) && name.as_str() != "item",
                    // `retain_graph=True` keeps every graph.
                    Expr::Call(c) => self.ir.call(c).args.iter().any(|a| {
                        matches!(a.kind, crate::ir::ArgKind::Keyword(k) if k.as_str() == "retain_graph")
                            && self.ir.expr(a.value) != Expr::True
                    }),
                    _ => false,
                }
        })
    }

    /// Is it the call of a module that keeps the graph: a recurrent module of PyTorch, or a module of the project whose
    /// `forward` does not detach?
    fn is_recurrent(&self, call: Call<'_>) -> bool {
        let Some(made) = self.made_from(call.func) else { return false };
        match self.cx.program.resolve_expr(self.module, made) {
            Some(Resolved::External(path)) => torch::module(path).is_some_and(|m| {
                m.name.as_str().rsplit_once('.').is_some_and(|(_, name)| RECURRENT.has(name))
            }),
            Some(Resolved::Class(key)) => {
                let program = self.cx.program;
                let module = program
                    .class(key)
                    .externals
                    .iter()
                    .any(|&p| torch::base_class(p).is_some_and(|b| b.kind == torch::Base::Module));
                let Some((m, f)) = program.find_method(key, Sym::new("forward")) else {
                    return false;
                };
                let ir = &program.get(m).ir;
                let span = ir.function(f).span;
                let cuts = ir.exprs.iter().zip(&ir.expr_spans).any(|(e, &at)| {
                    span.contains(at) && matches!(e, Expr::Attr { name, .. } if THOUGHT_OF.has(name.as_str()))
                });
                module && !cuts
            }
            _ => false,
        }
    }

    /// Is the state a pair, as for an LSTM, or one tensor? `None` if the layer can be of both kinds, or is of neither.
    fn gives_pairs(&self, call: Call<'_>) -> Option<bool> {
        let recurrent = |path: Sym| {
            let name = path.as_str().rsplit('.').next().unwrap_or_default();
            (path.as_str().starts_with("torch.nn.") && RECURRENT.has(name)).then(|| name.starts_with("LSTM"))
        };
        match self.cx.program.resolve_expr(self.module, self.made_from(call.func)?)? {
            Resolved::External(path) => recurrent(path),
            Resolved::Class(key) => {
                let ir = &self.cx.program.get(key.module).ir;
                let class = ir.classes.get(key.class.0 as usize)?.span;
                let mut found = (0_u32..)
                    .zip(&ir.expr_spans)
                    .filter(|(_, at)| class.contains(**at))
                    .filter_map(|(n, _)| match self.cx.program.resolve_expr(key.module, ExprId(n)) {
                        Some(Resolved::External(path)) => recurrent(path),
                        _ => None,
                    });
                let first = found.next()?;
                found.all(|other| other == first).then_some(first)
            }
            _ => None,
        }
    }

    /// The class in `self.net = Class(…)` or `net = Class(…).to(device)`, if there is one such assignment.
    fn made_from(&self, target: ExprId) -> Option<ExprId> {
        let name = |e: ExprId| match self.ir.expr(e) {
            Expr::Attr { name, .. } => Some((name, None)),
            Expr::Var(v) => Some((Sym::new(""), Some(v))),
            _ => None,
        };
        let wanted = name(target)?;
        let mut values = self.ir.stmts.iter().filter_map(|s| match s {
            Stmt::Assign { targets, value } => {
                self.ir.list(*targets).iter().any(|&t| name(t) == Some(wanted)).then_some(*value)
            }
            _ => None,
        });
        let (Some(mut value), None) = (values.next(), values.next()) else { return None };
        loop {
            let Expr::Call(c) = self.ir.expr(value) else { return None };
            match self.ir.expr(self.ir.call(c).func) {
                Expr::Attr { base, name } if RETURNS_MODULE.has(name.as_str()) => value = base,
                _ => return Some(self.ir.call(c).func),
            }
        }
    }

    /// The place where each iteration is differentiated, or where the program keeps the states after the loop.
    fn leaks(&self, state: ExprId, made: &[ExprId]) -> Option<(&'static str, Span)> {
        let calls = self.ir.exprs.iter().zip(&self.ir.expr_spans).filter_map(|(e, &at)| match *e {
            Expr::Call(c) if self.is_innermost(at) => Some((self.ir.call(c), at)),
            _ => None,
        });
        calls.into_iter().find_map(|(call, at)| {
            let Expr::Attr { base, name } = self.ir.expr(call.func) else { return None };
            match name.as_str() {
                "backward" => Some(("each iteration runs a backward pass", at)),
                "append" if matches!(self.ir.expr(base), Expr::Attr { .. }) => {
                    let kept = call.args.iter().any(|a| {
                        self.mentions(a.value, state)
                            || made.iter().skip(1).any(|&v| self.mentions(a.value, v))
                    });
                    kept.then_some(("keeps the state", at))
                }
                _ => None,
            }
        })
    }
}
