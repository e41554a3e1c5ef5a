//! Functions that are passed as values: `partial(work, n)`, `pool.map(work, items)`, `spawn(work, nprocs=n)`. The
//! receiver calls them, so the engine treats the place as a call, with the guards of that place.

use rustc_hash::FxHashSet;

use crate::flow::domain::diagram::{Cond, FALSE, TRUE};
use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::ir::{Expr, ExprId, FuncId, FuncKind, Var};
use crate::link::{Binding, ModIdx};
use crate::sym::Sym;
use crate::words::Words;

static LIGHTNING: Words = Words::of("packages of Lightning");
static REFUSES: Words = Words::of("classes of Lightning with an accelerator");

impl Interp<'_> {
    /// Records the functions among the arguments of an outside call. `spawn` starts no process if the number of
    /// processes is the number of GPUs and that is 0.
    pub(crate) fn hands_over(&mut self, callee: &str, args: &Args) {
        for (v, _) in args.values() {
            let Value::Closure(id) = v else { continue };
            let closure = *self.t.closures.get(id.0);
            if closure.module != self.entry {
                continue;
            }
            let mut when = self.path;
            let spawns = callee.ends_with(".spawn") || callee.ends_with(".start_processes");
            if let Some((n, _)) = args.get(2, "nprocs").filter(|_| spawns) {
                let some = self.is_some(n);
                when = self.d.and(when, some);
            }
            let key = (closure.module, closure.func);
            let before = self.calls.handed.get(&key).copied().unwrap_or(FALSE);
            let when = self.d.or(before, when);
            self.calls.handed.insert(key, when);
        }
    }

    /// The condition under which the number is not zero, as far as it is known.
    fn is_some(&mut self, number: Value) -> Cond {
        let each = Value::Outer(self.known.device_count);
        let some = self.at_least(1);
        match number {
            Value::Int(0) => FALSE,
            n if n == each => some,
            Value::Choice(d) => {
                let values = &self.t.values;
                let not_zero = self.d.where_leaf(d, &mut |leaf| *values.get(leaf) != Value::Int(0));
                let other = self.d.where_leaf(d, &mut |leaf| *values.get(leaf) != each);
                let counted = self.d.or(other, some);
                self.d.and(not_zero, counted)
            }
            _ => TRUE,
        }
    }

    /// The condition on the machine under which the function is passed to code that calls it.
    pub(crate) fn handed_over(&mut self, module: ModIdx, func: FuncId) -> Cond {
        match self.calls.handed.get(&(module, func)).copied() {
            Some(when) => self.settled(when),
            None => TRUE,
        }
    }

    /// The functions of a file that it mentions only as arguments of calls.
    pub(crate) fn only_handed(&self, module: ModIdx) -> FxHashSet<FuncId> {
        let linked = self.program.get(module);
        let ir = &linked.ir;
        let function = |e: ExprId| {
            let (Expr::Var(Var::Global(slot)) | Expr::Var(Var::Local(slot))) = ir.expr(e) else {
                return None;
            };
            let Some(&Binding::Def(f)) = linked.bindings.get(usize::from(slot)) else { return None };
            // This test is last because it is the slowest.
            let global =
                matches!(ir.expr(e), Expr::Var(Var::Global(_))) || ir.function_around(e) == FuncId(0);
            (ir.function(f).kind == FuncKind::Function && global).then_some(f)
        };
        let given: FxHashSet<ExprId> =
            ir.calls().flat_map(|c| c.args).map(|a| a.value).filter(|&e| function(e).is_some()).collect();
        let mut handed: FxHashSet<FuncId> = given.iter().filter_map(|&e| function(e)).collect();
        for (e, expr) in (0..).map(ExprId).zip(&ir.exprs) {
            // Most files pass no functions on, so the scan ends early.
            if handed.is_empty() {
                break;
            }
            if matches!(expr, Expr::Var(Var::Global(_) | Var::Local(_)))
                && let Some(f) = function(e)
                && !given.contains(&e)
            {
                handed.remove(&f);
            }
        }
        handed
    }

    /// Handles `Trainer(accelerator="gpu")`: Lightning raises if there is no GPU.
    pub(crate) fn refuses_without(&mut self, class: Sym, args: &Args) {
        let Some((Value::Str(kind, _), _)) = args.keyword("accelerator") else { return };
        let class = class.as_str();
        let known = LIGHTNING.starts(class) && REFUSES.ends(class);
        if known && matches!(kind.as_str(), "gpu" | "cuda") && !self.caught_around() {
            let there = self.available(None);
            self.path = self.d.and(self.path, there);
        }
    }
}
