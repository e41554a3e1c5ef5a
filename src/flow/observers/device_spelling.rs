//! Devices as values: strings that name none, comparisons that never hold, modules without a device.

use crate::flow::domain::diagram::{Cond, TRUE};
use crate::flow::domain::event::{Compared, Kind};
use crate::flow::domain::value::{Device, ObjId, OuterKey, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::frame::ObjKind;
use crate::ir::{CmpOp, Expr, ExprId, FuncKind, IfElse, Module, Param, Stmt, Var};
use crate::link::Resolved;
use crate::sym::Sym;

/// What PyTorch accepts in front of the colon.
const TYPES: &[&str] = &["cpu", "cuda", "mps", "xpu", "hpu", "xla", "meta", "ipu", "npu", "mtia"];
/// What people write instead. Other names may be those of a plug-in.
const MISTAKES: &[&str] = &[
    "gpu",
    "gpus",
    "tpu",
    "nvidia",
    "rocm",
    "amd",
    "metal",
    "auto",
    "host",
    "accelerator",
    "cuda:cuda",
    "cuda:cpu",
];

/// Does `torch.device(text)` raise, whatever is installed?
fn is_invalid(text: &str) -> bool {
    if let Some((kind, index)) = text.split_once(':')
        && TYPES.contains(&kind)
    {
        return index.is_empty() || !index.bytes().all(|b| b.is_ascii_digit());
    }
    let lower = text.to_ascii_lowercase();
    let kind = lower.split(':').next().unwrap_or_default();
    let stem = kind.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '_' | '-' | ' '));
    !TYPES.contains(&text) && TYPES.contains(&stem)
        || MISTAKES.contains(&kind)
        || crate::flow::query::type_names::is_misspelt(kind)
}

/// Do a parameter's default or annotation say that it may be a string?
fn takes_text(ir: &Module, p: &Param) -> bool {
    let of_text = |span: crate::span::Span| {
        ir.exprs.iter().zip(&ir.expr_spans).any(|(e, &at)| {
            span.contains(at)
                && match *e {
                    Expr::Var(Var::Unbound(n)) => n.as_str() == "str",
                    // An annotation as a text.
                    Expr::Str(s) => s.as_str().contains("str"),
                    _ => false,
                }
        })
    };
    p.default.is_some_and(|d| matches!(ir.expr(d), Expr::Str(_)))
        || p.annotation.is_some_and(|a| of_text(ir.span(a)))
}

