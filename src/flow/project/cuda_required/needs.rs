//! Expressions that need CUDA whenever they are evaluated.

use super::refuses::{Refusal, Refuses};
use super::{MOVE, Uses};
use crate::finding::Code;
use crate::flow::query::call_sites::argument;
use crate::ir::{BinOp, Call, Expr, ExprId, FuncId, Import, Stmt, Var};
use crate::link::{ModIdx, Resolved, Target};
use crate::span::Place;
use crate::sym::Sym;
use crate::torch::{self, Accelerator, ResultRule, State, Without};
use crate::words::Words;

/// Functions that distribute a module or its inputs over GPUs. They raise if there are none.
static SPREADERS: Words = Words::of("spread over GPUs");

/// The rules that may report code that needs CUDA.
pub(super) const USES: &[Code] = &[Code(101), Code(106), Code(108), Code(305), Code(401)];

/// The maximum number of variables that a device is followed through.
const MAX_NAMES: u32 = 4;

impl Refuses<'_> {
    /// Whether evaluating the expression needs CUDA, regardless of its tests.
    pub(super) fn uses(&self, e: ExprId) -> bool {
        let ir = self.ir();
        let counts = match self.uses {
            Uses::None => false,
            Uses::Making => self.is_constructor(),
            Uses::All | Uses::OnTheWay => true,
        };
        let any = |list| ir.list(list).iter().any(|&x| self.uses(x));
        counts
            && match ir.expr(e) {
                Expr::Call(id) => {
                    let call = ir.call(id);
                    self.is_use(call) && !self.is_silenced(e, self.rules_of(call))
                        || self.calls_refusal(e)
                        || self.uses(call.func)
                        || call.args.iter().any(|a| self.uses(a.value))
                }
                Expr::Index { base, index } => self.uses(base) || self.uses(index),
                Expr::Attr { base, .. } | Expr::Unary { operand: base, .. } => self.uses(base),
                Expr::Binary { left, right, .. } | Expr::Compare { left, right, .. } => {
                    self.uses(left) || self.uses(right)
                }
                // Later operands may not be evaluated.
                Expr::And(list) | Expr::Or(list) => ir.list(list).first().is_some_and(|&x| self.uses(x)),
                Expr::IfElse(id) => self.uses(ir.if_else(id).test),
                Expr::Tuple(list) | Expr::List(list) | Expr::Dict(list) => any(list),
                _ => false,
            }
    }

    /// Whether a comment here or the settings for this file switch off one of these rules. A use that is not reported does not suppress
    /// reports about later uses.
    pub(super) fn is_silenced(&self, e: ExprId, rules: &[Code]) -> bool {
        let (silence, ir) = (&self.program.silence, self.ir());
        let place = || Place { file: ir.file, span: ir.span(e) };
        !silence.is_empty() && (silence.is_off(rules, ir.file) || silence.is_commented(rules, place()))
    }

    /// The rules that may report this use.
    fn rules_of(&self, call: Call<'_>) -> &'static [Code] {
        match self.program.resolve_expr(self.module, call.func) {
            Some(Resolved::External(path)) if is_legacy_type(path) => &[Code(106)],
            Some(Resolved::External(path)) if torch::GPU_GROUPS.contains(&path.as_str()) => &[Code(108)],
            _ if self.ir().function(self.func).class.is_some() => &[Code(101), Code(401), Code(305)],
            _ => &[Code(101), Code(401)],
        }
    }

    /// `x.cuda()`, `x.to("cuda")`, `torch.cuda.current_device()`
    fn is_use(&self, call: Call<'_>) -> bool {
        let ir = self.ir();
        if self.is_for_cuda_alone(call.func) {
            return self.uses.anywhere();
        }
        match (ir.expr(call.func), self.program.resolve_expr(self.module, call.func)) {
            (_, Some(Resolved::External(path)))
                if path.as_str().strip_prefix("torch.distributed.") == Some(torch::GROUP_MAKER) =>
            {
                let nccl = |e: ExprId| matches!(ir.expr(e), Expr::Str(s) if torch::starts_nccl(s.as_str()));
                self.uses.anywhere() && argument(call, 0, Sym::new("backend")).is_some_and(nccl)
            }
            // `torch.cuda.FloatTensor(3)`
            (_, Some(Resolved::External(path)))
                if is_legacy_type(path)
                    || SPREADERS.has(path.as_str())
                    || torch::GPU_GROUPS.contains(&path.as_str()) =>
            {
                self.uses.anywhere()
            }
            (_, Some(Resolved::External(path))) => {
                torch::call(path).and_then(|f| f.accelerator).is_some_and(|a| {
                    a.accelerator == Accelerator::Cuda
                        && a.without == Without::Raises
                        && !(a.none_is_harmless && (!self.uses.anywhere() || self.is_harmless(call)))
                        && !a.context
                })
            }
            (Expr::Attr { name, base }, None) if name.as_str() == MOVE => self.moves(base, name),
            (Expr::Attr { name, base }, None) if name.as_str() == "to" => {
                argument(call, 0, Sym::new("device")).is_some_and(|e| self.names_cuda(e, MAX_NAMES))
                    && self.moves(base, name)
            }
            _ => false,
        }
    }

    /// Whether the callee belongs to another library and exists for CUDA alone, including methods of an instance that is created here.
    fn is_for_cuda_alone(&self, callee: ExprId) -> bool {
        let ir = self.ir();
        let path = self.path_of(callee).or_else(|| match ir.expr(callee) {
            Expr::Attr { base, name } => match ir.expr(base) {
                Expr::Call(made) => Some(self.path_of(ir.call(made).func)?.dotted(name)),
                _ => None,
            },
            _ => None,
        });
        path.and_then(torch::call).is_some_and(|f| f.for_cuda_alone)
    }

    /// The dotted name of an expression that refers to code out of sight, or to code that its package only generates on import.
    fn path_of(&self, e: ExprId) -> Option<Sym> {
        let ir = self.ir();
        match self.program.resolve_expr(self.module, e) {
            Some(Resolved::External(path)) => Some(path),
            None => match ir.expr(e) {
                Expr::Var(Var::Local(slot) | Var::Global(slot)) => {
                    let is_it = |import: &&Import| {
                        import.level == 0
                            && matches!(import.target, Some(Var::Local(s) | Var::Global(s)) if s == slot)
                            && ir.variable_of(e) == import.name
                    };
                    ir.imports.iter().find(is_it).map(Import::whole)
                }
                _ => None,
            },
            Some(_) => None,
        }
    }

    /// Whether a statement in the function's own block divides by the number of GPUs: `rank % torch.cuda.device_count()`. Without CUDA,
    /// no call returns. This holds for callers only: code after the statement in the same function is reported separately.
    pub(super) fn divides_by_gpus(&self) -> bool {
        let ir = self.ir();
        for &s in ir.block(ir.function(self.func).body) {
            let value = match *ir.stmt(s) {
                Stmt::Assign { value, .. } | Stmt::Expr(value) | Stmt::Return(Some(value)) => Some(value),
                _ => None,
            };
            if value.is_some_and(|e| self.divides(e)) {
                return true;
            }
            if self.may_leave(s) {
                return false;
            }
        }
        false
    }

    fn divides(&self, e: ExprId) -> bool {
        let ir = self.ir();
        let parts = || ir.exprs_in(e).map(|n| ir.exprs[n]);
        let always = |x: Expr| {
            !matches!(x, Expr::Lambda(_) | Expr::IfElse(_) | Expr::And(_) | Expr::Or(_) | Expr::Comp(_))
        };
        let by_count = |x: Expr| match x {
            Expr::Binary { op: BinOp::Mod | BinOp::Div | BinOp::FloorDiv, right, .. } => {
                self.counts_gpus(right)
                    || self.func != FuncId(0) && self.only_value(right).is_some_and(|v| self.counts_gpus(v))
            }
            _ => false,
        };
        parts().any(by_count) && parts().all(always)
    }

    /// `torch.cuda.device_count()`
    fn counts_gpus(&self, e: ExprId) -> bool {
        let ir = self.ir();
        matches!(ir.expr(e), Expr::Call(id)
            if matches!(self.program.resolve_expr(self.module, ir.call(id).func),
                Some(Resolved::External(path)) if path.as_str() == "torch.cuda.device_count"))
    }

    /// `"cuda"`, `torch.device("cuda:0")`, or a variable with this as its only value.
    fn names_cuda(&self, e: ExprId, depth: u32) -> bool {
        let ir = self.ir();
        let Some(depth) = depth.checked_sub(1) else { return false };
        match ir.expr(e) {
            Expr::Str(text) => text.as_str().starts_with(MOVE) && !self.is_silenced(e, USES),
            Expr::Call(id) => {
                let call = ir.call(id);
                matches!(self.program.resolve_expr(self.module, call.func),
                    Some(Resolved::External(path)) if path.as_str() == "torch.device")
                    && call.args.first().is_some_and(|a| self.names_cuda(a.value, depth))
            }
            Expr::Var(Var::Local(slot)) if self.func != FuncId(0) => {
                let function = ir.function(self.func);
                let param = function.params.iter().any(|p| p.slot == slot);
                !param && self.only_value(e).is_some_and(|value| self.names_cuda(value, depth))
            }
            _ => false,
        }
    }

    /// The value of a function's variable, if it is assigned at one place only.
    fn only_value(&self, variable: ExprId) -> Option<ExprId> {
        let ir = self.ir();
        let mut set = ir.settings_in(variable, ir.stmts_of(ir.function(self.func)));
        let value = set.next()?.value;
        if set.next().is_some() { None } else { value }
    }

    /// Whether the device may be `None` or a negative number. A function that accepts these then does nothing.
    fn is_harmless(&self, call: Call<'_>) -> bool {
        let ir = self.ir();
        let number = |e: ExprId| match ir.expr(e) {
            Expr::Int(i) => i.0 >= 0,
            Expr::Call(id) => {
                matches!(ir.expr(ir.call(id).func), Expr::Var(Var::Unbound(name)) if name.as_str() == "int")
            }
            Expr::Binary { op: BinOp::Mod, .. } => true,
            _ => false,
        };
        call.args.first().is_none_or(|a| {
            let mut given = ir.settings_in(a.value, ir.stmts_of(ir.function(self.func)));
            !number(a.value) && !given.any(|s| s.value.is_some_and(number))
        })
    }

    /// Whether a call of a method with that name moves the receiver to CUDA.
    fn moves(&self, receiver: ExprId, name: Sym) -> bool {
        self.uses == Uses::Making || self.is_plain(name) && !self.is_weightless(receiver)
    }

    /// `nn.CrossEntropyLoss().cuda()` needs no device, because the module has neither parameters nor buffers (`Module._apply`). A loss
    /// can have weights, but rarely does.
    fn is_weightless(&self, receiver: ExprId) -> bool {
        let Expr::Call(id) = self.ir().expr(receiver) else { return false };
        let Some(Resolved::External(path)) = self.program.resolve_expr(self.module, self.ir().call(id).func)
        else {
            return false;
        };
        torch::module(path).is_some_and(|op| match op.state {
            State::No => !op.is_container(),
            State::Sometimes => op.name.as_str().ends_with("Loss"),
            State::Yes | State::Unknown => false,
        })
    }

    /// Whether all methods of that name are PyTorch's, or the project's own methods of that name need CUDA themselves.
    fn is_plain(&self, name: Sym) -> bool {
        let refuses = |at| self.known.get(at).is_some_and(|p| p.refusal == Some(Refusal::Always));
        let imported = |m: ModIdx| {
            let mut targets = self.program.get(self.module).targets.values();
            targets.any(|t| matches!(*t, Target::Module(at) | Target::Member(at, _) if at == m))
        };
        let counts = |m: ModIdx| !self.own.near || m == self.module || imported(m);
        self.own.methods.iter().all(|(n, at)| *n != name || refuses(at) || !counts(at.0))
    }
}

/// Tensor constructors that name CUDA.
fn is_legacy_type(path: Sym) -> bool {
    torch::function(path).is_some_and(|op| op.result == ResultRule::Cuda)
}
