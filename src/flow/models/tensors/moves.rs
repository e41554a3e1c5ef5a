//! Moves of tensors: `.to()`, `.cuda()`, `.cpu()`.

use crate::flow::domain::diagram::{Dd, FALSE};
use crate::flow::domain::value::{Device, Host, Reason, Role, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::ir::{Expr, ExprId};
use crate::sym::Sym;

impl Interp<'_> {
    /// `.to(…)`, `.cuda(…)`, `.cpu()`
    pub(crate) fn transfer(&mut self, t: Tensor, name: Sym, args: &Args, e: ExprId, base: ExprId) -> Value {
        let target = match name.as_str() {
            "to" => {
                if let Some((v, _)) = args.get(0, "device") {
                    if t.certain { self.check_device_given(v, e) } else { self.check_misspelt(v, e) }
                }
                self.target_of_to(args, e)
            }
            "cpu" => {
                let place = self.place(e);
                let origin = self.origin(place, Reason::Moved, crate::flow::domain::value::NO_ORIGIN);
                Some(self.at(Device::Cpu, origin))
            }
            method => Some(self.method_target(method, args, e)),
        };
        let double = if name.as_str() == "to" { self.double_after_to(t, args, e) } else { t.double };
        let Some(target) = target else {
            let double = self.doubles_go(t.device, double, e);
            let role = if t.role == Role::Whole { t.role } else { Role::Plain };
            return self.tensor(Tensor { role, double, ..t });
        };
        let work = self.run.work;
        self.check_use(target, e, crate::flow::domain::event::UseKind::Transfer, &format!("`.{name}()`"));
        if self.is_small(t) {
            self.run.work = work;
        }
        self.goes_after(target, args.get(0, "device").map(|(_, at)| at));
        let device = self.because(target, e, Reason::Moved);
        if self.run.muted == 0 {
            self.moves_graph(t);
        }
        // If a parameter moves, the copy is no parameter. If it stays, the result is the parameter.
        self.watch_transfer(t, target, args, e, base);
        let device = self.unwaited(t, device, args, e);
        let role = self.role_of_copy(t, target, e, base);
        let double = self.doubles_go(device, double, e);
        self.tensor(Tensor { device, role, bytes: None, double, ..t })
    }

    /// The device that `.cuda(i)`, `.xpu()` and similar methods name.
    pub(crate) fn method_target(&mut self, method: &str, args: &Args, e: ExprId) -> Dd {
        if method == "cuda" {
            match args.get(0, "device") {
                Some((Value::None, _)) | None => {}
                Some((Value::Int(i), _)) => {
                    let place = self.place(e);
                    let origin = self.origin(place, Reason::Literal, crate::flow::domain::value::NO_ORIGIN);
                    return self.at(Device::Cuda(u32::try_from(i).ok()), origin);
                }
                Some((v, at)) => {
                    self.check_truth_given(v, at);
                    let d = self.as_device(v, at);
                    let d = d.unwrap_or_else(|| self.unknown_device());
                    return self.only_cuda(d, e);
                }
            }
            let place = self.place(e);
            let origin = self.origin(place, Reason::Literal, crate::flow::domain::value::NO_ORIGIN);
            return self.at(Device::Cuda(None), origin);
        }
        let place = self.place(e);
        let origin = self.origin(place, Reason::Literal, crate::flow::domain::value::NO_ORIGIN);
        match crate::world::Backend::from_name(method) {
            Some(b) => self.at(Device::Other(b), origin),
            None => self.unknown_device(),
        }
    }

    /// The device of `.cuda(x)` for a device `x`. An unknown device becomes some CUDA device. The CPU raises ("Invalid device, must be cuda
    /// device"), so it does not occur after the call.
    pub(crate) fn only_cuda(&mut self, d: Dd, e: ExprId) -> Dd {
        let places = &mut self.t.places;
        let some = self.d.map(d, &mut |p| match *places.get(p) {
            (Device::Unknown | Device::Named(_) | Device::Of(_), o) => places.add((Device::CudaSome, o)),
            _ => p,
        });
        let on_host = self.d.where_leaf(d, &mut |p| places.get(p).0 == Device::Cpu);
        if self.run.muted > 0 || on_host == FALSE {
            return some;
        }
        // Like a query, it raises without CUDA, and the author does not intend it for machines without CUDA.
        let (how, what) = (crate::flow::domain::event::UseKind::Query, "`.cuda()` of a device");
        self.check_leaf_use(on_host, crate::flow::domain::value::NO_ORIGIN, None, None, e, how, what);
        let fine = self.d.not(on_host);
        self.path = self.d.and(self.path, fine);
        let unknown = self.unknown_device();
        self.ite_device(on_host, unknown, some)
    }

    /// The device that the arguments of `.to()` name. `None` if they name no device.
    pub(crate) fn target_of_to(&mut self, args: &Args, e: ExprId) -> Option<Dd> {
        if let Some((v, at)) = args.keyword("device") {
            return match v {
                Value::None => None,
                v => self.as_device(v, at),
            };
        }
        if let Some((v, at)) = args.keyword("other") {
            return self.tensor_place(v, at).map(|(d, _)| d);
        }
        let Some(&(v, at)) = args.positional.first() else {
            return args.open.then(|| self.unknown_device());
        };
        self.positional_target(v, at, e)
    }

    pub(crate) fn positional_target(&mut self, v: Value, at: ExprId, _e: ExprId) -> Option<Dd> {
        // `.to(y.dtype)`, for any `y`.
        let open = matches!(v, Value::Unknown | Value::Outer(_) | Value::Choice(_));
        if open && matches!(self.linked().ir.expr(at), Expr::Attr { name, .. } if name.as_str() == "dtype") {
            return None;
        }
        match v {
            Value::Tensor(_) => self.tensor_place(v, at).map(|(d, _)| d),
            Value::Outer(o) => {
                let outer = self.t.get_outer(o);
                if outer.device || outer.text.contains("device") {
                    return self.as_device(v, at);
                }
                if outer.text.contains("dtype") || outer.text.contains("type") {
                    return None;
                }
                if self.is_tensorish(o) || outer.with.is_some() {
                    return Some(self.device_of_outer(o, at));
                }
                Some(self.unknown_device())
            }
            Value::External(path) => {
                let text = path.as_str();
                if text.starts_with("torch.") { None } else { Some(self.unknown_device()) }
            }
            Value::Int(_) | Value::Str(..) | Value::Device(_) | Value::Choice(_) => self.as_device(v, at),
            Value::Host(Host::Number | Host::Rank | Host::PhysicalGpu | Host::CurrentGpu) => {
                self.as_device(v, at)
            }
            // `.to(y.dtype)`
            Value::None | Value::Host(Host::Other) => None,
            _ => Some(self.unknown_device()),
        }
    }
}
