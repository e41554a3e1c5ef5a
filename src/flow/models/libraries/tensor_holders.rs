//! Objects of other libraries that keep tensors of their own, and are called with others: `MinLengthLogitsProcessor(…)`.

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::value::{Device, NO_ORIGIN, ObjId, Reason, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::ir::ExprId;
use crate::torch::{Arg, CallFact};

impl Interp<'_> {
    /// What the call makes, if it is known to keep tensors, or to hand its own call on to such.
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
        // A tensor that is given is kept where it is.
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

    /// What calls each of these with what it is called with: what one of them keeps meets all that another brings together with
    /// what the first one must have there.
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
