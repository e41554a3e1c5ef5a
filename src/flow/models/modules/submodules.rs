//! The submodules of a module, by name and one by one.

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::value::Device;
use crate::flow::domain::value::TensorId;
use crate::flow::domain::value::{ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::frame::ObjKind;
use crate::torch::State;

/// Modules and tensors that a value holds.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) modules: Vec<ObjId>,
    pub(crate) tensors: Vec<TensorId>,
    /// Whether there may be more than these.
    pub(crate) open: bool,
}

/// How deep to look into containers inside of containers.
const MAX_NESTING: u32 = 6;

impl Interp<'_> {
    /// Adds everything in a value: the contents of containers, and modules with everything that is registered in them.
    pub(crate) fn parts_of(&self, v: Value, parts: &mut Parts, depth: u32) {
        if depth > MAX_NESTING {
            parts.open = true;
            return;
        }
        match v {
            Value::Tensor(t) => parts.tensors.push(t),
            Value::Seq(s) => {
                for &v in self.t.seqs.get(s.0) {
                    self.parts_of(v, parts, depth + 1);
                }
            }
            Value::Many(m) => self.parts_of(*self.t.values.get(m), parts, depth + 1),
            Value::Choice(d) => {
                let mut leaves = Vec::new();
                self.d.leaves(d, &mut leaves);
                for leaf in leaves {
                    self.parts_of(*self.t.values.get(leaf), parts, depth + 1);
                }
            }
            Value::Object(o) if parts.modules.contains(&o) => {}
            Value::Object(o) if self.is_module_object(o) => {
                parts.modules.push(o);
                self.registered_parts(o, parts, depth + 1);
            }
            Value::Object(o) if matches!(self.obj(o).kind, ObjKind::List { .. } | ObjKind::Dict { .. }) => {
                self.parts_of(self.own(o), parts, depth + 1);
            }
            Value::Unknown | Value::Outer(_) => parts.open = true,
            _ => {}
        }
    }

    /// Adds everything that is registered in a module and in its submodules.
    pub(crate) fn registered_parts(&self, id: ObjId, parts: &mut Parts, depth: u32) {
        if let ObjKind::List { .. } | ObjKind::Dict { .. } = self.obj(id).kind {
            self.parts_of(self.own(id), parts, depth);
        }
        for &(name, cell) in &self.obj(id).attrs {
            if self.modules.unseen.contains(&(id, name)) {
                continue;
            }
            for v in self.values_of(self.store.get(cell)) {
                match v {
                    Value::Object(o) if self.is_module_object(o) => self.parts_of(v, parts, depth),
                    Value::Tensor(_) => self.parts_of(v, parts, depth),
                    _ => {}
                }
            }
        }
        // A submodule whose constructor has not run yet holds the constructor's arguments.
        if let Some(args) = self.calls.unbuilt.get(&id) {
            for (v, _) in args.values() {
                self.parts_of(v, parts, depth + 1);
            }
        }
    }

    /// Stores that the program moves the classes of these modules to an accelerator.
    pub(crate) fn note_accelerator(&mut self, id: ObjId, device: Dd) {
        let leaves: Vec<Device> = self.device_leaves(device).iter().map(|l| l.1).collect();
        if self.obj(id).outer.is_some() || leaves.iter().all(|&d| d == Device::Cpu) {
            return;
        }
        let cuda = leaves.iter().any(|d| !matches!(d, Device::Cpu | Device::Meta | Device::Other(_)));
        let mut parts = Parts::default();
        self.parts_of(Value::Object(id), &mut parts, 0);
        let classes: Vec<_> = parts.modules.into_iter().filter_map(|m| self.obj(m).class).collect();
        for class in classes {
            *self.observed.accelerated.entry(class).or_default() |= cuda;
        }
    }
}

/// The maximum number of modules that are listed one by one.
pub(crate) const MAX_PARTS: usize = 24;
/// The maximum depth of the tree of modules.
const MAX_LEVELS: u32 = 6;

