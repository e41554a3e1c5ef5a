//! What the calls in sight say of the functions that they call.
//!
//! A function that is interpreted for itself has outside things for its parameters, which may be anywhere. Where
//! the file calls it, these calls are interpreted too and say what it is really given, so they are judged and not
//! the function alone. What nobody in the file calls is there for others, unless its name begins with an underscore.

use std::cell::OnceCell;

use rustc_hash::{FxHashMap, FxHashSet};

use super::args::Args;
use crate::flow::domain::diagram::Dd;
use crate::flow::domain::event::{DeviceName, Event, Kind};
use crate::flow::domain::value::{Device, Host, OriginId, OuterId, OuterKey, Reason, Value};
use crate::flow::machine::Interp;
use crate::flow::models::tensors::sizes::dtype_width;
use crate::flow::project::call_arguments::{MAX_HANDS, handed_on};
use crate::flow::project::method_calls::through_objects;
use crate::ir::{ArgKind, Call, CallId, Expr, ExprId, FuncId, Function};
use crate::link::{ClassKey, ModIdx, Resolved};

/// What has been seen of calls, and of what must be on the host.
#[derive(Default)]
pub(crate) struct Callers {
    /// The function that is interpreted for itself.
    pub(crate) entry: Option<FuncId>,
    /// The calls in the entry's file of methods through objects.
    objects: OnceCell<FxHashMap<FuncId, Vec<CallId>>>,
    /// What is interpreted just now only prepares for an entry point.
    pub(crate) deaf: bool,
    /// Calls in the entry's file that have been interpreted, with the parameters for which each time something was
    /// given that is wherever somebody outside wants it.
    given: FxHashMap<CallId, Vec<u16>>,
    /// The same, with the parameters for which each time something was given that unknown code made of such a thing.
    derived: FxHashMap<CallId, Vec<u16>>,
    /// What unknown code made of things that are wherever somebody outside wants them.
    made_of_given: FxHashSet<OuterId>,
    /// Classes whose modules are run to be written down, and those whose modules are called.
    pub(crate) traced: FxHashSet<ClassKey>,
    pub(crate) called: FxHashSet<ClassKey>,
    /// While positive, what runs is such a run.
    pub(crate) tracing: u32,
    /// Outside tensors that the entry point itself takes to NumPy as they are: who calls it keeps them on the host.
    host: FxHashSet<OuterId>,
    /// Modules whose own `forward` gives arrays.
    for_numpy: FxHashSet<OuterId>,
    /// Outside things that the entry point itself follows, wherever they are: `y.to(x.device)`.
    followed: FxHashSet<OuterId>,
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

    /// Marks the events that are about a function's parameters while calls in sight say what these are.
    pub(crate) fn mark_decided(&self, events: Vec<(Event, Option<FuncId>, Option<Parameter>)>) -> Vec<Event> {
        let with_module = |event: &Event| match &event.kind {
            Kind::Mismatch { other, .. } => event.symbolic && other.device == DeviceName::WithModule,
            _ => false,
        };
        let rests = events.iter().any(|(event, ..)| with_module(event)) && self.modules_rest();
        let marked = events.into_iter().map(|(mut event, func, parameter)| {
            let decided = |event: &Event| {
                let own = event.stack.is_empty() || parameter.is_some_and(|(f, _)| Some(f) == func);
                own && func.is_some_and(|f| self.is_decided(f, parameter, MAX_HANDS))
            };
            event.parameter = parameter.filter(|&(f, _)| Some(f) == func);
            event.callers_decide = matches!(event.kind, Kind::Mismatch { .. })
                && !event.followed
                && if with_module(&event) {
                    rests || self.is_only_traced(&event, parameter)
                } else {
                    decided(&event)
                };
            event
        });
        marked.collect()
    }

