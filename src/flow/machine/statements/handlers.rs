//! Exception handlers: what they catch and what they drop.

use crate::flow::domain::diagram::{Cond, Dd, FALSE, TRUE};
use crate::flow::domain::event::Kind;
use crate::flow::domain::value::Device;
use crate::flow::machine::Interp;
use crate::ir::{Block, Expr, ExprId, Handler, Module, Stmt, Var};
use crate::link::Resolved;
use crate::span::Place;
use crate::torch;
use crate::words::Words;

/// What PyTorch raises for a missing device or for tensors on different devices, with the base classes.
pub(crate) static MISSING_DEVICE: Words = Words::of("errors for a missing device");

/// The same for a device whose memory is full.
pub(crate) static OUT_OF_MEMORY: Words = Words::of("errors for full memory");
/// What Python raises for a missing attribute, with the base classes.
static MISSING_ATTRIBUTE: Words = Words::of("errors for a missing attribute");
static PLAIN_BUILTINS: Words = Words::of("builtins that do not fail");

/// Whether the handler, by the names of its classes, catches what PyTorch raises for a missing device.
pub(crate) fn catches_missing_device(ir: &Module, handler: &Handler) -> bool {
    let is_one = |e: ExprId| ir.last_name(e).is_some_and(|name| MISSING_DEVICE.has(name.as_str()));
    match handler.types.map(|e| (e, ir.expr(e))) {
        None => true,
        Some((_, Expr::Tuple(list))) => ir.list(list).iter().any(|&e| is_one(e)),
        Some((e, _)) => is_one(e),
    }
}

