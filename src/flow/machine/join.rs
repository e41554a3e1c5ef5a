//! Joins: one value where two paths meet, and interpretation in branches.

use std::cell::RefCell;

use crate::flow::domain::atom::Atom;
use crate::flow::domain::diagram::{Cond, Dd, FALSE, Literal, TRUE};
use crate::flow::domain::store::{Changes, pair};
use crate::flow::domain::value::{Host, Role, Tensor, TensorId, Value};
use crate::flow::machine::Interp;

/// How deep objects are compared that may stand for each other.
const MAX_ALIKE: u32 = 4;

impl<'p> Interp<'p> {
    /// `a` where the condition holds, `b` elsewhere.
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
                // What may be a text stays one that may be.
                let x = if self.is_text(y) && !self.is_text(x) { self.with_origins_of(y, x) } else { x };
                let d = self.ite_device(cond, x, y);
                Value::Device(d)
            }
            (Value::Tensor(x), Value::Tensor(y)) if self.kept_apart(x, y) => self.choice(cond, a, b),
            (Value::Tensor(x), Value::Tensor(y)) => {
                let (x, y) = (self.get_tensor(x), self.get_tensor(y));
                let device = self.ite_device(cond, x.device, y.device);
                // `if learn: nn.Parameter(…) else: register_buffer(…)`: registered either way.
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
                    // Lists of lists of lists have more in them than anybody has written down.
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
            // Nobody knows how many, be it none: `for name, p in …: if p.requires_grad: kept[name] = p`.
            (Value::Seq(s), Value::Many(m)) | (Value::Many(m), Value::Seq(s))
                if self.t.seqs.get(s.0).is_empty() && matches!(self.t.values.get(m), Value::Tensor(_)) =>
            {
                Value::Many(m)
            }
            _ => self.choice(cond, a, b),
        }
    }

    /// Would nobody know any more what matters of one of the two, were they joined? One is made on the CPU with dimensions,
    /// say, and the other elsewhere with none that are known.
    fn kept_apart(&self, x: TensorId, y: TensorId) -> bool {
        let (x, y) = (self.get_tensor(x), self.get_tensor(y));
        // A module moves the one and not the other; of an empty one more is known than where it is.
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

    /// `b`, where its devices that are also in `a` have the origins that they have there: the same device in
    /// two branches is one device.
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
            // What a cache has is as old as the call that filled it.
            if known.contains(&p) || reason(p) == crate::flow::domain::value::Reason::Stored {
                return p;
            }
            // Pinned memory is on the host as well, and not the same.
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

    /// One of two values, it is not known which and on what it depends.
    pub(crate) fn blend(&mut self, a: Value, b: Value) -> Value {
        match (a, b) {
            (a, b) if a == b => a,
            (Value::Absent, v) | (v, Value::Absent) => v,
            (Value::Tensor(_), Value::Tensor(_)) | (Value::Device(_), Value::Device(_)) => {
                let atom = self.raised_atom();
                self.ite(atom, a, b)
            }
            // Two layers of one kind, made by two rounds of a loop: one stands for both.
            (Value::Object(x), Value::Object(y))
                if self.obj(x).kind == self.obj(y).kind
                    && self.obj(x).class == self.obj(y).class
                    && self.is_module_object(x) =>
            {
                a
            }
            // One of several kinds of layers, and another of that kind in the next round.
            (Value::Choice(x), Value::Choice(y)) if self.are_layers_of_rounds(x, y) => a,
            // Two instances that hold the same things: one stands for both as well.
            (Value::Object(x), Value::Object(_))
                if self.obj(x).kind == crate::flow::machine::frame::ObjKind::Instance
                    && self.alike(a, b, 0) =>
            {
                a
            }
            // Two lists, in a dict under keys that nobody can tell apart: one stands for both.
            (Value::Object(x), Value::Object(y)) if self.is_plain_list(x) && self.is_plain_list(y) => {
                let (Some(mut items), Some(more)) = (self.listed(x), self.listed(y)) else {
                    return Value::Unknown;
                };
                items.extend(more);
                let content = self.many_of(&items);
                self.set_own(x, content);
                a
            }
            (Value::Object(x), Value::Object(y)) if self.is_plain_dict(x) && self.is_plain_dict(y) => {
                self.row_of_table(x, y)
            }
            (Value::Str(x, _), Value::Str(y, _)) if x == y => a,
            (Value::Seq(x), Value::Seq(y)) if self.t.seqs.get(x.0).len() == self.t.seqs.get(y.0).len() => {
                let (x, y) = (self.seq_items(x), self.seq_items(y));
                let items: Vec<Value> = x.iter().zip(y.iter()).map(|(&p, &q)| self.blend(p, q)).collect();
                self.seq(&items)
            }
            (Value::Host(Host::Array), Value::Host(Host::Array)) => Self::ARRAY,
            // `x = 0`, and lists of such made of it by a loop: no tensor at any rate.
            (a, b) if self.is_of_numbers(a, 0) && self.is_of_numbers(b, 0) => Value::Host(Host::Other),
            _ => Value::Unknown,
        }
    }

    /// Are two choices layers of the same kinds under the same conditions?
    fn are_layers_of_rounds(&mut self, x: Dd, y: Dd) -> bool {
        let mut pairs = Vec::new();
        let zipped = self.d.zip(x, y, &mut |p, q| {
            pairs.push((p, q));
            0
        });
        let value = |p: u32| *self.t.values.get(p);
        zipped.is_some()
            && pairs.into_iter().all(|(p, q)| match (value(p), value(q)) {
                (Value::Object(x), Value::Object(y)) => {
                    let (p, q) = (self.obj(x), self.obj(y));
                    p.kind == q.kind && p.class == q.class && self.is_module_object(x)
                }
                (v, w) => v == w,
            })
    }

    /// Is it a number, or are there only numbers in it?
    fn is_of_numbers(&self, v: Value, depth: u32) -> bool {
        let inside = |v: &Value| self.is_of_numbers(*v, depth + 1);
        match v {
            _ if depth > MAX_ALIKE => false,
            Value::Int(_) | Value::Host(Host::Number | Host::Other) => true,
            Value::Seq(s) => self.seq_items(s).iter().all(inside),
            Value::Many(m) => inside(self.t.values.get(m)),
            Value::Object(id) => self.is_plain_list(id) && inside(&self.own(id)),
            Value::Choice(_) => self.values_of(v).iter().all(inside),
            _ => false,
        }
    }

    fn is_plain_list(&self, id: crate::flow::domain::value::ObjId) -> bool {
        self.obj(id).kind == crate::flow::machine::frame::ObjKind::List { module: false }
    }

    /// What is in a list.
    fn listed(&self, id: crate::flow::domain::value::ObjId) -> Option<Vec<Value>> {
        match self.own(id) {
            Value::Seq(s) => Some(self.seq_items(s).to_vec()),
            Value::Many(m) => Some(vec![*self.t.values.get(m)]),
            _ => None,
        }
    }

    /// Are two values the same, but for the identity of the objects in them?
    fn alike(&self, a: Value, b: Value, depth: u32) -> bool {
        match (a, b) {
            (a, b) if a == b => true,
            _ if depth > MAX_ALIKE => false,
            (Value::Object(x), Value::Object(y)) => {
                let (p, q) = (self.obj(x), self.obj(y));
                p.kind == q.kind
                    && p.class == q.class
                    && p.attrs.len() == q.attrs.len()
                    && self.alike(self.own(x), self.own(y), depth + 1)
                    && p.attrs.iter().all(|&(name, cell)| {
                        self.alike(self.store.get(cell), self.get_field(y, name), depth + 1)
                    })
            }
            (Value::Seq(x), Value::Seq(y)) => {
                let (x, y) = (self.t.seqs.get(x.0), self.t.seqs.get(y.0));
                x.len() == y.len() && x.iter().zip(y).all(|(&p, &q)| self.alike(p, q, depth + 1))
            }
            (Value::Many(x), Value::Many(y)) => {
                self.alike(*self.t.values.get(x), *self.t.values.get(y), depth + 1)
            }
            (Value::Tensor(x), Value::Tensor(y)) => {
                let (x, y) = (self.get_tensor(x), self.get_tensor(y));
                x.device == y.device && x.dims == y.dims && x.certain == y.certain
            }
            // What comes from outside comes anew in each round.
            (Value::Outer(x), Value::Outer(y)) => !self.t.get_outer(x).varies && !self.t.get_outer(y).varies,
            _ => false,
        }
    }

    /// Applies `f` to each alternative of a value, each on its own path, and joins values and effects.
    pub(crate) fn each(&mut self, v: Value, f: Alternative<'_, 'p>) -> Value {
        match v {
            Value::Choice(d) => {
                let first = if self.is_in_two_formats(d) { Some(true) } else { None };
                self.each_below(d, first, &RefCell::new(f))
            }
            v => f(self, v),
        }
    }

    /// Is it a tensor here and an array there? Who keeps both asks again and again which of them it is, in words that
    /// nobody here understands: that one answer differs from the next does not happen.
    fn is_in_two_formats(&self, d: Dd) -> bool {
        let value = |leaf| *self.t.values.get(leaf);
        self.d.any_leaf(d, &|leaf| matches!(value(leaf), Value::Tensor(_)))
            && self.d.any_leaf(d, &|leaf| {
                matches!(value(leaf), Value::Host(Host::Array | Host::Doubles | Host::Numbers))
            })
    }

    /// `first` is given where the alternatives are formats: is none of them decided yet?
    fn each_below(&mut self, d: Dd, first: Option<bool>, f: &RefCell<Alternative<'_, 'p>>) -> Value {
        if let Some(payload) = self.d.as_leaf(d) {
            let v = *self.t.values.get(payload);
            // Nothing that runs inside can reach this very closure again.
            return f.try_borrow_mut().map_or(Value::Unknown, |mut f| f(self, v));
        }
        let (atom, hi, lo) = self.d.root(d);
        let cond = self.d.atom(atom);
        // That the alternative was looked at does not make it likely.
        let chance = matches!(self.atoms.get(atom), Atom::Raised | Atom::Partly | Atom::Caught)
            || first == Some(false) && !atom.is_hardware();
        let open = chance && !self.implied(self.path, atom, true) && !self.implied(self.path, atom, false);
        let split = self.tests.split.len();
        let then = first.map(|first| first && atom.is_hardware());
        self.tests.split.extend(open.then_some(atom));
        let v = self.branch(cond, &mut |i| i.each_where((atom, true), hi, then, f), &mut |i| {
            i.each_where((atom, false), lo, then, f)
        });
        self.tests.split.truncate(split);
        v
    }

    /// The alternatives below, where this holds.
    fn each_where(
        &mut self,
        taken: Literal,
        d: Dd,
        first: Option<bool>,
        f: &RefCell<Alternative<'_, 'p>>,
    ) -> Value {
        self.tests.taken.push(taken);
        let v = self.each_below(d, first, f);
        self.tests.taken.pop();
        v
    }
}

