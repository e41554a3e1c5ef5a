//! Objects of other libraries that keep tensors of their own, and are called with others: `MinLengthLogitsProcessor(…)`.

use super::super::value::{Device, NO_ORIGIN, Reason, Value};
use super::args::Args;
use super::{Interp, ObjKind};
use crate::ir::ExprId;
use crate::torch::CallFact;

impl Interp<'_> {
    /// What the call makes, if it is known to keep tensors, or to hand its own call on to such.
    pub(super) fn make_keeper(&mut self, fact: &CallFact, args: &Args, e: ExprId) -> Option<Value> {
        if let Some(each) = fact.calls_each {
            let (items, _) = args.get(usize::from(each.position), each.name.as_str())?;
            let items = self.exact_elements(items)?;
            return items
                .into_iter()
                .find(|v| matches!(v, Value::Object(id) if self.watch.keepers.contains_key(id)));
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
        let id = self.object(ObjKind::ForeignModule(None), None, Value::Device(device));
        self.watch.keepers.insert(id, meets);
        Some(Value::Object(id))
    }
}
