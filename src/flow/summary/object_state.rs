//! The state of an object's attributes between calls of its methods.
//!
//! A method finds what the constructor, or any other method, has assigned. If all of them agree on a fact, it holds. Examples: a table is
//! on the CPU after every method; a generator is only ever created on one device.

use crate::flow::domain::diagram::{Cond, FALSE, TRUE};
use crate::flow::domain::dims::Dims;
use crate::flow::domain::value::{Device, ObjId, OriginId, Role, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::frame::ObjKind;
use crate::ir::{Expr, ExprId, FuncId, Module, Stmt, UnaryOp};
use crate::link::{ClassKey, ModIdx};
use crate::sym::Sym;

/// The maximum number of methods that set attributes. Classes with more are not analyzed.
const MAX_SETTERS: usize = 6;
/// The maximum number of fixpoint iterations over the methods. Without a fixpoint by then, nothing is known.
const ROUNDS: usize = 3;

/// An offset for loop iterations, far beyond any real one.
const APART: u32 = 1 << 24;

/// The state of an attribute after any of the methods that set it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Held {
    /// Absent, or `None`.
    Nothing,
    /// A tensor. `device` is set if all methods agree on it, with the origin.
    Tensor { device: Option<(Device, OriginId)>, dims: Dims, double: bool },
    /// A generator on this device.
    Generator((Device, OriginId)),
    /// Different methods disagree, or the value is not tracked.
    Anything,
}

impl Held {
    pub(crate) fn join(self, other: Self) -> Self {
        use Held::{Anything, Generator, Nothing, Tensor};
        match (self, other) {
            (Nothing, x) | (x, Nothing) => x,
            (Generator(a), Generator(b)) if a.0 == b.0 => self,
            (Tensor { device: a, dims: x, double: p }, Tensor { device: b, dims: y, double: q }) => {
                let same = matches!((a, b), (Some(a), Some(b)) if a.0 == b.0);
                let device = a.filter(|_| same);
                Tensor { device, dims: x.join(y), double: p && q }
            }
            _ => Anything,
        }
    }
}

