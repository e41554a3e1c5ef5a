//! Tensors that are made on the host only to be moved.

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::event::Kind;
use crate::flow::domain::value::{Device, Host, Reason, Tensor, Value};
use crate::flow::machine::Interp;
use crate::ir::{ArgKind, Call, CmpOp, Expr, ExprId, FuncId, Function, Module, Stmt, StmtId, UnaryOp, Var};
use crate::link::{ModIdx, Resolved};
use crate::span::{Place, Span};
use crate::sym::Sym;

/// Factories that fill their tensor on its device. The others copy data that is on the host.
const FILLED_ON_DEVICE: &[&str] = &[
    "torch.zeros",
    "torch.ones",
    "torch.full",
    "torch.empty",
    "torch.rand",
    "torch.randn",
    "torch.randint",
    "torch.randperm",
    "torch.arange",
    "torch.linspace",
    "torch.logspace",
    "torch.eye",
];
/// Of these, the ones whose numbers depend on the device.
const RANDOM: &[&str] = &["torch.rand", "torch.randn", "torch.randint", "torch.randperm"];
/// Methods that give numbers made of the same ones alone, in another shape or type.
pub(crate) const OF_ITSELF: &[&str] = &[
    "view",
    "reshape",
    "unsqueeze",
    "squeeze",
    "expand",
    "repeat",
    "float",
    "long",
    "bool",
    "half",
    "double",
    "int",
    "flatten",
    "contiguous",
    "t",
    "exp",
    "log",
    "sqrt",
    "pow",
    "cos",
    "sin",
    "neg",
    "abs",
    "square",
    "flip",
    "add",
    "sub",
    "mul",
    "div",
    "type",
];

/// Methods that fill a tensor where it is.
const FILLS: &[&str] = &["fill_", "zero_", "clamp_", "mul_", "add_", "sub_", "div_"];
/// Of these, the ones whose numbers depend on the device.
const DRAWS: &[&str] = &["normal_", "uniform_", "random_", "bernoulli_", "exponential_", "log_normal_"];