impl Interp<'_> {
    /// The children of a module that a script made. With `all`, the module itself and all modules below it. `None` if one is unknown.
    pub(crate) fn own_parts(&self, id: ObjId, all: bool) -> Option<Vec<(String, Value)>> {
        if self.run.symbolic || self.calls.shallow > 0 {
            return None;
        }
        if !all {
            return self.children(id);
        }
        let mut parts = vec![(String::new(), Value::Object(id))];
        self.parts_below(id, "", &mut parts, 0)?;
        Some(parts)
    }

    fn parts_below(
        &self,
        id: ObjId,
        prefix: &str,
        parts: &mut Vec<(String, Value)>,
        level: u32,
    ) -> Option<()> {
        for (name, v) in self.children(id)? {
            let name = if prefix.is_empty() { name } else { [prefix, ".", &name].concat() };
            // A shared module is listed once.
            if parts.iter().any(|&(_, known)| known == v) {
                continue;
            }
            if parts.len() == MAX_PARTS || level == MAX_LEVELS {
                return None;
            }
            parts.push((name.clone(), v));
            if let Value::Object(child) = v {
                self.parts_below(child, &name, parts, level + 1)?;
            }
        }
        Some(())
    }

    /// The children, in the order of their registration. `None` if one is unknown.
    fn children(&self, id: ObjId) -> Option<Vec<(String, Value)>> {
        let object = self.obj(id);
        if object.outer.is_some() || self.calls.unbuilt.contains_key(&id) || self.modules.hooked.contains(&id)
        {
            return None;
        }
        match (object.kind, self.own(id)) {
            (ObjKind::ForeignModule(Some(_)), _) => Some(Vec::new()),
            (ObjKind::List { module: true }, Value::Seq(s)) => {
                let items = self.seq_items(s);
                items.iter().enumerate().map(|(n, &v)| self.child(n.to_string(), v)).collect()
            }
            (ObjKind::Dict { module: true }, Value::Seq(s)) => {
                let items = self.seq_items(s);
                let pairs = items.chunks(2).map(|p| match p {
                    &[Value::Str(name, _), v] => self.child(name.to_string(), v),
                    _ => None,
                });
                pairs.collect()
            }
            (ObjKind::Module, _) => {
                let mut children = Vec::new();
                for &(name, cell) in &object.attrs {
                    match self.store.get(cell) {
                        v @ Value::Object(o) if self.is_module_object(o) => {
                            children.push((name.to_string(), v))
                        }
                        // It may be a module or something else.
                        Value::Choice(_) | Value::Unknown | Value::Outer(_) | Value::Many(_) => return None,
                        _ => {}
                    }
                }
                Some(children)
            }
            _ => None,
        }
    }

    fn child(&self, name: String, v: Value) -> Option<(String, Value)> {
        matches!(v, Value::Object(o) if self.is_module_object(o)).then_some((name, v))
    }

    /// Does the module contain one of PyTorch's layers with weights?
    pub(crate) fn has_layers(&self, id: ObjId, depth: u32) -> bool {
        const MAX_LEVELS: u32 = 4;
        match self.obj(id).kind {
            ObjKind::ForeignModule(Some(op)) => op.state == State::Yes,
            _ if depth > MAX_LEVELS => false,
            ObjKind::List { module: true } | ObjKind::Dict { module: true } => {
                let items = match self.own(id) {
                    Value::Seq(s) => self.seq_items(s).to_vec(),
                    _ => Vec::new(),
                };
                items.iter().any(|&v| matches!(v, Value::Object(o) if self.has_layers(o, depth + 1)))
            }
            ObjKind::Module => self.obj(id).attrs.iter().any(|&(_, cell)| {
                matches!(self.store.get(cell), Value::Object(o)
                    if self.is_module_object(o) && self.has_layers(o, depth + 1))
            }),
            _ => false,
        }
    }

    /// The maximum number of items of a loop that the engine interprets one by one.
    pub(crate) fn most_rounds(&self, items: &[Value]) -> usize {
        const USUAL: usize = 8;
        let part = |v: &Value| match *v {
            Value::Object(id) => self.is_module_object(id),
            Value::Seq(s) => {
                matches!(self.seq_items(s)[..], [Value::Str(..), Value::Object(_) | Value::Tensor(_)])
            }
            _ => false,
        };
        if items.iter().all(part) { MAX_PARTS } else { USUAL }
    }
}
