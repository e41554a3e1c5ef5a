//! Optimizers that the project has written: subclasses of `torch.optim.Optimizer`.
//!
//! The base class keeps what it is given in `param_groups` and has a dict for each parameter in `state`. One dict stands
//! for those of all parameters.

use super::super::value::{NO_ORIGIN, ObjId, Value};
use super::args::Args;
use super::watch::{Optimizer, Parts};
use super::{Interp, ObjKind};
use crate::ir::ExprId;
use crate::link::ClassKey;
use crate::sym::Sym;
use crate::torch::Base;

const DICT: ObjKind = ObjKind::Dict { module: false };

/// The field of a dict that says that each of its values is a dict, and what stands for all of them.
const EACH: &str = " each";

impl Interp<'_> {
    fn is_own_optimizer(&self, key: ClassKey) -> bool {
        let optimizer = |&p: &Sym| crate::torch::base_class(p).is_some_and(|b| b.kind == Base::Optimizer);
        self.program.class(key).externals.iter().any(optimizer)
    }

    /// `super().__init__(params, defaults)` of such a class.
    pub(super) fn optimizer_base(&mut self, receiver: Value, args: &Args, e: ExprId) {
        let Value::Object(id) = receiver else { return };
        if self.symbolic || args.open || !self.obj(id).class.is_some_and(|k| self.is_own_optimizer(k)) {
            return;
        }
        let Some((params, at)) = args.get(0, "params") else { return };
        let defaults = match args.get(1, "defaults") {
            Some((v, _)) => self.dict_items(v),
            None => None,
        };
        let groups = self.groups_of((params, at), defaults.unwrap_or_default(), e);
        let content = self.seq(&[]);
        let state = self.object(DICT, None, content);
        self.set_field(state, Sym::new(EACH), Value::None);
        self.set_field(id, Sym::new("param_groups"), groups);
        self.set_field(id, Sym::new("state"), Value::Object(state));
    }

    /// What `param_groups` is of an optimizer that is given these parameters, and these settings for all of them.
    pub(super) fn groups_of(
        &mut self,
        (params, at): (Value, ExprId),
        settings: Vec<Value>,
        e: ExprId,
    ) -> Value {
        let params = self.builtin_list(params, at, e);
        match params {
            // Groups, as dicts, are what they are.
            Value::Object(list) if self.holds_dicts(list) => params,
            params => {
                let key = Value::Str(Sym::new("params"), NO_ORIGIN);
                let mut items = vec![key, params];
                items.extend(settings);
                let content = self.seq(&items);
                let group = Value::Object(self.object(DICT, None, content));
                self.list(&[group])
            }
        }
    }

    fn builtin_list(&mut self, params: Value, at: ExprId, e: ExprId) -> Value {
        let args = Args { positional: vec![(params, at)], ..Args::default() };
        self.builtin(Sym::new("list"), &args, e)
    }

    fn holds_dicts(&self, list: ObjId) -> bool {
        let items = match self.own(list) {
            Value::Seq(s) => self.seq_items(s).to_vec(),
            Value::Many(m) => vec![*self.t.values.get(m)],
            _ => return false,
        };
        items.iter().any(|&v| matches!(v, Value::Object(o) if self.obj(o).kind == DICT))
    }

    /// `self.state[p]`: a dict, which is there from the first time on that it is asked for.
    pub(super) fn state_of_each(&mut self, id: ObjId) -> Option<Value> {
        let each = Sym::new(EACH);
        match self.get_field(id, each) {
            Value::Absent => None,
            known @ Value::Object(_) => Some(known),
            _ => {
                let content = self.seq(&[]);
                let state = Value::Object(self.object(DICT, None, content));
                self.set_field(id, each, state);
                let content = self.many(state);
                self.set_own(id, content);
                Some(state)
            }
        }
    }

    /// An optimizer of the project's has been made: of which modules, and has it a state already?
    pub(super) fn optimizer_made(&mut self, id: ObjId, key: ClassKey, args: &Args, e: ExprId) {
        if self.symbolic || !self.is_own_optimizer(key) {
            return;
        }
        let Some((_, at)) = args.get(0, "params") else { return };
        let (modules, outside) = self.modules_of_parameters(at);
        let Value::Object(state) = self.get_field(id, Sym::new("state")) else { return };
        let Value::Object(each) = self.get_field(state, Sym::new(EACH)) else { return };
        let mut parts = Parts::default();
        self.parts_of(Value::Object(each), &mut parts, 0);
        let eager = parts.tensors.iter().any(|&t| self.get_tensor(t).certain);
        let name = self.program.get(key.module).ir.class(key.class).name.as_str();
        let place = self.place(e);
        let (stateful, state, replaced) = (false, None, None);
        self.watch.optimizers.push(Optimizer {
            id,
            modules,
            outside,
            place,
            name,
            eager,
            stateful,
            state,
            replaced,
        });
    }

    /// A module has moved, and with it the parameters that such optimizers hold.
    pub(super) fn optimizers_follow(&mut self, module: ObjId, e: ExprId) {
        if !self.watch.optimizers.iter().any(|o| self.obj(o.id).kind == ObjKind::Instance) {
            return;
        }
        let mut moved = Parts::default();
        self.parts_of(Value::Object(module), &mut moved, 0);
        for n in 0..self.watch.optimizers.len() {
            let o = &self.watch.optimizers[n];
            let (id, modules) = (o.id, o.modules.clone());
            if self.obj(id).kind != ObjKind::Instance || !modules.iter().any(|m| moved.modules.contains(m)) {
                continue;
            }
            let groups = Sym::new("param_groups");
            let held = self.get_field(id, groups);
            let group = match (modules.as_slice(), self.exact_elements(held).as_deref()) {
                ([_], Some(&[Value::Object(group)])) => group,
                _ => {
                    self.set_field(id, groups, Value::Unknown);
                    continue;
                }
            };
            let p = self.some_parameter(modules[0], e);
            let content = self.many(p);
            let list = self.object(ObjKind::List { module: false }, None, content);
            self.set_object_item(group, Value::Str(Sym::new("params"), NO_ORIGIN), Value::Object(list));
        }
    }
}