impl Interp<'_> {
    /// `torch.zeros(n).to(device)`, or on two lines.
    pub(crate) fn check_created(&mut self, t: Tensor, target: Dd, e: ExprId, base: ExprId) {
        let Some((reason, made)) = self.host_reason(t) else { return };
        let counted =
            matches!(reason, Reason::Default | Reason::Host | Reason::Typed) && self.counts_up(base);
        if !counted && reason != Reason::Default {
            return;
        }
        // Of nothing there is nothing to copy.
        let kept =
            || self.is_cached() || self.fills_a_cache(e) || self.is_made_anew(e) || self.becomes_weight(e);
        if t.bytes == Some(0) || self.happens_once() || kept() {
            return;
        }
        let at_once = matches!(self.linked().ir.expr(base), Expr::Call(_));
        // What is first worked on, for a device that is only named, may be part of setting something up.
        if !at_once && (!self.on_every_call(target) || self.is_kept(e)) {
            return;
        }
        let value = self.assigned_before(base).unwrap_or(base);
        let every_call = self.on_every_call(target) && !self.is_kept(e);
        if counted
            || self.comes_from(value, made)
            || at_once && self.copies_array(base)
            || every_call && self.is_put_together(value)
        {
            self.tell_where(target, e, Kind::CreatedThenMoved { counted });
        }
    }

    /// Does it happen once, where the copy costs nothing that matters: while a file or an object is set up, in a test?
    pub(crate) fn happens_once(&self) -> bool {
        let here = self.linked().ir.function(self.here().func);
        if self.here().loops.is_empty() && joins_others(&self.linked().ir, here) {
            return true;
        }
        let (mut looped, mut trains, mut set_up) = (false, false, false);
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            let ir = &self.program.get(frame.module).ir;
            let function = ir.function(frame.func);
            let around = looped || !frame.loops.is_empty();
            trains |= around && calls_backward(ir, function);
            set_up |= self.sets_up(function.name, frame.module, frame.func);
            // The constructor's own loops go over what the object is made of, unless all the work is done there.
            looped = match function.name.as_str() {
                "__init__" => looped || trains,
                _ => around,
            };
            at = frame.caller;
        }
        let name = here.name;
        !looped && (set_up || self.here().func.0 == 0 || name.as_str().starts_with("test"))
    }

    /// Does the function run once for an object, or for a test?
    pub(crate) fn sets_up(&self, name: Sym, module: ModIdx, func: FuncId) -> bool {
        matches!(name.as_str(), "__init__" | "setUp" | "setup_method")
            || self.relevance.set_up.contains(module, func)
    }

    /// A variable that went to the device and comes back, and that nothing else has in the meantime or ever.
    pub(crate) fn check_returned(&mut self, t: Tensor, e: ExprId, base: ExprId) {
        let Some(value) = self.assigned_before(base) else { return };
        let went = self.place(value);
        let there: Vec<u32> = self
            .device_leaves(t.device)
            .into_iter()
            .filter(|&(_, d, origin)| {
                let chain = self.chain(origin);
                d != Device::Cpu
                    && chain.first().is_some_and(|s| s.reason == Reason::Moved && s.place == went)
            })
            .map(|(leaf, ..)| leaf)
            .collect();
        let ir = &self.linked().ir;
        let Expr::Call(c) = ir.expr(value) else { return };
        let Expr::Attr { base: from, .. } = ir.expr(ir.call(c).func) else { return };
        let function = ir.function(self.here().func).span;
        let whole = self.here().func.0 == 0;
        let var = ir.expr(base);
        let used =
            ir.exprs.iter().zip(&ir.expr_spans).any(|(x, &at)| {
                *x == var && (whole || function.contains(at)) && at.start > ir.span(base).start
            });
        // A batch, or what was made here: its numbers are on the host already.
        self.run.muted += 1;
        let source = self.eval(from);
        self.run.muted -= 1;
        let on_host = match source {
            Value::Tensor(s) => self.only_host(self.get_tensor(s).device),
            _ => false,
        };
        let renamed = ir.expr(from) == var;
        if used || there.is_empty() || !on_host && !renamed {
            return;
        }
        let here = self.d.where_leaf(t.device, &mut |p| there.contains(&p));
        let available = self.available(None);
        let bad = self.d.and(here, available);
        if let Some(bite) = self.bite(bad, false) {
            let back = self.place(e);
            self.emit(Kind::ThereAndBack { back }, went, bite, Vec::new());
        }
    }

    /// `x.cpu().to(device)`, of what is there already.
    pub(crate) fn check_round_trip(&mut self, target: Dd, e: ExprId, base: ExprId) {
        let ir = &self.linked().ir;
        let Expr::Call(c) = ir.expr(base) else { return };
        let Expr::Attr { base: from, name } = ir.expr(ir.call(c).func) else { return };
        if name.as_str() != "cpu" || !ir.call(c).args.is_empty() {
            return;
        }
        self.run.muted += 1;
        let source = self.eval(from);
        self.run.muted -= 1;
        let Value::Tensor(s) = source else { return };
        let s = self.get_tensor(s);
        if !s.certain {
            return;
        }
        let places = &self.t.places;
        let back = self.d.zip(s.device, target, &mut |x, y| {
            let (x, y) = (places.get(x).0, places.get(y).0);
            u32::from(x == y && matches!(x, Device::Cuda(_)))
        });
        let available = self.available(None);
        let Some(bad) = back.map(|back| self.d.and(back, available)) else { return };
        if let Some(bite) = self.bite(bad, false) {
            let (went, back) = (self.place(base), self.place(e));
            self.emit(Kind::ThereAndBack { back }, went, bite, Vec::new());
        }
    }

    /// In a loop, or where the data is.
    fn on_every_call(&self, target: Dd) -> bool {
        !self.here().loops.is_empty()
            || self
                .device_leaves(target)
                .iter()
                .any(|(_, d, _)| matches!(d, Device::Of(_) | Device::Cuda(_) | Device::CudaSome))
    }

    /// Is it made where something is missing, and then kept: `if key not in tables: tables[key] = …`?
    fn is_kept(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        let at = ir.span(e);
        let span = |n: usize| ir.stmt_span(StmtId(u32::try_from(n).unwrap_or(u32::MAX)));
        ir.stmts.iter().enumerate().any(|(n, s)| {
            let Stmt::If { test, .. } = *s else { return false };
            let missing = matches!(ir.expr(test), Expr::Compare { op: CmpOp::Is | CmpOp::NotIn, .. });
            missing
                && span(n).contains(at)
                && ir.stmts.iter().enumerate().any(|(m, inner)| {
                    span(n).contains(span(m))
                        && matches!(inner, Stmt::Assign { targets, .. } if ir.list(*targets).iter().any(|&t| {
                            matches!(ir.expr(t), Expr::Attr { .. } | Expr::Index { .. })
                        }))
                })
        })
    }

    /// Is it stored in one statement where a test has asked about the very place, or what holds it:
    /// `if len(state) == 0: state["mean"] = torch.zeros(n).to(x)`?
    fn fills_a_cache(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        let at = ir.span(e);
        let filled = ir.stmts.iter().filter_map(|s| match *s {
            Stmt::Assign { targets, value } if ir.span(value).contains(at) => Some(ir.list(targets)),
            _ => None,
        });
        let places: Vec<ExprId> = filled
            .flatten()
            .flat_map(|&t| match ir.expr(t) {
                Expr::Attr { .. } => [Some(t), None],
                Expr::Index { base, .. } => [Some(t), Some(base)],
                _ => [None, None],
            })
            .flatten()
            .collect();
        // What is asked for because it is there is added to: `if kwargs["mask"] is not None: kwargs["mask"] = …`.
        let lacks = |test: ExprId| {
            ir.exprs_in(test).map(|n| ExprId(u32::try_from(n).unwrap_or(u32::MAX))).any(|part| {
                let absent = match ir.expr(part) {
                    Expr::Compare { op, .. } => !matches!(op, CmpOp::IsNot | CmpOp::In),
                    Expr::Unary { op: UnaryOp::Not, .. } => true,
                    _ => false,
                };
                absent && places.iter().any(|&place| ir.asks_about(part, place))
            })
        };
        !places.is_empty()
            && ir
                .stmts
                .iter()
                .zip(&ir.stmt_spans)
                .any(|(s, span)| matches!(*s, Stmt::If { test, .. } if span.contains(at) && lacks(test)))
    }

    /// What a local variable was given last, if nothing has used it since and no loop has begun.
    fn assigned_before(&self, base: ExprId) -> Option<ExprId> {
        let ir = &self.linked().ir;
        let var @ Expr::Var(Var::Local(_)) = ir.expr(base) else { return None };
        let at = ir.span(base);
        let function = ir.function(self.here().func).span;
        let whole = self.here().func.0 == 0;
        let inside = |span: Span| whole || function.contains(span);
        let assigned = ir.stmts.iter().filter_map(|s| match s {
            Stmt::Assign { targets, value } => match ir.list(*targets) {
                [t] if ir.expr(*t) == var && inside(ir.span(*t)) && ir.span(*value).end <= at.start => {
                    Some(*value)
                }
                _ => None,
            },
            _ => None,
        });
        let value = assigned.max_by_key(|&v| ir.span(v).start)?;
        let made = ir.span(value);
        // The target of the assignment itself comes before its value.
        let used = ir.exprs.iter().zip(&ir.expr_spans).any(|(e, s)| {
            *e == var && s.start >= made.end && s.end <= at.start && !self.is_target_of(*s, base)
        });
        let looped = ir.stmts.iter().enumerate().any(|(n, s)| {
            let span = ir.stmt_span(StmtId(u32::try_from(n).unwrap_or(u32::MAX)));
            matches!(s, Stmt::For { .. } | Stmt::While { .. }) && span.contains(at) && !span.contains(made)
        });
        (!used && !looped).then_some(value)
    }

    /// Is a place the target of the assignment whose value an expression is in?
    fn is_target_of(&self, target: Span, value: ExprId) -> bool {
        let ir = &self.linked().ir;
        let at = ir.span(value);
        ir.stmts.iter().any(|s| match s {
            Stmt::Assign { targets, value } => {
                ir.span(*value).contains(at) && ir.list(*targets).iter().any(|&t| ir.span(t) == target)
            }
            _ => false,
        })
    }

    /// Is the value what the factory call at this place gave, and numbers, and nothing else?
    fn comes_from(&mut self, value: ExprId, made: Place) -> bool {
        let ir = &self.linked().ir;
        match ir.expr(value) {
            Expr::Call(c) => {
                let call = ir.call(c);
                if self.place(value) == made {
                    return self.fills_on_device(call);
                }
                match ir.expr(call.func) {
                    Expr::Attr { base, name }
                        if OF_ITSELF.contains(&name.as_str()) || self.fills(name.as_str()) =>
                    {
                        self.comes_from(base, made) && call.args.iter().all(|a| self.is_number(a.value))
                    }
                    _ => false,
                }
            }
            Expr::Binary { left, right, .. } => {
                self.comes_from(left, made) && self.is_number(right)
                    || self.comes_from(right, made) && self.is_number(left)
            }
            Expr::Unary { operand, .. } => self.comes_from(operand, made),
            Expr::Index { base, index } => {
                let plain =
                    matches!(ir.expr(index), Expr::Slice(_) | Expr::None | Expr::Ellipsis | Expr::Tuple(_));
                plain && self.comes_from(base, made)
            }
            _ => false,
        }
    }

    /// Does the method fill a tensor with what it could be filled with elsewhere?
    fn fills(&self, method: &str) -> bool {
        FILLS.contains(&method) || DRAWS.contains(&method) && !self.draws_the_same()
    }

    /// `torch.tensor(range(n))`: numbers that `torch.arange` would count up on the device, while here Python does.
    fn counts_up(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        let Expr::Call(id) = ir.expr(e) else { return false };
        let (call, module) = (ir.call(id), self.here().module);
        let lists = matches!(self.program.resolve_expr(module, call.func),
            Some(Resolved::External(path)) if super::needless_transfers::LISTING.contains(&crate::torch::canonical(path).as_str()));
        let only = |call: Call<'_>| match call.args {
            [arg, ..] if arg.kind == ArgKind::Positional => Some(arg.value),
            _ => None,
        };
        let builtin = |e: ExprId, name: &str| match ir.expr(e) {
            Expr::Call(id) if ir.expr(ir.call(id).func) == Expr::Var(Var::Unbound(Sym::new(name))) => {
                Some(ir.call(id))
            }
            _ => None,
        };
        let placed = call
            .args
            .iter()
            .any(|a| matches!(a.kind, ArgKind::Keyword(k) if matches!(k.as_str(), "device" | "pin_memory")));
        let Some(first) = only(call).filter(|_| lists && !placed) else { return false };
        let numbers = builtin(first, "list").and_then(only).unwrap_or(first);
        builtin(numbers, "range").is_some()
    }

    /// `torch.tensor(array)` copies the array on the host first. With `device=`, it goes to the device right away; lists and
    /// numbers are put together on the host either way.
    fn copies_array(&mut self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        let Expr::Call(id) = ir.expr(e) else { return false };
        let call = ir.call(id);
        let Some(Resolved::External(path)) = self.program.resolve_expr(self.here().module, call.func) else {
            return false;
        };
        let keyword = |name: &str| {
            call.args.iter().any(|a| match a.kind {
                ArgKind::Keyword(k) => k.as_str() == name,
                kind => kind == ArgKind::DoubleStar,
            })
        };
        if crate::torch::canonical(path).as_str() != "torch.tensor"
            || keyword("device")
            || keyword("pin_memory")
        {
            return false;
        }
        let Some(first) = call.args.first().filter(|a| a.kind == ArgKind::Positional) else { return false };
        self.run.muted += 1;
        let v = self.eval(first.value);
        self.run.muted -= 1;
        v == Value::Host(Host::Array)
    }

    /// As far as anybody can see, it is no tensor or array of the host.
    pub(crate) fn is_number(&mut self, e: ExprId) -> bool {
        self.run.muted += 1;
        let v = self.eval(e);
        self.run.muted -= 1;
        match v {
            Value::Tensor(_) | Value::Host(Host::Array | Host::Doubles | Host::Numbers) => false,
            Value::Outer(o) => !self.is_tensorish(o),
            _ => true,
        }
    }

    /// Is it a factory that could fill the tensor elsewhere just as well?
    pub(crate) fn fills_on_device(&self, call: Call<'_>) -> bool {
        let Some(Resolved::External(path)) = self.program.resolve_expr(self.here().module, call.func) else {
            return false;
        };
        let text = crate::torch::canonical(path).as_str();
        let placed = call.args.iter().any(|a| match a.kind {
            ArgKind::Keyword(k) => {
                matches!(k.as_str(), "device" | "generator" | "pin_memory" | "out" | "requires_grad")
            }
            ArgKind::DoubleStar => true,
            _ => false,
        });
        FILLED_ON_DEVICE.contains(&text) && !placed && !(RANDOM.contains(&text) && self.draws_the_same())
    }

    /// Who wants the same numbers everywhere does not draw new ones in every round.
    fn draws_the_same(&self) -> bool {
        self.here().loops.is_empty() && self.seeds()
    }

    /// Does the file want the same random numbers everywhere?
    fn seeds(&self) -> bool {
        self.linked().ir.attributes.iter().any(|name| {
            matches!(name.as_str(), "manual_seed" | "manual_seed_all" | "seed_everything" | "set_seed")
        })
    }
}

/// Does the function make the process one of several? A process does that once.
fn joins_others(ir: &Module, function: &Function) -> bool {
    let joins = |e: &Expr| matches!(e, Expr::Attr { name, .. } if name.as_str() == crate::torch::GROUP_MAKER);
    function.parent.is_some() && ir.exprs[ir.exprs_of(function)].iter().any(joins)
}

/// Does the function train something?
fn calls_backward(ir: &Module, function: &Function) -> bool {
    let backward = |e: &Expr| matches!(e, Expr::Attr { name, .. } if name.as_str() == "backward");
    ir.exprs[ir.exprs_of(function)].iter().any(backward)
}