    /// Is it a program that makes its own modules, and never speaks of a device? Then they stay on the CPU.
    fn modules_rest(&self) -> bool {
        let ir = &self.program.get(self.entry).ir;
        let device = |text: &str| ["cuda", "device", "gpu", "accel"].iter().any(|word| text.contains(word));
        let names = ir.functions.iter().flat_map(|f| f.slots.iter());
        // `.to("cpu")`, `.to(torch.float32)`
        let stays = |call: Call<'_>| {
            let cpu = |e| matches!(ir.expr(e), Expr::Str(text) if text.as_str() == "cpu");
            let dtype = |e| {
                matches!(self.program.resolve_expr(self.entry, e),
                    Some(Resolved::External(path)) if dtype_width(path.as_str()).is_some())
            };
            matches!(call.args, [only] if cpu(only.value) || dtype(only.value))
        };
        let to_cpu: FxHashSet<ExprId> =
            ir.calls().filter(|&call| stays(call)).map(|call| call.func).collect();
        let speaks = ir.exprs.iter().enumerate().any(|(n, e)| match *e {
            Expr::Attr { name, .. } if name.as_str() == "to" => {
                !to_cpu.contains(&ExprId(u32::try_from(n).unwrap_or(u32::MAX)))
            }
            Expr::Attr { name, .. } => device(name.as_str()),
            Expr::Str(text) => device(text.as_str()),
            _ => false,
        });
        if speaks || names.into_iter().any(|name| device(name.as_str())) {
            return false;
        }
        let made = ir.exprs.iter().enumerate().filter_map(|(n, e)| {
            let Expr::Call(call) = *e else { return None };
            let around = ir.function_around(ExprId(u32::try_from(n).unwrap_or(u32::MAX)));
            match self.program.resolve_expr(self.entry, ir.call(call).func) {
                Some(Resolved::Class(k))
                    if ir.function(around).class.is_none()
                        && k.module == self.entry
                        && self.is_module_class(k) =>
                {
                    Some(k)
                }
                _ => None,
            }
        });
        // A framework speaks of devices for those that are its own.
        let mut rests = false;
        for class in made {
            if self.is_moved_for_user(class) {
                return false;
            }
            rests = true;
        }
        rests
    }

    /// Do calls in sight decide what this function is given? One that hands on what its own function is given leaves
    /// it open, unless calls decide that; any other decides, be it that nothing is known of what it gives.
    fn is_decided(&self, func: FuncId, parameter: Option<Parameter>, hands: u32) -> bool {
        let linked = self.program.get(self.entry);
        let sites: Vec<CallId> = self.sites(func).collect();
        if sites.is_empty() {
            return false;
        }
        let function = linked.ir.function(func);
        let Some((_, index)) = parameter.filter(|&(f, _)| f == func) else { return true };
        let derived =
            |site: &CallId| self.calls.callers.derived.get(site).is_some_and(|n| n.contains(&index));
        if function.is_private() {
            // What is given to it comes from there, and is known there, unless unknown code is in between.
            return !sites.iter().all(derived);
        }
        let mut open = false;
        for site in sites {
            let handed = handed_on(&linked.ir, linked.ir.call(site), function, usize::from(index));
            let leaves_open = match self.calls.callers.given.get(&site) {
                Some(parameters) if parameters.contains(&index) => true,
                Some(_) if derived(&site) => true,
                Some(_) => return true,
                None => handed.is_some(),
            };
            if leaves_open && hands > 0 && handed.is_some_and(|(f, n)| self.hands_decided(f, n, hands - 1)) {
                return true;
            }
            open |= leaves_open;
        }
        !open
    }

    /// The default of a parameter for which none of the calls gives anything: of a function whose name says that nobody else
    /// calls it, and which is only called.
    pub(crate) fn left_by_all(&self, module: ModIdx, func: FuncId, index: usize) -> Option<ExprId> {
        let ir = &self.program.get(module).ir;
        let function = ir.function(func);
        let param = function.params.get(index)?;
        let default = param
            .default
            .filter(|&d| matches!(ir.expr(d), Expr::None | Expr::True | Expr::False | Expr::Str(_)))?;
        if !function.is_private() {
            return None;
        }
        let calls: Vec<Call<'_>> =
            ir.calls().filter(|c| ir.last_name(c.func) == Some(function.name)).collect();
        let named = |e: &&Expr| matches!(**e, Expr::Attr { name, .. } if name == function.name);
        let only_called = function.class.is_none() || ir.exprs.iter().filter(named).count() == calls.len();
        let bound = usize::from(function.class.is_some());
        let leaves = |call: &Call<'_>| {
            let positional = call.args.iter().filter(|a| a.kind == ArgKind::Positional).count();
            positional + bound <= index
                && call.args.iter().all(|a| match a.kind {
                    ArgKind::Positional => true,
                    ArgKind::Keyword(name) => name != param.name,
                    ArgKind::Star | ArgKind::DoubleStar => false,
                })
        };
        (only_called && !calls.is_empty() && calls.iter().all(leaves)).then_some(default)
    }

    /// The calls of a function of the entry's file, those of static methods by their class's name and of methods through
    /// objects included.
    fn sites(&self, func: FuncId) -> impl Iterator<Item = CallId> + '_ {
        let sites = self.program.sites(self.entry);
        let objects = self.calls.callers.objects.get_or_init(|| through_objects(self.program, self.entry));
        [&sites.by_name, &sites.by_class, objects]
            .into_iter()
            .filter_map(move |of| of.get(&func))
            .flatten()
            .copied()
    }

    /// Do calls in sight decide what a function is given that hands it on? One that nobody calls is there for others.
    fn hands_decided(&self, func: FuncId, index: usize, hands: u32) -> bool {
        let called = self.sites(func).next().is_some();
        let index = u16::try_from(index).unwrap_or(u16::MAX);
        called && self.is_decided(func, Some((func, index)), hands)
    }
}

/// What has held at each interpretation of the call.
fn keep_common(calls: &mut FxHashMap<CallId, Vec<u16>>, call: CallId, now: Vec<u16>) {
    match calls.get_mut(&call) {
        Some(before) => before.retain(|n| now.contains(n)),
        None => {
            calls.insert(call, now);
        }
    }
}

/// Is it a method that Python calls by itself, and not what the call names?
fn implied(callee: &Function, named: Expr) -> bool {
    matches!(callee.name.as_str(), "__iter__" | "__next__" | "__getitem__" | "__len__")
        && !matches!(named, Expr::Attr { name, .. } if name == callee.name)
}
