//! Modules and parameters that `.to()` and `parameters()` do not find, and copies of leaf tensors.

use rustc_hash::FxHashSet;

use crate::flow::domain::diagram::TRUE;
use crate::flow::domain::event::Kind;
use crate::flow::domain::value::{Device, ObjId, Reason, Role, Tensor, TensorId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::frame::ObjKind;
use crate::flow::models::modules::submodules::Parts;
use crate::ir::{Call, Expr, ExprId, Var};
use crate::link::{ClassKey, Resolved};
use crate::span::Place;
use crate::sym::Sym;
use crate::torch::State;
use crate::words::Words;

/// Methods with which a class moves itself or lists its parameters in its own way.
static OWN_BOOKS: Words = Words::of("methods that move or list parts");

/// How deep to follow containers inside of containers.
const MAX_CLASSES: u32 = 4;

impl Interp<'_> {
    /// The constructor of a module has ended. Reports modules and parameters that it made and stored only in plain containers.
    pub(crate) fn check_registered(&mut self, id: ObjId) {
        if self.obj(id).kind != ObjKind::Module || self.run.muted > 0 {
            return;
        }
        self.check_empty_moves(id);
        if self.keeps_its_own_books(id) {
            return;
        }
        let mut registered = Parts::default();
        self.registered_parts(id, &mut registered, 0);
        // `self.parameters = nn.ParameterList(…)`: the class has a list of its own, and may use it to move unregistered parameters.
        let listed = self.obj(id).attrs.iter().any(|(name, _)| name.as_str() == "parameters");
        let fields: Vec<(Sym, Value)> =
            self.obj(id).attrs.iter().map(|&(name, cell)| (name, self.store.get(cell))).collect();
        for (name, value) in fields {
            let Some(&place) = self.modules.fields.get(&(id, name)) else { continue };
            for v in self.values_of(value) {
                let Some(container) = self.plain_container(v) else { continue };
                let mut held = Parts::default();
                self.parts_of(v, &mut held, 0);
                // The module may register these parameters by hand, under names that it computes.
                if listed || self.modules.registers_by_hand.contains(&id) {
                    self.forget_places(v, &held);
                    continue;
                }
                // `self.teacher = [model]` is the usual way to keep one module out on purpose.
                if held.modules.len() == 1 && self.exact_elements(v).is_some_and(|items| items.len() == 1) {
                    continue;
                }
                if self.unseen(id, &held, &registered) && self.tell_unregistered(place, container, &held) {
                    self.forget_places(v, &held);
                    break;
                }
            }
        }
    }

    /// Does the class move itself or list its parameters in its own way? Then it finds what it stores.
    pub(crate) fn keeps_its_own_books(&self, id: ObjId) -> bool {
        let Some(key) = self.obj(id).class else { return true };
        let own = |name: &str| self.program.find_method(key, Sym::new(name)).is_some();
        self.is_moved_for_user(key) || OWN_BOOKS.all().iter().any(|name| own(name))
    }

    fn plain_container(&self, v: Value) -> Option<&'static str> {
        match v {
            Value::Seq(_) | Value::Many(_) => Some("tuple"),
            Value::Object(o) => match self.obj(o).kind {
                ObjKind::List { module: false } => Some("list"),
                ObjKind::Dict { module: false } => Some("dict"),
                _ => None,
            },
            _ => None,
        }
    }

    /// Does the container hold modules with weights, or parameters, that this constructor made and registered nowhere?
    fn unseen(&mut self, id: ObjId, held: &Parts, registered: &Parts) -> bool {
        if held.open || registered.open {
            return false;
        }
        let modules: Vec<ObjId> = held.modules.iter().copied().filter(|&m| self.has_weights(m, 0)).collect();
        // A module that existed before this one belongs to other code, which may keep it out on purpose.
        let own = |m: &ObjId| m.0 > id.0 && !registered.modules.contains(m);
        if !modules.is_empty() {
            return modules.iter().all(own) && modules.iter().all(|&m| self.left_where_made(m));
        }
        let parameters: Vec<TensorId> =
            held.tensors.iter().copied().filter(|&t| self.get_tensor(t).role == Role::Parameter).collect();
        // `nn.ParameterList(weights + biases)`
        let along = |t: &TensorId| {
            let lists = registered.tensors.iter().filter_map(|first| self.heap.put_together.get(first));
            lists.flatten().any(|other| other == t)
        };
        !parameters.is_empty()
            && parameters
                .iter()
                .all(|t| !registered.tensors.contains(t) && !along(t) && self.made_as_parameter(*t))
    }

    /// Is the module still on the CPU, where it was made, without any explicit move?
    pub(crate) fn left_where_made(&mut self, id: ObjId) -> bool {
        let d = self.module_device(id, 0);
        self.device_leaves(d).into_iter().all(|(_, device, origin)| {
            device == Device::Cpu && self.chain(origin).first().is_none_or(|s| s.reason != Reason::Moved)
        })
    }

    /// Is it a new `nn.Parameter(…)`, and not a parameter of some module?
    fn made_as_parameter(&self, t: TensorId) -> bool {
        self.device_leaves(self.get_tensor(t).device).into_iter().all(|(_, device, origin)| {
            let chain = self.chain(origin);
            device == Device::Cpu
                && chain
                    .first()
                    .is_some_and(|s| matches!(s.reason, Reason::Default | Reason::Host | Reason::Typed))
        })
    }

    /// Does the module have parameters or buffers, as far as its class shows?
    pub(crate) fn has_weights(&self, id: ObjId, depth: u32) -> bool {
        match self.obj(id).kind {
            ObjKind::ForeignModule(Some(op)) => op.state != State::Unknown && self.is_stateful(id, op),
            // A module of another library. Libraries have little reason to make modules without weights.
            ObjKind::ForeignModule(None) => true,
            ObjKind::List { module: true } | ObjKind::Dict { module: true } => {
                let mut parts = Parts::default();
                self.parts_of(self.own(id), &mut parts, 0);
                depth < MAX_CLASSES && parts.modules.iter().any(|&m| self.has_weights(m, depth + 1))
            }
            ObjKind::Module => self.obj(id).class.is_some_and(|k| self.class_has_weights(k)),
            _ => false,
        }
    }

    /// Do the methods of the class or of its bases make parameters, or modules that have some?
    fn class_has_weights(&self, key: ClassKey) -> bool {
        if let Some(&known) = self.observed.weighty.borrow().get(&key) {
            return known;
        }
        let (mut seen, mut todo) = (FxHashSet::from_iter([key]), vec![key]);
        let mut has = false;
        while let Some(class) = todo.pop()
            && !has
        {
            has = self.makes_weights(class, &mut |k| {
                if seen.insert(k) {
                    todo.push(k);
                }
            });
        }
        self.observed.weighty.borrow_mut().insert(key, has);
        has
    }

    /// Does the class itself make parameters or layers that have some? Calls `other` with each of the project's modules that it makes.
    fn makes_weights(&self, key: ClassKey, other: &mut dyn FnMut(ClassKey)) -> bool {
        let info = self.program.class(key);
        let inherits = info.externals.iter().any(|&p| {
            crate::torch::module(p)
                .is_some_and(|m| m.state == State::Yes && m.name.as_str() != "torch.nn.Module")
        });
        inherits
            || info.mro.iter().any(|&k| {
                let linked = self.program.get(k.module);
                let span = linked.ir.class(k.class).span;
                let ir = &linked.ir;
                ir.calls().any(|c| span.contains(ir.span(c.func)) && self.is_weighty(k, c, other))
            })
    }

    /// Does the call make a parameter or a layer that has some?
    fn is_weighty(&self, key: ClassKey, call: Call<'_>, other: &mut dyn FnMut(ClassKey)) -> bool {
        let ir = &self.program.get(key.module).ir;
        let mut callee = call.func;
        // `def __init__(self, width, layer=nn.Linear)`: the class is a parameter.
        if let Expr::Var(Var::Local(slot)) = ir.expr(callee) {
            let params = &ir.function(ir.function_around(callee)).params;
            match params.iter().find(|p| p.slot == slot).and_then(|p| p.default) {
                Some(default) => callee = default,
                None => return false,
            }
        }
        match self.program.resolve_expr(key.module, callee) {
            Some(Resolved::External(path)) => {
                path.as_str().ends_with("nn.Parameter")
                    || crate::torch::module(path).is_some_and(|m| m.state == State::Yes)
            }
            Some(Resolved::Class(k)) if self.is_module_class(k) => {
                other(k);
                false
            }
            _ => false,
        }
    }

    fn tell_unregistered(&mut self, place: Place, container: &'static str, held: &Parts) -> bool {
        let Some(bite) = self.bite(TRUE, false) else { return false };
        let parameters = held.modules.is_empty();
        self.emit(Kind::Unregistered { container, parameters }, place, bite, Vec::new());
        true
    }

    /// Sets the devices of unregistered parts to unknown, so that no rule reports them again where they meet another tensor.
    fn forget_places(&mut self, container: Value, held: &Parts) {
        let unknown = self.unknown_device();
        for &m in &held.modules {
            self.move_module(m, unknown);
        }
        if let (Value::Object(o), true) = (container, held.modules.is_empty()) {
            let content = self.many(Value::Unknown);
            self.set_own(o, content);
        }
    }

    /// `t.requires_grad_()` or `t.requires_grad = True`: the tensor itself is a leaf from now on, in every variable that holds it.
    pub(crate) fn becomes_leaf(&mut self, v: Value, base: ExprId) -> Value {
        let Value::Tensor(id) = v else { return v };
        let t = self.get_tensor(id);
        if !matches!(t.role, Role::Plain | Role::Constant) || !t.certain {
            return v;
        }
        let leaf = self.tensor(Tensor { role: Role::Leaf, ..t });
        if let Expr::Var(_) | Expr::Attr { .. } = self.linked().ir.expr(base) {
            self.assign(base, leaf);
        }
        leaf
    }

    /// The role of the result of `.to()`. The copy of a leaf on another device is not a leaf.
    pub(crate) fn role_of_copy(
        &mut self,
        t: Tensor,
        target: crate::flow::domain::diagram::Dd,
        e: ExprId,
        base: ExprId,
    ) -> Role {
        let moves = self.device_leaves(target).iter().any(|(_, d, _)| {
            matches!(d, Device::Cuda(_) | Device::CudaSome | Device::Other(_) | Device::Named(_))
        });
        let made_on_cpu = self.device_leaves(t.device).iter().all(|(_, d, _)| *d == Device::Cpu);
        match t.role {
            // While gradients are off, the copy is a leaf of its own. It has a gradient only after `requires_grad_()`.
            Role::Parameter | Role::Leaf if self.is_gradless() => Role::Plain,
            Role::Parameter | Role::Leaf if moves && made_on_cpu && t.certain => {
                if !matches!(self.linked().ir.expr(base), Expr::Attr { .. }) {
                    let place = self.place(e);
                    self.observed.fresh_copies.push(place);
                }
                Role::Copy
            }
            Role::Copy | Role::Constant | Role::Whole => t.role,
            _ => Role::Plain,
        }
    }

    /// A copy of a leaf is passed to an optimizer, stored as a parameter, or asked for its gradient. True if it is reported.
    pub(crate) fn check_leaf(&mut self, v: Value, e: ExprId, what: &str, fresh_only: bool) -> bool {
        let Value::Tensor(id) = v else { return false };
        let t = self.get_tensor(id);
        if t.role != Role::Copy {
            return false;
        }
        for (leaf, device, origin) in self.device_leaves(t.device) {
            if device == Device::Cpu {
                continue;
            }
            let Some(moved) = self.chain(origin).iter().find(|s| s.reason == Reason::Moved).map(|s| s.place)
            else {
                continue;
            };
            if fresh_only && !self.observed.fresh_copies.contains(&moved) {
                continue;
            }
            let here = self.d.where_leaf(t.device, &mut |p| p == leaf);
            let there = self.accelerator_condition(device, Device::Cpu);
            let bad = self.d.and(here, there);
            let Some(bite) = self.bite(bad, false) else { continue };
            let used = self.place(e);
            self.emit(Kind::NonLeaf { what: what.to_owned(), used }, moved, bite, Vec::new());
            if let (Device::Named(o) | Device::Of(o), Some(event)) = (device, self.events.last_mut()) {
                event.about.push(o);
            }
            return true;
        }
        false
    }

    /// After `t.retain_grad()`, the copy has a gradient.
    pub(crate) fn keeps_gradient(&mut self, t: Tensor, base: ExprId) {
        if let (Role::Copy, Expr::Var(_) | Expr::Attr { .. }) = (t.role, self.linked().ir.expr(base)) {
            let plain = self.tensor(Tensor { role: Role::Plain, ..t });
            self.assign(base, plain);
        }
    }
}
