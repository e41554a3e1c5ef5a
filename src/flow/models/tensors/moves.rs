//! Tensors that go elsewhere: `.to()`, `.cuda()`, `.type()`, `.numpy()`.

use crate::flow::domain::diagram::{Dd, FALSE};
use crate::flow::domain::event::Kind;
use crate::flow::domain::value::{Device, Host, OuterId, OuterKey, Reason, Role, Tensor, Value};
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
        // A parameter that really moves is no parameter any more; one that stays is itself.
        self.watch_transfer(t, target, args, e, base);
        let device = self.unwaited(t, device, args, e);
        let role = self.role_of_copy(t, target, e, base);
        let double = self.doubles_go(device, double, e);
        self.tensor(Tensor { device, role, bytes: None, double, ..t })
    }

    /// The device that `.cuda(i)`, `.xpu()` and the like name.
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

    /// What `.cuda(x)` makes of a device that is not known: some CUDA device. Of the CPU it makes nothing: it raises
    /// ("Invalid device, must be cuda device"), so that whoever comes past it was given no such device.
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
        // Like a query it raises where there is no CUDA, and is not meant for machines without.
        let (how, what) = (crate::flow::domain::event::UseKind::Query, "`.cuda()` of a device");
        self.check_leaf_use(on_host, crate::flow::domain::value::NO_ORIGIN, None, None, e, how, what);
        let fine = self.d.not(on_host);
        self.path = self.d.and(self.path, fine);
        let unknown = self.unknown_device();
        self.ite_device(on_host, unknown, some)
    }

    /// What the arguments of `.to()` say; `None` when they name no device.
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
        // `.to(y.dtype)`, whatever `y` is.
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

    /// `.type(torch.cuda.FloatTensor)`
    pub(crate) fn type_method(&mut self, t: Tensor, target: Value, e: ExprId) -> Value {
        let double = match target {
            Value::Str(s, _) if s.as_str() == "torch.DoubleTensor" => crate::flow::domain::diagram::TRUE,
            Value::External(path) if path.as_str() == "torch.DoubleTensor" => {
                crate::flow::domain::diagram::TRUE
            }
            v => self.is_double(v),
        };
        let t = Tensor { double, ..t };
        match self.type_target(target, e) {
            TypeTarget::Dtype => {
                let double = self.doubles_go(t.device, double, e);
                self.tensor(Tensor { role: Role::Plain, double, ..t })
            }
            TypeTarget::Place(device) => self.tensor(Tensor { device, role: Role::Plain, ..t }),
            TypeTarget::Cpu(device) => {
                // Who casts by a tensor's type has one with dimensions: the old style knows no others.
                let dims =
                    if t.dims.none().is_none() { crate::flow::domain::dims::Dims::SOME } else { t.dims };
                self.tensor(Tensor { device, dims, role: Role::Plain, ..t })
            }
        }
    }

    /// Where what is given to `.type()` says that something goes.
    pub(crate) fn type_target(&mut self, v: Value, e: ExprId) -> TypeTarget {
        let text = match v {
            Value::Device(device) => {
                self.check_use(device, e, crate::flow::domain::event::UseKind::Transfer, "`.type()`");
                return TypeTarget::Place(self.because(device, e, Reason::Moved));
            }
            Value::External(path) => path.as_str(),
            Value::Str(s, _) => s.as_str(),
            // `x.dtype`, a `dtype` parameter: no device comes with it. (What a program keeps for itself under that name may
            // be the type of tensors on a device: `self.dtype = torch.cuda.FloatTensor`.)
            Value::Outer(o) if self.is_plain_dtype(o) => return TypeTarget::Dtype,
            Value::Choice(_) if self.is_some_cuda_type(v) => "torch.cuda.Tensor",
            // A text that is put together may be any type's.
            Value::Unknown | Value::Outer(_) | Value::Choice(_) | Self::TEXT => {
                return TypeTarget::Place(self.unknown_device());
            }
            _ => "",
        };
        let place = self.place(e);
        if is_cuda_type(text) {
            let origin = self.origin(place, Reason::Literal, crate::flow::domain::value::NO_ORIGIN);
            let device = self.at(Device::Cuda(None), origin);
            self.check_use(device, e, crate::flow::domain::event::UseKind::LegacyType, "`.type()`");
            return TypeTarget::Place(device);
        }
        if text.starts_with("torch.") && text.ends_with("Tensor") && text != "torch.Tensor" {
            let origin = self.origin(place, Reason::Host, crate::flow::domain::value::NO_ORIGIN);
            return TypeTarget::Cpu(self.at(Device::Cpu, origin));
        }
        TypeTarget::Dtype
    }

    /// `torch.cuda.HalfTensor if half else torch.cuda.FloatTensor`: one of CUDA's types, whichever it is.
    pub(crate) fn is_some_cuda_type(&self, v: Value) -> bool {
        self.values_of(v).into_iter().all(|v| match v {
            Value::External(path) => is_cuda_type(path.as_str()),
            Value::Str(text, _) => is_cuda_type(text.as_str()),
            _ => false,
        })
    }

    /// Is it a tensor's type of numbers, or a parameter that is called so?
    fn is_plain_dtype(&self, o: OuterId) -> bool {
        let outer = self.t.get_outer(o);
        // An object's own, or one that its constructor is given.
        let kept = |base: OuterId| match self.t.get_outer(base).key {
            OuterKey::Receiver { .. } => true,
            OuterKey::Param { module, func, .. } => {
                self.program.get(module).ir.function(func).name == self.known.init
            }
            _ => false,
        };
        let by_program = match outer.key {
            OuterKey::Attr { base, .. } => kept(base),
            OuterKey::Field { .. } => true,
            _ => false,
        };
        outer.text.ends_with("dtype") && !by_program
    }

    /// `.numpy()` of a tensor.
    pub(crate) fn numpy_method(
        &mut self,
        t: Tensor,
        name: Sym,
        args: &Args,
        e: ExprId,
        base: ExprId,
    ) -> Value {
        let forced =
            args.get(0, "force").is_some_and(|(v, _)| v != Value::Bool(crate::flow::domain::diagram::FALSE));
        self.check_read(t, e);
        if !forced {
            self.check_host(t.device, base, e, &format!("`.{name}()`"));
        }
        if t.double == crate::flow::domain::diagram::TRUE {
            return Self::DOUBLES;
        }
        Self::ARRAY
    }

    /// A tensor is turned into a NumPy array: it must be on the CPU.
    pub(crate) fn check_host(&mut self, device: Dd, operand: ExprId, at: ExprId, what: &str) {
        let (mut found, mut bad) = (None, FALSE);
        let mut leaves = Vec::new();
        self.d.leaves(device, &mut leaves);
        for leaf in leaves {
            let (d, origin) = *self.t.places.get(leaf);
            if self.check_own_to_host(device, leaf, operand, at, what) {
                return;
            }
            if let (Device::Of(o) | Device::Named(o), 0) = (d, self.run.muted) {
                // It would have raised elsewhere.
                self.taken_to_host(d);
                let on_cpu = self.outer_is_on(o, "cpu");
                let elsewhere = self.d.where_leaf(device, &mut |p| p != leaf);
                let fine = self.d.or(on_cpu, elsewhere);
                self.path = self.d.and(self.path, fine);
            }
            if d == Device::Unknown && self.run.muted == 0 {
                self.refused_to_host(origin);
            }
            if matches!(d, Device::Cuda(_) | Device::CudaSome | Device::Other(_)) {
                let here = self.d.where_leaf(device, &mut |p| p == leaf);
                let there = self.accelerator_condition(d, Device::Cpu);
                let here = self.d.and(here, there);
                bad = self.d.or(bad, here);
                found = Some((d, origin, here));
            }
        }
        let Some((d, origin, here)) = found else { return };
        let Some(bite) = self.bite(here, false).filter(|_| !self.for_no_tensors()) else { return };
        // One GPU or another: it is as wrong on each.
        let bite = self.bite(bad, false).unwrap_or(bite);
        let tensor = Box::new(self.operand(operand, d, origin));
        let place = self.place(at);
        self.emit(Kind::ToHost { what: what.to_owned(), tensor }, place, bite, Vec::new());
    }

    /// Is it the module whose `forward` is interpreted?
    pub(crate) fn is_own(&self, o: OuterId) -> bool {
        let here = self.here();
        let forward = self.program.get(here.module).ir.function(here.func).name == self.known.forward;
        matches!(self.t.get_outer(o).key, OuterKey::Receiver { .. }) && forward && self.in_module()
    }

    /// In `forward`, what is made with a module's own parameters is where the module is: with CUDA, not on the host. What is
    /// cut out of a graph of gradients was made with parameters, too: it is where its model is, wherever that is.
    fn check_own_to_host(&mut self, device: Dd, leaf: u32, operand: ExprId, at: ExprId, what: &str) -> bool {
        let (d, origin) = *self.t.places.get(leaf);
        let Device::Of(o) = d else { return false };
        let own = self.is_own(o);
        if self.run.muted > 0 || self.for_no_tensors() {
            return false;
        }
        if !own && !self.is_of_graph(o, operand, at) {
            return false;
        }
        let here = self.d.where_leaf(device, &mut |p| p == leaf);
        let there = self.available(None);
        let bad = self.d.and(here, there);
        let before = self.path;
        if !own {
            // What the program knows of where it is holds, and that it is a tensor is no coincidence.
            for holds in [self.if_on_cuda(o), self.may_be_a_tensor(o)] {
                self.path = self.d.and(self.path, holds);
            }
        }
        let bite = self.bite(bad, false);
        self.path = before;
        let Some(bite) = bite else { return false };
        let tensor = Box::new(self.operand(operand, d, origin));
        let place = self.place(at);
        let needs = self.needs_proof(d).filter(|&o| !self.is_gradient(o));
        self.emit(Kind::ToHost { what: what.to_owned(), tensor }, place, bite, needs.into_iter().collect());
        if !own && let Some(pending) = self.events.last_mut() {
            pending.about = vec![o];
        }
        true
    }

    /// Is it where a caller wants it, or where the module is whose `forward` is interpreted, and has the function shown that this
    /// may be anywhere? Nobody detaches what comes from a data set (`scores.detach().numpy()`), and who makes tensors where an
    /// argument is has not got it on the host alone.
    fn is_of_graph(&self, o: OuterId, operand: ExprId, at: ExprId) -> bool {
        let (ir, outer) = (&self.linked().ir, self.t.get_outer(o));
        let given = outer.varies && self.is_argument(o);
        // NumPy's functions take arrays as well, its own method is a tensor's alone.
        let method = |call| matches!(ir.expr(ir.call(call).func), Expr::Attr { base, .. } if base == operand);
        let of_tensor = matches!(ir.expr(at), Expr::Call(call) if method(call));
        let followed = || of_tensor && given && outer.with.is_none() && self.marks_a_device(o);
        (given || outer.with.is_some()) && !self.is_tried() && (self.is_cut_from_graph(operand) || followed())
    }

    /// Is this in a `try`, here or where it was called? An error is an answer there.
    fn is_tried(&self) -> bool {
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            if !frame.tries.is_empty() {
                return true;
            }
            at = frame.caller;
        }
        false
    }

    /// Is it an argument, or an element of one? What an argument has as a field may have been asked for in another one.
    fn is_argument(&self, o: OuterId) -> bool {
        match self.t.get_outer(o).key {
            OuterKey::Param { .. } => true,
            OuterKey::Item { base, .. } => self.is_argument(base),
            _ => false,
        }
    }

    /// Has something been put where it is, or where the whole is that it is an element of?
    fn marks_a_device(&self, o: OuterId) -> bool {
        self.any_followed(&[o])
            || matches!(self.t.get_outer(o).key, OuterKey::Item { base, .. } if self.marks_a_device(base))
    }

    /// `x.detach()`, and what is a view of it: `x.detach()[0].squeeze()`.
    fn is_cut_from_graph(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        match ir.expr(e) {
            Expr::Call(call) => match ir.expr(ir.call(call).func) {
                Expr::Attr { base, name } => name.as_str() == "detach" || self.is_cut_from_graph(base),
                _ => false,
            },
            Expr::Attr { base, name } => name.as_str() == "data" || self.is_cut_from_graph(base),
            Expr::Index { base, .. } => self.is_cut_from_graph(base),
            _ => false,
        }
    }
}

/// What `.type(…)` makes of something.
pub(crate) enum TypeTarget {
    /// The same with another number type.
    Dtype,
    /// A tensor on the CPU, by the old constructors' names.
    Cpu(crate::flow::domain::diagram::Dd),
    /// One on this device.
    Place(crate::flow::domain::diagram::Dd),
}

/// `torch.cuda.FloatTensor`
fn is_cuda_type(path: &str) -> bool {
    path.starts_with("torch.cuda.") && path.ends_with("Tensor")
}
