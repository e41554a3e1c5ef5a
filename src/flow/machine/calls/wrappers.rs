//! Functions and classes with decorators of the project. If the decorators decide devices, a call of the function is a
//! call of what they return.

use crate::flow::domain::value::{Closure, Value};
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::{Interp, MAX_DEPTH};
use crate::flow::models::modules::nn_module::MOVES;
use crate::ir::{Expr, ExprId, ExprList, FuncId, Module, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Resolved};
use crate::sym::Sym;

/// A function whose wrapper is being interpreted.
#[derive(Clone, Copy)]
pub(crate) struct Wrapped {
    module: ModIdx,
    func: FuncId,
    /// Whether the wrapper gets the method's receiver as an argument.
    method: bool,
    /// Whether the wrapper has not called the function yet. While the function itself runs, its own calls go through
    /// the wrapper again.
    waiting: bool,
}

impl Interp<'_> {
    /// The result of a call through those of the function's decorators that decide devices. Other decorators, for
    /// example for counting or printing, are ignored. `None` if there is no such decorator, or if the decorators return
    /// the function unchanged.
    pub(crate) fn through_decorators(
        &mut self,
        called: Closure,
        receiver: Option<Value>,
        args: &Args,
        e: ExprId,
    ) -> Option<Value> {
        let function = self.program.get(called.module).ir.function(called.func);
        if function.decorators.len == 0 {
            return None;
        }
        let own = self.deciding_decorators(called.module, function.decorators);
        if own.is_empty() {
            return None;
        }
        let is_it = |w: &Wrapped| w.waiting && (w.module, w.func) == (called.module, called.func);
        if let Some(at) = self.calls.wrapped.iter().rposition(is_it) {
            return Some(self.called_by_wrapper(at, called, receiver, args, e));
        }
        if self.run.depth + 2 >= MAX_DEPTH || !self.live() {
            return Some(self.unknown_call(Value::Unknown, args, e));
        }
        // The values of the decorator's arguments at the definition are no longer known.
        if own.iter().any(|&d| self.is_given_what_is_set_again(called.module, d)) {
            return Some(self.unknown_call(Value::Unknown, args, e));
        }
        let plain = self.closure(called.module, called.func, called.frame);
        let made = self.decorated(plain, called, &own, e);
        let callable = match made {
            Value::Closure(_) | Value::Choice(_) => true,
            Value::Object(_) => receiver.is_none(),
            _ => false,
        };
        if made == plain {
            return None;
        }
        if !callable {
            return Some(self.unknown_call(Value::Unknown, args, e));
        }
        let mut args = args.clone();
        args.positional.splice(0..0, receiver.map(|object| (object, e)));
        let (module, func, method) = (called.module, called.func, receiver.is_some());
        self.calls.wrapped.push(Wrapped { module, func, method, waiting: true });
        let v = self.call_value(made, &args, e);
        self.calls.wrapped.pop();
        Some(v)
    }

    /// Interprets the wrapper's call of the original function.
    fn called_by_wrapper(
        &mut self,
        at: usize,
        called: Closure,
        mut receiver: Option<Value>,
        args: &Args,
        e: ExprId,
    ) -> Value {
        let mut args = args.clone();
        if self.calls.wrapped[at].method && receiver.is_none() && !args.positional.is_empty() {
            receiver = Some(args.positional.remove(0).0);
        }
        self.calls.wrapped[at].waiting = false;
        let v = self.call_as_written(called, receiver, &args, e);
        self.calls.wrapped[at].waiting = true;
        v
    }

    /// Applies these decorators to the function, the innermost first, at a call here.
    fn decorated(&mut self, plain: Value, called: Closure, own: &[ExprId], e: ExprId) -> Value {
        let scope = self.program.get(called.module).ir.function(called.func).parent.unwrap_or(FuncId(0));
        let mut made = plain;
        for &d in own {
            let before = self.path;
            let (start, cells) = (self.store.mark(), self.store.len());
            let decorator = self.eval_in(called.module, scope, d);
            let args = Args { positional: vec![(made, e)], ..Args::default() };
            self.run.muted += 1;
            made = self.call_value(decorator, &args, e);
            self.run.muted -= 1;
            self.path = before;
            self.undo_to_what_was(start, cells);
        }
        made
    }

    /// Whether a later statement assigns a variable that the decorator uses: `@on(device)`, and `device = "cuda"`
    /// further down.
    fn is_given_what_is_set_again(&mut self, module: ModIdx, decorator: ExprId) -> bool {
        if let Some(&known) = self.calls.set_again.get(&(module, decorator)) {
            return known;
        }
        let ir = &self.program.get(module).ir;
        let Expr::Call(call) = ir.expr(decorator) else { return false };
        let scope = ir.function_around(decorator);
        let given: Vec<Sym> =
            ir.call(call).args.iter().flat_map(|a| variables_in(ir, a.value)).map(|(_, name)| name).collect();
        let (from, mut targets) = (ir.span(decorator).end, Vec::new());
        for (s, _) in ir.stmts.iter().zip(&ir.stmt_spans).filter(|(_, at)| at.start > from) {
            match *s {
                Stmt::Assign { targets: list, .. } => targets.extend(ir.list(list)),
                Stmt::AugAssign { target, .. }
                | Stmt::AnnAssign { target, .. }
                | Stmt::For { target, .. } => targets.push(target),
                _ => {}
            }
        }
        let seen = |(at, name): (ExprId, Sym)| {
            let around = ir.function_around(at);
            given.contains(&name)
                && (around == scope
                    || around == FuncId(0)
                    || !matches!(ir.expr(at), Expr::Var(Var::Local(_))))
        };
        let again = !given.is_empty() && targets.into_iter().flat_map(|t| variables_in(ir, t)).any(seen);
        self.calls.set_again.insert((module, decorator), again);
        again
    }

    /// The decorators of the project that decide devices, the innermost first.
    fn deciding_decorators(&self, module: ModIdx, decorators: ExprList) -> Vec<ExprId> {
        let ir = &self.program.get(module).ir;
        let decides = |d: ExprId| {
            let target = match ir.expr(d) {
                Expr::Call(c) => ir.call(c).func,
                _ => d,
            };
            match self.program.resolve_expr(module, target) {
                Some(Resolved::Function(m, f)) => self.decides_within(m, f),
                Some(Resolved::Class(ClassKey { module: m, class })) => {
                    let own = &self.program.get(m).ir;
                    let own = own.functions.iter().enumerate().filter(|(_, f)| f.class == Some(class));
                    own.filter_map(|(n, _)| u32::try_from(n).ok()).any(|n| self.decides_within(m, FuncId(n)))
                }
                _ => false,
            }
        };
        ir.list(decorators).iter().rev().copied().filter(|&d| decides(d)).collect()
    }

    /// Whether a decorator of the project that decides devices replaces the class or one of its bases.
    pub(crate) fn is_remade(&self, key: ClassKey) -> bool {
        self.program.class(key).mro.iter().any(|k| {
            let decorators = self.program.get(k.module).ir.class(k.class).decorators;
            decorators.len > 0 && !self.deciding_decorators(k.module, decorators).is_empty()
        })
    }

    /// Whether the function, or a function defined in it, decides a device.
    fn decides_within(&self, module: ModIdx, func: FuncId) -> bool {
        let ir = &self.program.get(module).ir;
        let exprs = ir.function(func).exprs.clone();
        let moves = |e: &Expr| matches!(*e, Expr::Attr { name, .. } if MOVES.contains(&name.as_str()));
        if self.relevance.is_near(module, func)
            || ir.exprs[exprs.start as usize..exprs.end as usize].iter().any(moves)
        {
            return true;
        }
        let around = ir.function(func).span;
        let inside =
            ir.functions.iter().enumerate().filter(|(_, f)| f.parent.is_some() && around.contains(f.span));
        inside.filter_map(|(n, _)| u32::try_from(n).ok()).any(|n| self.relevance.is_near(module, FuncId(n)))
    }
}

/// The variables and attributes in an expression, with their names.
fn variables_in(ir: &Module, e: ExprId) -> impl Iterator<Item = (ExprId, Sym)> {
    let inside = ir.exprs_in(e).filter_map(|n| u32::try_from(n).ok()).map(ExprId);
    let named = |e: ExprId| matches!(ir.expr(e), Expr::Var(_) | Expr::Attr { .. });
    inside.filter(move |&e| named(e)).filter_map(|e| Some((e, ir.last_name(e)?)))
}
