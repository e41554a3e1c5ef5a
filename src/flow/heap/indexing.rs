//! Index expressions: `b[i]`, read and assigned.

use crate::flow::domain::dims::Dims;
use crate::flow::domain::event::Meeting;
use crate::flow::domain::value::{Host, ObjId, OuterId, Reason, Role, Tensor, TensorId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::flow::observers::mismatch::meet::{Party, Rule};
use crate::ir::{Expr, ExprId, Whole};
use crate::sym::Sym;
use crate::words::Words;

static READ_OF_TENSORS: Words = Words::of("attributes of items that are tensors");

impl Interp<'_> {
    /// Reads `base[index]`.
    pub(crate) fn index(&mut self, b: Value, i: Value, e: ExprId, base: ExprId, index: ExprId) -> Value {
        match b {
            Value::Choice(_) => self.each(b, &mut |s, v| s.index(v, i, e, base, index)),
            Value::Seq(id) => {
                let items = self.seq_items(id).clone();
                let items = if i == Value::Slice { self.slice_of(&items, index) } else { Err(items) };
                match items {
                    Ok(part) => self.seq(&part),
                    Err(items) => self.index_seq(&items, i, e),
                }
            }
            Value::Many(m) => {
                if i == Value::Slice {
                    b
                } else {
                    let element = self.each_of(m);
                    self.drawn_apart(element)
                }
            }
            Value::Tensor(_) => self.index_tensor(b, i, e, base, index),
            Value::Outer(o) => self.index_outer(o, i, e, base, index),
            Value::Object(id)
                if matches!((self.obj(id).kind, self.own(id)), (ObjKind::List { .. }, Value::Seq(_))) =>
            {
                let part = self.index(self.own(id), i, e, base, index);
                // A slice of `ModuleList` or `ParameterList` is of the same type (torch/nn/modules/container.py,
                // `__getitem__`).
                if i == Value::Slice && self.obj(id).kind == (ObjKind::List { module: true }) {
                    return Value::Object(self.object(ObjKind::List { module: true }, None, part));
                }
                part
            }
            Value::Object(id) => self.index_object(id, i, e),
            // `Place["HOST"]` of an `Enum`
            Value::Class(key) if self.is_enum(key) => match i {
                Value::Str(name, _) => self.class_variable(key, name).unwrap_or(Value::Unknown),
                _ => self.result_of(e),
            },
            // The item is a number or a row.
            Value::Host(Host::Array) if matches!(i, Value::Int(_) | Self::NUMBER) => Self::NUMBERS,
            Value::Host(Host::Array | Host::Doubles | Host::Numbers) => b,
            Value::Host(Host::Text) | Value::Str(..) => Self::TEXT,
            Value::Host(h @ (Host::Number | Host::Memory)) => Value::Host(h),
            Value::External(path) => {
                // `os.environ["X"]`
                if path.as_str() == "os.environ"
                    && let Some(text) = self.put_text(i)
                {
                    return text;
                }
                let outer = self.outside_name(path);
                Value::Outer(self.outer_item(outer, i))
            }
            _ => self.result_of(e),
        }
    }

    /// The part of the items for `items[1:]` or `items[:1]`. `Err` with all items for other slices.
    fn slice_of(&self, items: &[Value], slice: ExprId) -> Result<Vec<Value>, Box<[Value]>> {
        let ir = &self.linked().ir;
        let all = || Err(items.into());
        let Expr::Slice(list) = ir.expr(slice) else { return all() };
        let &[bound] = ir.list(list) else { return all() };
        let Expr::Int(Whole(n)) = ir.expr(bound) else { return all() };
        let Ok(n) = usize::try_from(n) else { return all() };
        let (first, rest) = items.split_at(n.min(items.len()));
        let lower = ir.span(bound).start == ir.span(slice).start;
        Ok(if lower { rest.to_vec() } else { first.to_vec() })
    }

    pub(crate) fn index_seq(&mut self, items: &[Value], i: Value, e: ExprId) -> Value {
        match i {
            Value::Int(n) => {
                let len = i64::try_from(items.len()).unwrap_or(i64::MAX);
                let n = if n < 0 { n + len } else { n };
                usize::try_from(n).ok().and_then(|n| items.get(n)).copied().unwrap_or(Value::Unknown)
            }
            // `["cpu", "cuda"][torch.cuda.is_available()]`
            Value::Bool(c) => match items {
                &[no, yes] => self.ite(c, yes, no),
                _ => Value::Unknown,
            },
            // The bounds of the slice are not kept. If the items contain objects, the result has all of them, so that
            // no move is lost.
            Value::Slice if items.iter().any(|v| matches!(v, Value::Object(_))) => self.seq(items),
            Value::Slice => self.many_of(items),
            _ => {
                let mut joined = Value::Absent;
                for &v in items {
                    joined = self.blend(joined, v);
                }
                if joined == Value::Absent { self.result_of(e) } else { joined }
            }
        }
    }

    pub(crate) fn index_object(&mut self, id: ObjId, i: Value, e: ExprId) -> Value {
        match self.obj(id).kind {
            ObjKind::List { .. } => match (self.own(id), i) {
                (Value::Many(_), Value::Slice) => Value::Object(id),
                (v @ Value::Seq(_), Value::Slice) => self.index(v, i, e, e, e),
                (v, i) => self.index(v, i, e, e, e),
            },
            ObjKind::Dict { .. } => self.dict_item(id, i, e),
            // A part of a data set is a data set.
            ObjKind::Items if i == Value::Slice => Value::Object(id),
            ObjKind::Items | ObjKind::Loader => self.own(id),
            ObjKind::Instance if matches!(self.own(id), Value::Seq(_)) => {
                self.index(self.own(id), i, e, e, e)
            }
            ObjKind::Module | ObjKind::Instance => {
                let method =
                    self.obj(id).class.and_then(|k| self.program.find_method(k, Sym::new("__getitem__")));
                match method {
                    Some((m, f)) => {
                        let args = Args { positional: vec![(i, e)], ..Args::default() };
                        let item = self.call_function(m, f, None, Some(Value::Object(id)), &args, e);
                        self.item_from_files(id, i, item, e)
                    }
                    None => self.result_of(e),
                }
            }
            _ => self.result_of(e),
        }
    }

    pub(crate) fn dict_get(&mut self, id: ObjId, key: Value, e: ExprId) -> Value {
        match self.own(id) {
            Value::Seq(s) => {
                let items = self.seq_items(s);
                if let Value::Bool(c) = key {
                    // `{True: "cuda", False: "cpu"}[available]`
                    let find = |truth| items.chunks(2).find(|p| p[0] == Value::Bool(truth)).map(|p| p[1]);
                    if let (Some(yes), Some(no)) =
                        (find(crate::flow::domain::diagram::TRUE), find(crate::flow::domain::diagram::FALSE))
                    {
                        return self.ite(c, yes, no);
                    }
                }
                let mut result = Value::Absent;
                let mut possible = Vec::new();
                for pair in items.chunks(2) {
                    let c = self.equal(pair[0], key, e);
                    if c == crate::flow::domain::diagram::TRUE {
                        result = pair[1];
                    } else if c != crate::flow::domain::diagram::FALSE {
                        possible.push((c, pair[1]));
                    }
                }
                if result != Value::Absent {
                    return result;
                }
                for (c, v) in possible {
                    result = self.ite(c, v, result);
                }
                if result == Value::Absent { self.result_of(e) } else { result }
            }
            Value::Many(m) => {
                let v = self.each_of(m);
                if v == Value::Unknown { self.result_of(e) } else { v }
            }
            // This raises where the key is missing.
            Value::Choice(_) => match self.item_of_either(id, key, Value::Absent) {
                Value::Absent => self.result_of(e),
                v => v,
            },
            _ => self.result_of(e),
        }
    }

    /// Indexes a tensor. PyTorch's rules say where index tensors may be.
    pub(crate) fn index_tensor(
        &mut self,
        b: Value,
        i: Value,
        e: ExprId,
        base: ExprId,
        index: ExprId,
    ) -> Value {
        let Value::Tensor(id) = b else { return Value::Unknown };
        let t = self.get_tensor(id);
        if !t.certain
            && let Value::Str(..) | Value::Int(_) = i
        {
            if self.is_out_of_file(t) {
                return self.part_of_file(t, e);
            }
            return self.numbered_part(t, i);
        }
        // This raises now, and gave a number before PyTorch 0.4: `loss.data[0]`.
        if t.dims == Dims::ZERO && matches!(i, Value::Int(_)) {
            return Value::Unknown;
        }
        let i = self.picked_by_comparison(i, index);
        let apart = self.check_index(b, i, e, base, index);
        let device = apart.map_or(t.device, |parties| self.unless_refused(&parties, t.device));
        let dims = self.indexed_dims(t.dims, i, index);
        self.tensor(Tensor { device, dims, role: Role::Plain, bytes: None, ..t })
    }

    /// An item of a value that is a tensor or a collection of tensors. An item of a tensor may just as well be a
    /// number.
    fn numbered_part(&mut self, t: Tensor, i: Value) -> Value {
        match self.part_of(t) {
            Value::Tensor(part) if matches!(i, Value::Int(_)) && self.get_tensor(part).dims == Dims::ANY => {
                let part = self.get_tensor(part);
                self.tensor(Tensor { dims: Dims::ANY.picked(), ..part })
            }
            part => part,
        }
    }

    pub(crate) fn index_outer(
        &mut self,
        o: OuterId,
        i: Value,
        e: ExprId,
        base: ExprId,
        index: ExprId,
    ) -> Value {
        // Only tensors take a tensor with dimensions as an index. Arrays may, but not one from the GPU.
        if self.picks_from_tensors(i) {
            self.evidence.tensor_proofs.insert(o);
        }
        if matches!(i, Value::Tensor(_)) && (self.is_tensorish(o) || self.t.get_outer(o).with.is_some()) {
            self.check_index(Value::Outer(o), i, e, base, index);
        }
        match i {
            Value::Slice => self.slice_of_outer(o, i, e, index),
            Value::Seq(id) if self.seq_items(id).contains(&Value::Slice) => {
                // `edges[:, kept]`: the value has several dimensions, and a tensor selects from one of them.
                let certain = |v: Value| matches!(v, Value::Tensor(t) if self.get_tensor(t).certain);
                let by_tensor =
                    self.seq_items(id).iter().any(|&v| self.values_of(v).into_iter().any(certain));
                // The same holds if the program has read its device: it is no module then.
                if by_tensor || self.evidence.asked_for_device.contains(&o) {
                    self.evidence.tensor_proofs.insert(o);
                }
                self.check_index(Value::Outer(o), i, e, base, index);
                let part = self.slice_of_outer(o, i, e, index);
                if let Value::Tensor(t) = part {
                    self.is_made_by_own(Value::Outer(o), self.get_tensor(t).device);
                }
                part
            }
            // A part of a tensor is on the tensor's device, for any index.
            i if self.is_tensorish(o) && !matches!(i, Value::Str(..)) => self.tensor_of_outer(o, e),
            _ => {
                let item = if self.is_settings(e) { self.part_of_outer(o, i) } else { self.outer_item(o, i) };
                self.read_outside(item)
            }
        }
    }

    /// `edges[:, 1:]`: a slice of a tensor is certainly a tensor, with dimensions.
    fn slice_of_outer(&mut self, o: OuterId, i: Value, e: ExprId, index: ExprId) -> Value {
        let part = self.tensor_of_outer(o, e);
        match part {
            Value::Tensor(t) if self.is_tensorish(o) => {
                let dims = self.indexed_dims(Dims::ANY, i, index);
                let part = self.get_tensor(t);
                self.tensor(Tensor { dims, certain: true, ..part })
            }
            part => part,
        }
    }

    /// Whether the program reads an attribute of the item that neither tensors nor dicts of tensors have:
    /// `data["params"].thresholds`.
    fn is_settings(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        let of_tensors =
            |name: Sym| crate::torch::method(name).is_some() || READ_OF_TENSORS.has(name.as_str());
        // An attribute expression has the number after its base.
        let attribute = ExprId(e.0 + 1);
        match ir.exprs.get(attribute.0 as usize) {
            Some(&Expr::Attr { base, name }) if base == e && !of_tensors(name) => {
                !ir.calls().any(|call| call.func == attribute)
            }
            _ => false,
        }
    }

    /// Whether the value is a tensor with dimensions. As an index, it selects only from tensors.
    fn picks_from_tensors(&self, i: Value) -> bool {
        matches!(i, Value::Tensor(t) if self.get_tensor(t).certain && self.get_tensor(t).dims.some())
    }

    /// Whether the value is a tensor that may select more than one element as an index.
    pub(crate) fn picks_several(&self, t: TensorId) -> bool {
        let t = self.get_tensor(t);
        t.certain && t.dims != Dims::ZERO && !t.dims.perhaps_a_number()
    }

    /// Whether the tensor was moved to its device. Then it is no number. If it is an index, it is no module either.
    fn is_moved_index(&self, t: TensorId) -> bool {
        let t = self.get_tensor(t);
        let moved = |p: u32| {
            let origin = self.t.places.get(p).1;
            origin != crate::flow::domain::value::NO_ORIGIN
                && self.t.origins.get(origin.0).reason == Reason::Moved
        };
        t.dims != Dims::ZERO && !t.dims.perhaps_a_number() && self.d.as_leaf(t.device).is_some_and(moved)
    }

    /// Whether the value may be a tensor that is used as an index. A bare parameter is as likely a number, so it needs
    /// evidence.
    pub(crate) fn may_pick(&self, i: Value) -> bool {
        match i {
            Value::Outer(o) => {
                let outer = self.t.get_outer(o);
                outer.varies || outer.with.is_some() || self.is_tensorish(o)
            }
            Value::Choice(_) => {
                let values = self.values_of(i);
                values.iter().all(|&v| match v {
                    Value::Tensor(t) => self.get_tensor(t).certain && self.get_tensor(t).dims.some(),
                    Value::Outer(_) => self.may_pick(v),
                    _ => false,
                })
            }
            _ => false,
        }
    }

    /// Checks the devices of a tensor and its indices. Gives the parties that clash, if they do and all are certainly
    /// tensors.
    pub(crate) fn check_index(
        &mut self,
        b: Value,
        i: Value,
        e: ExprId,
        base: ExprId,
        index: ExprId,
    ) -> Option<Vec<Party>> {
        let op = crate::torch::method(Sym::new("__getitem__"))?;
        let rule = |p: usize| op.positional(p).map_or(Rule::STRICT, Rule::from);
        let whole = self.party(b, base, rule(0))?;
        // A value that is indexed with a tensor has dimensions.
        let whole = Party { dims: Dims::SOME, ..whole };
        let indices: Vec<Value> = match i {
            Value::Seq(id) => self.seq_items(id).to_vec(),
            v => vec![v],
        };
        let (mut parties, mut shown) = (vec![whole], true);
        for v in indices {
            let index_tensor = match v {
                Value::Tensor(t) => self.picks_several(t) || self.is_moved_index(t),
                v => self.may_pick(v),
            };
            if index_tensor {
                shown &= self.certain(v) || matches!(v, Value::Outer(o) if self.is_tensorish(o));
                parties.extend(self.party(v, index, rule(1)));
            }
        }
        let apart = parties.len() > 1 && self.meet(Meeting::Index, "indexing", e, &parties);
        (apart && shown).then_some(parties)
    }
}