impl Interp<'_> {
    /// `torch.supa.…` in the same file: a plug-in brings the name.
    fn uses_backend(&self, device: &str) -> bool {
        let kind = device.split(':').next().unwrap_or_default();
        let module = self.here().module;
        if TYPES.contains(&kind) {
            return false;
        }
        self.linked().ir.exprs.iter().any(|e| match *e {
            Expr::Attr { base, name } if name.as_str() == kind => {
                matches!(self.program.resolve_expr(module, base), Some(Resolved::External(p)) if p.as_str() == "torch")
            }
            _ => false,
        })
    }

    /// `is_supa_available()` in the same file: who asks for it by its name may have a plug-in.
    fn is_asked_for(&self, device: &str) -> bool {
        let kind = device.split(':').next().unwrap_or_default();
        let asks = |name: Sym| {
            let text = name.as_str();
            text.contains("available") && text.split('_').any(|word| word == kind)
        };
        let ir = &self.linked().ir;
        let named = ir.functions.first().is_some_and(|f| f.slots.iter().any(|&name| asks(name)));
        named || ir.attributes.iter().any(|&name| asks(name))
    }

    /// A string is used where PyTorch wants a device.
    pub(crate) fn check_device_string(&mut self, v: Value, e: ExprId) {
        self.check_device_strings(v, TRUE, e);
    }

    /// The same of each alternative, where it is that one: what a test before has dealt with is none of them.
    fn check_device_strings(&mut self, v: Value, when: Cond, e: ExprId) {
        match v {
            Value::Str(s, _) => {
                let plugged = || self.uses_backend(s.as_str()) || self.is_asked_for(s.as_str());
                if is_invalid(s.as_str()) && self.is_written(s) && !plugged() {
                    self.tell_invalid_where(s.as_str(), when, e);
                }
            }
            Value::Choice(d) => {
                let mut leaves = Vec::new();
                self.d.leaves(d, &mut leaves);
                for leaf in leaves {
                    let here = self.d.where_leaf(d, &mut |p| p == leaf);
                    let here = self.d.and(when, here);
                    let v = *self.t.values.get(leaf);
                    self.check_device_strings(v, here, e);
                }
            }
            _ => {}
        }
    }

    /// Does the string stand in the source as it is? One that was put together may be there only on paths that the
    /// program's own checks exclude.
    fn is_written(&self, s: Sym) -> bool {
        [self.entry, self.here().module].into_iter().any(|m| self.program.get(m).ir.has_string(s))
    }

    /// `text` names no device; without a text, it is the type of numbers.
    pub(crate) fn tell_invalid(&mut self, text: &str, e: ExprId) {
        self.tell_invalid_where(text, TRUE, e);
    }

    fn tell_invalid_where(&mut self, text: &str, when: Cond, e: ExprId) {
        if let Some(bite) = self.bite(when, false) {
            let place = self.place(e);
            self.emit(Kind::InvalidDevice { text: text.to_owned() }, place, bite, Vec::new());
        }
    }

    /// `f"cuda:{device}"`, where `device` is one already.
    pub(crate) fn check_device_in_string(&mut self, v: Value, e: ExprId) -> bool {
        let device = match v {
            // Its number is what belongs there.
            Value::Device(d) if self.is_device_number(d) => false,
            Value::Device(d) => self.device_leaves(d).iter().any(|(_, d, _)| {
                matches!(d, Device::Cpu | Device::Cuda(_) | Device::CudaSome | Device::Other(_))
            }),
            Value::Choice(_) | Value::Str(..) => self
                .values_of(v)
                .iter()
                .all(|v| matches!(v, Value::Str(s, _) if crate::flow::models::devices::from_values::parse_device(s.as_str()).is_some())),
            // An option, of which that is the default.
            Value::Outer(o) => matches!(self.t.get_outer(o).default, Some(Value::Str(s, _))
                if crate::flow::models::devices::from_values::parse_device(s.as_str()).is_some()),
            _ => false,
        };
        if device {
            self.tell_invalid("cuda:cuda", e);
        }
        device
    }

    /// `x.device == "cuda"`: a `torch.device` equals no string, and a tensor's has an index. What is told of is taken as it is
    /// meant; gives whether they are unequal all the same: where only this caller gives a device, and others a string.
    pub(crate) fn check_device_compare(
        &mut self,
        op: CmpOp,
        left: (Value, ExprId),
        right: (Value, ExprId),
    ) -> bool {
        if !matches!(op, CmpOp::Eq | CmpOp::NotEq) || self.check_type_compare(op, left, right) {
            return false;
        }
        for ((device, at), (other, written)) in [(left, right), (right, left)] {
            if op == CmpOp::Eq && !self.is_bare_cuda(written) && self.compares_with_bare(device, other, at) {
                return false;
            }
            let text = match other {
                Value::Str(s, _)
                    if crate::flow::models::devices::from_values::parse_device(s.as_str()).is_some()
                        && self.is_text_here(written) =>
                {
                    s.as_str().to_owned()
                }
                Value::Device(_) if self.is_bare_cuda(written) => "torch.device(\"cuda\")".to_owned(),
                _ => continue,
            };
            let string = matches!(other, Value::Str(..));
            let indexed = !string && self.is_indexed(device) && !self.is_given_by_caller(at);
            let place = self.place(at);
            let mut certain = match device {
                Value::Choice(_) | Value::Outer(_) => string && self.is_no_text(device, at),
                _ => false,
            };
            if !certain && string && self.may_be_text(device, at) {
                self.observed.texts.insert(place);
                if matches!(device, Value::Device(d) if !self.is_text(d)) {
                    return true;
                }
                continue;
            }
            if matches!(device, Value::Device(_)) {
                certain =
                    string && self.is_known_device(device) || indexed || self.is_device_object(at, string);
            }
            if self.run.muted > 0 || !certain {
                continue;
            }
            let how = match (string, indexed) {
                (true, _) => Compared::Text,
                (false, true) => Compared::Indexed,
                (false, false) => Compared::Tensors,
            };
            self.tell_compared(at, text, how, TRUE);
            return false;
        }
        false
    }

    /// `differ`: where the two are never equal.
    pub(crate) fn tell_compared(&mut self, at: ExprId, with: String, how: Compared, differ: Cond) {
        if let Some(bite) = self.bite(differ, false) {
            let place = self.place(at);
            self.emit(Kind::DeviceCompared { with, how }, place, bite, Vec::new());
        }
    }

    /// Is the value a `torch.device` in every world?
    pub(crate) fn is_known_device(&self, v: Value) -> bool {
        let Value::Device(d) = v else { return false };
        let known = |d| {
            matches!(d, Device::Cpu | Device::Cuda(_) | Device::CudaSome | Device::Meta | Device::Other(_))
        };
        !self.is_text(d) && self.device_leaves(d).into_iter().all(|(_, d, _)| known(d))
    }

    /// Is the value, here or for another caller, perhaps a string?
    pub(crate) fn may_be_text(&self, v: Value, at: ExprId) -> bool {
        let text = |v: Value| match v {
            Value::Str(..) | Value::Host(crate::flow::domain::value::Host::Text) => true,
            Value::Device(d) => self.is_text(d),
            Value::Outer(o) => match self.t.get_outer(o).key {
                OuterKey::Param { module, func, index } => {
                    let ir = &self.program.get(module).ir;
                    ir.function(func).params.get(usize::from(index)).is_some_and(|p| takes_text(ir, p))
                }
                _ => matches!(self.t.get_outer(o).default, Some(Value::Str(..))),
            },
            _ => false,
        };
        self.values_of(v).into_iter().any(text) || self.is_declared_text(at)
    }

    /// Does a parameter of that name, of the function or of the object's constructor, take strings?
    fn is_declared_text(&self, at: ExprId) -> bool {
        let ir = &self.linked().ir;
        match ir.expr(at) {
            Expr::Var(var @ Var::Local(slot)) => {
                let param = ir.function(self.here().func).params.iter().find(|p| p.slot == slot);
                param.is_some_and(|p| takes_text(ir, p) || self.is_one_of_several(var))
            }
            Expr::Attr { name, .. } => self.here().class.is_some_and(|class| {
                self.program.find_method(class, self.known.init).is_some_and(|(m, f)| {
                    let ir = &self.program.get(m).ir;
                    ir.function(f).params.iter().any(|p| p.name == name && takes_text(ir, p))
                })
            }),
            _ => false,
        }
    }

    /// Does the function compare the variable with a device as well, or with a string that names none?
    fn is_one_of_several(&self, var: Var) -> bool {
        let ir = &self.linked().ir;
        let exprs = &ir.function(self.here().func).exprs;
        let other = |e: ExprId| match ir.expr(e) {
            Expr::Str(s) => crate::flow::models::devices::from_values::parse_device(s.as_str()).is_none(),
            _ => self.is_device_call(e),
        };
        (exprs.start..exprs.end).map(ExprId).any(|e| match ir.expr(e) {
            Expr::Compare { left, right, .. } => {
                ir.expr(left) == Expr::Var(var) && other(right)
                    || ir.expr(right) == Expr::Var(var) && other(left)
            }
            _ => false,
        })
    }

    /// `torch.device("cuda")`, written there.
    fn is_bare_cuda(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        let Expr::Call(c) = ir.expr(e) else { return false };
        let call = ir.call(c);
        self.is_device_call(e)
            && matches!(call.args, [a] if matches!(ir.expr(a.value), Expr::Str(s) if s.as_str() == "cuda"))
    }

    fn is_device_call(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        match ir.expr(e) {
            Expr::Call(c) => matches!(
                self.program.resolve_expr(self.here().module, ir.call(c).func),
                Some(Resolved::External(p))
                    if matches!(p.as_str(), "torch.device" | "torch.accelerator.current_accelerator")
            ),
            Expr::IfElse(id) => {
                let IfElse { then, orelse, .. } = ir.if_else(id);
                self.is_device_call(then) && self.is_device_call(orelse)
            }
            _ => false,
        }
    }

    /// Is the expression certainly a `torch.device` (a tensor's one, if `any` is false)?
    pub(crate) fn is_device_object(&mut self, e: ExprId, any: bool) -> bool {
        match self.linked().ir.expr(e) {
            Expr::Attr { base, name } if name == self.known.device => {
                if self.is_device_of_parameter(e) || self.is_of_forwards_input(base) {
                    return true;
                }
                self.run.muted += 1;
                let v = self.eval(base);
                self.run.muted -= 1;
                match v {
                    Value::Tensor(t) => self.get_tensor(t).certain,
                    Value::Outer(o) => self.t.get_outer(o).tensor,
                    _ => false,
                }
            }
            Expr::Call(_) => any && self.is_device_call(e),
            Expr::Var(var) => any && !self.is_parameter(var) && self.holds_device_object(var),
            _ => false,
        }
    }

    /// Is it a parameter, or `torch.device(…)` in its place, that the function has asked whether it is a text, and
    /// that is none here?
    fn is_no_text(&mut self, v: Value, at: ExprId) -> bool {
        let Expr::Var(var) = self.linked().ir.expr(at) else { return false };
        if !self.is_parameter(var) || !self.holds_device_object(var) {
            return false;
        }
        let text = Value::External(Sym::new("builtins.str"));
        let leaves = match v {
            Value::Choice(d) => {
                let mut leaves = Vec::new();
                self.d.leaves(d, &mut leaves);
                leaves.into_iter().map(|leaf| (*self.t.values.get(leaf), Some((d, leaf)))).collect()
            }
            v => vec![(v, None)],
        };
        leaves.into_iter().all(|(v, when)| match v {
            Value::Device(_) => true,
            Value::Outer(o) => {
                let here = when.map_or(TRUE, |(d, leaf)| self.d.where_leaf(d, &mut |p| p == leaf));
                let here = self.d.and(self.path, here);
                let asked = self
                    .tests
                    .atoms
                    .get(&crate::flow::machine::Test::Compare(20, Value::Outer(o), text))
                    .copied();
                asked.is_some_and(|atom| {
                    let is_text = self.d.atom(atom);
                    let other = self.d.not(is_text);
                    self.d.implies(here, other)
                })
            }
            _ => false,
        })
    }

    pub(crate) fn is_parameter(&self, var: Var) -> bool {
        let function = self.linked().ir.function(self.here().func);
        matches!(var, Var::Local(slot) if function.params.iter().any(|p| p.slot == slot))
    }

    /// Is it what this caller gives, where others may give another device?
    fn is_given_by_caller(&self, e: ExprId) -> bool {
        matches!(self.linked().ir.expr(e), Expr::Var(var) if self.is_parameter(var))
            && self.here().site.is_some()
    }

    /// Has the variable been given nothing but `torch.device(…)`, after what it was first?
    fn holds_device_object(&self, var: Var) -> bool {
        let ir = &self.linked().ir;
        let function = ir.function(self.here().func);
        let module_level = self.here().func.0 == 0;
        let mut any = false;
        for (n, s) in ir.stmts.iter().enumerate() {
            let at = ir.stmt_span(crate::ir::StmtId(u32::try_from(n).unwrap_or(u32::MAX)));
            let Stmt::Assign { targets, value } = s else { continue };
            if !module_level && !function.span.contains(at) {
                continue;
            }
            let inner = ir.functions.iter().any(|f| {
                f.parent.is_some()
                    && f.span != function.span
                    && f.span.contains(at)
                    && f.span.start >= function.span.start
            });
            if inner || !ir.list(*targets).iter().any(|&t| ir.expr(t) == Expr::Var(var)) {
                continue;
            }
            let device = match ir.expr(*value) {
                // `device or torch.device("cpu")`
                Expr::Or(list) => {
                    ir.list(list).iter().all(|&x| ir.expr(x) == Expr::Var(var) || self.is_device_call(x))
                }
                _ => self.is_device_call(*value),
            };
            if !device {
                return false;
            }
            any = true;
        }
        any && matches!(var, Var::Local(_))
    }

    /// `model.device` of an `nn.Module` that has none.
    pub(crate) fn check_module_device(&mut self, id: ObjId, e: ExprId) -> bool {
        let known = match self.obj(id).kind {
            ObjKind::ForeignModule(Some(_)) => true,
            ObjKind::List { module } => module,
            ObjKind::Module => self.obj(id).class.is_some_and(|k| self.defines_no_device(k)),
            _ => false,
        };
        // What a method reads of its own object, a subclass or whoever made it may have set.
        if !known || self.obj(id).outer.is_some() || self.in_module() || self.asked_whether() {
            return false;
        }
        // `DistributedDataParallel` has one (torch/nn/parallel/distributed.py), and stands for what it wraps.
        let wrapped =
            self.modules.wraps.get(&id).map_or(crate::flow::domain::diagram::FALSE, |wraps| wraps[1]);
        let plain = self.d.not(wrapped);
        let Some(bite) = self.bite(plain, false) else { return false };
        let place = self.place(e);
        self.emit(Kind::NoDevice, place, bite, Vec::new());
        true
    }

    fn defines_no_device(&self, key: crate::link::ClassKey) -> bool {
        let info = self.program.class(key);
        let sees = |name: &str| self.program.find_method(key, Sym::new(name)).is_some();
        let pure = info
            .externals
            .iter()
            .all(|&p| crate::torch::module(p).is_some() || p.as_str() == "torch.nn.Module");
        pure && !info.unknown_base
            && !info.externals.is_empty()
            && !sees("__getattr__")
            && !sees("__getattribute__")
            && info.mro.iter().all(|&k| !self.sets_device(k.module, key))
            && !self.sets_device(self.here().module, key)
            && !self.sets_device(self.entry, key)
    }

    /// Does its class set an attribute `device` of its own?
    pub(crate) fn has_own_device(&self, id: crate::flow::domain::value::ObjId) -> bool {
        self.obj(id)
            .class
            .is_some_and(|key| self.program.class(key).mro.iter().any(|k| self.sets_device(k.module, key)))
    }

    /// Does the file set an attribute `device` of what may be an object of the class, by name or by a name that is not known?
    fn sets_device(&self, module: crate::link::ModIdx, key: crate::link::ClassKey) -> bool {
        let ir = &self.program.get(module).ir;
        // `self.device = …` sets that of the class that it is in.
        let of_another = |base: ExprId| {
            let function = ir.function(ir.function_around(base));
            let own = ir.expr(base) == Expr::Var(Var::Local(0)) && function.kind == FuncKind::Function;
            function.class.filter(|_| own).is_some_and(|class| {
                !self.program.class(key).mro.contains(&crate::link::ClassKey { module, class })
            })
        };
        let is_device = |t: ExprId| matches!(ir.expr(t), Expr::Attr { base, name } if name == self.known.device && !of_another(base));
        let sets = ir.stmts.iter().any(|s| match s {
            Stmt::Assign { targets, .. } => ir.list(*targets).iter().any(|&t| is_device(t)),
            Stmt::AnnAssign { target, .. } => is_device(*target),
            _ => false,
        });
        sets || ir.exprs.iter().any(|e| {
            matches!(e, Expr::Var(Var::Unbound(n)) if n.as_str() == "setattr")
                || matches!(e, Expr::Attr { name, .. } if name.as_str() == "__dict__")
        })
    }

    /// Does the function ask whether there is such an attribute, or catch that there is none?
    fn asked_whether(&self) -> bool {
        let ir = &self.linked().ir;
        let function = ir.function(self.here().func).span;
        let whole = self.here().func.0 == 0;
        self.here().tries.iter().any(|t| t.catches_missing)
            || ir.exprs.iter().zip(&ir.expr_spans).any(|(e, &at)| {
                (whole || function.contains(at))
                    && matches!(e, Expr::Var(Var::Unbound(n)) if matches!(n.as_str(), "hasattr" | "getattr"))
            })
    }

    /// A CPU tensor is given to a collective of an NCCL group, or of one that is made elsewhere.
    pub(crate) fn check_collective(&mut self, v: Value, e: ExprId, what: &str) {
        match self.store.get(self.devices.nccl) {
            Value::Bool(nccl) => self.check_carried(v, e, what, nccl),
            // Some ways here have made a group.
            made @ Value::Choice(_) => {
                let nccl = self.each(made, &mut |_, v| match v {
                    Value::Bool(_) => v,
                    _ => Value::Bool(crate::flow::domain::diagram::FALSE),
                });
                if let Value::Bool(nccl) = nccl {
                    self.check_carried(v, e, what, nccl);
                }
            }
            _ if self.is_group_elsewhere() => {
                let before = self.events.len();
                self.check_carried(v, e, what, crate::flow::domain::diagram::TRUE);
                for pending in self.events.iter_mut().skip(before) {
                    if let Kind::CpuInCollective { elsewhere, .. } = &mut pending.event.kind {
                        *elsewhere = true;
                    }
                }
            }
            _ => {}
        }
    }

    /// Has nothing here made the group, or looked at what kind it is?
    fn is_group_elsewhere(&self) -> bool {
        let ir = &self.linked().ir;
        let looks = |name: &Sym| name.as_str().contains("backend");
        self.devices.group_started.is_none() && !ir.attributes.iter().any(looks)
    }

    /// The same where the group is one of NCCL on this condition.
    pub(crate) fn check_carried(
        &mut self,
        v: Value,
        e: ExprId,
        what: &str,
        nccl: crate::flow::domain::diagram::Cond,
    ) {
        let mut parts = crate::flow::models::modules::submodules::Parts::default();
        self.parts_of(v, &mut parts, 0);
        for t in parts.tensors {
            let t = self.get_tensor(t);
            if !t.certain {
                continue;
            }
            for (leaf, d, origin) in self.device_leaves(t.device) {
                if d != Device::Cpu {
                    continue;
                }
                let here = self.d.where_leaf(t.device, &mut |p| p == leaf);
                let there = self.available(None);
                let bad = self.d.and(here, there);
                let bad = self.d.and(bad, nccl);
                let Some(bite) = self.bite(bad, false) else { continue };
                let place = self.place(e);
                let tensor = Box::new(self.operand(e, d, origin));
                let kind = Kind::CpuInCollective { what: what.to_owned(), tensor, elsewhere: false };
                self.emit(kind, place, bite, Vec::new());
                return;
            }
        }
    }

    /// The default group is made with this back end, from here on.
    pub(crate) fn remember_backend(&mut self, v: Value, at: ExprId) {
        let cond = self.chosen_nccl(v, at);
        if cond != crate::flow::domain::diagram::FALSE {
            let now = self.d.and(self.path, cond);
            self.store.set(self.devices.nccl, Value::Bool(now));
        }
    }
}
