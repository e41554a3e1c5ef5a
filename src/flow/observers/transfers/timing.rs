//! Clock readings around work on a GPU, if the program does not wait for that work.
//!
//! A call of a model puts work into the GPU's queue and returns. The source shows which parts of a function are timed and whether
//! something in them waits. The values show on which device the work runs.

use crate::flow::domain::diagram::{Cond, FALSE};
use crate::flow::domain::event::Kind;
use crate::flow::domain::value::{Device, ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::ir::{BinOp, Call, Expr, ExprId, FuncId, Function, Stmt, Var};
use crate::link::{ModIdx, Program, Resolved, Target};
use crate::span::Span;
use crate::words::Words;

/// Functions that read a clock of the host.
static CLOCKS: Words = Words::of("clocks of the host");
/// Names of calls that wait for the device, or may: reads, copies, prints, barriers, events, and other uses of a clock.
static WAITS: Words = Words::of("may wait for the device");
/// Operations that take long enough to be timed on their own.
static HEAVY: Words = Words::of("slow operations");
/// Parts of the names of models, and of methods that run a model.
static COMPUTES: Words = Words::of("names of models");
/// How many calls deep to search for a wait in the functions that a timed part calls.
const MAX_DEPTH: u32 = 3;

/// The part of a function between two reads of a clock whose difference the function computes.
struct Timed {
    /// The first read of the clock.
    start: ExprId,
    /// The second read of the clock.
    end: ExprId,
    /// The loop that reads the clock again after `end`, as the start for its next round. The timed part is then a whole round.
    round: Option<Span>,
}

impl Interp<'_> {
    /// A module computes on this device. Reports it if a clock is read around it without a wait.
    pub(crate) fn check_timed(
        &mut self,
        _module: ObjId,
        device: crate::flow::domain::diagram::Dd,
        e: ExprId,
    ) {
        if self.run.muted > 0 || self.here().func.0 == 0 && self.run.symbolic {
            return;
        }
        let Some(timed) = self.timed_around(e) else { return };
        let here = self.where_on_gpu(device);
        self.timed_work(here, &timed, e);
    }

    /// The same for an unknown model, based on the device of its arguments.
    pub(crate) fn check_timed_call(&mut self, args: &Args, e: ExprId) {
        if self.run.muted > 0 || self.is_some_method(e) {
            return;
        }
        let Some(timed) = self.timed_around(e) else { return };
        let mut here = FALSE;
        for (v, _) in args.values().collect::<Vec<_>>() {
            if let Value::Tensor(t) = v {
                let on = self.where_on_gpu(self.get_tensor(t).device);
                here = self.d.or(here, on);
            }
        }
        self.timed_work(here, &timed, e);
    }

    /// Is it a method of a variable, with a name that does not suggest a model: `evaluator.process(inputs, outputs)`?
    fn is_some_method(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        let Expr::Call(id) = ir.expr(e) else { return false };
        let Expr::Attr { base, name } = ir.expr(ir.call(id).func) else { return false };
        let Expr::Var(var) = ir.expr(base) else { return false };
        let own = ir.function(self.here().func).params.first().is_some_and(|p| var == Var::Local(p.slot));
        !own && !COMPUTES.is_part_of(name.as_str())
    }

    /// The same for a matrix product or a convolution, which takes as long as a model.
    pub(crate) fn check_timed_operation(&mut self, name: &str, result: Value, e: ExprId) {
        let Value::Tensor(t) = result else { return };
        if self.run.muted > 0 || !HEAVY.has(name) {
            return;
        }
        let here = self.where_on_gpu(self.get_tensor(t).device);
        if here == FALSE {
            return;
        }
        if let Some(timed) = self.timed_around(e) {
            self.timed_work(here, &timed, e);
        }
    }

    fn timed_work(&mut self, here: Cond, timed: &Timed, e: ExprId) {
        let there = self.available(None);
        let bad = self.d.and(here, there);
        if let Some(bite) = self.bite(bad, false) {
            let kind = Kind::TimedWithoutWait { started: self.place(timed.start), work: self.place(e) };
            self.emit(kind, self.place(timed.end), bite, Vec::new());
        }
    }

    fn where_on_gpu(&mut self, device: crate::flow::domain::diagram::Dd) -> Cond {
        let mut gpus = Vec::new();
        for (leaf, d, _) in self.device_leaves(device) {
            let gpu = match d {
                Device::Cuda(_) | Device::CudaSome => true,
                // A named device counts only if the path allows that it is CUDA on a machine with CUDA.
                Device::Named(o) if self.t.get_outer(o).device => {
                    let (cuda, there) = (self.if_on_cuda(o), self.available(None));
                    let there = self.d.and(self.path, there);
                    self.d.and(there, cuda) != FALSE
                }
                _ => false,
            };
            if gpu {
                gpus.push(leaf);
            }
        }
        if gpus.is_empty() {
            return FALSE;
        }
        self.d.where_leaf(device, &mut |p| gpus.contains(&p))
    }

    /// The timed part around an expression, if nothing in it waits.
    fn timed_around(&mut self, e: ExprId) -> Option<Timed> {
        let module = self.here().module;
        let program = self.program;
        if !*self.observed.clocks.entry(module).or_insert_with(|| imports_clock(program, module)) {
            return None;
        }
        let ir = &program.get(module).ir;
        let at = ir.span(e);
        let scope = Some(self.here().func).filter(|func| func.0 != 0).map(|func| ir.function(func));
        let timed = stretches(self.program, module, scope)
            .into_iter()
            .find(|t| ir.span(t.start).end <= at.start && at.end <= ir.span(t.end).start)?;
        let stretch = Span { start: ir.span(timed.start).end, end: ir.span(timed.end).start };
        let quiet = |stretch| !waits(self.program, module, stretch, 0);
        (quiet(stretch) && timed.round.is_none_or(quiet)).then_some(timed)
    }
}

