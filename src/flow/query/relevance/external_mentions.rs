//! Which calls of external functions matter for devices.

use crate::flow::query::relevance::file_scan::{Scan, names_place};
use crate::ir::{ArgKind, Call, Expr, ExprId, FuncId, Module, Stmt, Var, Whole};
use crate::link::Resolved;
use crate::sym::Sym;
use crate::torch::{self, Kind, Returns, State, Without};
use crate::words::Words;

/// Functions whose effect depends on the device.
static DECIDES: Words = Words::of("depend on the machine");
/// Parts of the names of device indices.
static NUMBERS: Words = Words::of("device indices");

impl Scan<'_> {
    /// Whether the callee is `KINDS[name]`, for a table of module classes.
    pub(crate) fn is_of_modules(&self, callee: ExprId) -> bool {
        let Expr::Index { base, .. } = self.ir.expr(callee) else { return false };
        let Expr::Var(_) = self.ir.expr(base) else { return false };
        let Some((m, table)) = self.program.bound_to(self.module, base) else { return false };
        let linked = self.program.get(m);
        let (Expr::Dict(list) | Expr::List(list) | Expr::Tuple(list)) = linked.ir.expr(table) else {
            return false;
        };
        linked.ir.list(list).iter().any(|&e| {
            matches!(linked.ir.expr(e), Expr::Var(_) | Expr::Attr { .. })
                && matches!(self.program.resolve_expr(m, e), Some(Resolved::Class(key)) if self.is_module_class(key))
        })
    }

    /// Whether the expression, as an argument of `torch.device`, is a device that the caller cannot choose.
    fn is_place(&self, at: ExprId, e: ExprId) -> bool {
        match self.ir.expr(e) {
            Expr::Var(_) | Expr::Attr { .. } | Expr::Call(_) => self.is_index(at, e),
            Expr::Str(s) => names_place(s),
            _ => true,
        }
    }

    /// Whether the expression is a number that names a device.
    pub(crate) fn is_index(&self, at: ExprId, e: ExprId) -> bool {
        match self.ir.expr(e) {
            Expr::Int(_) | Expr::Binary { .. } => true,
            Expr::Attr { name, .. } => is_rank(name.as_str()),
            Expr::Var(var) => {
                let owner = self.owner(at);
                let function = self.ir.function(owner);
                let name = match var {
                    Var::Local(slot) => function.slots.get(slot as usize).copied(),
                    Var::Global(slot) => {
                        self.ir.functions.first().and_then(|f| f.slots.get(slot as usize)).copied()
                    }
                    Var::Unbound(name) => Some(name),
                    Var::Enclosing { .. } => return true,
                };
                let param = match var {
                    Var::Local(slot) => function.params.iter().find(|p| p.slot == slot),
                    _ => None,
                };
                let numeric = param.is_some_and(|p| {
                    p.default.is_some_and(|d| {
                        matches!(self.ir.expr(d), Expr::Int(_) | Expr::Float(_) | Expr::Unary { .. })
                    }) || p.annotation.is_some_and(
                        |a| matches!(self.ir.expr(a), Expr::Var(Var::Unbound(n)) if n.as_str() == "int"),
                    )
                });
                numeric || name.is_some_and(|n| is_rank(n.as_str()))
            }
            // `dist.get_rank()`
            Expr::Call(id) => self.ir.last_name(self.ir.call(id).func).is_some_and(|n| is_rank(n.as_str())),
            _ => false,
        }
    }

    /// `device.type == "gpu"`
    pub(crate) fn compares_type(&self, left: ExprId, right: ExprId) -> bool {
        [(left, right), (right, left)].into_iter().any(|(of, text)| {
            matches!(self.ir.expr(of), Expr::Attr { name, .. } if name.as_str() == "type")
                && matches!(self.ir.expr(text), Expr::Str(s) if crate::flow::query::type_names::is_no_device_type(s.as_str()))
        })
    }

    /// `x.device == "cuda"` or `"cpu" in x.device`, which treat a device as a string.
    pub(crate) fn takes_for_text(&self, left: ExprId, right: ExprId) -> bool {
        [(left, right), (right, left)].into_iter().any(|(of, text)| {
            matches!(self.ir.expr(of), Expr::Attr { name, .. } if name == self.names.device)
                && matches!(self.ir.expr(text), Expr::Str(s) if s.as_str() == "meta" || crate::flow::query::relevance::file_scan::names_place(s))
        })
    }

    /// `torch.autocast(x.device)`, which expects a device type.
    fn is_cast_for_device(&self, path: Sym, call: Call<'_>) -> bool {
        let device =
            |e: ExprId| matches!(self.ir.expr(e), Expr::Attr { name, .. } if name == self.names.device);
        torch::canonical(path).as_str() == "torch.autocast" && call.args.iter().any(|a| device(a.value))
    }

    /// `x.dtype`: a number type where a device belongs.
    pub(crate) fn is_type(&self, e: ExprId) -> bool {
        matches!(self.ir.expr(e), Expr::Attr { name, .. }
            if name.as_str() == "dtype" || crate::flow::query::type_names::is_number_type(name.as_str()))
    }

    pub(crate) fn external(&mut self, e: ExprId, path: Sym, call: Call<'_>) {
        if path.as_str().starts_with("builtins.") {
            return;
        }
        if self.is_cast_for_device(path, call) {
            self.own(e);
        }
        let seed = if DECIDES.has(path.as_str()) {
            true
        } else if let Some(module) = torch::module(path) {
            // A module without weights works on any device.
            let empty = match module.state {
                State::No => true,
                State::Sometimes => !may_have_state(module, call),
                State::Yes | State::Unknown => false,
            };
            let owner = self.owner(e);
            !empty && (!self.builds_module(owner) || self.is_of_moved_base(owner))
        } else if let Some(op) = torch::function(path) {
            self.is_decided_by_operator(e, op, call)
        } else if let Some(fact) = torch::call(path) {
            if fact.accelerator.is_some_and(|a| a.without == Without::Raises) {
                self.uses(e);
            }
            matches!(fact.returns, Returns::Cpu | Returns::CpuBatches(_) | Returns::Items)
        } else {
            let text = path.as_str();
            text == "torch.device" && call.args.iter().any(|a| self.is_place(e, a.value))
                || text.starts_with("torchvision.models.")
                || torch::base_class(path).is_some_and(|b| b.kind == torch::Base::Module)
        };
        if seed {
            self.seed(e);
        } else if path.as_str() == "torch.device" {
            self.hint(e);
        }
    }

    /// Whether a call of this operator decides a device. Also records other facts about the call.
    fn is_decided_by_operator(&mut self, e: ExprId, op: &torch::Op, call: Call<'_>) -> bool {
        let placed = op.accepts.device
            && call.args.iter().any(|a| {
                a.kind == ArgKind::DoubleStar
                    || a.kind == ArgKind::Keyword(self.names.device) && self.ir.expr(a.value) != Expr::None
            });
        let makes = matches!(op.kind, Kind::Factory | Kind::Distribution)
            || matches!(
                op.result,
                torch::ResultRule::Cpu | torch::ResultRule::Cuda | torch::ResultRule::Backend(_)
            );
        if placed && makes && self.is_beside(call) {
            let owner = self.owner(e);
            self.found.beside.insert(owner);
        }
        let large = placed && call.args.iter().any(|a| self.is_large(a.value));
        let demands = op.kind == Kind::CpuOnly || op.args.iter().any(|a| a.share == torch::Share::Cpu);
        // A tensor without dimensions can be combined with tensors on any device.
        // A tensor without dimensions can be combined with tensors on any device.
        if makes && !placed && has_no_dimensions(self.ir, call) {
            self.hint(e);
            return false;
        }
        if makes && !placed && self.is_of_number(call) {
            self.own(e);
            return false;
        }
        let open = !placed || large;
        makes && !self.is_registered(self.ir.span(e)) && open || demands
    }

    /// `torch.tensor(self.window)`, where the argument was passed to the function as a number.
    fn is_of_number(&self, call: Call<'_>) -> bool {
        let named = matches!(self.ir.expr(call.func), Expr::Attr { name, .. } if name.as_str() == "tensor");
        named
            && call.args.first().is_some_and(|a| a.kind == ArgKind::Positional && self.is_number(a.value, 0))
    }

    fn is_number(&self, e: ExprId, depth: u32) -> bool {
        match self.ir.expr(e) {
            Expr::Int(_) | Expr::Float(_) => depth > 0,
            Expr::Var(Var::Local(slot)) => {
                let function = self.ir.function(self.owner(e));
                function.params.iter().filter(|p| p.slot == slot).filter_map(|p| p.annotation).any(|a| {
                    matches!(self.ir.expr(a), Expr::Var(Var::Unbound(n)) if matches!(n.as_str(), "int" | "float"))
                })
            }
            // An attribute that this function has just assigned.
            Expr::Attr { name, .. } if depth == 0 && self.is_own_attribute(e) => {
                let body = self.ir.function(self.owner(e)).body;
                self.ir.block(body).iter().any(|&s| match self.ir.stmt(s) {
                    Stmt::Assign { targets, value } => {
                        let kept = |&t: &ExprId| {
                            self.is_own_attribute(t)
                                && matches!(self.ir.expr(t), Expr::Attr { name: n, .. } if n == name)
                        };
                        self.ir.list(*targets).iter().any(kept) && self.is_number(*value, 1)
                    }
                    _ => false,
                })
            }
            _ => false,
        }
    }

    /// Whether the expression is a parameter of the function.
    pub(crate) fn is_parameter(&self, owner: FuncId, e: ExprId) -> bool {
        matches!(self.ir.expr(e), Expr::Var(Var::Local(slot))
            if self.ir.function(owner).params.iter().any(|p| p.slot == slot))
    }

    /// `device=x.device`
    fn is_beside(&self, call: Call<'_>) -> bool {
        let device = self.names.device;
        call.args.iter().any(|a| {
            a.kind == ArgKind::Keyword(device)
                && matches!(self.ir.expr(a.value), Expr::Attr { name, .. } if name == device)
        })
    }

    pub(crate) fn is_large(&self, e: ExprId) -> bool {
        match self.ir.expr(e) {
            Expr::Int(Whole(i)) => i >= 512,
            Expr::Tuple(list) | Expr::List(list) => self.ir.list(list).iter().any(|&x| self.is_large(x)),
            // A product of constants.
            Expr::Binary { left, right, .. } => [left, right].iter().all(|&x| {
                matches!(self.ir.expr(x), Expr::Int(_) | Expr::Binary { .. } | Expr::Var(Var::Global(_)))
            }),
            _ => false,
        }
    }
}

/// `torch.rand([])`, but not `torch.tensor([])`
fn has_no_dimensions(ir: &Module, call: Call<'_>) -> bool {
    let empty = |e| matches!(ir.expr(e), Expr::Tuple(list) | Expr::List(list) if list.len == 0);
    let shape = call.args.first().filter(|a| a.kind == ArgKind::Positional);
    shape.is_some_and(|a| empty(a.value))
        && !ir.last_name(call.func).is_some_and(|n| n.as_str().ends_with("ensor"))
}

/// Whether an argument may give a module weights that it usually does not have: one for a tensor, or one that switches them on.
fn may_have_state(module: &torch::ModuleOp, call: Call<'_>) -> bool {
    call.args.iter().enumerate().any(|(at, a)| {
        let param = match a.kind {
            ArgKind::Positional => module.constructor.get(at),
            ArgKind::Keyword(name) => module.constructor.iter().find(|p| p.name == name),
            ArgKind::Star | ArgKind::DoubleStar => None,
        };
        param.is_none_or(|p| p.tensor || p.switch)
    })
}

/// Whether the name refers to a device index.
pub(crate) fn is_rank(name: &str) -> bool {
    NUMBERS.is_part_of(name) || name.ends_with("_id")
}
