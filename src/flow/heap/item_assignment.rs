//! Stores of items: `b[i] = x`.

use crate::flow::domain::event::Meeting;
use crate::flow::domain::value::{Host, ObjId, OuterId, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::flow::observers::mismatch::meet::Rule;
use crate::ir::ExprId;
use crate::sym::Sym;

impl Interp<'_> {
    /// Assigns `base[index] = value`.
    pub(crate) fn set_item(
        &mut self,
        b: Value,
        i: Value,
        value: Value,
        at: ExprId,
        base: ExprId,
        index: ExprId,
    ) {
        match b {
            Value::Choice(_) => {
                self.each(b, &mut |s, v| {
                    s.set_item(v, i, value, at, base, index);
                    Value::Absent
                });
            }
            Value::Object(id)
                if self.obj(id).kind == ObjKind::Instance
                    && let Some((m, f)) = self.own_method(id, "__setitem__") =>
            {
                let args = Args { positional: vec![(i, index), (value, at)], ..Args::default() };
                self.call_function(m, f, None, Some(b), &args, at);
            }
            Value::Object(id) => {
                // Values that a module's constructor stores in a container are not registered, as with `append`.
                let kept = self.constructing() && !self.is_module_object(id);
                let value =
                    if kept { self.kept(value, at, 1) } else { self.stored_item(id, value, at, base) };
                self.set_object_item(id, i, value);
                if matches!(self.own(id), Value::Many(_)) {
                    self.note_put(at, id, value);
                }
            }
            Value::Bound(b) if self.t.bounds.get(b.0).name.as_str() == "__dict__" => {
                let object = self.t.bounds.get(b.0).receiver;
                self.set_unseen(object, i, value);
            }
            Value::Tensor(t) => {
                self.assign_tensor_item(b, i, value, at, base, index);
                self.batch_is_changed(self.get_tensor(t), i, value, base);
            }
            // An array converts the tensor that is assigned to a slice of it. (It takes a single number from any
            // device.)
            Value::Host(Host::Array | Host::Doubles | Host::Numbers)
                if self.takes_a_slice(i)
                    && matches!(value, Value::Tensor(t) if self.get_tensor(t).dims.some()) =>
            {
                self.check_converted(value, at, at, "[:] =");
            }
            Value::External(path) if path.as_str() == "os.environ" => {
                self.set_environment(i, value, at);
                self.check_fixed_visible(i, value, at);
            }
            Value::Outer(o) => {
                // PyTorch uses its number type, and the program assigns its items: it is a tensor, not a module.
                if self.evidence.typed_like.contains(&o) {
                    self.evidence.tensor_proofs.insert(o);
                }
                if self.is_tensorish(o) {
                    self.assign_tensor_item(b, i, value, at, base, index);
                } else if let (Value::Str(..), false) = (i, self.set_in_registry(i, value, at, base)) {
                    let item = self.outer_item(o, i);
                    self.write_outside(item, value);
                }
            }
            _ => {
                self.set_in_registry(i, value, at, base);
            }
        }
    }

    pub(crate) fn assign_tensor_item(
        &mut self,
        b: Value,
        i: Value,
        value: Value,
        at: ExprId,
        base: ExprId,
        index: ExprId,
    ) {
        let Some(op) = crate::torch::method(Sym::new("__setitem__")) else { return };
        let rule = |p: usize| op.positional(p).map_or(Rule::STRICT, Rule::from);
        let Some(whole) = self.party(b, base, rule(0)) else { return };
        if let Value::Tensor(t) = b {
            let t = self.get_tensor(t);
            self.read_into(t, &[value], at);
            // A value that may be a dict takes values from any device.
            if !t.certain {
                return;
            }
        }
        let indices: Vec<Value> = match self.picked_by_comparison(i, index) {
            Value::Seq(id) => self.seq_items(id).to_vec(),
            v => vec![v],
        };
        // The device of an index does not matter: the write moves the index. The index only decides how the value is
        // written. Integers and slices copy it from any device, and with index tensors it must be on the tensor's
        // device.
        let (mut put, mut single) = (false, false);
        let mut unproven: Vec<OuterId> = Vec::new();
        let truths = self.are_truth_values(index);
        for v in indices {
            match v {
                Value::Outer(_) | Value::Choice(_) if self.may_pick(v) => {
                    put |= self.party(v, index, rule(1)).is_some();
                    unproven.extend(self.values_of(v).into_iter().filter_map(|v| match v {
                        Value::Outer(o) => Some(o),
                        _ => None,
                    }));
                }
                // A tensor index that is a single number may be on any device.
                Value::Tensor(t) if self.picks_several(t) => {
                    single |= !truths && !self.get_tensor(t).dims.some();
                    put |= self.party(v, index, rule(1)).is_some();
                }
                // A list as an index becomes a tensor on the device of the whole.
                Value::Object(id) => {
                    put |= matches!(self.obj(id).kind, ObjKind::List { module: false })
                        && !self.holds_only_slices(id)
                }
                Value::Host(Host::Array) => put = true,
                _ => {}
            }
        }
        // PyTorch drops leading dimensions of size 1 (torch/csrc/autograd/python_variable_indexing.cpp,
        // slicePrefix1sSize).
        let number = |t| {
            let Tensor { dims, bytes, .. } = self.get_tensor(t);
            dims.none() == Some(true)
                || dims.known() == Some(1) && dims.size(0) == Some(1)
                || bytes.is_some_and(|b| b <= 4)
        };
        if put
            && !single
            && matches!(value, Value::Tensor(t) if !number(t))
            && let Some(value) = self.party(value, at, rule(2))
        {
            let before = self.events.len();
            self.meet(Meeting::Assignment, "assignment through an index", at, &[whole, value]);
            // If the index is a number, the value is copied. So the event needs evidence that it is a tensor.
            for pending in self.events.iter_mut().skip(before) {
                pending.needs.extend(&unproven);
            }
        }
    }

    /// Whether the index has a slice: `x[:2]`, `x[i, :2]`.
    fn takes_a_slice(&self, index: Value) -> bool {
        index == Value::Slice || matches!(index, Value::Seq(id) if self.seq_items(id).contains(&Value::Slice))
    }

    /// Whether the index list holds only slices: `x[[slice(2), slice(3)]]` is `x[:2, :3]`.
    fn holds_only_slices(&self, id: ObjId) -> bool {
        match self.own(id) {
            Value::Seq(s) => {
                let items = self.t.seqs.get(s.0);
                !items.is_empty() && items.iter().all(|&v| v == Value::Slice)
            }
            Value::Many(m) => *self.t.values.get(m) == Value::Slice,
            _ => false,
        }
    }

    pub(crate) fn set_object_item(&mut self, id: ObjId, i: Value, value: Value) {
        if self.set_item_of_row(id, i, value) {
            return;
        }
        let content = self.own(id);
        if let (ObjKind::Dict { module: false }, Value::Choice(_)) = (self.obj(id).kind, content) {
            return self.set_item_of_either(id, i, value);
        }
        // `ParameterDict` and `ParameterList` register the values that they get.
        let registers =
            matches!(self.obj(id).kind, ObjKind::List { module: true } | ObjKind::Dict { module: true });
        let value = if registers { self.as_parameters(value) } else { value };
        let new = match (self.obj(id).kind, content, i) {
            (ObjKind::List { .. }, Value::Seq(s), Value::Int(n)) => {
                let mut items = self.seq_items(s).to_vec();
                let len = i64::try_from(items.len()).unwrap_or(0);
                let n = usize::try_from(if n < 0 { n + len } else { n }).unwrap_or(usize::MAX);
                match items.get_mut(n) {
                    Some(slot) => *slot = value,
                    None => return,
                }
                self.seq(&items)
            }
            (ObjKind::Dict { .. }, Value::Seq(s), Value::Str(..) | Value::Int(_)) => {
                self.with_pair(s, i, value)
            }
            (ObjKind::List { .. } | ObjKind::Dict { .. }, Value::Seq(s), _) => {
                let items = self.seq_items(s).to_vec();
                let step = if matches!(self.obj(id).kind, ObjKind::Dict { .. }) { 2 } else { 1 };
                let mut values: Vec<Value> = items.iter().skip(step - 1).step_by(step).copied().collect();
                values.push(value);
                self.many_of(&values)
            }
            (ObjKind::List { .. } | ObjKind::Dict { .. }, Value::Many(m), _) => {
                let old = *self.t.values.get(m);
                let joined = self.blend(old, value);
                self.many(joined)
            }
            // The list has different lengths on different paths.
            (ObjKind::List { .. }, Value::Choice(_), _) => self.many(Value::Unknown),
            _ => return,
        };
        let asked = self.heap.asked_keys.get(&id).copied();
        self.set_own(id, new);
        if !matches!(new, Value::Seq(_)) {
            // The other items have not changed.
            if let Some(version) = asked {
                self.heap.asked_keys.insert(id, version);
            }
            self.key_is_put(id, i);
        }
    }
}