impl Interp<'_> {
    /// Sets the attributes that a method may have assigned after the constructor to the state that all methods agree on.
    pub(crate) fn between_calls(&mut self, key: ClassKey, id: ObjId) {
        let setters = self.setters(key);
        let mut names: Vec<Sym> = Vec::new();
        for &(m, f) in &setters {
            for &name in self.relevance.assigned.by(m, f) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        let made: Vec<Held> = names.iter().map(|&name| self.held(self.get_field(id, name))).collect();
        let agreed = self.agreed(key, id, &setters, &names, &made);
        for (&name, &held) in names.iter().zip(&agreed) {
            if matches!(self.get_field(id, name), Value::Bool(TRUE | FALSE))
                && self.is_always_the_same(key, name)
            {
                continue;
            }
            let known = matches!(held, Held::Tensor { .. } | Held::Generator(_)) && !self.may_miss(key, name);
            if known || self.get_field(id, name) != Value::Absent {
                let v = if known { self.value_of(held) } else { Value::Unknown };
                self.set_field(id, name, v);
            }
        }
    }

    /// Whether the attribute is private and always holds the same flag. That is so if all assignments to an attribute of that name assign
    /// the same truth value, in the files of the class and its bases.
    fn is_always_the_same(&self, key: ClassKey, name: Sym) -> bool {
        if !crate::ir::is_private(name.as_str()) {
            return false;
        }
        let mut constant = None;
        for k in &self.program.class(key).mro {
            let ir = &self.program.get(k.module).ir;
            // `setattr(self, "_name", value)`, or with a computed name
            if ir.has_string(name) || sets_any(ir) {
                return false;
            }
            let it = |e: ExprId| sets(ir, e, name);
            for s in &ir.stmts {
                let value = match *s {
                    Stmt::Assign { targets, value } if ir.list(targets).iter().any(|&t| it(t)) => {
                        let alone = |&t: &ExprId| !it(t) || matches!(ir.expr(t), Expr::Attr { .. });
                        ir.list(targets).iter().all(alone).then_some(value)
                    }
                    Stmt::AnnAssign { target, value: Some(value), .. } if it(target) => Some(value),
                    Stmt::AugAssign { target, .. } | Stmt::For { target, .. } if it(target) => None,
                    Stmt::With { ref items, .. } if items.iter().any(|&(_, t)| t.is_some_and(it)) => None,
                    _ => continue,
                };
                let Some(value) = value.map(|e| ir.expr(e)) else { return false };
                let plain = matches!(value, Expr::True | Expr::False);
                if !plain || constant.is_some_and(|known| known != value) {
                    return false;
                }
                constant = Some(value);
            }
        }
        constant.is_some()
    }

    /// Whether the class tests if the attribute exists, or is `None`.
    pub(crate) fn may_miss(&self, key: ClassKey, name: Sym) -> bool {
        // `hasattr(self, "name")`
        let spelled = |k: &ClassKey| {
            let ir = &self.program.get(k.module).ir;
            ir.has_string(name) && ir.exprs.iter().any(|e| matches!(*e, Expr::Str(text) if text == name))
        };
        self.may_be_none(key, name) || self.program.class(key).mro.iter().any(spelled)
    }

    /// Whether the class tests if the attribute is `None`.
    pub(crate) fn may_be_none(&self, key: ClassKey, name: Sym) -> bool {
        self.program.class(key).mro.iter().any(|k| {
            let ir = &self.program.get(k.module).ir;
            let it = |e: ExprId| matches!(ir.expr(e), Expr::Attr { name: n, .. } if n == name);
            let none = |e: ExprId| matches!(ir.expr(e), Expr::None);
            let asks = |e: &Expr| match *e {
                Expr::Compare { left, right, .. } => it(left) && none(right),
                Expr::Unary { op: UnaryOp::Not, operand } => it(operand),
                Expr::And(list) | Expr::Or(list) => ir.list(list).iter().any(|&e| it(e)),
                Expr::IfElse(id) => it(ir.if_else(id).test),
                _ => false,
            };
            let named = ir.has_attribute(name);
            let tests = |s: &Stmt| {
                matches!(*s, Stmt::If { test, .. } | Stmt::While { test, .. } | Stmt::Assert { test, .. } if it(test))
            };
            named && (ir.exprs.iter().any(asks) || ir.stmts.iter().any(tests))
        })
    }

    /// The methods other than the constructor that assign attributes.
    pub(crate) fn setters(&self, key: ClassKey) -> Vec<(ModIdx, FuncId)> {
        let mut setters: Vec<(ModIdx, FuncId)> = Vec::new();
        for &k in &self.program.class(key).mro {
            for &(name, func) in &self.program.get(k.module).ir.class(k.class).methods {
                if name != self.known.init && !self.relevance.assigned.by(k.module, func).is_empty() {
                    setters.push((k.module, func));
                }
            }
        }
        setters
    }

    /// The state that the constructor and all other methods agree on, for each attribute.
    fn agreed(
        &mut self,
        key: ClassKey,
        id: ObjId,
        setters: &[(ModIdx, FuncId)],
        names: &[Sym],
        made: &[Held],
    ) -> Vec<Held> {
        let nothing = vec![Held::Anything; names.len()];
        let module = self.is_module_class(key);
        let to_self = |&(m, f): &(ModIdx, FuncId)| self.relevance.assigned.to_self(m, f);
        // A module moves its registered tensors, and a method may replace them.
        let open = |held: Held| match held {
            Held::Nothing | Held::Generator(_) => true,
            Held::Tensor { .. } => !module,
            Held::Anything => false,
        };
        let makes = |&(m, f): &(ModIdx, FuncId)| {
            self.relevance.decides(m, f) && !module
                || self.relevance.mentions_generators(m, &self.program.get(m).ir, f)
        };
        let makers: Vec<&(ModIdx, FuncId)> = setters.iter().filter(|s| makes(s)).collect();
        let made_somewhere: Vec<bool> =
            names.iter().map(|name| makers.iter().any(|s| to_self(s).contains(name))).collect();
        // The engine does not follow long methods where they are called, so it does not follow them here: what they assign is not known.
        let long =
            |&&(m, f): &&(ModIdx, FuncId)| self.relevance.calls(m, f) > crate::flow::machine::MANY_CALLS;
        let long: Vec<&(ModIdx, FuncId)> = setters.iter().filter(long).collect();
        let left_open: Vec<bool> =
            names.iter().map(|name| long.iter().any(|s| to_self(s).contains(name))).collect();
        let wanted = |n: usize| made_somewhere[n] && open(made[n]) && !left_open[n];
        if !(0..names.len()).any(wanted) {
            return nothing;
        }
        let relevant: Vec<(ModIdx, FuncId)> = setters
            .iter()
            .copied()
            .filter(|s| names.iter().enumerate().any(|(n, name)| wanted(n) && to_self(s).contains(name)))
            .collect();
        if relevant.is_empty() || relevant.len() > MAX_SETTERS {
            return nothing;
        }
        let mut now = made.to_vec();
        for _ in 0..ROUNDS {
            let mut next = now.clone();
            for &(m, f) in &relevant {
                let left = self.left_by(key, id, (m, f), names, &now);
                for (n, held) in left.into_iter().enumerate() {
                    next[n] = next[n].join(held);
                }
            }
            for (n, held) in next.iter_mut().enumerate() {
                if !wanted(n) || module && matches!(held, Held::Tensor { .. }) {
                    *held = Held::Anything;
                }
            }
            if next == now {
                return now;
            }
            if next.iter().all(|h| matches!(h, Held::Anything | Held::Nothing)) {
                return nothing;
            }
            now = next;
        }
        nothing
    }

    /// The attributes' state after one call of a method.
    pub(crate) fn left_by(
        &mut self,
        key: ClassKey,
        id: ObjId,
        (m, f): (ModIdx, FuncId),
        names: &[Sym],
        now: &[Held],
    ) -> Vec<Held> {
        let (mark, cells, objects, frames) =
            (self.store.mark(), self.store.len(), self.objects.len(), self.frames.len());
        let (before, here, entry) = (self.path, self.frame, self.calls.callers.entry);
        for (&name, &held) in names.iter().zip(now) {
            let v = self.value_of(held);
            if self.get_field(id, name) != Value::Absent || held != Held::Nothing {
                self.set_field(id, name, v);
            }
        }
        self.run.muted += 1;
        self.calls.shallow += 1;
        self.calls.callers.deaf = true;
        // Interpretation here must not share results with that of the method as an entry point.
        self.run.pass += APART;
        let heavy = self.calls.heavy.clone();
        let class = self.program.get(m).ir.function(f).class.map(|class| ClassKey { module: m, class });
        self.run(m, f, None, Some(Value::Object(id)), class.or(Some(key)), None, None, false);
        self.calls.heavy = heavy;
        self.run.pass -= APART;
        self.calls.callers.deaf = false;
        self.calls.shallow -= 1;
        self.run.muted -= 1;
        let assigned = self.relevance.assigned.to_self(m, f);
        let left = names.iter().map(|&name| match () {
            () if !assigned.contains(&name) || self.path == FALSE => Held::Nothing,
            () if self.run.exhausted => Held::Anything,
            () => self.held(self.get_field(id, name)),
        });
        let left = left.collect();
        self.collect_nothing();
        (self.path, self.calls.callers.entry) = (before, entry);
        self.rewind(mark, cells, objects);
        self.frames.truncate(frames);
        self.frame = here;
        left
    }

    fn held(&self, v: Value) -> Held {
        match v {
            Value::Absent | Value::None => Held::Nothing,
            Value::Tensor(t) => {
                let t = self.get_tensor(t);
                if t.role.registered() {
                    return Held::Anything;
                }
                Held::Tensor { device: self.definite(t.device), dims: t.dims, double: t.double == TRUE }
            }
            Value::Object(id) if self.obj(id).kind == ObjKind::Generator => match self.own(id) {
                Value::Device(d) => self.definite(d).map_or(Held::Anything, Held::Generator),
                _ => Held::Anything,
            },
            Value::Choice(d) => {
                let mut leaves = Vec::new();
                self.d.leaves(d, &mut leaves);
                let values = leaves.into_iter().map(|leaf| self.held(*self.t.values.get(leaf)));
                values.fold(Held::Nothing, Held::join)
            }
            _ => Held::Anything,
        }
    }

    /// The device, if it is the same in every world and does not depend on a caller.
    fn definite(&self, d: crate::flow::domain::diagram::Dd) -> Option<(Device, OriginId)> {
        let mut found: Option<(Device, OriginId)> = None;
        for (_, device, origin) in self.device_leaves(d) {
            let known = matches!(device, Device::Cpu | Device::Cuda(_) | Device::Other(_));
            if !known || found.is_some_and(|f| f.0 != device) {
                return None;
            }
            found = found.or(Some((device, origin)));
        }
        found
    }

    pub(crate) fn value_of(&mut self, held: Held) -> Value {
        match held {
            Held::Nothing => Value::None,
            Held::Anything => Value::Unknown,
            Held::Generator(device) => {
                let device = self.at(device.0, device.1);
                Value::Object(self.object(ObjKind::Generator, None, Value::Device(device)))
            }
            Held::Tensor { device, dims, double } => {
                let (device, origin) =
                    device.unwrap_or((Device::Unknown, crate::flow::domain::value::NO_ORIGIN));
                let device = self.at(device, origin);
                let double: Cond = if double { TRUE } else { FALSE };
                self.tensor(Tensor { device, dims, role: Role::Plain, certain: true, bytes: None, double })
            }
        }
    }
}

/// Whether the target of an assignment sets an attribute of this name.
fn sets(ir: &Module, target: ExprId, name: Sym) -> bool {
    match ir.expr(target) {
        Expr::Attr { name: n, .. } => n == name,
        Expr::Tuple(list) | Expr::List(list) => ir.list(list).iter().any(|&t| sets(ir, t, name)),
        Expr::Star(rest) => sets(ir, rest, name),
        _ => false,
    }
}

/// Whether the file sets attributes with computed names, or through `__dict__`.
fn sets_any(ir: &Module) -> bool {
    let by_name = |call: crate::ir::Call<'_>| {
        ir.is_builtin(call.func, "setattr")
            && call.args.get(1).is_none_or(|a| !matches!(ir.expr(a.value), Expr::Str(_)))
    };
    ir.has_attribute(Sym::new("__dict__")) || ir.calls().any(by_name)
}
