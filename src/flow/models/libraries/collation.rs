//! How a loader collates items into batches, and pinned memory.

use crate::flow::domain::diagram::FALSE;
use crate::flow::domain::dims::Dims;
use crate::flow::domain::value::{Device, Host, NO_ORIGIN, ObjId, Reason, Role, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::flow::models::libraries::data_loaders::{Collation, MAX_NESTING};
use crate::flow::models::modules::submodules::Parts;
use crate::ir::{Expr, ExprId};
use crate::sym::Sym;

impl Interp<'_> {
    /// `for key in batch: … batch[key]`: the program indexes an unknown batch with its own elements, so the batch is a dict.
    pub(crate) fn goes_over_keys(&self, iterable: Value, target: ExprId, at: ExprId) -> bool {
        let Value::Tensor(t) = iterable else { return false };
        let t = self.get_tensor(t);
        if t.certain || !self.is_of_batch(t) {
            return false;
        }
        let ir = &self.linked().ir;
        let (Expr::Var(key), Expr::Var(whole)) = (ir.expr(target), ir.expr(at)) else { return false };
        let is = |e: ExprId, wanted| matches!(ir.expr(e), Expr::Var(v) if v == wanted);
        ir.exprs[ir.exprs_of(ir.function(self.here().func))]
            .iter()
            .any(|e| matches!(*e, Expr::Index { base, index } if is(base, whole) && is(index, key)))
    }

    /// `batch["y"] = y`: a tensor has no such items. From now on the batch holds something that the loader did not provide.
    /// After `batch[i] = batch[i].to(device)`, the batch is no tensor either: an assignment to a tensor would copy the item back.
    pub(crate) fn batch_is_changed(&mut self, t: Tensor, key: Value, value: Value, base: ExprId) {
        let moved = |i: &Self| matches!(value, Value::Tensor(v) if i.get_tensor(v).device != t.device);
        // `for key in batch.keys()`: the key may be a choice of strings from one batch and unknown values from another.
        let keys = self.values_of(key);
        let any = |test: fn(&Value) -> bool| keys.iter().any(test);
        let named = any(|k| matches!(k, Value::Str(..) | Value::Host(Host::Text)));
        let of_a_list = any(|k| matches!(k, Value::Int(_) | Value::Host(Host::Number))) && moved(self);
        if !t.certain
            && self.is_of_batch(t)
            && (named || of_a_list)
            && matches!(self.linked().ir.expr(base), Expr::Var(_) | Expr::Attr { .. })
        {
            self.assign(base, Value::Unknown);
        }
    }

    /// The part of a batch that collating makes from items, or parts of items, like this one.
    pub(crate) fn collated(&mut self, item: Value, how: Collation, depth: u32) -> Value {
        if depth > MAX_NESTING {
            return Value::Unknown;
        }
        match item {
            Value::Tensor(t) => {
                let t = self.get_tensor(t);
                let device = self.because(t.device, how.at, Reason::Batch);
                let dims = t.dims.plus(u8::from(how.stacked));
                self.tensor(Tensor { device, dims, role: Role::Plain, bytes: None, double: FALSE, ..t })
            }
            Value::Host(Host::Array) => self.made_of_host(Dims::SOME, how),
            Value::Host(Host::Numbers) if how.stacked => self.made_of_host(Dims::SOME, how),
            Value::Host(Host::Number | Host::Doubles | Host::Rank | Host::CurrentGpu)
            | Value::Int(_)
            | Value::Bool(_)
                if how.stacked =>
            {
                self.made_of_host(Dims::exactly(1), how)
            }
            Value::Str(..) | Value::Host(Host::Text) => self.many(Self::TEXT),
            // A batch of tuples is a list of tensors, even if each tuple has one element: `for x, in loader`, `for x in loader`.
            Value::Seq(_) | Value::Many(_) => self.collated_content(item, how, depth),
            Value::Object(id) => {
                let kind = self.obj(id).kind;
                let content = self.own(id);
                match (kind, content) {
                    (ObjKind::List { module: false }, content) => {
                        let content = self.collated_content(content, how, depth);
                        Value::Object(self.object(kind, None, content))
                    }
                    (ObjKind::Dict { module: false }, Value::Seq(s)) => {
                        let mut items = self.seq_items(s).to_vec();
                        for pair in items.chunks_mut(2) {
                            pair[1] = self.collated(pair[1], how, depth + 1);
                        }
                        let content = self.seq(&items);
                        Value::Object(self.object(kind, None, content))
                    }
                    (ObjKind::Dict { module: false }, content) => {
                        let content = self.collated_content(content, how, depth);
                        Value::Object(self.object(kind, None, content))
                    }
                    _ => Value::Unknown,
                }
            }
            Value::Choice(_) => self.each(item, &mut |i, v| i.collated(v, how, depth + 1)),
            // The caller decides its device.
            Value::Outer(o) if self.t.get_outer(o).varies || self.is_tensorish(o) => item,
            Value::Outer(_) | Value::Unknown if how.from_files => self.unseen_batch(how.at),
            _ => Value::Unknown,
        }
    }

    fn collated_content(&mut self, content: Value, how: Collation, depth: u32) -> Value {
        match content {
            Value::Seq(s) => {
                let items: Vec<Value> =
                    self.seq_items(s).iter().map(|&v| self.collated(v, how, depth + 1)).collect();
                self.seq(&items)
            }
            Value::Many(m) => {
                let item = *self.t.values.get(m);
                let item = self.collated(item, how, depth + 1);
                self.many(item)
            }
            _ => Value::Unknown,
        }
    }

    /// Numbers and arrays become tensors on the default device.
    fn made_of_host(&mut self, dims: Dims, how: Collation) -> Value {
        let device = self.default_device_at(how.at, Reason::Batch);
        self.plain_tensor(device, dims)
    }

    /// The batch that the project's own `collate_fn` makes from the data set's items. The engine also interprets that function on its own.
    pub(crate) fn collated_by(&mut self, data: Value, f: Value, at: ExprId, e: ExprId) -> Value {
        let item = self.item_of(data, e).unwrap_or_else(|| self.result_of(e));
        let items = self.many(item);
        let args = Args { positional: vec![(items, at)], ..Args::default() };
        let batch = self.aside(&mut |i| i.call_value(f, &args, e));
        if batch == Value::None { Value::Unknown } else { batch }
    }

    /// `pin_memory=True`. Reports tensors that are not in host memory.
    pub(crate) fn check_pinning(
        &mut self,
        item: Value,
        pins: crate::flow::domain::diagram::Cond,
        data: ExprId,
        e: ExprId,
    ) {
        let mut parts = Parts::default();
        self.parts_of(item, &mut parts, 0);
        let before = self.path;
        self.path = self.d.and(before, pins);
        let unknown = self.t.places.add((Device::Unknown, NO_ORIGIN));
        for t in parts.tensors {
            let t = self.get_tensor(t);
            if !t.certain || self.path == FALSE {
                continue;
            }
            // With other back ends, PyTorch only warns.
            let places = &self.t.places;
            let device = self.d.map(t.device, &mut |p| match places.get(p).0 {
                Device::Other(_) => unknown,
                _ => p,
            });
            if self.check_on_cpu(device, data, e, "`DataLoader(pin_memory=True)`") {
                break;
            }
        }
        self.path = before;
    }

    /// A batch after the loader has pinned its tensors.
    pub(crate) fn pinned(&mut self, item: Value, e: ExprId) -> Value {
        self.each_within(item, &mut |i, item| match item {
            Value::Tensor(t) => {
                let t = i.get_tensor(t);
                let device = i.because(t.device, e, Reason::Pinned);
                i.tensor(Tensor { device, ..t })
            }
            Value::Object(id) if i.is_plain_container(id) => {
                let content = i.own(id);
                let content = i.pinned(content, e);
                i.set_own(id, content);
                item
            }
            v => v,
        })
    }

    /// Is it a plain Python list or dict?
    pub(crate) fn is_plain_container(&self, id: ObjId) -> bool {
        matches!(self.obj(id).kind, ObjKind::Dict { module: false } | ObjKind::List { module: false })
    }

    /// Marks the objects in the value whose number is at least `since`: each round of a loop makes new ones.
    pub(crate) fn made_anew(&mut self, v: Value, since: usize) {
        match v {
            Value::Object(id) => {
                let kind = self.obj(id).kind;
                let plain = matches!(
                    kind,
                    ObjKind::Dict { module: false } | ObjKind::List { module: false } | ObjKind::Instance
                );
                if !plain || (id.0 as usize) < since || !self.libraries.anew.insert(id) {
                    return;
                }
                self.made_anew(self.own(id), since);
                for (_, cell) in self.obj(id).attrs.clone() {
                    self.made_anew(self.store.get(cell), since);
                }
            }
            Value::Seq(s) => {
                for &v in &self.seq_items(s) {
                    self.made_anew(v, since);
                }
            }
            Value::Many(m) => self.made_anew(*self.t.values.get(m), since),
            _ => {}
        }
    }

    /// The value in the next round of a loop. Its objects are new, so that changes in the last round do not apply to them.
    pub(crate) fn next_round(&mut self, v: Value) -> Value {
        if !self.evidence.outer_writes.is_empty() {
            self.is_new_outside(v);
        }
        if self.libraries.anew.is_empty() {
            return v;
        }
        match v {
            Value::Object(id) if self.libraries.anew.contains(&id) => {
                let (kind, class, own) = (self.obj(id).kind, self.obj(id).class, self.own(id));
                let own = self.next_round(own);
                let new = self.object(kind, class, own);
                for (name, cell) in self.obj(id).attrs.clone() {
                    let field = self.next_round(self.store.get(cell));
                    self.set_field(new, name, field);
                }
                Value::Object(new)
            }
            Value::Seq(s) => {
                let items: Vec<Value> = self.seq_items(s).iter().map(|&v| self.next_round(v)).collect();
                self.seq(&items)
            }
            Value::Many(m) => {
                let item = *self.t.values.get(m);
                let item = self.next_round(item);
                self.many(item)
            }
            v => v,
        }
    }

    /// The method of this name in the object's class, if the project defines it.
    pub(crate) fn own_method(
        &self,
        id: ObjId,
        name: &str,
    ) -> Option<(crate::link::ModIdx, crate::ir::FuncId)> {
        self.obj(id).class.and_then(|class| self.program.find_method(class, Sym::new(name)))
    }
}

pub(crate) fn is_default_collate(f: Value) -> bool {
    matches!(f, Value::External(path) if path.as_str().ends_with(".default_collate"))
}
