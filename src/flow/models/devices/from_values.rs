//! Devices from values: strings, integers, `torch.device`, outside values.

use crate::flow::domain::diagram::Cond;
use crate::flow::domain::diagram::Dd;
use crate::flow::domain::event::UseKind;
use crate::flow::domain::value::{Device, Host, NO_ORIGIN, OriginId, OuterId, Reason, Tables, Value};
use crate::flow::machine::Interp;
use crate::ir::ExprId;
use crate::sym::Sym;
use crate::world::Backend;

/// A device string as PyTorch reads it (`cpu`, `cuda:1`, `mps`, `meta`).
pub(crate) fn parse_device(text: &str) -> Option<Device> {
    let (kind, index) = match text.split_once(':') {
        Some((kind, index)) => (kind, Some(index.parse::<u32>().ok()?)),
        None => (text, None),
    };
    match kind {
        "cpu" => Some(Device::Cpu),
        "cuda" => Some(Device::Cuda(index)),
        "meta" => Some(Device::Meta),
        _ => Backend::from_name(kind).map(Device::Other),
    }
}

/// The device type that a tensor attribute tests: `x.is_cuda`, `x.is_xpu`. Attributes of plug-ins are missing here.
pub(crate) fn asked_for_kind(attribute: Sym) -> Option<Device> {
    match attribute.as_str() {
        "is_cpu" => Some(Device::Cpu),
        "is_cuda" => Some(Device::Cuda(None)),
        "is_mps" => Some(Device::Other(Backend::Mps)),
        "is_xla" => Some(Device::Other(Backend::Xla)),
        "is_xpu" => Some(Device::Other(Backend::Xpu)),
        _ => None,
    }
}

