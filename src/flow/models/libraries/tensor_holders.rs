//! Objects of other libraries that keep tensors and are called with other tensors: `MinLengthLogitsProcessor(…)`.

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::value::{Device, NO_ORIGIN, ObjId, Reason, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::ir::ExprId;
use crate::torch::{Arg, CallFact};

impl Interp<'_> {
    /// The result of the call, if it keeps tensors, or passes its own calls on to objects that keep tensors.
    pub(crate) fn make_keeper(&mut self, fact: &CallFact, args: &Args, e: ExprId) -> Option<Value> {
        if let Some(each) = fact.calls_each {
            let (items, _) = args.get(usize::from(each.position), each.name.as_str())?;
            let items = self.exact_elements(items)?;
            return self.all_in_one(&items);
        }
        if !fact.mixes.is_empty() {
            let nowhere = self.unknown_device();
            return Some(self.keeper(nowhere, fact.mixes.clone()));
        }
        let (place, meets) = (fact.keeps_at?, fact.meets?);
        if args.open || args.open_names {
            return None;
        }
        // A tensor argument stays on its own device.
        let tensor = |v: Value| self.values_of(v).into_iter().any(|v| matches!(v, Value::Tensor(_)));
        if args.values().any(|(v, _)| tensor(v)) {
            return None;
        }
        let device = match args.get(usize::from(place.position), place.name.as_str()) {
            Some((Value::None, _)) => self.default_device_at(e, Reason::Default),
            None => {
                let here = self.place(e);
                let origin = self.origin(here, Reason::Default, NO_ORIGIN);
                self.at(Device::Cpu, origin)
            }
            Some((v, at)) => {
                let told = self.as_device(v, at).unwrap_or_else(|| self.unknown_device());
                self.because(told, e, Reason::Made)
            }
        };
        Some(self.keeper(device, vec![meets]))
    }

    /// An object that calls each of these objects with its own arguments. A tensor that one object keeps meets every argument
    /// that another object combines with the first object's arguments.
    fn all_in_one(&mut self, items: &[Value]) -> Option<Value> {
        let known = |v: &Value| match v {
            Value::Object(id) => self.libraries.keepers.get(id).map(|meets| (*id, meets.clone())),
            _ => None,
        };
        let known: Vec<(ObjId, Vec<Arg>)> = items.iter().filter_map(known).collect();
        let nowhere = Value::Device(self.unknown_device());
        let keeps = |i: &Self, id: ObjId| i.own(id) != nowhere;
        let &(first, _) = known.iter().find(|(id, _)| keeps(self, *id)).or(known.first())?;
        let mut meets = self.libraries.keepers.get(&first)?.clone();
        for (_, others) in &known {
            if others.iter().any(|a| meets.contains(a)) {
                let new: Vec<Arg> = others.iter().filter(|a| !meets.contains(a)).copied().collect();
                meets.extend(new);
            }
        }
        let Value::Device(device) = self.own(first) else { return None };
        Some(self.keeper(device, meets))
    }

    fn keeper(&mut self, device: Dd, meets: Vec<Arg>) -> Value {
        let id = self.object(ObjKind::ForeignModule(None), None, Value::Device(device));
        self.libraries.keepers.insert(id, meets);
        Value::Object(id)
    }
}
