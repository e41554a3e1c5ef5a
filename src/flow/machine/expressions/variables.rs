//! Variables of functions, of files and of other libraries.

use crate::flow::domain::value::{NO_ORIGIN, Outer, OuterId, OuterKey, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::expressions::evaluate::{ANY_VALUE, names_weights};
use crate::ir::{Expr, ExprId, FuncId, Var};
use crate::link::{Binding, ModIdx};
use crate::sym::Sym;

impl Interp<'_> {
    pub(crate) fn read_var(&mut self, var: Var, e: ExprId) -> Value {
        let v = match var {
            Var::Local(slot) => {
                if self.here().func == FuncId(0) {
                    let module = self.here().module;
                    let cell = self.global_cell(module, slot);
                    self.needs_bound(cell);
                    return self.global(module, slot);
                }
                let cell = crate::flow::domain::store::Cell(self.here().base.0 + u32::from(slot));
                self.needs_bound(cell);
                self.store.get(cell)
            }
            Var::Enclosing { depth, slot } => match self.enclosing(depth, slot) {
                Some(cell) => self.store.get(cell),
                None => Value::Unknown,
            },
            Var::Global(slot) => {
                let module = self.here().module;
                return self.global(module, slot);
            }
            Var::Unbound(name) => return self.unbound(name),
        };
        if v == Value::Absent { self.result_of(e) } else { v }
    }

    fn unbound(&mut self, name: Sym) -> Value {
        let module = self.here().module;
        match name.as_str() {
            "__name__" => {
                return if module == self.entry {
                    Value::Str(Sym::new("__main__"), NO_ORIGIN)
                } else {
                    Value::Str(Sym::new("imported"), NO_ORIGIN)
                };
            }
            "__file__" | "__doc__" => return Self::TEXT,
            _ => {}
        }
        match self.program.lookup(module, name) {
            Some(r) => self.resolved(r),
            None => {
                self.check_bound(name, module);
                Value::External(self.known.builtins.dotted(name))
            }
        }
    }

    /// The cell of a module-level variable.
    pub(crate) fn global_cell(&mut self, module: ModIdx, slot: u16) -> crate::flow::domain::store::Cell {
        let base = match self.names.globals.get(&module) {
            Some(&base) => base,
            None => {
                let slots = self.program.get(module).ir.functions.first().map_or(0, |f| f.slots.len());
                let base = self.store.alloc(slots);
                self.names.globals.insert(module, base);
                base
            }
        };
        crate::flow::domain::store::Cell(base.0 + u32::from(slot))
    }

    /// A module-level variable. In files other than the entry's, its value is evaluated at its first use.
    pub(crate) fn global(&mut self, module: ModIdx, slot: u16) -> Value {
        let cell = self.global_cell(module, slot);
        let v = self.store.get(cell);
        if v != Value::Absent {
            return v;
        }
        let binding = self.program.get(module).bindings.get(slot as usize).copied();
        let v = match binding {
            Some(Binding::Import(target)) => self.imported(target),
            Some(Binding::Def(f)) => self.module_function(module, f),
            Some(Binding::Class(class)) => Value::Class(crate::link::ClassKey { module, class }),
            Some(Binding::Value(_)) if self.is_blurred() => Value::Unknown,
            Some(Binding::Value(e)) if self.names.evaluated.insert((module, slot)) => {
                let objects = self.objects.len();
                let v = self.eval_in(module, FuncId(0), e);
                self.note_kept(objects);
                self.forget_moved_global(module, slot, v);
                v
            }
            _ => Value::Unknown,
        };
        // `backend = None` is a placeholder: a function sets it, in that file or in another.
        let v = if v == Value::None { Value::Unknown } else { v };
        if v == Value::Unknown || v == Value::Absent {
            return self.outer_global(module, slot);
        }
        self.store.set(cell, v);
        v
    }

    /// Prepares a call of a function of another file: evaluates the module-level variables that the function writes. On
    /// paths where the function does not write them, they keep these values.
    pub(crate) fn keep_globals(&mut self, module: ModIdx, func: FuncId) {
        let program = self.program;
        for &slot in program.written_globals(module, func) {
            let cell = self.global_cell(module, slot);
            if self.store.get(cell) != Value::Absent {
                continue;
            }
            let before = self.global(module, slot);
            let linked = self.program.get(module);
            let lacking = |b: &Binding| matches!(*b, Binding::Value(e) if linked.ir.expr(e) == Expr::None);
            if !linked.bindings.get(usize::from(slot)).is_some_and(lacking) {
                self.store.set(cell, before);
            }
        }
    }

    fn outer_global(&mut self, module: ModIdx, slot: u16) -> Value {
        let linked = self.program.get(module);
        let name = linked.ir.functions.first().and_then(|f| f.slots.get(slot as usize)).copied();
        let Some(name) = name else { return Value::Unknown };
        let key = OuterKey::External(Sym::new(&format!("{}:{name}", module.0)));
        let id = self.t.outer(key.clone(), || Outer {
            device: crate::flow::machine::arguments::args::names_device(name.as_str()),
            ..Outer::new(key, name.to_string())
        });
        Value::Outer(id)
    }

    /// The symbol for `base.name` of an outside value.
    pub(crate) fn outer_attr(&mut self, base: OuterId, name: Sym) -> OuterId {
        let key = OuterKey::Attr { base, name };
        if let Some(&id) = self.t.outer_ids.get(&key) {
            return id;
        }
        let parent = self.t.get_outer(base);
        // The class decides the attributes of `self`. The attributes of a parameter come from the caller.
        let varies = parent.varies && !matches!(parent.key, OuterKey::Receiver { .. });
        // `batch.x` is on the batch's device.
        let with = parent.with.filter(|_| matches!(parent.key, OuterKey::Param { .. }));
        let text = match parent.text.as_str() {
            "" => String::new(),
            text => [text, ".", name.as_str()].concat(),
        };
        self.t.outer(key.clone(), || Outer {
            device: crate::flow::machine::arguments::args::names_device(name.as_str()),
            varies,
            with,
            ..Outer::new(key, text)
        })
    }

    /// The symbol for `base[key]` of an outside value. A batch's parts are on the batch's device.
    pub(crate) fn outer_item(&mut self, base: OuterId, key: Value) -> OuterId {
        if let Value::Str(s, _) = key
            && names_weights(s.as_str())
        {
            self.used_as_weights(Value::Outer(base));
        }
        self.part_of_outer(base, key)
    }

    /// The same, for a key that is no evidence about `base`.
    pub(crate) fn part_of_outer(&mut self, base: OuterId, key: Value) -> OuterId {
        let key = match key {
            Value::Str(s, _) => Some(Value::Str(s, NO_ORIGIN)),
            Value::Int(i) => Some(Value::Int(i)),
            ANY_VALUE => Some(ANY_VALUE),
            _ => None,
        };
        let outer = OuterKey::Item { base, key };
        if let Some(&id) = self.t.outer_ids.get(&outer) {
            return id;
        }
        let parent = self.t.get_outer(base);
        // The caller does not decide the device of a loop item: batches are on the CPU, for any loader.
        let named = matches!(key, Some(Value::Str(..))) || key == Some(ANY_VALUE);
        let tensor = self.holds_tensors(base) || named && self.maps_to_tensors(base);
        // An argument may be a list of predictions. Its items are on a device of the caller's choice if they are used
        // as tensors. The parts of a batch are where the loader puts them.
        let of_argument = matches!(parent.key, OuterKey::Param { .. });
        let drawn = matches!(parent.key, OuterKey::Item { key: None, .. }) && !parent.tensor;
        let given = parent.with.is_some() || tensor || of_argument || key.is_some() && !drawn;
        let varies = parent.varies && given;
        let with = parent.with;
        // `config["device"]`, like `config.device`.
        let device = match key {
            Some(Value::Str(name, _))
                if crate::flow::machine::arguments::args::names_device(name.as_str()) =>
            {
                Some(name)
            }
            _ => None,
        };
        let text = match (parent.text.as_str(), device) {
            ("", _) => String::new(),
            (text, Some(name)) => format!("{text}[\"{name}\"]"),
            (text, None) => [text, "[…]"].concat(),
        };
        self.t.outer(outer.clone(), || Outer {
            tensor,
            device: device.is_some(),
            varies,
            with,
            ..Outer::new(outer, text)
        })
    }
}
