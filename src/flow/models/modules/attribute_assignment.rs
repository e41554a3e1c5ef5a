//! Assignments to attributes: what they register in a module, move, or keep.

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::dims::Dims;
use crate::flow::domain::value::{Device, ObjId, Reason, Role, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::flow::models::devices::from_values::parse_device;
use crate::flow::query::flag_words::speaks_of_devices;
use crate::ir::{Expr, ExprId};
use crate::sym::Sym;

impl Interp<'_> {
    /// `b.name = value`
    pub(crate) fn set_attr(&mut self, b: Value, name: Sym, value: Value, at: ExprId) {
        // `batch.split = "train"`: the object has attributes, so it may have its own method to move.
        if matches!(b, Value::Tensor(_) | Value::Outer(_))
            && !matches!(name.as_str(), "data" | "grad" | "requires_grad")
        {
            self.modules.with_fields.insert(b);
        }
        match b {
            Value::Object(id) => self.set_object_attr(id, name, value, at),
            Value::Choice(_) => {
                self.each(b, &mut |i, v| {
                    i.set_attr(v, name, value, at);
                    Value::Absent
                });
            }
            Value::Class(key) => {
                // On paths without this assignment, the class keeps its own value.
                if !self.names.class_cells.contains_key(&(key, name))
                    && let Some(before) = self.class_attr(key, name)
                    && !matches!(before, Value::Object(_))
                {
                    let cell = self.store.alloc_with(before);
                    self.names.class_cells.insert((key, name), cell);
                }
                self.set_class_variable(key, name, value);
            }
            // `args.device = …`, `batch.x = …`: the assignment replaces the outside value.
            Value::Outer(o) if !matches!(name.as_str(), "data" | "grad" | "requires_grad") => {
                let attr = self.outer_attr(o, name);
                self.write_outside(attr, value);
            }
            Value::Tensor(_)
                if name.as_str() == "requires_grad"
                    && value == Value::Bool(crate::flow::domain::diagram::TRUE) =>
            {
                if let Expr::Attr { base, .. } = self.linked().ir.expr(at) {
                    self.becomes_leaf(b, base);
                }
            }
            Value::Tensor(_) if name.as_str() == "data" => self.assign_data(b, value, at),
            Value::Tensor(_) if name.as_str() == "grad" => self.assign_gradient(b, value, at),
            Value::Module(m) => {
                self.note_seen();
                if let Some(&slot) = self.program.get(m).names.get(&name) {
                    let cell = self.global_cell(m, slot);
                    self.store.set(cell, value);
                }
            }
            _ => {}
        }
        if name.as_str() == "data" {
            self.takes_memory(value, at);
        }
    }

    /// `p.data = q`
    fn assign_data(&mut self, p: Value, q: Value, at: ExprId) {
        // An empty placeholder or one number: the program only frees the memory of `p`.
        if let Value::Tensor(t) = q
            && self.get_tensor(t).bytes.is_some_and(|bytes| bytes <= 8)
        {
            return;
        }
        // A parameter that is on the CPU on every machine moves here for the first time. The rest of a new module moves later.
        if let Value::Tensor(t) = p
            && matches!(*self.device_leaves(self.get_tensor(t).device), [(_, Device::Cpu, _)])
        {
            return;
        }
        let parties: Vec<_> = [p, q]
            .into_iter()
            .filter_map(|v| self.party(v, at, crate::flow::observers::mismatch::meet::Rule::STRICT))
            .collect();
        self.meet(crate::flow::domain::event::Meeting::Data, "`.data =`", at, &parties);
    }

    /// `layer.weight.data = q`: from now on, the parameter is on the device of `q`.
    fn takes_memory(&mut self, q: Value, at: ExprId) {
        let ir = &self.linked().ir;
        let Expr::Attr { base, .. } = ir.expr(at) else { return };
        let Expr::Attr { base: layer, name } = ir.expr(base) else { return };
        self.run.muted += 1;
        let layer = self.eval(layer);
        self.run.muted -= 1;
        let Value::Object(id) = layer else { return };
        let device = match q {
            Value::Tensor(t) => self.get_tensor(t).device,
            _ => self.unknown_device(),
        };
        match (self.get_field(id, name), self.obj(id).kind) {
            (Value::Tensor(p), _) => {
                let p = Tensor { device, ..self.get_tensor(p) };
                let p = self.tensor(p);
                self.set_field(id, name, p);
            }
            // The layer's other parameters stay on their device, unless the program also assigns to their `data`.
            (_, ObjKind::ForeignModule(_)) if !self.is_in_place(self.own(id), device) => {
                let unknown = self.unknown_device();
                self.move_module(id, unknown);
            }
            _ => {}
        }
    }

    /// Is `own` certainly the same device as `device`?
    fn is_in_place(&self, own: Value, device: Dd) -> bool {
        let Value::Device(own) = own else { return false };
        let one = |d: Dd| self.d.as_leaf(d).map(|leaf| self.t.places.get(leaf).0);
        one(own).is_some_and(|d| d != Device::Unknown && one(device) == Some(d))
    }

    /// `object.__setattr__(b, name, value)` and `b.__dict__[name] = value`, which `nn.Module` does not notice.
    pub(crate) fn set_unseen(&mut self, b: Value, name: Value, value: Value) {
        let (Value::Object(id), Value::Str(name, _)) = (b, name) else { return };
        self.set_field(id, name, value);
        if self.is_module_object(id) {
            self.modules.unseen.insert((id, name));
        }
    }

    /// `model._parameters[name] = value`: an entry in a dict in which `nn.Module` registers things. True if `table` is such a dict.
    pub(crate) fn set_in_registry(&mut self, key: Value, value: Value, at: ExprId, table: ExprId) -> bool {
        let Expr::Attr { base, name } = self.linked().ir.expr(table) else { return false };
        let registers = match name.as_str() {
            "_modules" => "add_module",
            "_parameters" => "register_parameter",
            "_buffers" => "register_buffer",
            _ => return false,
        };
        self.run.muted += 1;
        let owner = self.eval(base);
        self.run.muted -= 1;
        self.each(owner, &mut |i, owner| {
            if let Value::Object(id) = owner
                && i.is_module_object(id)
            {
                let args = Args { positional: vec![(key, at), (value, at)], ..Args::default() };
                i.module_method(id, Sym::new(registers), &args, at, base);
                if registers != "add_module" && !matches!(key, Value::Str(..)) {
                    i.forget_registered(id);
                    i.modules.refilled.insert(id);
                }
            }
            Value::Absent
        });
        true
    }

    /// Sets the devices of the module's own parameters and buffers to unknown, because an assignment may have replaced any of them.
    fn forget_registered(&mut self, id: ObjId) {
        let unknown = self.unknown_device();
        for (name, cell) in self.obj(id).attrs.clone() {
            if let Value::Tensor(t) = self.store.get(cell)
                && self.get_tensor(t).role.registered()
                && !self.modules.unseen.contains(&(id, name))
            {
                let t = self.get_tensor(t);
                let v = self.tensor(Tensor { device: unknown, ..t });
                self.store.set(cell, v);
            }
        }
    }

    /// `b.__dict__.update(options, name=value)`. True if the engine knows which attributes that sets.
    pub(crate) fn updates_fields(&mut self, b: Value, args: &Args) -> bool {
        let mut fields: Vec<(Value, Value)> = Vec::new();
        for &(v, _) in &args.positional {
            let Some(items) = self.dict_items(v) else { return false };
            // A Boolean in a dict of settings is a choice of the user, so do not assume its value.
            let pairs = items.chunks_exact(2).filter(|pair| !matches!(pair[1], Value::Bool(_)));
            fields.extend(pairs.map(|pair| (pair[0], pair[1])));
        }
        fields.extend(
            args.keywords.iter().map(|&(k, v, _)| (Value::Str(k, crate::flow::domain::value::NO_ORIGIN), v)),
        );
        let known = !args.open_names && fields.iter().all(|(k, _)| matches!(k, Value::Str(..)));
        if known && matches!(b, Value::Object(_)) {
            for &(name, value) in &fields {
                self.set_unseen(b, name, value);
            }
        }
        known && matches!(b, Value::Object(_))
    }

    fn set_object_attr(&mut self, id: ObjId, name: Sym, value: Value, at: ExprId) {
        if let Some(setter) = self.setter(id, name) {
            let args = Args { positional: vec![(value, at)], ..Args::default() };
            self.call_function(setter.module, setter.func, None, Some(Value::Object(id)), &args, at);
            return;
        }
        self.modules.unseen.remove(&(id, name));
        // The class's `__setattr__` may move the tensor, so its device is unknown.
        if matches!(value, Value::Tensor(_))
            && self.obj(id).kind == ObjKind::Instance
            && self.own_method(id, "__setattr__").is_some()
        {
            self.set_field(id, name, Value::Unknown);
            return;
        }
        // The program replaces the dict of submodules itself: every entry of the new dict is registered.
        if let ("_modules", Value::Object(table), true) = (name.as_str(), value, self.is_module_object(id))
            && self.obj(table).kind == (ObjKind::Dict { module: false })
        {
            self.objects[table.0 as usize].kind = ObjKind::Dict { module: true };
        }
        self.note_option_before(id, name, value, at);
        if self.is_module_object(id) {
            self.submodule_replaced(self.get_field(id, name), value, at);
        }
        let refused = self.check_parameter_replaced(id, name, value, at);
        // A registered name keeps its registration: `self.scale = new_tensor` replaces the buffer. In the place of a
        // parameter, PyTorch accepts parameters only.
        let value = match (self.get_field(id, name), value) {
            (old, Value::Tensor(new)) => {
                let new = self.get_tensor(new);
                let role = self.role_in_place_of(old, id, name, new, refused);
                self.tensor(Tensor { role, ..new })
            }
            (_, v) if self.obj(id).reserved.contains(&name) && self.is_buffer_of_unknown(id, name, v) => {
                self.buffer_of_unknown()
            }
            (_, v) => v,
        };
        let value = if self.obj(id).kind == ObjKind::Module && self.constructing() {
            let place = self.place(at);
            // An assignment of `None` stores nothing that must move.
            if value != Value::None {
                self.modules.fields.insert((id, name), place);
            }
            if self.check_leaf(value, at, "the module", true) {
                let unknown = self.unknown_device();
                self.plain_tensor(unknown, Dims::ANY)
            } else {
                self.kept(value, at, 0)
            }
        } else if self.obj(id).kind == ObjKind::Module && !self.run.symbolic {
            self.stored(value, at, 0)
        } else {
            value
        };
        self.follow_weight(id, name, value);
        self.set_field(id, name, value);
    }

    /// `args.device = "cpu"`: on paths without this assignment, the user's option decides the device or the back end.
    fn note_option_before(&mut self, id: ObjId, name: Sym, value: Value, at: ExprId) {
        let device = match value {
            Value::Str(s, _) => parse_device(s.as_str()).is_some() || speaks_of_devices(name.as_str()),
            Value::Device(_) => true,
            _ => false,
        };
        if device
            && self.obj(id).kind == ObjKind::Namespace
            && matches!(self.own(id), Value::Object(_))
            && !self.obj(id).attrs.iter().any(|&(n, _)| n == name)
        {
            let before = self.argument(id, name, at);
            let cell = self.store.alloc_with(before);
            self.objects[id.0 as usize].attrs.push((name, cell));
        }
    }

    /// The role of a tensor that replaces another value of a module. `refused`: PyTorch raises at this assignment.
    fn role_in_place_of(&self, old: Value, id: ObjId, name: Sym, new: Tensor, refused: bool) -> Role {
        let of_layer = matches!(self.obj(id).kind, ObjKind::ForeignModule(Some(_)));
        match old {
            _ if new.role.registered() => new.role,
            // After the bug is fixed, it is a parameter.
            _ if refused => Role::Parameter,
            Value::Tensor(old) if self.get_tensor(old).role.registered() => self.get_tensor(old).role,
            _ if self.obj(id).reserved.contains(&name) => Role::Buffer,
            _ if of_layer && matches!(name.as_str(), "weight" | "bias") => Role::Parameter,
            _ if of_layer && matches!(name.as_str(), "running_mean" | "running_var") => Role::Buffer,
            _ => new.role,
        }
    }

    /// A layer of PyTorch is on the device of its weight after the program replaces the weight.
    fn follow_weight(&mut self, id: ObjId, name: Sym, weight: Value) {
        if let (ObjKind::ForeignModule(Some(_)), true, Value::Tensor(t)) =
            (self.obj(id).kind, name.as_str().starts_with("weight"), weight)
            && self.get_tensor(t).role.registered()
        {
            let device = self.get_tensor(t).device;
            self.set_own(id, Value::Device(device));
        }
    }

    /// The same as `stored`, for `self.grid[i] = value`.
    pub(crate) fn stored_item(&mut self, id: ObjId, value: Value, at: ExprId, base: ExprId) -> Value {
        let attribute = matches!(self.linked().ir.expr(base), Expr::Attr { .. });
        let plain = attribute && !self.is_module_object(id) && !self.run.symbolic && self.in_module();
        if plain { self.stored(value, at, 0) } else { value }
    }

    /// Adds an origin `Stored` to the CPU tensors in a value that a module's method keeps for later calls.
    fn stored(&mut self, v: Value, at: ExprId, depth: u32) -> Value {
        match v {
            Value::Tensor(id) => {
                let t = self.get_tensor(id);
                if t.role.registered() || !self.is_cpu(t.device) {
                    return v;
                }
                let device = self.because(t.device, at, Reason::Stored);
                self.tensor(Tensor { device, ..t })
            }
            Value::Seq(s) if depth < 2 => {
                let items: Vec<Value> =
                    self.seq_items(s).iter().map(|&v| self.stored(v, at, depth + 1)).collect();
                self.seq(&items)
            }
            Value::Many(m) if depth < 2 => {
                let item = *self.t.values.get(m);
                let item = self.stored(item, at, depth + 1);
                self.many(item)
            }
            Value::Object(id) if self.obj(id).kind == (ObjKind::List { module: false }) => {
                let content = self.own(id);
                let content = self.stored(content, at, depth);
                self.set_own(id, content);
                v
            }
            v => v,
        }
    }
}