impl Interp<'_> {
    /// Counts work on an accelerator that certainly exists, or on a device of a caller's choice. An attempt to use a
    /// device that may be missing is a test for it, and does not count.
    pub(crate) fn device_work(&mut self, device: Dd) {
        let Some(path) =
            self.here().tries.last().map(|t| if t.survived == TRUE { self.path } else { t.start }).or_else(
                || {
                    let mut at = self.here().caller;
                    while let Some(f) = at {
                        let frame = &self.frames[f.0 as usize];
                        if let Some(t) = frame.tries.last() {
                            return Some(if t.survived == TRUE { self.path } else { t.start });
                        }
                        at = frame.caller;
                    }
                    None
                },
            )
        else {
            return;
        };
        let mut leaves = Vec::new();
        self.d.leaves(device, &mut leaves);
        for leaf in leaves {
            let backend = match self.t.places.get(leaf).0 {
                Device::Cuda(_) | Device::CudaSome => None,
                Device::Other(b) => Some(b),
                Device::Named(o) if self.t.get_outer(o).device => {
                    self.run.work += 1;
                    return;
                }
                _ => continue,
            };
            let here = if self.d.as_leaf(device).is_some() {
                TRUE
            } else {
                self.d.where_leaf(device, &mut |p| p == leaf)
            };
            let (reached, there) = (self.d.and(path, here), self.available(backend));
            if reached != FALSE && self.d.implies(reached, there) {
                self.run.work += 1;
                return;
            }
        }
    }

    /// Checks the handlers of a `try` whose body works on a device: reports one that drops every error. The first
    /// handler that an out-of-memory error reaches decides.
    pub(crate) fn check_swallowed(&mut self, handlers: &[Handler]) {
        for h in handlers {
            let names: Vec<&'static str> = match h.types {
                None => vec!["BaseException"],
                Some(e) => self.names_of(e),
            };
            if names.contains(&"OutOfMemoryError") {
                return;
            }
            if !drops_all(&names) {
                continue;
            }
            let ir = &self.linked().ir;
            if ir.block(h.body).iter().all(|&s| idle(ir, ir.stmt(s), h)) {
                let there = self.available(None);
                if let Some(bite) = self.bite(there, false) {
                    let place = Place { file: ir.file, span: h.head };
                    let says = |s: &Stmt| match s {
                        Stmt::AugAssign { .. } => true,
                        Stmt::Expr(e) => matches!(ir.expr(*e), Expr::Call(c)
                            if matches!(ir.expr(ir.call(c).func), Expr::Var(_))),
                        _ => false,
                    };
                    let said = ir.block(h.body).iter().find(|&&s| says(ir.stmt(s)));
                    let said = said.map(|&s| Place { file: ir.file, span: ir.stmt_span(s) });
                    self.emit(Kind::Swallowed { said }, place, bite, Vec::new());
                }
            }
            return;
        }
    }

    /// Whether the body of a `try` only calls PyTorch. Then the handler is for the body's device requirement. Other
    /// code may raise for other reasons.
    pub(crate) fn only_torch(&self, body: Block) -> bool {
        let ir = &self.linked().ir;
        let plain = |s: &Stmt| {
            matches!(
                s,
                Stmt::Expr(_) | Stmt::Assign { .. } | Stmt::AnnAssign { .. } | Stmt::Return(_) | Stmt::Pass
            )
        };
        let body = ir.block(body);
        if !body.iter().all(|&s| plain(ir.stmt(s))) {
            return false;
        }
        let exprs = &ir.function(self.here().func).exprs;
        (exprs.start..exprs.end).map(ExprId).all(|e| match ir.expr(e) {
            Expr::Call(id) if body.iter().any(|&s| ir.stmt_span(s).contains(ir.span(e))) => {
                self.is_torchs(ir.call(id).func)
            }
            _ => true,
        })
    }

    /// Whether the callee is a function of PyTorch, a tensor's method, or a simple builtin such as `print`.
    fn is_torchs(&self, callee: ExprId) -> bool {
        match (self.program.resolve_expr(self.here().module, callee), self.linked().ir.expr(callee)) {
            (Some(Resolved::External(path)), _) => path.as_str().starts_with("torch."),
            (Some(_), _) => false,
            (None, Expr::Attr { name, .. }) => torch::method(name).is_some(),
            (None, Expr::Var(Var::Unbound(n))) => PLAIN_BUILTINS.has(n.as_str()),
            (None, _) => false,
        }
    }

    pub(crate) fn names_of(&self, types: ExprId) -> Vec<&'static str> {
        let ir = &self.linked().ir;
        match ir.expr(types) {
            Expr::Tuple(list) => ir.list(list).iter().filter_map(|&x| self.last_name(x)).collect(),
            _ => self.last_name(types).into_iter().collect(),
        }
    }

    /// Whether an enclosing handler catches the failure of a missing accelerator.
    pub(crate) fn caught_around(&self) -> bool {
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            if frame.tries.iter().any(|t| t.catches_cuda) {
                return true;
            }
            at = frame.caller;
        }
        false
    }

    /// Whether an enclosing handler catches an out-of-memory error.
    pub(crate) fn oom_handled(&self) -> bool {
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            if frame.tries.iter().any(|t| t.catches_oom) {
                return true;
            }
            at = frame.caller;
        }
        false
    }

    /// Restricts the `try` body after this point to machines where the used device exists.
    pub(crate) fn survive(&mut self, here: Cond, needed: Cond) {
        let not_here = self.d.not(here);
        let fine = self.d.or(not_here, needed);
        let fails = self.d.not(fine);
        let fails = self.d.and(self.path, fails);
        self.raises_for_certain(fails);
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &mut self.frames[f.0 as usize];
            // The exception also leaves the `try` statements that do not catch it.
            for tried in frame.tries.iter_mut().rev() {
                tried.survived = self.d.and(tried.survived, fine);
                if tried.catches_cuda {
                    self.path = self.d.and(self.path, fine);
                    return;
                }
            }
            at = frame.caller;
        }
    }

    /// Records that this path certainly raises here. Handlers see the changes up to this point.
    pub(crate) fn raises_for_certain(&mut self, path: Cond) {
        if path == FALSE || self.run.muted > 0 {
            return;
        }
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &mut self.frames[f.0 as usize];
            if let Some(tried) = frame.tries.last_mut() {
                tried.raised.push((path, self.store.changes(tried.mark)));
                return;
            }
            at = frame.caller;
        }
    }

    /// Whether the handler is only for full memory: `except torch.cuda.OutOfMemoryError:`.
    pub(crate) fn is_for_full_memory(&self, handler: &Handler) -> bool {
        handler.types.is_some_and(|e| {
            let types = match self.linked().ir.expr(e) {
                Expr::Tuple(list) => list.len as usize,
                _ => 1,
            };
            let names = self.names_of(e);
            names.len() == types && names.iter().all(|&name| name == "OutOfMemoryError")
        })
    }

    /// Whether the handlers catch a missing accelerator, an out-of-memory error, and a missing attribute.
    pub(crate) fn caught(&self, handlers: &[Handler]) -> (bool, bool, bool) {
        let ir = &self.linked().ir;
        let named: Vec<(Vec<&'static str>, bool)> = handlers
            .iter()
            .map(|h| match h.types {
                None => (vec!["BaseException"], passes_on(ir, h)),
                Some(e) => (self.names_of(e), passes_on(ir, h)),
            })
            .collect();
        let catches = |wanted: &Words| named.iter().any(|(names, _)| names.iter().any(|n| wanted.has(n)));
        // A program that cleans up and raises the error again is not prepared for a missing device. For a library's
        // function, its callers decide.
        let own = self.here().module == self.entry;
        let cuda =
            named.iter().any(|(names, on)| names.iter().any(|n| MISSING_DEVICE.has(n)) && !(own && *on));
        let oom = catches(&OUT_OF_MEMORY);
        let missing = catches(&MISSING_ATTRIBUTE);
        (cuda, oom, missing)
    }

    pub(crate) fn last_name(&self, e: ExprId) -> Option<&'static str> {
        let linked = self.linked();
        match linked.ir.expr(e) {
            Expr::Attr { name, .. } => Some(name.as_str()),
            Expr::Var(crate::ir::Var::Unbound(n)) => Some(n.as_str()),
            Expr::Var(_) => match self.program.resolve_expr(self.here().module, e) {
                Some(Resolved::External(p)) => Some(crate::flow::models::tensors::functions::short(p)),
                Some(Resolved::Class(k)) => {
                    let ir = &self.program.get(k.module).ir;
                    Some(ir.class(k.class).name.as_str())
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether an enclosing handler catches a missing attribute.
    pub(crate) fn missing_caught(&self) -> bool {
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            if frame.tries.iter().any(|t| t.catches_missing) {
                return true;
            }
            at = frame.caller;
        }
        false
    }
}

/// Whether the handler ends by raising its exception again: `raise`, `raise error`.
fn passes_on(ir: &Module, handler: &Handler) -> bool {
    match ir.block(handler.body).last().map(|&s| ir.stmt(s)) {
        Some(Stmt::Raise { exception: None, .. }) => true,
        Some(Stmt::Raise { exception: Some(e), .. }) => {
            handler.name.is_some() && matches!(ir.expr(*e), Expr::Var(v) if Some(v) == handler.name)
        }
        _ => false,
    }
}

/// Whether a handler for these errors also catches out-of-memory errors without naming them.
pub(crate) fn drops_all(names: &[&str]) -> bool {
    !names.contains(&"OutOfMemoryError") && names.iter().any(|n| OUT_OF_MEMORY.has(n))
}

/// Whether the statement ignores the error. An assignment may be tested by later code, so it does not count as idle.
fn idle(ir: &Module, s: &Stmt, handler: &Handler) -> bool {
    match s {
        Stmt::Pass | Stmt::Continue | Stmt::Break => true,
        Stmt::Return(value) => value.is_none_or(|e| nothing(ir, e)),
        Stmt::AugAssign { target, value, .. } => {
            matches!(ir.expr(*value), Expr::Int(_)) && !is_asked(ir, *target)
        }
        Stmt::Expr(e) => match ir.expr(*e) {
            Expr::Str(_) | Expr::Ellipsis => true,
            Expr::Call(c) => {
                let call = ir.call(c);
                match ir.expr(call.func) {
                    // A message without the exception.
                    Expr::Var(Var::Unbound(n)) if n.as_str() == "print" => {
                        call.args.iter().all(|a| !may_tell(ir, a.value, handler))
                    }
                    Expr::Attr { name, .. } => {
                        matches!(name.as_str(), "empty_cache" | "collect") && call.args.is_empty()
                    }
                    _ => false,
                }
            }
            _ => false,
        },
        _ => false,
    }
}

/// Whether the expression may contain the exception or information about it.
fn may_tell(ir: &Module, e: ExprId, handler: &Handler) -> bool {
    let at = ir.span(e);
    ir.exprs.iter().zip(&ir.expr_spans).any(|(e, &s)| {
        at.contains(s)
            && match *e {
                Expr::Var(v) => Some(v) == handler.name,
                Expr::Call(_) => true,
                _ => false,
            }
    })
}

/// Whether a test in the file reads the counter.
fn is_asked(ir: &Module, count: ExprId) -> bool {
    let name = |e: ExprId| match ir.expr(e) {
        Expr::Attr { name, .. } => Some(name),
        _ => None,
    };
    let is_it = |e: ExprId| ir.expr(e) == ir.expr(count) || name(count).is_some() && name(e) == name(count);
    let within = |at: crate::span::Span| {
        ir.expr_spans
            .iter()
            .enumerate()
            .any(|(n, &s)| at.contains(s) && is_it(ExprId(u32::try_from(n).unwrap_or(u32::MAX))))
    };
    let compared =
        ir.exprs.iter().zip(&ir.expr_spans).any(|(e, &at)| matches!(e, Expr::Compare { .. }) && within(at));
    compared
        || ir.stmts.iter().any(|s| match s {
            Stmt::If { test, .. } | Stmt::While { test, .. } | Stmt::Assert { test, .. } => {
                within(ir.span(*test))
            }
            _ => false,
        })
}

/// Whether the expression is an empty result: `None`, `[]`, `{}`. `False` may be a result of its own.
fn nothing(ir: &Module, e: ExprId) -> bool {
    match ir.expr(e) {
        Expr::None => true,
        Expr::List(list) | Expr::Dict(list) | Expr::Tuple(list) => {
            ir.list(list).iter().all(|&x| nothing(ir, x))
        }
        _ => false,
    }
}
