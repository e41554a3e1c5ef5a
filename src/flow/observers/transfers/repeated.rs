//! Moves of the same tensor again and again: in every round of a loop, or in every call of a module.

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::event::{Again, Kind};
use crate::flow::domain::value::{Device, Reason, Tensor, Value};
use crate::flow::machine::Interp;
use crate::ir::{Arg, ArgKind, Call, Expr, ExprId, Module, Stmt, Var};
use crate::sym::Sym;
use crate::words::Words;

/// Methods that add to a list or a set.
static KEEPS: Words = Words::of("grow a list or a set");

impl Interp<'_> {
    /// Reports a host tensor that moves in every round of a loop although no round changes it.
    pub(crate) fn check_invariant(&mut self, t: Tensor, target: Dd, e: ExprId, base: ExprId) {
        let Some((reason, _)) = self.host_reason(t) else { return };
        if reason == Reason::Batch {
            return;
        }
        // All elements of a container have the same name here, so each round may have another target device.
        let several =
            |l: &(_, Device, _)| matches!(l.1, Device::Of(o) | Device::Named(o) if self.is_one_of(o));
        if self.device_leaves(target).iter().any(several) {
            return;
        }
        let Some(entered) = self.second_round() else {
            if let Some(again) = self.is_sent_by_each_call(t, base) {
                self.tell_where(target, e, Kind::InvariantMove { again });
            }
            return;
        };
        let Some(cell) = self.cell_of(base) else { return };
        if self.store.changes(entered).iter().any(|&(c, _)| c == cell)
            || cell.0 as usize >= self.observed.cells_then
        {
            return;
        }
        self.tell_where(target, e, Kind::InvariantMove { again: Again::Loop });
    }

    /// Reports `torch.tensor([scale], device=device)` in a loop that does not change the numbers: each round copies them again.
    pub(crate) fn check_made_again(&mut self, device: Dd, e: ExprId) {
        if self.run.muted > 0 || self.here().func.0 == 0 || !self.leaves_host(device) {
            return;
        }
        let Some(entered) = self.second_round() else { return };
        let ir = &self.linked().ir;
        let Expr::Call(id) = ir.expr(e) else { return };
        let wants_gradients =
            |a: &Arg| matches!(a.kind, ArgKind::Keyword(k) if k.as_str() == "requires_grad");
        if ir.call(id).args.iter().any(wants_gradients) {
            return;
        }
        let (mut numbers, mut names) = (Vec::new(), Vec::new());
        for (n, a) in ir.call(id).args.iter().enumerate() {
            for part in ir.exprs_in(a.value).map(|n| ExprId(u32::try_from(n).unwrap_or(u32::MAX))) {
                match ir.expr(part) {
                    Expr::Var(Var::Local(_)) if n == 0 => numbers.push(part),
                    Expr::Var(Var::Local(_) | Var::Enclosing { .. } | Var::Global(_)) if n > 0 => {
                        names.push(part);
                    }
                    Expr::List(_) | Expr::Tuple(_) | Expr::Int(_) | Expr::Float(_) | Expr::Binary { .. } => {}
                    _ if n == 0 => return,
                    _ => {}
                }
            }
        }
        let changes = self.store.changes(entered);
        // For local variables, check the assignments in the loop instead of the values: two unknown numbers look equal, and a new
        // fact about an outside value changes the store but not the value.
        let fixed = |i: &mut Self, part: ExprId| {
            let own = matches!(i.linked().ir.expr(part), Expr::Var(Var::Local(_)));
            i.cell_of(part).is_some_and(|cell| {
                (cell.0 as usize) < i.observed.cells_then
                    && if own { !i.is_set_around(part) } else { !changes.iter().any(|&(c, _)| c == cell) }
            })
        };
        if !numbers.is_empty()
            && numbers.iter().all(|&part| self.is_number(part))
            && numbers.into_iter().chain(names).all(|part| fixed(self, part))
            && !self.is_written_to(e)
        {
            self.tell_where(device, e, Kind::InvariantMove { again: Again::Loop });
        }
    }

    /// Does a loop around the expression assign to the variable?
    fn is_set_around(&self, var: ExprId) -> bool {
        let ir = &self.linked().ir;
        let at = ir.span(var);
        let within = || ir.stmts_of(ir.function(self.here().func));
        // The expressions of a value have lower indices than those of its targets.
        let sets = |target: ExprId| {
            let inside = |n: usize| ir.span(target).contains(ir.expr_spans[n]);
            ir.exprs_in(target).any(|n| ir.exprs[n] == ir.expr(var) && inside(n))
        };
        let set = |n: usize| match &ir.stmts[n] {
            Stmt::Assign { targets, .. } => ir.list(*targets).iter().any(|&t| sets(t)),
            Stmt::AugAssign { target, .. } | Stmt::AnnAssign { target, .. } | Stmt::For { target, .. } => {
                sets(*target)
            }
            Stmt::With { items, .. } => items.iter().any(|&(_, target)| target.is_some_and(sets)),
            Stmt::Expr(_) | Stmt::If { .. } | Stmt::While { .. } | Stmt::Return(_) => false,
            Stmt::Try { .. }
            | Stmt::Raise { .. }
            | Stmt::Assert { .. }
            | Stmt::Pass
            | Stmt::Break
            | Stmt::Continue => false,
            _ => true,
        };
        let loops = within().filter(|&n| {
            matches!(ir.stmts[n], Stmt::For { .. } | Stmt::While { .. }) && ir.stmt_spans[n].contains(at)
        });
        // The variables of a comprehension change in each of its rounds.
        let comprehended = ir
            .exprs
            .iter()
            .zip(&ir.expr_spans)
            .any(|(e, span)| matches!(e, Expr::Comp(_)) && span.contains(at));
        comprehended
            || loops.into_iter().any(|whole| {
                let walrus = |(e, span): (&Expr, &crate::span::Span)| {
                    matches!(e, Expr::Walrus(_)) && ir.stmt_spans[whole].contains(*span)
                };
                within().any(|n| ir.stmt_spans[whole].contains(ir.stmt_spans[n]) && set(n))
                    || ir.exprs.iter().zip(&ir.expr_spans).any(walrus)
            })
    }

    /// Does the function write into the new tensor, or use it in another way than reading it? Then each round needs its own tensor.
    fn is_written_to(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        let stmts = || ir.stmts[ir.stmts_of(ir.function(self.here().func))].iter();
        let holder = stmts().find_map(|s| match *s {
            Stmt::Assign { targets, value } if value == e => ir.list(targets).first().copied(),
            _ => None,
        });
        let Some(holder) = holder else { return self.is_kept_or_left_with(e) };
        let same = |x: ExprId| ir.expr(x) == ir.expr(holder);
        !matches!(ir.expr(holder), Expr::Var(_))
            || stmts().any(|s| match *s {
                Stmt::AugAssign { target, .. } => same(target),
                Stmt::Assign { targets, .. } => ir
                    .list(targets)
                    .iter()
                    .any(|&t| matches!(ir.expr(t), Expr::Index { base, .. } if same(base))),
                Stmt::Expr(x) => matches!(ir.expr(x), Expr::Call(c)
                    if matches!(ir.expr(ir.call(c).func), Expr::Attr { base, name } if same(base) && name.as_str().ends_with('_'))),
                _ => false,
            })
            || ir.calls().any(|call| {
                let out = |a: &Arg| matches!(a.kind, ArgKind::Keyword(k) if k.as_str() == "out");
                call.args.iter().any(|a| same(a.value) && out(a)) || keeps(ir, call) && call.args.iter().any(|a| same(a.value))
            })
    }

    /// Does the code append the expression to a list, or return it from the loop?
    fn is_kept_or_left_with(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        let at = ir.span(e);
        let left = |n: usize| matches!(ir.stmts[n], Stmt::Return(_)) && ir.stmt_spans[n].contains(at);
        let kept =
            |call: Call<'_>| keeps(ir, call) && call.args.iter().any(|a| ir.span(a.value).contains(at));
        ir.stmts_of(ir.function(self.here().func)).any(left) || ir.calls().any(kept)
    }

    /// `self.table.to(x.device)` in `forward`, where only the module's constructor sets `table`: each call of the model copies
    /// the table again.
    fn is_sent_by_each_call(&mut self, t: Tensor, base: ExprId) -> Option<Again> {
        let Expr::Attr { base: owner, name } = self.linked().ir.expr(base) else { return None };
        // A branch may run for some calls only, a move in a loop belongs to that loop, and a caller in another file proves nothing here.
        let mut around = Some(self.frame);
        while let Some(f) = around {
            let f = &self.frames[f.0 as usize];
            if f.branches > 0 || !f.loops.is_empty() || f.module != self.entry {
                return None;
            }
            around = f.caller;
        }
        // Code in an `if` may run only once, too: `if self.moved is None:`.
        let ir = &self.linked().ir;
        let decided =
            |n: usize| matches!(ir.stmts[n], Stmt::If { .. }) && ir.stmt_spans[n].contains(ir.span(base));
        if t.role.registered() || self.is_cached() || ir.stmts_of(ir.function(self.here().func)).any(decided)
        {
            return None;
        }
        self.run.muted += 1;
        let owner = self.eval(owner);
        self.run.muted -= 1;
        let Value::Object(id) = owner else { return None };
        let frame = self.here();
        let function = self.program.get(frame.module).ir.function(frame.func);
        let all_kept = |i: &Self| {
            let reasons = i.device_leaves(t.device);
            reasons.iter().all(|&(_, _, at)| i.chain(at).first().is_some_and(|s| s.reason == Reason::Kept))
        };
        if !matches!(self.obj(id).kind, crate::flow::machine::frame::ObjKind::Module)
            || function.name != self.known.forward
            || !all_kept(self)
        {
            return None;
        }
        let fixed = owner == self.here().receiver
            && self.obj(id).class.is_some_and(|class| !self.is_set_later(class, name));
        fixed.then_some(Again::Forward)
    }

    /// Does a method other than the constructor set the attribute, possibly with a computed name?
    fn is_set_later(&self, class: crate::link::ClassKey, name: Sym) -> bool {
        self.program.class(class).mro.iter().any(|k| {
            let ir = &self.program.get(k.module).ir;
            let span = ir.class(k.class).span;
            let constructors: Vec<crate::span::Span> = ir
                .functions
                .iter()
                .filter(|f| f.class == Some(k.class) && f.name == self.known.init)
                .map(|f| f.span)
                .collect();
            ir.stmts.iter().zip(&ir.stmt_spans).any(|(s, &at)| {
                let sets = |t: ExprId| matches!(ir.expr(t), Expr::Attr { name: n, .. } if n == name);
                span.contains(at)
                    && !constructors.iter().any(|c| c.contains(at))
                    && match *s {
                        crate::ir::Stmt::Assign { targets, .. } => ir.list(targets).iter().any(|&t| match ir.expr(t) {
                            Expr::Tuple(list) | Expr::List(list) => ir.list(list).iter().any(|&t| sets(t)),
                            _ => sets(t),
                        }),
                        crate::ir::Stmt::Expr(e) => matches!(ir.expr(e), Expr::Call(c)
                            if matches!(ir.expr(ir.call(c).func), Expr::Var(Var::Unbound(f)) if f.as_str() == "setattr")),
                        _ => false,
                    }
            })
        })
    }

    /// The mark of the store at the start of the outermost loop that is in its second round. `None` without such a loop.
    fn second_round(&mut self) -> Option<crate::flow::domain::store::Mark> {
        let mut found = None;
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            for l in frame.loops.iter().rev() {
                if let (Some(entered), true, false) = (l.entered, l.rounds > 1, l.exact) {
                    found = Some((entered, l.cells));
                }
            }
            at = frame.caller;
        }
        let (entered, cells) = found.filter(|_| !self.is_cached())?;
        self.observed.cells_then = cells;
        Some(entered)
    }
}

/// `found.append(x)`
fn keeps(ir: &Module, call: Call<'_>) -> bool {
    matches!(ir.expr(call.func), Expr::Attr { name, .. } if KEEPS.has(name.as_str()))
}
