//! How the program makes a tensor on the host, and whether a loop makes the same tensor again.

use crate::flow::domain::value::{Host, Value};
use crate::flow::machine::Interp;
use crate::flow::observers::transfers::host_creation::OF_ITSELF;
use crate::ir::{ArgKind, Call, CmpOp, Expr, ExprId, Function, Module, Stmt, StmtId, UnaryOp, Var};
use crate::link::Resolved;
use crate::span::{Place, Span};
use crate::sym::Sym;
use crate::words::Words;

/// Factories that fill their tensor on its device. All other factories copy data from the host.
static FILLED_ON_DEVICE: Words = Words::of("factories that fill on the device");
/// The factories among these whose numbers depend on the device.
static RANDOM: Words = Words::of("random factories");
/// Methods that fill a tensor on its device.
static FILLS: Words = Words::of("fill a tensor");
/// More methods that fill a tensor. Their numbers depend on the device.
static DRAWS: Words = Words::of("fill a tensor at random");

/// Arguments with which a factory decides more than the size and type of its tensor.
static PLACES: Words = Words::of("arguments that bind a factory");

/// Functions that set a random seed.
static SEEDS: Words = Words::of("set a random seed");

impl Interp<'_> {
    /// Does a statement store the tensor because a test has found that the target, or the container of the target, has none:
    /// `if len(state) == 0: state["mean"] = torch.zeros(n).to(x)`?
    pub(crate) fn fills_a_cache(&self, e: ExprId) -> bool {
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
        // A test that the value exists is no such test: `if kwargs["mask"] is not None: kwargs["mask"] = …`.
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

    /// The last value that was assigned to a local variable, unless other code has used it since or a loop has begun.
    pub(crate) fn assigned_before(&self, base: ExprId) -> Option<ExprId> {
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
        // The target of the assignment comes before its value and is no use.
        let used = ir.exprs.iter().zip(&ir.expr_spans).any(|(e, s)| {
            *e == var && s.start >= made.end && s.end <= at.start && !self.is_target_of(*s, base)
        });
        let looped = ir.stmts.iter().enumerate().any(|(n, s)| {
            let span = ir.stmt_span(StmtId(u32::try_from(n).unwrap_or(u32::MAX)));
            matches!(s, Stmt::For { .. } | Stmt::While { .. }) && span.contains(at) && !span.contains(made)
        });
        (!used && !looped).then_some(value)
    }

    /// Is the expression at `target` the target of the assignment whose value contains `value`?
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

    /// Is the value made of nothing but the result of the factory call at this place, and of numbers?
    pub(crate) fn comes_from(&mut self, value: ExprId, made: Place) -> bool {
        let ir = &self.linked().ir;
        match ir.expr(value) {
            Expr::Call(c) => {
                let call = ir.call(c);
                if self.place(value) == made {
                    return self.fills_on_device(call);
                }
                match ir.expr(call.func) {
                    Expr::Attr { base, name }
                        if OF_ITSELF.has(name.as_str()) || self.fills(name.as_str()) =>
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

    /// Does the method fill a tensor with values that it could also have on another device?
    fn fills(&self, method: &str) -> bool {
        FILLS.has(method) || DRAWS.has(method) && !self.draws_the_same()
    }

    /// `torch.tensor(range(n))`: Python counts the numbers up, while `torch.arange` would count on the device.
    pub(crate) fn counts_up(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        let Expr::Call(id) = ir.expr(e) else { return false };
        let (call, module) = (ir.call(id), self.here().module);
        let lists = matches!(self.program.resolve_expr(module, call.func),
            Some(Resolved::External(path)) if crate::flow::observers::transfers::needless::LISTING.has(crate::torch::canonical(path).as_str()));
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

    /// Whether `torch.tensor(array)` makes a copy on the host that `device=` would avoid. PyTorch always builds tensors
    /// from lists and numbers on the host.
    pub(crate) fn copies_array(&mut self, e: ExprId) -> bool {
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

    /// Whether the expression is, as far as the analysis knows, neither a tensor nor an array on the host.
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

    /// Is it a call of a factory that could also fill the tensor on another device?
    pub(crate) fn fills_on_device(&self, call: Call<'_>) -> bool {
        let Some(Resolved::External(path)) = self.program.resolve_expr(self.here().module, call.func) else {
            return false;
        };
        let text = crate::torch::canonical(path).as_str();
        let placed = call.args.iter().any(|a| match a.kind {
            ArgKind::Keyword(k) => PLACES.has(k.as_str()),
            ArgKind::DoubleStar => true,
            _ => false,
        });
        FILLED_ON_DEVICE.has(text) && !placed && !(RANDOM.has(text) && self.draws_the_same())
    }

    /// Does the code want the same random numbers on every device? Code in a loop draws new ones in every round.
    fn draws_the_same(&self) -> bool {
        self.here().loops.is_empty() && self.seeds()
    }

    /// Does the file set a random seed?
    fn seeds(&self) -> bool {
        self.linked().ir.attributes.iter().any(|name| SEEDS.has(name.as_str()))
    }
}

/// Does the function make the process a member of a process group? A process does that once.
pub(crate) fn joins_others(ir: &Module, function: &Function) -> bool {
    let joins = |e: &Expr| matches!(e, Expr::Attr { name, .. } if name.as_str() == crate::torch::GROUP_MAKER);
    function.parent.is_some() && ir.exprs[ir.exprs_of(function)].iter().any(joins)
}

/// Does the function train a model?
pub(crate) fn calls_backward(ir: &Module, function: &Function) -> bool {
    let backward = |e: &Expr| matches!(e, Expr::Attr { name, .. } if name.as_str() == "backward");
    ir.exprs[ir.exprs_of(function)].iter().any(backward)
}
