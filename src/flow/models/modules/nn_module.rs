//! `nn.Module`s: what they own, how they move, and their calls.

use crate::flow::domain::diagram::{Dd, FALSE};
use crate::flow::domain::event::UseKind;
use crate::flow::domain::value::{Device, ObjId, Reason, Role, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::ir::ExprId;
use crate::sym::Sym;
use crate::torch::{self, State};

/// Methods that move a module in place.
pub(crate) const MOVES: &[&str] = &["to", "cuda", "cpu", "xpu", "npu", "hpu", "ipu", "to_empty"];

impl Interp<'_> {
    pub(crate) fn is_module_object(&self, id: ObjId) -> bool {
        matches!(
            self.obj(id).kind,
            ObjKind::Module
                | ObjKind::ForeignModule(_)
                | ObjKind::List { module: true }
                | ObjKind::Dict { module: true }
        )
    }

    /// The device of a module's first parameter or buffer.
    pub(crate) fn module_device(&mut self, id: ObjId, depth: u32) -> Dd {
        if self.modules.refilled.contains(&id) {
            return self.unknown_device();
        }
        if depth < 6 {
            match self.obj(id).kind {
                ObjKind::List { .. } | ObjKind::Dict { .. } => {
                    let items = self.exact_elements(self.own(id)).unwrap_or_default();
                    for v in items {
                        if let Some(d) = self.owned_device(v, depth) {
                            return d;
                        }
                    }
                    if let Value::Many(m) = self.own(id) {
                        let item = *self.t.values.get(m);
                        if let Some(d) = self.owned_device(item, depth) {
                            return d;
                        }
                    }
                    return self.unknown_device();
                }
                ObjKind::Module => {
                    let attrs = self.obj(id).attrs.clone();
                    for (name, cell) in attrs {
                        if self.modules.unseen.contains(&(id, name)) {
                            continue;
                        }
                        let v = self.store.get(cell);
                        if let Some(d) = self.owned_device(v, depth) {
                            return d;
                        }
                    }
                }
                _ => {}
            }
        }
        match self.own(id) {
            Value::Device(d) => d,
            _ => self.unknown_device(),
        }
    }

    pub(crate) fn owned_device(&mut self, v: Value, depth: u32) -> Option<Dd> {
        match v {
            Value::Tensor(t) => {
                let t = self.get_tensor(t);
                t.role.registered().then_some(t.device)
            }
            Value::Object(o) if self.is_module_object(o) && self.has_state(o) => {
                Some(self.module_device(o, depth + 1))
            }
            _ => None,
        }
    }

    /// May it be a tensor that moves with its module?
    pub(crate) fn is_registered_tensor(&self, v: Value) -> bool {
        let registered = |v| matches!(v, Value::Tensor(t) if self.get_tensor(t).role.registered());
        self.values_of(v).into_iter().any(registered)
    }

    pub(crate) fn has_state(&self, id: ObjId) -> bool {
        match self.obj(id).kind {
            ObjKind::ForeignModule(Some(op)) => self.is_stateful(id, op),
            _ => true,
        }
    }

    /// May code without source have given the module parameters? No if all its classes are in the project: their own
    /// methods set the attributes, and not always as parameters.
    pub(crate) fn has_foreign_parts(&self, id: ObjId) -> bool {
        self.obj(id).kind != ObjKind::Module
            || self.obj(id).class.is_none_or(|key| {
                let info = self.program.class(key);
                info.unknown_base || info.externals.iter().any(|p| p.as_str() != "torch.nn.Module")
            })
    }

    /// Are all bases of its class modules of PyTorch without parameters: `class Own(nn.CrossEntropyLoss)`?
    fn may_lack_state(&self, id: ObjId) -> bool {
        self.obj(id).class.is_some_and(|key| {
            let info = self.program.class(key);
            let lacks = |&p: &Sym| torch::module(p).is_some_and(|op| op.state != State::Yes);
            let bases = || info.externals.iter().filter(|p| p.as_str() != "torch.nn.Module");
            !info.unknown_base && bases().next().is_some() && bases().all(lacks)
        })
    }

    /// An attribute of a module that is not a field: one that `nn.Module` defines, or a registered tensor.
    pub(crate) fn module_attr(&mut self, id: ObjId, name: Sym, e: ExprId) -> Value {
        match name.as_str() {
            "weight" | "bias" | "in_proj_weight" | "running_mean" | "running_var"
                if self.has_foreign_parts(id) =>
            {
                // A loss has a weight only if the constructor received one.
                if self.may_lack_state(id) { self.result_of(e) } else { self.owned_tensor(id, e) }
            }
            // Weights of recurrent layers (`weight_hh_l0`) and of recurrent cells (`weight_hh`).
            n if (n.starts_with("weight_") || n.starts_with("bias_"))
                && matches!(self.obj(id).kind, ObjKind::ForeignModule(Some(_))) =>
            {
                self.owned_tensor(id, e)
            }
            // The constructor has not run yet. Its `self.device` may differ from the device of the module.
            "device" if self.calls.unbuilt.contains_key(&id) && self.has_own_device(id) => {
                self.unknown_field(id, name)
            }
            "device" if self.check_module_device(id, e) => self.result_of(e),
            "device" => match self.obj(id).kind {
                // Modules of known frameworks have some attribute with their device.
                ObjKind::ForeignModule(None) | ObjKind::Module => {
                    let device = self.module_device(id, 0);
                    self.as_text(device, e)
                }
                _ => self.result_of(e),
            },
            "module" => Value::Object(id),
            // Code that has the dict of submodules may move them, and the engine does not follow that.
            "_modules" if self.obj(id).outer.is_none() => {
                self.escape(Value::Object(id), 0);
                self.result_of(e)
            }
            "in_features" | "out_features" | "in_channels" | "out_channels" | "embedding_dim"
            | "num_embeddings" | "hidden_size" | "num_layers" | "eps" | "stride" | "padding"
            | "kernel_size" | "groups" => Self::NUMBER,
            _ => match self.obj(id).outer {
                Some(o) => Value::Outer(self.outer_attr(o, name)),
                None => {
                    if matches!(self.obj(id).kind, ObjKind::ForeignModule(None)) {
                        // A part of an unknown module: a module or tensor on its device, or a setting.
                        let device = self.module_device(id, 0);
                        let part = self.possible_tensor(device);
                        return self.in_one_piece(part);
                    }
                    self.result_of(e)
                }
            },
        }
    }

    /// Calls a method that `nn.Module` defines.
    pub(crate) fn module_method(
        &mut self,
        id: ObjId,
        name: Sym,
        args: &Args,
        e: ExprId,
        base: ExprId,
    ) -> Value {
        let this = Value::Object(id);
        self.module_precision(id, name.as_str(), args, e);
        self.module_mode(this, name.as_str(), args, e);
        match name.as_str() {
            method if MOVES.contains(&method) => {
                self.transfer_module(id, name, args, e);
                this
            }
            "type" => {
                if let Some((target, _)) = args.get(0, "dst_type") {
                    self.each(target, &mut |i, v| {
                        i.type_module(id, v, e);
                        Value::None
                    });
                }
                this
            }
            "eval" | "train" | "half" | "float" | "double" | "bfloat16" | "requires_grad_"
            | "share_memory" | "apply" | "compile" | "tie_weights" | "fuse" => this,
            "zero_grad" => Value::None,
            "register_buffer" | "register_parameter" => {
                self.register(id, name, args);
                Value::None
            }
            "add_module" | "register_module" => {
                if let (Some((n, _)), Some((m, _))) = (args.get(0, "name"), args.get(1, "module")) {
                    let n = self.field_name(id, n);
                    self.set_field(id, n, m);
                }
                Value::None
            }
            "parameters" | "buffers" => {
                let p = self.some_parameter(id, e);
                self.many(p)
            }
            "named_parameters" | "named_buffers" => {
                let p = self.some_parameter(id, e);
                let pair = self.seq(&[Self::TEXT, p]);
                self.many(pair)
            }
            "state_dict" => self.state_dict(id, e),
            "modules" | "children" | "named_modules" | "named_children"
                if let Some(parts) = self.own_parts(id, name.as_str().ends_with("modules")) =>
            {
                let named = name.as_str().starts_with("named");
                let parts: Vec<Value> = parts
                    .into_iter()
                    .map(|(n, v)| {
                        let n = Value::Str(Sym::new(&n), crate::flow::domain::value::NO_ORIGIN);
                        if named { self.seq(&[n, v]) } else { v }
                    })
                    .collect();
                self.seq(&parts)
            }
            "modules" | "children" => {
                let v = self.some_child(id, e);
                self.many(v)
            }
            "named_modules" | "named_children" => {
                let v = self.some_child(id, e);
                let pair = self.seq(&[Self::TEXT, v]);
                self.many(pair)
            }
            "load_state_dict" => {
                self.load_state_dict(id, args);
                self.result_of(e)
            }
            "register_forward_hook" | "register_forward_pre_hook" => self.register_hook(id, name, args, e),
            "register_full_backward_hook" => self.result_of(e),
            // A static method, which older versions define for objects only.
            "generate_square_subsequent_mask" if matches!(self.obj(id).kind, ObjKind::ForeignModule(Some(op)) if op.name.as_str() == "torch.nn.Transformer") => {
                self.call_external(Sym::new("torch.nn.Transformer.generate_square_subsequent_mask"), args, e)
            }
            // `wrapper.module(x)`: the wrapper and its module are one object here.
            "forward" | "__call__" | "module" => self.call_module(id, args, e),
            "encode" | "decode" | "generate" | "predict"
                if matches!(self.obj(id).kind, ObjKind::ForeignModule(None)) =>
            {
                let _ = base;
                for (v, _) in args.values() {
                    self.escape(v, 0);
                }
                self.result_of(e)
            }
            _ => self.unknown_call(this, args, e),
        }
    }

    /// `net.state_dict()`: tensors on the device of the module's parameters.
    fn state_dict(&mut self, id: ObjId, e: ExprId) -> Value {
        let p = self.some_parameter(id, e);
        let p = match p {
            Value::Tensor(t) => {
                let t = self.get_tensor(t);
                self.tensor(Tensor { role: Role::Plain, ..t })
            }
            v => v,
        };
        let content = self.many(p);
        Value::Object(self.object(ObjKind::Dict { module: false }, None, content))
    }

    /// `net.load_state_dict(weights)`
    fn load_state_dict(&mut self, id: ObjId, args: &Args) {
        for &(v, _) in args.positional.iter().take(1) {
            self.loaded_as_weights(v);
        }
        // With `assign=True`, the tensors of the argument become the parameters (torch/nn/modules/module.py).
        if args.open || args.get(2, "assign").is_some_and(|(v, _)| v != Value::Bool(FALSE)) {
            let unknown = self.unknown_device();
            self.move_module(id, unknown);
        }
    }

    /// Registers a hook. A hook that the engine does not follow may move the module and its inputs at every call.
    fn register_hook(&mut self, id: ObjId, name: Sym, args: &Args, e: ExprId) -> Value {
        if let Some(handle) = self.add_hook(Value::Object(id), name.as_str(), args) {
            return handle;
        }
        if args.positional.first().is_some_and(|&(hook, _)| self.may_move(hook)) {
            let unknown = self.unknown_device();
            self.move_module(id, unknown);
            self.modules.hooked.insert(id);
        }
        self.result_of(e)
    }

    pub(crate) fn transfer_module(&mut self, id: ObjId, name: Sym, args: &Args, e: ExprId) {
        let device = match name.as_str() {
            "to" | "to_empty" => {
                if let Some((v, _)) = args.get(0, "device") {
                    self.check_device_given(v, e);
                }
                self.target_of_to(args, e)
            }
            "cpu" => {
                let place = self.place(e);
                let origin = self.origin(place, Reason::Moved, crate::flow::domain::value::NO_ORIGIN);
                Some(self.at(Device::Cpu, origin))
            }
            method => Some(self.method_target(method, args, e)),
        };
        let Some(device) = device else { return };
        self.note_empty_move(id, name, device, e);
        if !self.moves_nothing(id, 0) {
            self.check_use(device, e, UseKind::Move, &format!("`.{name}()`"));
        }
        let device = self.because(device, e, Reason::Moved);
        self.autocast_meets(device, e);
        self.check_optimizers(id, device, e);
        self.half_moves(id, device, e);
        self.move_module(id, device);
        self.note_accelerator(id, device);
    }
}
