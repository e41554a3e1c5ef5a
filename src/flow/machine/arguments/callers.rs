//! What the calls in sight say of the functions that they call.
//!
//! A function that is interpreted for itself has outside things for its parameters, which may be anywhere. Where
//! the file calls it, these calls are interpreted too and say what it is really given, so they are judged and not
//! the function alone. What nobody in the file calls is there for others, unless its name begins with an underscore.

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

/// What has been seen of calls, and of what must be on the host.
#[derive(Default)]
pub(crate) struct Callers {
    /// The function that is interpreted for itself.
    pub(crate) entry: Option<FuncId>,
    /// The calls in the entry's file of methods through objects.
    pub(crate) objects: OnceCell<FxHashMap<FuncId, Vec<CallId>>>,
    /// What is interpreted just now only prepares for an entry point.
    pub(crate) deaf: bool,
    /// Calls in the entry's file that have been interpreted, with the parameters for which each time something was
    /// given that is wherever somebody outside wants it.
    pub(crate) given: FxHashMap<CallId, Vec<u16>>,
    /// The same, with the parameters for which each time something was given that unknown code made of such a thing.
    pub(crate) derived: FxHashMap<CallId, Vec<u16>>,
    /// What unknown code made of things that are wherever somebody outside wants them.
    pub(crate) made_of_given: FxHashSet<OuterId>,
    /// Outside tensors that the entry point itself takes to NumPy as they are: who calls it keeps them on the host.
    pub(crate) host: FxHashSet<OuterId>,
    /// Modules whose own `forward` gives arrays.
    pub(crate) for_numpy: FxHashSet<OuterId>,
    /// Outside things that the entry point itself follows, wherever they are: `y.to(x.device)`.
    pub(crate) followed: FxHashSet<OuterId>,
}

/// A parameter of the function that is interpreted for itself.
pub(crate) type Parameter = (FuncId, u16);

impl Interp<'_> {
    /// A call of a function of the project is interpreted.
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

    /// Unknown code has made this of tensors that who calls gives: it is where they are, by all experience.
    pub(crate) fn is_made_of(&mut self, made: Value, args: &Args) {
        self.made_of_what_was_read(made, args);
        if let Value::Outer(o) = made
            && self.run.symbolic
            && args.values().any(|(v, _)| self.is_tensor_anywhere(v) || self.is_derived(v))
        {
            self.calls.callers.made_of_given.insert(o);
        }
    }

    /// Is it, or may it be, a tensor for certain that is wherever who calls wants it?
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

    /// Is it a tensor for certain, or does a sequence hold one?
    pub(crate) fn holds_tensor(&self, v: Value) -> bool {
        match v {
            Value::Tensor(t) => self.get_tensor(t).certain,
            Value::Outer(o) => self.is_tensorish(o),
            Value::Seq(s) => self.t.seqs.get(s.0).iter().any(|&v| self.holds_tensor(v)),
            Value::Choice(_) => self.values_of(v).into_iter().any(|v| self.holds_tensor(v)),
            _ => false,
        }
    }

    /// Is it what unknown code made of something that who calls gives, alone or as one of several results? What is
    /// kept in an object or a dict may come from anywhere.
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

    /// Has what leads to here made sure that an outside thing is on the host? `if x.device.type != "cpu": raise`
    fn is_held_on_host(&mut self, v: Value) -> bool {
        let Value::Outer(o) = v else { return false };
        [("cpu", true), ("cuda", false)].into_iter().any(|(device, is)| {
            let asked = self.asked_whether_on(o, device);
            asked.into_iter().any(|atom| self.implied(self.path, atom, is))
        })
    }

    /// Is it wherever who calls wants it?
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

    /// A tensor that lives where an outside thing does is read by NumPy.
    pub(crate) fn taken_to_host(&mut self, device: Device) {
        if let Device::Of(o) = device {
            self.calls.callers.host.insert(o);
        }
    }

    /// Something that only works on the host is given a tensor: had it been elsewhere, it would have raised.
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

    /// The same of what was made of tensors that do not go together: they do, on the host.
    pub(crate) fn refused_to_host(&mut self, origin: OriginId) {
        let origin = *self.t.origins.get(origin.0);
        if origin.reason != Reason::Refused {
            return;
        }
        for pending in self.events.iter().filter(|p| p.event.place == origin.place) {
            self.calls.callers.host.extend(&pending.about);
        }
    }

    /// The entry point puts something where an outside thing is.
    pub(crate) fn follows(&mut self, target: Dd) {
        if self.run.symbolic && self.here().site.is_none() {
            let places = self.device_leaves(target).into_iter().map(|(_, device, _)| device);
            self.calls
                .callers
                .followed
                .extend(places.filter_map(|d| if let Device::Of(o) = d { Some(o) } else { None }));
        }
    }

    /// Does the entry point follow one of these, so that it counts on any place of it, whoever calls?
    pub(crate) fn any_followed(&self, about: &[OuterId]) -> bool {
        about.iter().any(|o| self.calls.callers.followed.contains(o))
    }

    /// Has the entry point shown that one of these must be on the host?
    pub(crate) fn any_on_host(&self, about: &[OuterId]) -> bool {
        about.iter().any(|o| self.calls.callers.host.contains(o) || self.calls.callers.for_numpy.contains(o))
    }

    /// What a module's `forward` gives is an array, and nobody is told that it may not be one: then the module is on the host, in
    /// its other methods as well.
    pub(crate) fn leaves_for_numpy(&mut self, key: ClassKey, given: Value) {
        let array = matches!(given, Value::Host(Host::Array | Host::Doubles | Host::Numbers));
        if array && !self.events.iter().any(|p| matches!(p.event.kind, Kind::ToHost { .. })) {
            let home = self.receiver_symbol(key);
            self.calls.callers.for_numpy.insert(home);
        }
    }

    /// The next entry point makes its own demands.
    pub(crate) fn forget_host(&mut self) {
        self.calls.callers.host.clear();
        self.calls.callers.followed.clear();
    }

    /// The parameter of the entry point that one of these is, or is a part of.
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