/// What is done with each alternative of a value.
type Alternative<'a, 'p> = &'a mut dyn FnMut(&mut Interp<'p>, Value) -> Value;

/// A branch to interpret.
pub(crate) type Branch<'a, 'p> = &'a mut dyn FnMut(&mut Interp<'p>) -> Value;

impl<'p> Interp<'p> {
    /// Interprets one branch where the condition holds and one where it does not, and joins the two.
    pub(crate) fn branch_with(&mut self, cond: Cond, then: Branch<'_, 'p>, orelse: Branch<'_, 'p>) -> Value {
        let before = self.path;
        let not = self.d.not(cond);
        let (yes, no) = (self.d.and(before, cond), self.d.and(before, not));
        if no == FALSE {
            self.path = yes;
            return then(self);
        }
        if yes == FALSE {
            self.path = no;
            return orelse(self);
        }
        let mark = self.store.mark();
        self.here_mut().branches += 1;
        let frame = self.frame;
        self.path = yes;
        let a = then(self);
        let path_a = self.path;
        let changes_a = self.store.take(mark);
        self.path = no;
        let b = orelse(self);
        let path_b = self.path;
        self.frames[frame.0 as usize].branches -= 1;
        if path_a == FALSE {
            self.leave_to_handlers(yes, changes_a);
            return b;
        }
        let changes_b = self.store.take(mark);
        if path_b == FALSE {
            self.leave_to_handlers(no, changes_b);
            self.apply(&changes_a);
            self.path = path_a;
            return a;
        }
        self.merge(cond, &changes_a, &changes_b);
        self.path = if path_a == yes && path_b == no { before } else { self.d.or(path_a, path_b) };
        self.ite(cond, a, b)
    }

