//! Decorators: which of them keep a function unchanged, and the condition that they put on running it.

use crate::flow::domain::diagram::{Cond, FALSE, TRUE};
use crate::flow::domain::store::Mark;
use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::ir::{ArgKind, Call, Expr, ExprId, FuncId, Module, Param};
use crate::link::{ModIdx, Resolved};
use crate::sym::Sym;
use crate::torch::{self, Decorator, TestGuard};
use crate::words::Words;

static ANYWHERE: Words = Words::of("decorators for any machine");

/// The function that the engine passes to decorators of the project, to see when they call it.
pub(crate) const WRAPPED: &str = "samedevice.wrapped";
/// The maximum number of variables to follow to the definition of a `pytest` mark.
const MAX_MARKS: usize = 3;

impl Interp<'_> {
    /// The condition that a function's or class's decorators put on running it.
    pub(crate) fn decorator_guard(
        &mut self,
        module: ModIdx,
        scope: FuncId,
        decorators: crate::ir::ExprList,
    ) -> Cond {
        let ir = &self.program.get(module).ir;
        let mut cond = TRUE;
        for &d in ir.list(decorators) {
            let c = self.one_guard(module, scope, d);
            cond = self.d.and(cond, c);
        }
        cond
    }

    /// Whether the function has `@singledispatch`: the argument types decide which function runs, and this one usually
    /// raises.
    pub(crate) fn is_dispatched(&self, module: ModIdx, decorators: crate::ir::ExprList) -> bool {
        let ir = &self.program.get(module).ir;
        ir.list(decorators).iter().any(|&d| match self.program.resolve_expr(module, d) {
            Some(Resolved::External(path)) => {
                matches!(path.as_str(), "functools.singledispatch" | "functools.singledispatchmethod")
            }
            _ => false,
        })
    }

    /// The index of a parameter that a decorator fills, so that a call without an argument shows nothing: `main()`
    /// would otherwise be an error. A command-line option is filled by the decorator even if the parameter has a
    /// default.
    pub(crate) fn filled_by_decorator(&self, module: ModIdx, func: FuncId, param: &Param) -> Option<usize> {
        let ir = &self.program.get(module).ir;
        let function = ir.function(func);
        if function.decorators.len == 0 || function.class.is_some() {
            return None;
        }
        // Decorators of the project are interpreted.
        let foreign = |&d: &ExprId| {
            let target = match ir.expr(d) {
                Expr::Call(c) => ir.call(c).func,
                _ => d,
            };
            matches!(self.program.resolve_expr(module, target), Some(Resolved::External(_)))
        };
        let decorators = ir.list(function.decorators);
        let filled = param.default.is_none() && decorators.iter().any(foreign)
            || decorators.iter().any(|&d| self.is_option(module, d, param.name));
        function.params.iter().position(|p| p.slot == param.slot).filter(|_| filled)
    }

    /// Whether the command line decides the parameter: `@click.option("--batch-size", …)`, `@hydra.main(…)`.
    fn is_option(&self, module: ModIdx, decorator: ExprId, param: Sym) -> bool {
        let ir = &self.program.get(module).ir;
        let Expr::Call(call) = ir.expr(decorator) else { return false };
        let call = ir.call(call);
        let Some(Resolved::External(path)) = self.program.resolve_expr(module, call.func) else {
            return false;
        };
        let named = |a: &crate::ir::Arg| match ir.expr(a.value) {
            Expr::Str(s) => s.as_str().trim_start_matches('-').replace('-', "_") == param.as_str(),
            _ => false,
        };
        match path.as_str() {
            "hydra.main" => true,
            "click.option" | "click.argument" => call.args.iter().any(named),
            _ => false,
        }
    }

    /// The condition on the machine under which a function is reached through the project's own decorators. The engine
    /// interprets what the decorators return.
    pub(crate) fn wrapper_guard(&mut self, module: ModIdx, func: FuncId) -> Cond {
        let ir = &self.program.get(module).ir;
        let decorators = ir.function(func).decorators;
        if decorators.len == 0 || self.run.depth >= crate::flow::machine::MAX_DEPTH {
            return TRUE;
        }
        if let Some(&guard) = self.calls.wrappers.get(&(module, func)) {
            return guard;
        }
        self.calls.wrappers.insert((module, func), TRUE);
        let mut guard = TRUE;
        for &d in ir.list(decorators) {
            let target = match ir.expr(d) {
                Expr::Call(c) => ir.call(c).func,
                _ => d,
            };
            if matches!(self.program.resolve_expr(module, target), Some(Resolved::Function(..))) {
                let reached = self.reached_through(module, d);
                guard = self.d.and(guard, reached);
            }
        }
        self.calls.wrappers.insert((module, func), guard);
        guard
    }

    pub(crate) fn reached_through(&mut self, module: ModIdx, decorator: ExprId) -> Cond {
        let base = self.global_cell(module, 0);
        let saved = (self.frame, self.path, self.calls.probed);
        self.push_frame(module, FuncId(0), base, None);
        let (start, cells) = (self.store.mark(), self.store.len());
        self.path = TRUE;
        self.calls.probed = FALSE;
        self.run.muted += 1;
        self.run.depth += 1;
        let f = self.eval(decorator);
        let wrapped =
            Args { positional: vec![(Value::External(Sym::new(WRAPPED)), decorator)], ..Args::default() };
        let wrapper = self.call_value(f, &wrapped, decorator);
        self.calls.probed = FALSE;
        if let Value::Closure(_) = wrapper {
            self.path = TRUE;
            self.call_value(wrapper, &Args { open: true, ..Args::default() }, decorator);
        }
        let probed = self.calls.probed;
        self.run.depth -= 1;
        self.run.muted -= 1;
        (self.frame, self.path, self.calls.probed) = saved;
        self.undo_to_what_was(start, cells);
        // The decorator passes the function on to unknown code, so it is unknown when it runs.
        if probed == FALSE {
            TRUE
        } else {
            self.d.forget(probed, &crate::flow::domain::atom::AtomId::is_hardware)
        }
    }

    /// Undoes the writes to the first `cells` cells since `start`. A decorator runs once, at the definition of the
    /// function, so a call must not repeat its effects. Writes to new cells stay.
    pub(crate) fn undo_to_what_was(&mut self, start: Mark, cells: usize) {
        let mut done = self.store.take(start);
        done.retain(|&(cell, _)| cell.0 as usize >= cells);
        self.apply(&done);
    }

    /// The condition that one decorator puts on running the function.
    pub(crate) fn one_guard(&mut self, module: ModIdx, scope: FuncId, d: ExprId) -> Cond {
        self.guard_through(module, scope, d, MAX_MARKS)
    }

    /// The same, through at most `names` variables that hold marks.
    fn guard_through(&mut self, module: ModIdx, scope: FuncId, d: ExprId, names: usize) -> Cond {
        let ir = &self.program.get(module).ir;
        let (target, call) = match ir.expr(d) {
            Expr::Call(c) => (ir.call(c).func, Some(ir.call(c))),
            _ => (d, None),
        };
        let resolved = self.program.resolve_expr(module, target);
        let fact = match resolved {
            Some(Resolved::External(path)) => torch::call(path).and_then(|f| f.decorator),
            _ => None,
        };
        let condition = call.and_then(|c| c.args.first()).map(|a| a.value);
        match (fact, condition) {
            (Some(Decorator::Skip), _) => return FALSE,
            (Some(Decorator::SkipIf), Some(c)) => {
                let c = self.test_in(module, scope, c);
                return self.d.not(c);
            }
            (Some(Decorator::SkipUnless), Some(c)) => return self.test_in(module, scope, c),
            _ => {}
        }
        // `requires_cuda = pytest.mark.skipif(not torch.cuda.is_available(), …)`, in this file or in the one that it is
        // imported from.
        if names > 0
            && let Some((m, e)) = self.program.bound_to(module, target)
            && matches!(self.program.get(m).ir.expr(e), Expr::Call(_) | Expr::Attr { .. })
        {
            let guard = self.guard_through(m, FuncId(0), e, names - 1);
            if guard != TRUE {
                return guard;
            }
        }
        let name = match ir.expr(target) {
            Expr::Attr { name, .. } => Some(name),
            Expr::Var(crate::ir::Var::Unbound(n)) => Some(n),
            Expr::Var(crate::ir::Var::Global(s) | crate::ir::Var::Local(s)) => {
                ir.functions.first().and_then(|f| f.slots.get(s as usize)).copied()
            }
            _ => None,
        };
        if let Some(n) = name {
            let n = n.as_str().to_ascii_lowercase();
            if (n.contains("gpu") || n.contains("cuda")) && torch::test_guard(Sym::new(&n)).is_none() {
                return self.at_least(if n.contains("multi") { 2 } else { 1 });
            }
        }
        match name.and_then(torch::test_guard) {
            Some(TestGuard::Cuda(n)) => self.at_least(n.max(1)),
            Some(TestGuard::Accelerator) => self.at_least(1),
            Some(TestGuard::CudaIfKeyword(k))
                if call.is_some_and(|c| c.args.iter().any(|a| a.kind == crate::ir::ArgKind::Keyword(k))) =>
            {
                self.at_least(1)
            }
            _ => match call.map(|c| asks_for_gpus(ir, c)) {
                Some(gpus) if gpus > 0 && !name.is_some_and(|n| casts(n.as_str())) => self.at_least(gpus),
                _ => TRUE,
            },
        }
    }

    pub(crate) fn test_in(&mut self, module: ModIdx, scope: FuncId, e: ExprId) -> Cond {
        let v = self.eval_in(module, scope, e);
        match v {
            Value::Bool(c) => c,
            Value::Str(s, _) => self.string_condition(s.as_str()),
            v => {
                let saved = self.frame;
                let base = self.global_cell(module, 0);
                self.push_frame(module, FuncId(0), base, None);
                let c = self.truth(v, e);
                self.frame = saved;
                c
            }
        }
    }

    /// The condition in `pytest.mark.skipif("not torch.cuda.is_available()")`.
    pub(crate) fn string_condition(&mut self, text: &str) -> Cond {
        match text.replace(' ', "").as_str() {
            "nottorch.cuda.is_available()" => {
                let c = self.at_least(1);
                self.d.not(c)
            }
            "torch.cuda.is_available()" => self.at_least(1),
            _ => self.raised_atom(),
        }
    }
}

/// The number of GPUs in a decorator's arguments: `@ray.remote(num_gpus=1)`, `@run_if(min_cuda_gpus=2)`,
/// `@custom_op(…, device_types="cuda")`. The function runs with at least that many.
fn asks_for_gpus(ir: &Module, call: Call<'_>) -> u32 {
    let of = |a: &crate::ir::Arg| {
        let named = match a.kind {
            ArgKind::Keyword(k) => {
                let k = k.as_str().to_ascii_lowercase();
                k.contains("gpu") || k.contains("cuda")
            }
            _ => false,
        };
        match ir.expr(a.value) {
            Expr::Str(s) if s.as_str() == "cuda" => 1,
            Expr::Int(n) if named => u32::try_from(n.0).unwrap_or(0),
            Expr::Str(_) | Expr::True if named => 1,
            _ => 0,
        }
    };
    call.args.iter().map(of).max().unwrap_or(0)
}

/// Whether a decorator of this name runs its function on any machine.
fn casts(name: &str) -> bool {
    ANYWHERE.has(name)
}