impl Interp<'_> {
    /// The condition that it is on a device of this type. That includes that the type is available, even if the path has lost that.
    pub(crate) fn is_on_kind(&mut self, d: Dd, kind: Device, e: ExprId) -> Cond {
        let on = self.is_device(d, kind, e);
        let there = match kind {
            Device::Cpu => return on,
            Device::Other(b) => self.available(Some(b)),
            _ => self.available(None),
        };
        self.d.and(on, there)
    }

    /// The device that a value names. `None` if it names no device (`None`, a dtype, …).
    pub(crate) fn as_device(&mut self, v: Value, e: ExprId) -> Option<Dd> {
        match v {
            Value::Device(d) => Some(d),
            Value::Str(s, origin) => {
                let text = s.as_str();
                let device = parse_device(text).unwrap_or(Device::Unknown);
                Some(self.at(device, origin))
            }
            Value::Int(i) => {
                let place = self.place(e);
                let origin = self.origin(place, Reason::Literal, NO_ORIGIN);
                // A number is a device of the current accelerator, and of CUDA on a machine that has none: in practice, a GPU of CUDA
                // (https://docs.pytorch.org/docs/stable/tensor_attributes.html#torch.device).
                match u32::try_from(i) {
                    Ok(i) => Some(self.at(Device::Cuda(Some(i)), origin)),
                    Err(_) => Some(self.at(Device::Unknown, origin)),
                }
            }
            // A number as a device is an index of the current accelerator: `.to(local_rank)`.
            Value::Host(Host::Number) => Some(self.unknown_device()),
            // Without CUDA there is no current GPU. The call that returned it has raised.
            Value::Host(Host::CurrentGpu) => {
                let (there, cuda) = (self.available(None), self.at(Device::CudaSome, NO_ORIGIN));
                let unknown = self.unknown_device();
                Some(self.ite_device(there, cuda, unknown))
            }
            Value::Host(Host::Rank | Host::PhysicalGpu) => {
                self.check_index_meaning(v, e, None);
                Some(self.unknown_device())
            }
            Value::Outer(o) => {
                let place = self.place(e);
                let origin = self.origin(place, Reason::Given, NO_ORIGIN);
                Some(self.at(Device::Named(o), origin))
            }
            Value::Choice(d) => {
                let mixed = !self.is_plainly_rank(v);
                Some(self.choice_device(d, e, mixed))
            }
            Value::Unknown | Value::Absent | Value::Host(_) | Value::Many(_) => Some(self.unknown_device()),
            Value::Object(_) | Value::Tensor(_) => Some(self.unknown_device()),
            Value::None
            | Value::Bool(_)
            | Value::External(_)
            | Value::Seq(_)
            | Value::Slice
            | Value::Closure(_)
            | Value::Bound(_)
            | Value::Class(_)
            | Value::Module(_) => None,
        }
    }

    /// Is every number here either a literal or the global rank? A literal such as `0` for programs without a process group does not
    /// change the meaning, and neither does a device such as the CPU for machines without CUDA.
    pub(crate) fn is_plainly_rank(&self, v: Value) -> bool {
        self.values_of(v).iter().all(|v| {
            matches!(
                v,
                Value::Host(Host::Rank) | Value::Int(_) | Value::None | Value::Str(..) | Value::Device(_)
            )
        })
    }

    /// The device of a choice of values. With `mixed`, it is unknown whether a number is the global rank.
    fn choice_device(&mut self, d: Dd, e: ExprId, mixed: bool) -> Dd {
        if let Some(payload) = self.d.as_leaf(d) {
            let v = *self.t.values.get(payload);
            return match v {
                Value::None => {
                    let cpu = self.at(Device::Cpu, NO_ORIGIN);
                    self.default_device_or(cpu)
                }
                Value::Host(Host::Rank) if mixed => self.unknown_device(),
                v => match self.as_device(v, e) {
                    Some(d) => d,
                    None => self.unknown_device(),
                },
            };
        }
        let (atom, hi, lo) = self.d.root(d);
        let cond = self.d.atom(atom);
        let (a, b) = (self.choice_device(hi, e, mixed), self.choice_device(lo, e, mixed));
        self.ite_device(cond, a, b)
    }

    /// The device that factories without `device=` use, with an origin here.
    pub(crate) fn default_device_at(&mut self, e: ExprId, reason: Reason) -> Dd {
        let place = self.place(e);
        let origin = self.origin(place, reason, NO_ORIGIN);
        let cpu = self.at(Device::Cpu, origin);
        self.default_device_or(cpu)
    }

    /// The same, for an operation that allocates memory. The device must be available if the program has set one:
    /// `torch.set_default_device("cuda")`, `with torch.device("cuda"):`.
    pub(crate) fn made_on_default(&mut self, e: ExprId, reason: Reason, name: &str) -> Dd {
        let device = self.default_device_at(e, reason);
        if !matches!(self.store.get(self.tensors.default_device), Value::Absent | Value::None) {
            self.check_use(device, e, UseKind::Factory, &format!("`{name}()`"));
        }
        device
    }

    /// The device that the program has set for factories without `device=`, or `otherwise` if it has set none.
    pub(crate) fn default_device_or(&mut self, otherwise: Dd) -> Dd {
        let set = self.store.get(self.tensors.default_device);
        self.set_device_or(set, otherwise)
    }

    /// The device of `torch.Tensor(…)`: that of the default tensor type. The default device does not matter.
    pub(crate) fn default_type_or(&mut self, otherwise: Dd) -> Dd {
        let set = self.store.get(self.tensors.default_type);
        self.set_device_or(set, otherwise)
    }

    fn set_device_or(&mut self, set: Value, otherwise: Dd) -> Dd {
        match set {
            Value::Device(d) => d,
            Value::None => otherwise,
            Value::Choice(d) => {
                let (atom, hi, lo) = self.d.root(d);
                let (hi, lo) = (self.value_of_diagram(hi), self.value_of_diagram(lo));
                let cond = self.d.atom(atom);
                let (a, b) = (self.set_device_or(hi, otherwise), self.set_device_or(lo, otherwise));
                self.ite_device(cond, a, b)
            }
            _ => self.unknown_device(),
        }
    }

    /// The same device, with one more origin at the start of the chain.
    pub(crate) fn because(&mut self, d: Dd, e: ExprId, reason: Reason) -> Dd {
        let place = self.place(e);
        if let Some(payload) = self.d.as_leaf(d) {
            let (device, from) = *self.t.places.get(payload);
            let origin = self.origin(place, reason, from);
            return self.at(device, origin);
        }
        let (atom, hi, lo) = self.d.root(d);
        let cond = self.d.atom(atom);
        let (a, b) = (self.because(hi, e, reason), self.because(lo, e, reason));
        self.ite_device(cond, a, b)
    }

    /// A string that names the device.
    pub(crate) fn as_text(&mut self, d: Dd, e: ExprId) -> Value {
        Value::Device(self.because(d, e, Reason::Text))
    }

    /// The device that a string names. A `torch.device` stays the same.
    pub(crate) fn without_text(&mut self, d: Dd) -> Dd {
        let Tables { places, origins, .. } = &mut self.t;
        self.d.map(d, &mut |p| {
            let (device, origin) = *places.get(p);
            let o = *origins.get(origin.0);
            if is_form(o.reason) { places.add((device, o.from)) } else { p }
        })
    }

    /// May the value be a string that names a device, or a device index?
    pub(crate) fn is_text(&self, d: Dd) -> bool {
        self.device_leaves(d).iter().any(|&(_, _, origin)| is_form(self.t.origins.get(origin.0).reason))
    }

    /// The number that `get_device()` returns for a device.
    pub(crate) fn as_number(&mut self, d: Dd, e: ExprId) -> Value {
        Value::Device(self.because(d, e, Reason::Number))
    }

    /// Is the value such a number, for every device?
    pub(crate) fn is_device_number(&self, d: Dd) -> bool {
        let number = |origin: OriginId| self.t.origins.get(origin.0).reason == Reason::Number;
        self.device_leaves(d).iter().all(|&(_, _, origin)| number(origin))
    }

    /// The device of an outside value.
    pub(crate) fn device_of_outer(&mut self, o: OuterId, e: ExprId) -> Dd {
        if let Some(device) = self.device_out_of_file(o, e) {
            return device;
        }
        let place = self.place(e);
        let origin = self.origin(place, Reason::Given, NO_ORIGIN);
        self.at(Device::Of(o), origin)
    }

    /// The origins of a device, newest first.
    pub(crate) fn chain(&self, origin: OriginId) -> Vec<crate::flow::domain::event::Step> {
        let mut steps = Vec::new();
        let mut at = origin;
        while at != NO_ORIGIN && steps.len() < 6 {
            let o = self.t.origins.get(at.0);
            if !is_form(o.reason) {
                steps.push(crate::flow::domain::event::Step { place: o.place, reason: o.reason });
            }
            at = o.from;
        }
        steps
    }
}

/// Is the value still a device, in another form?
const fn is_form(reason: Reason) -> bool {
    matches!(reason, Reason::Text | Reason::Number)
}
