//! What the visible calls show about the parameters of their callees.
//!
//! A symbolic function has outside values for its parameters, which may be on any device. If the file calls the
//! function, the engine interprets these calls as well. They show the real arguments, so the rules judge the calls, not
//! the function alone. A function without a caller in the file has callers elsewhere, unless its name begins with an
//! underscore.

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::event::Kind;
use crate::flow::domain::value::{Device, Host, OriginId, OuterId, OuterKey, Reason, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::arguments::decided::{implied, keep_common};
use crate::ir::{CallId, Expr, ExprId, FuncId, Function};
use crate::link::ClassKey;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::OnceCell;

/// What is known from calls, and which values must be on the host.
#[derive(Default)]
pub(crate) struct Callers {
    /// The symbolic function that is being interpreted.
    pub(crate) entry: Option<FuncId>,
    /// The calls of methods through objects in the entry's file.
    pub(crate) objects: OnceCell<FxHashMap<FuncId, Vec<CallId>>>,
    /// Whether the current interpretation only prepares an entry point. Then calls are not recorded.
    pub(crate) deaf: bool,
    /// The interpreted calls in the entry's file, with the parameters whose argument was on a device of an outside
    /// caller's choice each time.
    pub(crate) given: FxHashMap<CallId, Vec<u16>>,
    /// The same, with the parameters whose argument was made by unknown code from such a value each time.
    pub(crate) derived: FxHashMap<CallId, Vec<u16>>,
    /// Values that unknown code made from values on a device of an outside caller's choice.
    pub(crate) made_of_given: FxHashSet<OuterId>,
    /// Outside tensors that the entry point passes to NumPy without a move. Its callers must keep them on the host.
    pub(crate) host: FxHashSet<OuterId>,
    /// Modules whose own `forward` returns arrays.
    pub(crate) for_numpy: FxHashSet<OuterId>,
    /// Outside values that the entry point follows to any device: `y.to(x.device)`.
    pub(crate) followed: FxHashSet<OuterId>,
}

/// A parameter of the symbolic function.
pub(crate) type Parameter = (FuncId, u16);

impl Interp<'_> {
    /// Records a call of a function of the project.
    pub(crate) fn is_given(&mut self, callee: &Function, bound: bool, args: &Args, e: ExprId) {
        if self.here().module != self.entry || self.calls.callers.deaf {
            return;
        }
        let Expr::Call(id) = self.linked().ir.expr(e) else { return };
        if implied(callee, self.linked().ir.expr(self.linked().ir.call(id).func)) {
            return;
        }
        let given: Vec<(u16, Value)> = callee
            .params
            .iter()
            .enumerate()
            .filter_map(|(n, p)| {
                let (v, _) = args.get(n.checked_sub(usize::from(bound))?, p.name.as_str())?;
                Some((u16::try_from(n).ok()?, v))
            })
            .collect();
        let on_host: Vec<Value> =
            given.iter().map(|&(_, v)| v).filter(|&v| self.is_held_on_host(v)).collect();
        let those = |test: &dyn Fn(Value) -> bool| {
            given.iter().filter(|&&(_, v)| test(v)).map(|&(n, _)| n).collect::<Vec<u16>>()
        };
        let open = those(&|v| self.is_anywhere(v) && !on_host.contains(&v));
        let derived = those(&|v| self.is_derived(v));
        keep_common(&mut self.calls.callers.given, id, open);
        keep_common(&mut self.calls.callers.derived, id, derived);
    }

    /// Records that unknown code made this from tensors on a device of the caller's choice. Such a result is usually on
    /// the same device.
    pub(crate) fn is_made_of(&mut self, made: Value, args: &Args) {
        self.made_of_what_was_read(made, args);
        if let Value::Outer(o) = made
            && self.run.symbolic
            && args.values().any(|(v, _)| self.is_tensor_anywhere(v) || self.is_derived(v))
        {
            self.calls.callers.made_of_given.insert(o);
        }
    }

    /// Whether the value may be a tensor on a device of the caller's choice. Only values that are certainly tensors
    /// count.
    fn is_tensor_anywhere(&self, v: Value) -> bool {
        self.values_of(v).into_iter().any(|v| {
            let tensor = match v {
                Value::Outer(o) => self.is_tensorish(o),
                Value::Tensor(t) => self.get_tensor(t).certain,
                _ => false,
            };
            tensor && self.is_anywhere(v)
        })
    }

    /// Whether the value is certainly a tensor, or a sequence that holds one.
    pub(crate) fn holds_tensor(&self, v: Value) -> bool {
        match v {
            Value::Tensor(t) => self.get_tensor(t).certain,
            Value::Outer(o) => self.is_tensorish(o),
            Value::Seq(s) => self.t.seqs.get(s.0).iter().any(|&v| self.holds_tensor(v)),
            Value::Choice(_) => self.values_of(v).into_iter().any(|v| self.holds_tensor(v)),
            _ => false,
        }
    }

    /// Whether unknown code made the value from a value of the caller's, alone or as one of several results. Values in
    /// objects or dicts are excluded: they may have another source.
    fn is_derived(&self, v: Value) -> bool {
        let made = |o: OuterId| {
            let mut at = o;
            loop {
                if self.calls.callers.made_of_given.contains(&at) {
                    return true;
                }
                match self.t.get_outer(at).key {
                    OuterKey::Item { base, key: None | Some(Value::Int(_)) } => at = base,
                    _ => return false,
                }
            }
        };
        let on = |d: Device| matches!(d, Device::Of(o) if made(o));
        match v {
            Value::Outer(o) => made(o),
            Value::Tensor(t) => self.device_leaves(self.get_tensor(t).device).iter().any(|&(_, d, _)| on(d)),
            Value::Choice(_) => self.values_of(v).into_iter().any(|v| self.is_derived(v)),
            _ => false,
        }
    }

    /// Whether the path implies that an outside value is on the host: `if x.device.type != "cpu": raise`.
    fn is_held_on_host(&mut self, v: Value) -> bool {
        let Value::Outer(o) = v else { return false };
        [("cpu", true), ("cuda", false)].into_iter().any(|(device, is)| {
            let asked = self.asked_whether_on(o, device);
            asked.into_iter().any(|atom| self.implied(self.path, atom, is))
        })
    }

    /// Whether the value is on a device of the caller's choice.
    fn is_anywhere(&self, v: Value) -> bool {
        let free = |o: OuterId| {
            let outer = self.t.get_outer(o);
            outer.varies && outer.with.is_none() && !matches!(outer.key, OuterKey::Receiver { .. })
        };
        match v {
            Value::Outer(o) => free(o),
            Value::Tensor(t) => match self.d.as_leaf(self.get_tensor(t).device) {
                Some(leaf) => matches!(self.t.places.get(leaf).0, Device::Of(o) if free(o)),
                None => false,
            },
            _ => false,
        }
    }

    /// Records that NumPy reads a tensor on the device of an outside value.
    pub(crate) fn taken_to_host(&mut self, device: Device) {
        if let Device::Of(o) = device {
            self.calls.callers.host.insert(o);
        }
    }

    /// Records that an operation that only works on the host takes the tensor: on another device it would raise.
    pub(crate) fn read_on_host(&mut self, v: Value) {
        if self.run.muted > 0 {
            return;
        }
        match v {
            Value::Tensor(t) => {
                for (_, device, origin) in self.device_leaves(self.get_tensor(t).device) {
                    match device {
                        Device::Unknown => self.refused_to_host(origin),
                        device => self.taken_to_host(device),
                    }
                }
            }
            Value::Outer(o) => self.taken_to_host(Device::Of(o)),
            _ => {}
        }
    }

    /// The same for a result of tensors on different devices: they must all be on the host.
    pub(crate) fn refused_to_host(&mut self, origin: OriginId) {
        let origin = *self.t.origins.get(origin.0);
        if origin.reason != Reason::Refused {
            return;
        }
        for pending in self.events.iter().filter(|p| p.event.place == origin.place) {
            self.calls.callers.host.extend(&pending.about);
        }
    }

    /// Records that the entry point moves a value to the device of an outside value.
    pub(crate) fn follows(&mut self, target: Dd) {
        if self.run.symbolic && self.here().site.is_none() {
            let places = self.device_leaves(target).into_iter().map(|(_, device, _)| device);
            self.calls
                .callers
                .followed
                .extend(places.filter_map(|d| if let Device::Of(o) = d { Some(o) } else { None }));
        }
    }

    /// Whether the entry point follows one of these values, so that it works with any device of the caller's choice.
    pub(crate) fn any_followed(&self, about: &[OuterId]) -> bool {
        about.iter().any(|o| self.calls.callers.followed.contains(o))
    }

    /// Whether the entry point requires that one of these values is on the host.
    pub(crate) fn any_on_host(&self, about: &[OuterId]) -> bool {
        about.iter().any(|o| self.calls.callers.host.contains(o) || self.calls.callers.for_numpy.contains(o))
    }

    /// Records that a module's `forward` returns an array without a finding about a copy to the host. Then the module
    /// is on the host, in its other methods as well.
    pub(crate) fn leaves_for_numpy(&mut self, key: ClassKey, given: Value) {
        let array = matches!(given, Value::Host(Host::Array | Host::Doubles | Host::Numbers));
        if array && !self.events.iter().any(|p| matches!(p.event.kind, Kind::ToHost { .. })) {
            let home = self.receiver_symbol(key);
            self.calls.callers.for_numpy.insert(home);
        }
    }

    /// Clears these records before the next entry point.
    pub(crate) fn forget_host(&mut self) {
        self.calls.callers.host.clear();
        self.calls.callers.followed.clear();
    }

    /// The parameter of the entry point that one of these values is, or is a part of.
    pub(crate) fn parameter_of(&self, about: &[OuterId]) -> Option<Parameter> {
        about.iter().find_map(|&o| {
            let mut at = o;
            loop {
                match self.t.get_outer(at).key {
                    OuterKey::Param { module, func, index } if module == self.entry => {
                        return Some((func, index));
                    }
                    OuterKey::Attr { base, .. } | OuterKey::Item { base, .. } => at = base,
                    _ => return None,
                }
            }
        })
    }
}