fn imports_clock(program: &Program, module: ModIdx) -> bool {
    program.get(module).targets.values().any(|t| match t {
        Target::External(path) => matches!(path.as_str().split('.').next(), Some("time" | "timeit")),
        _ => false,
    })
}

fn is_clock(program: &Program, module: ModIdx, call: Call<'_>) -> bool {
    call.args.is_empty()
        && matches!(program.resolve_expr(module, call.func), Some(Resolved::External(path)) if CLOCKS.has(path.as_str()))
}

/// Every difference `clock() - start` in a function or in a file's body, with the last read of the clock before it.
fn stretches(program: &Program, module: ModIdx, scope: Option<&Function>) -> Vec<Timed> {
    let ir = &program.get(module).ir;
    let (stmts, exprs) =
        scope.map_or((0..ir.stmts.len(), 0..ir.exprs.len()), |f| (ir.stmts_of(f), ir.exprs_of(f)));
    let clock = |e: ExprId| matches!(ir.expr(e), Expr::Call(c) if is_clock(program, module, ir.call(c)));
    // `start = clock()`
    let looks: Vec<(Expr, ExprId)> = ir.stmts[stmts]
        .iter()
        .filter_map(|s| match s {
            Stmt::Assign { targets, value } if clock(*value) => {
                ir.list(*targets).first().map(|&t| (ir.expr(t), *value))
            }
            _ => None,
        })
        .collect();
    let last = |name: Expr, before: u32| {
        looks
            .iter()
            .filter(|(n, at)| *n == name && ir.span(*at).end <= before)
            .map(|&(_, at)| at)
            .max_by_key(|&at| ir.span(at).start)
    };
    let differences = ir.exprs[exprs].iter().filter_map(|e| match *e {
        Expr::Binary { op: BinOp::Sub, left, right } => Some((left, right)),
        _ => None,
    });
    differences
        .filter_map(|(left, right)| {
            if !matches!(ir.expr(right), Expr::Var(_)) {
                return None;
            }
            let end = if clock(left) { left } else { last(ir.expr(left), ir.span(left).start)? };
            let start = last(ir.expr(right), ir.span(end).start)?;
            let round = loops_around(ir, end).find(|round| {
                looks.iter().any(|&(name, at)| {
                    let at = ir.span(at);
                    name == ir.expr(right) && round.contains(at) && at.start > ir.span(end).start
                })
            });
            Some(Timed { start, end, round })
        })
        .collect()
}

/// The loops around an expression.
fn loops_around(ir: &crate::ir::Module, e: ExprId) -> impl Iterator<Item = Span> {
    let at = ir.span(e);
    ir.stmts
        .iter()
        .zip(&ir.stmt_spans)
        .filter(move |(s, span)| matches!(s, Stmt::For { .. } | Stmt::While { .. }) && span.contains(at))
        .map(|(_, &span)| span)
}

/// Does this part of a file, or a function that it calls, contain a call that waits?
fn waits(program: &Program, module: ModIdx, stretch: Span, depth: u32) -> bool {
    let ir = &program.get(module).ir;
    let name_of = |e: ExprId| match ir.expr(e) {
        Expr::Attr { name, .. } => Some(name),
        Expr::Var(crate::ir::Var::Unbound(name)) => Some(name),
        _ => None,
    };
    ir.exprs.iter().zip(&ir.expr_spans).any(|(e, &at)| {
        let Expr::Call(c) = *e else { return false };
        if !stretch.contains(at) {
            return false;
        }
        let func = ir.call(c).func;
        if name_of(func).is_some_and(|name| WAITS.has(name.as_str())) {
            return true;
        }
        let callee = match program.resolve_expr(module, func) {
            Some(Resolved::Function(m, f)) => Some((m, f)),
            Some(Resolved::External(path)) => {
                return WAITS.has(crate::flow::models::tensors::functions::short(path));
            }
            _ => name_of(func).and_then(|name| {
                let found = ir.functions.iter().position(|f| f.name == name && f.parent.is_some())?;
                Some((module, FuncId(u32::try_from(found).ok()?)))
            }),
        };
        callee.is_some_and(|(m, f)| {
            depth >= MAX_DEPTH || waits(program, m, program.get(m).ir.function(f).span, depth + 1)
        })
    })
}