    /// See [`Interp::branch_with`].
    pub(crate) fn branch(&mut self, cond: Cond, then: Branch<'_, 'p>, orelse: Branch<'_, 'p>) -> Value {
        self.branch_with(cond, then, orelse)
    }

    /// An arm is never left at its end. What it has done counts where what it raises is caught.
    fn leave_to_handlers(&mut self, path: Cond, changes: Changes) {
        let mut at = Some(self.frame);
        while let Some(f) = at.filter(|_| !changes.is_empty()) {
            let frame = &mut self.frames[f.0 as usize];
            if let Some(tried) = frame.tries.last_mut() {
                tried.left.push((path, changes));
                return;
            }
            at = frame.caller;
        }
    }

    /// Writes what a stretch of interpretation wrote.
    pub(crate) fn apply(&mut self, changes: &Changes) {
        for &(cell, v) in changes {
            self.store.set(cell, v);
        }
    }

    /// Writes the join of two branches' writes over the state before both.
    pub(crate) fn merge(&mut self, cond: Cond, a: &Changes, b: &Changes) {
        for (cell, x, y) in pair(a, b) {
            let old = self.store.get(cell);
            let v = self.ite(cond, x.unwrap_or(old), y.unwrap_or(old));
            self.store.set(cell, v);
        }
    }
}
