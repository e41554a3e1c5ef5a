//! Moves of `nn.Module`s: what moves along, and what stays on its device.

use rustc_hash::FxHashSet;

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::dims::Dims;
use crate::flow::domain::value::{Device, NO_ORIGIN, ObjId, Role, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::frame::ObjKind;
use crate::sym::Sym;

impl Interp<'_> {
    /// Moves a module and everything that is registered in it.
    pub(crate) fn move_module(&mut self, id: ObjId, device: Dd) {
        let mut seen = FxHashSet::default();
        self.move_registered(id, device, &mut seen);
    }

    /// The device after a move. A module that was on the CPU and stays there keeps its origin.
    fn where_it_was(&mut self, old: Dd, device: Dd) -> Dd {
        let places = &self.t.places;
        let same = |x: u32, y: u32| {
            let ((a, why), (b, _)) = (*places.get(x), *places.get(y));
            a == b && a == Device::Cpu && why != NO_ORIGIN
        };
        self.d.zip(old, device, &mut |x, y| if same(x, y) { x } else { y }).unwrap_or(device)
    }

    pub(crate) fn move_registered(&mut self, id: ObjId, device: Dd, seen: &mut FxHashSet<ObjId>) {
        if !seen.insert(id) {
            return;
        }
        self.modules.refilled.remove(&id);
        match self.obj(id).kind {
            ObjKind::List { module: true } | ObjKind::Dict { module: true } => {
                let content = self.own(id);
                let moved = self.move_value(content, device, seen);
                self.set_own(id, moved);
            }
            _ => {
                let mut now = device;
                if let Value::Device(old) = self.own(id) {
                    self.leaves_parameters_at(old, device);
                    now = self.where_it_was(old, device);
                }
                self.set_own(id, Value::Device(now));
            }
        }
        if self.moves_itself_by_hand(id) {
            self.forget_plain(id);
        }
        let attrs: Vec<_> = self.obj(id).attrs.clone();
        for (name, cell) in attrs {
            if self.modules.unseen.contains(&(id, name)) {
                continue;
            }
            let v = self.store.get(cell);
            let moved = self.move_value(v, device, seen);
            self.store.set(cell, moved);
        }
    }

    /// A parameter moves in place (`Module._apply` assigns its `.data`), so its other holders see it move, too.
    fn leaves_parameters_at(&mut self, old: Dd, new: Dd) {
        if old != new {
            self.modules.left_by_parameters.insert(old);
        }
    }

    /// The program takes parameters out of a module. They are on `device`, which is the module's device `now` with a new origin.
    pub(crate) fn give_out(&mut self, id: ObjId, now: Dd, device: Dd) {
        let given = self.modules.given_out.entry(device).or_default();
        if !given.contains(&(id, now)) {
            given.push((id, now));
        }
    }

    /// A value as a variable or container holds it. A parameter that was taken out of a module moves with that module. If the
    /// parameter may belong to several modules, its device becomes unknown. A read from the module itself gives the module's device.
    pub(crate) fn as_held(&mut self, v: Value) -> Value {
        let Value::Tensor(id) = v else { return v };
        let t = self.get_tensor(id);
        if self.modules.graphs_moved.contains(&id) {
            let device = self.unknown_device();
            return self.tensor(Tensor { device, ..t });
        }
        if t.role != Role::Parameter {
            return v;
        }
        let device = match self.modules.given_out.get(&t.device).map(Vec::as_slice) {
            Some(&[(module, then)]) => match self.module_device(module, 0) {
                now if now == then => return v,
                now => now,
            },
            Some(given) => {
                let given = given.to_vec();
                if given.into_iter().all(|(module, then)| self.module_device(module, 0) == then) {
                    return v;
                }
                self.unknown_device()
            }
            None if self.modules.left_by_parameters.contains(&t.device) => self.unknown_device(),
            None => return v,
        };
        self.tensor(Tensor { device, ..t })
    }

    /// `.to()` of a tensor that may be a graph object, which moves in place. Its other holders see it move. Parts read before stay.
    pub(crate) fn moves_graph(&mut self, t: Tensor) {
        let whole = !t.certain && t.dims == Dims::SOME && self.is_of_batch(t) && self.batches_may_move();
        if whole && let Value::Tensor(id) = self.tensor(t) {
            self.modules.graphs_moved.insert(id);
        }
    }

    /// The loop draws the next graph object, which the program has not moved yet.
    pub(crate) fn drawn_anew(&mut self, item: Value) {
        if let Value::Tensor(id) = item {
            self.modules.graphs_moved.remove(&id);
        }
    }

    /// Does the module's class have its own method that moves unregistered tensors?
    pub(crate) fn moves_itself_by_hand(&self, id: ObjId) -> bool {
        let Some(key) = self.obj(id).class else { return false };
        let has = |name: &str| self.program.find_method(key, Sym::new(name)).is_some();
        has("_apply") || self.obj(id).outer.is_some() && (has("to") || has("cuda"))
    }

    /// Sets the devices of a module's plain tensors to unknown, and the devices that the module stores.
    pub(crate) fn forget_plain(&mut self, id: ObjId) {
        let unknown = self.unknown_device();
        for (_, cell) in self.obj(id).attrs.clone() {
            let v = self.store.get(cell);
            let v = self.forgotten(v, unknown);
            self.store.set(cell, v);
        }
    }

    fn forgotten(&mut self, v: Value, unknown: Dd) -> Value {
        match v {
            Value::Tensor(t) if !self.get_tensor(t).role.registered() => {
                let t = self.get_tensor(t);
                self.tensor(Tensor { device: unknown, ..t })
            }
            Value::Device(_) => Value::Device(unknown),
            Value::Object(o)
                if matches!(
                    self.obj(o).kind,
                    ObjKind::List { module: false } | ObjKind::Dict { module: false }
                ) =>
            {
                let content = self.many(Value::Unknown);
                self.set_own(o, content);
                v
            }
            // For example `{…} if means else {}`.
            Value::Choice(_) => self.each(v, &mut |i, v| i.forgotten(v, unknown)),
            v => v,
        }
    }

    /// A registered value after its module has moved.
    pub(crate) fn move_value(&mut self, v: Value, device: Dd, seen: &mut FxHashSet<ObjId>) -> Value {
        match v {
            Value::Object(o) if self.is_module_object(o) => {
                self.move_registered(o, device, seen);
                v
            }
            Value::Tensor(t) => {
                let t = self.get_tensor(t);
                if t.role.registered() {
                    self.leaves_parameters_at(t.device, device);
                    self.tensor(Tensor { device, ..t })
                } else if t.certain {
                    v
                } else {
                    // A part of a library's module. It is a module, which moves, or a tensor, which does not.
                    let device = self.unknown_device();
                    self.tensor(Tensor { device, ..t })
                }
            }
            Value::Seq(s) => {
                let items: Vec<Value> =
                    self.seq_items(s).iter().map(|&v| self.move_value(v, device, seen)).collect();
                self.seq(&items)
            }
            Value::Many(m) => {
                let item = *self.t.values.get(m);
                let moved = self.move_value(item, device, seen);
                self.many(moved)
            }
            // Only one alternative is registered. To move the others as well does no harm.
            Value::Choice(d) => {
                let mut leaves = Vec::new();
                self.d.leaves(d, &mut leaves);
                let mut moved = Vec::with_capacity(leaves.len());
                for leaf in leaves {
                    let v = *self.t.values.get(leaf);
                    let new = self.move_value(v, device, seen);
                    moved.push((leaf, self.t.values.add(new)));
                }
                let d = self
                    .d
                    .map(d, &mut |p| moved.iter().find(|(old, _)| *old == p).map_or(p, |&(_, new)| new));
                self.value_of_diagram(d)
            }
            v => v,
        }
    }
}
