//! Joins of values where two paths meet.

use crate::flow::domain::diagram::{Cond, Dd, FALSE, TRUE};
use crate::flow::domain::value::{Role, Tensor, TensorId, Value};
use crate::flow::machine::Interp;

impl<'p> Interp<'p> {
    /// `a` where the condition holds, else `b`.
    pub(crate) fn ite(&mut self, cond: Cond, a: Value, b: Value) -> Value {
        if a == b || cond == TRUE {
            return a;
        }
        if cond == FALSE {
            return b;
        }
        match (a, b) {
            (Value::Absent, v) | (v, Value::Absent) => v,
            (Value::Bool(x), Value::Bool(y)) => self.d.ite(cond, x, y).map_or(Value::Unknown, Value::Bool),
            (Value::Device(x), Value::Device(y)) => {
                // A device that may be a string stays one.
                let x = if self.is_text(y) && !self.is_text(x) { self.with_origins_of(y, x) } else { x };
                let d = self.ite_device(cond, x, y);
                Value::Device(d)
            }
            (Value::Tensor(x), Value::Tensor(y)) if self.kept_apart(x, y) => self.choice(cond, a, b),
            (Value::Tensor(x), Value::Tensor(y)) => {
                let (x, y) = (self.get_tensor(x), self.get_tensor(y));
                let device = self.ite_device(cond, x.device, y.device);
                // `if learn: nn.Parameter(…) else: register_buffer(…)`: registered on both paths.
                let role = match (x.role, y.role) {
                    (a, b) if a == b => a,
                    (Role::Whole, _) | (_, Role::Whole) => Role::Whole,
                    (a, b) if !a.registered() || !b.registered() => Role::Plain,
                    _ => Role::Buffer,
                };
                let bytes = if x.bytes == y.bytes { x.bytes } else { None };
                let double = self.d.ite(cond, x.double, y.double).unwrap_or(FALSE);
                self.tensor(Tensor {
                    device,
                    dims: x.dims.join(y.dims),
                    role,
                    certain: x.certain && y.certain,
                    bytes,
                    double,
                })
            }
            (Value::Seq(x), Value::Seq(y)) => {
                let (x, y) = (self.seq_items(x), self.seq_items(y));
                if x.len() == y.len() {
                    // Nested lists may have far more elements than the source, so they count towards the budget.
                    self.budget.take(x.len());
                    if self.budget.is_spent() {
                        return Value::Unknown;
                    }
                    let items: Vec<Value> =
                        x.iter().zip(y.iter()).map(|(&p, &q)| self.ite(cond, p, q)).collect();
                    return self.seq(&items);
                }
                self.choice(cond, a, b)
            }
            (Value::Many(x), Value::Many(y)) => {
                let (x, y) = (*self.t.values.get(x), *self.t.values.get(y));
                let item = self.ite(cond, x, y);
                self.many(item)
            }
            // The number is unknown and may be 0: `for name, p in …: if p.requires_grad: kept[name] = p`.
            (Value::Seq(s), Value::Many(m)) | (Value::Many(m), Value::Seq(s))
                if self.t.seqs.get(s.0).is_empty() && matches!(self.t.values.get(m), Value::Tensor(_)) =>
            {
                Value::Many(m)
            }
            _ => self.choice(cond, a, b),
        }
    }

    /// Whether a join would lose an important property of one of the tensors. For example, one is on the CPU with
    /// dimensions, and the other on another device with unknown dimensions.
    fn kept_apart(&self, x: TensorId, y: TensorId) -> bool {
        let (x, y) = (self.get_tensor(x), self.get_tensor(y));
        // A module moves only registered tensors. An empty tensor has more known properties than its device.
        if x.role.registered() != y.role.registered() || (x.bytes == Some(0)) != (y.bytes == Some(0)) {
            return true;
        }
        let host = |t: Tensor, other: Tensor| {
            t.dims.some()
                && other.dims.none().is_none()
                && self.is_cpu(t.device)
                && !self.is_cpu(other.device)
        };
        host(x, y) || host(y, x)
    }

    pub(crate) fn ite_device(&mut self, cond: Cond, a: Dd, b: Dd) -> Dd {
        let b = self.with_origins_of(a, b);
        match self.d.ite(cond, a, b) {
            Some(d) => d,
            None => self.unknown_device(),
        }
    }

    /// `b` with the origins of `a` for each device that both contain: the same device in two branches counts as one.
    fn with_origins_of(&mut self, a: Dd, b: Dd) -> Dd {
        if a == b {
            return b;
        }
        let mut known = Vec::new();
        self.d.leaves(a, &mut known);
        let (places, origins) = (&self.t.places, &self.t.origins);
        let reason = |p: u32| origins.get(places.get(p).1.0).reason;
        let pinned = |p: u32| reason(p) == crate::flow::domain::value::Reason::Pinned;
        let origin_in_a = |p: u32| {
            // A cached value is as old as the call that filled the cache, so it keeps its origin.
            if known.contains(&p) || reason(p) == crate::flow::domain::value::Reason::Stored {
                return p;
            }
            // Pinned memory is on the host, but differs from other host memory.
            let same = |q: u32| places.get(q).0 == places.get(p).0 && pinned(q) == pinned(p);
            known.iter().copied().find(|&q| same(q)).unwrap_or(p)
        };
        if let Some(p) = self.d.as_leaf(b) {
            return self.d.leaf(origin_in_a(p));
        }
        self.d.map(b, &mut |p| origin_in_a(p))
    }

    fn choice(&mut self, cond: Cond, a: Value, b: Value) -> Value {
        let (x, y) = (self.as_diagram(a), self.as_diagram(b));
        match self.d.ite(cond, x, y) {
            Some(d) => self.value_of_diagram(d),
            None => self.joined_outside(cond, x, y),
        }
    }

    fn as_diagram(&mut self, v: Value) -> Dd {
        match v {
            Value::Choice(d) => d,
            v => {
                let payload = self.t.values.add(v);
                self.d.leaf(payload)
            }
        }
    }

    pub(crate) fn value_of_diagram(&self, d: Dd) -> Value {
        match self.d.as_leaf(d) {
            Some(payload) => *self.t.values.get(payload),
            None => Value::Choice(d),
        }
    }
}
