//! `nn.Module`s: what they own, moving them, calling them.

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::dims::Dims;
use crate::flow::domain::event::UseKind;
use crate::flow::domain::value::{Device, ObjId, Reason, Role, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::calls::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::flow::models::tensors::moves::TypeTarget;
use crate::flow::project::unmoved_modules::parent;
use crate::ir::{CmpOp, Expr, ExprId, Module};
use crate::sym::Sym;
use crate::torch::{self, ModuleOp, State};

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

    /// Is it, in one of the cases, a tensor that moves with its module?
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

    /// May code that is not in sight have given the module parameters? What a class of the project alone has, its own
    /// methods set, and not always as parameters.
    pub(crate) fn has_foreign_parts(&self, id: ObjId) -> bool {
        self.obj(id).kind != ObjKind::Module
            || self.obj(id).class.is_none_or(|key| {
                let info = self.program.class(key);
                info.unknown_base || info.externals.iter().any(|p| p.as_str() != "torch.nn.Module")
            })
    }

    /// Is it of a class that PyTorch's modules without parameters are the bases of: `class Own(nn.CrossEntropyLoss)`?
    fn may_lack_state(&self, id: ObjId) -> bool {
        self.obj(id).class.is_some_and(|key| {
            let info = self.program.class(key);
            let lacks = |&p: &Sym| torch::module(p).is_some_and(|op| op.state != State::Yes);
            let bases = || info.externals.iter().filter(|p| p.as_str() != "torch.nn.Module");
            !info.unknown_base && bases().next().is_some() && bases().all(lacks)
        })
    }

    /// An attribute of a module that is not a field: what `nn.Module` has, or a registered tensor.
    pub(crate) fn module_attr(&mut self, id: ObjId, name: Sym, e: ExprId) -> Value {
        match name.as_str() {
            "weight" | "bias" | "in_proj_weight" | "running_mean" | "running_var"
                if self.has_foreign_parts(id) =>
            {
                // A loss has a weight only if it was given one.
                if self.may_lack_state(id) { self.result_of(e) } else { self.owned_tensor(id, e) }
            }
            // Of recurrent layers: `weight_hh_l0`, of cells `weight_hh`.
            n if (n.starts_with("weight_") || n.starts_with("bias_"))
                && matches!(self.obj(id).kind, ObjKind::ForeignModule(Some(_))) =>
            {
                self.owned_tensor(id, e)
            }
            // What a constructor that nobody has run yet sets is not where its module is.
            "device" if self.calls.unbuilt.contains_key(&id) && self.has_own_device(id) => {
                self.unknown_field(id, name)
            }
            "device" if self.check_module_device(id, e) => self.result_of(e),
            "device" => match self.obj(id).kind {
                // Known frameworks' modules say where they are, in one way or another.
                ObjKind::ForeignModule(None) | ObjKind::Module => {
                    let device = self.module_device(id, 0);
                    self.as_text(device, e)
                }
                _ => self.result_of(e),
            },
            "module" => Value::Object(id),
            // Whoever has its table of parts may move them, and nobody here follows that.
            "_modules" if self.obj(id).outer.is_none() => {
                if is_asked_for_names(&self.linked().ir, e) {
                    return self.result_of(e);
                }
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
                        // A part of an unknown module: a module or tensor that lives with it, or its settings.
                        let device = self.module_device(id, 0);
                        let part = self.possible_tensor(device);
                        return self.in_one_piece(part);
                    }
                    self.result_of(e)
                }
            },
        }
    }

    /// A method that `nn.Module` has.
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
            "state_dict" => {
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
                for &(v, _) in args.positional.iter().take(1) {
                    self.loaded_as_weights(v);
                }
                // Its parameters are from then on those that it is given (torch/nn/modules/module.py).
                if args.open
                    || args
                        .get(2, "assign")
                        .is_some_and(|(v, _)| v != Value::Bool(crate::flow::domain::diagram::FALSE))
                {
                    let unknown = self.unknown_device();
                    self.move_module(id, unknown);
                }
                self.result_of(e)
            }
            // Hooks may move the module and its inputs at every call.
            "register_forward_hook" | "register_forward_pre_hook" => {
                if let Some(handle) = self.add_hook(this, name.as_str(), args) {
                    return handle;
                }
                if args.positional.first().is_some_and(|&(hook, _)| self.may_move(hook)) {
                    let unknown = self.unknown_device();
                    self.move_module(id, unknown);
                    self.modules.hooked.insert(id);
                }
                self.result_of(e)
            }
            "register_full_backward_hook" => self.result_of(e),
            // A static method, which older versions had for objects only.
            "generate_square_subsequent_mask" if matches!(self.obj(id).kind, ObjKind::ForeignModule(Some(op)) if op.name.as_str() == "torch.nn.Transformer") => {
                self.call_external(Sym::new("torch.nn.Transformer.generate_square_subsequent_mask"), args, e)
            }
            // `wrapper.module(x)`: the wrapper stands for what it wraps.
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

    /// `module.type(torch.cuda.FloatTensor)` moves it.
    fn type_module(&mut self, id: ObjId, target: Value, e: ExprId) {
        let (TypeTarget::Place(device) | TypeTarget::Cpu(device)) = self.type_target(target, e) else {
            return;
        };
        let device = self.because(device, e, Reason::Moved);
        self.move_module(id, device);
        self.note_accelerator(id, device);
    }

    /// A name to register under; one of its own where the real one is not known.
    pub(crate) fn field_name(&mut self, id: ObjId, name: Value) -> Sym {
        match name {
            Value::Str(n, _) => n,
            _ => Sym::new(&format!(" {}", self.obj(id).attrs.len())),
        }
    }

    pub(crate) fn register(&mut self, id: ObjId, name: Sym, args: &Args) {
        let Some((field, _)) = args.get(0, "name") else { return };
        let known = matches!(field, Value::Str(..));
        let field = self.field_name(id, field);
        let wanted = if name.as_str() == "register_buffer" { "tensor" } else { "param" };
        let Some((v, _)) = args.get(1, wanted) else { return };
        // It may take the place of any of a layer's own.
        if !known && matches!(self.obj(id).kind, ObjKind::ForeignModule(_)) {
            let unknown = self.unknown_device();
            self.move_module(id, unknown);
            return;
        }
        let role = if wanted == "tensor" { Role::Buffer } else { Role::Parameter };
        if !known && role == Role::Parameter {
            self.modules.registers_by_hand.insert(id);
        }
        let v = match v {
            Value::Tensor(_) | Value::Choice(_) => self.with_role(v, role),
            Value::None if role == Role::Buffer => {
                self.objects[id.0 as usize].reserved.push(field);
                v
            }
            v if role == Role::Buffer && known && self.is_buffer_of_unknown(id, field, v) => {
                self.buffer_of_unknown()
            }
            v => v,
        };
        self.set_field(id, field, v);
    }

    /// The tensor, or each that it may be, as something that moves with its module.
    pub(crate) fn with_role(&mut self, v: Value, role: Role) -> Value {
        self.each(v, &mut |i, v| match v {
            Value::Tensor(t) => {
                let t = i.get_tensor(t);
                i.tensor(Tensor { role, ..t })
            }
            v => v,
        })
    }

    pub(crate) fn some_parameter(&mut self, id: ObjId, e: ExprId) -> Value {
        let then = self.module_device(id, 0);
        let device = self.because(then, e, Reason::Module);
        self.give_out(id, then, device);
        let p = self.parameter(device);
        match p {
            // The weights of PyTorch's layers have dimensions.
            Value::Tensor(t) if self.has_layers(id, 0) => {
                let t = self.get_tensor(t);
                self.tensor(Tensor { dims: Dims::SOME, ..t })
            }
            p => p,
        }
    }

    pub(crate) fn some_child(&mut self, id: ObjId, e: ExprId) -> Value {
        let attrs = self.obj(id).attrs.clone();
        let children: Vec<Value> = attrs
            .iter()
            .map(|&(_, c)| self.store.get(c))
            .filter(|v| matches!(v, Value::Object(o) if self.is_module_object(*o)))
            .collect();
        match children.as_slice() {
            [one] => *one,
            _ => self.result_of(e),
        }
    }

    /// Does its `forward` return tuples or dicts? What is in them may be anything.
    pub(crate) fn returns_several(&mut self, id: ObjId) -> bool {
        let forward = self.obj(id).class.and_then(|k| self.program.find_method(k, self.known.forward));
        let Some((m, f)) = forward else { return false };
        if let Some(&known) = self.calls.several.get(&(m, f)) {
            return known;
        }
        let ir = &self.program.get(m).ir;
        let several = returns_several(ir, ir.function(f).body);
        self.calls.several.insert((m, f), several);
        several
    }

    pub(crate) fn make_module_list(&mut self, op: &'static ModuleOp, args: &Args) -> Value {
        let content = if crate::flow::models::tensors::functions::short(op.name) == "Sequential" {
            match args.positional.as_slice() {
                [(Value::Object(d), _)] if matches!(self.obj(*d).kind, ObjKind::Dict { .. }) => {
                    match self.own(*d) {
                        Value::Seq(s) => {
                            let values: Vec<Value> =
                                self.seq_items(s).iter().skip(1).step_by(2).copied().collect();
                            self.seq(&values)
                        }
                        v => v,
                    }
                }
                _ if args.open => self.many(Value::Unknown),
                items => {
                    let values: Vec<Value> = items.iter().map(|&(v, _)| v).collect();
                    self.seq(&values)
                }
            }
        } else {
            match args.positional.first() {
                None => self.seq(&[]),
                Some(&(v, _)) => match self.exact_elements(v) {
                    Some(items) => self.seq(&items),
                    None => match self.content(v) {
                        m @ Value::Many(_) => m,
                        _ => self.many(Value::Unknown),
                    },
                },
            }
        };
        let content = if crate::flow::models::tensors::functions::short(op.name) == "ParameterList" {
            self.as_parameters(content)
        } else {
            content
        };
        Value::Object(self.object(ObjKind::List { module: true }, None, content))
    }

    /// Tensors in a `ParameterList` or `ParameterDict` become parameters.
    pub(crate) fn as_parameters(&mut self, v: Value) -> Value {
        match v {
            Value::Tensor(t) => {
                let t = self.get_tensor(t);
                self.tensor(Tensor { role: Role::Parameter, ..t })
            }
            Value::Seq(s) => {
                let items: Vec<Value> = self.seq_items(s).iter().map(|&v| self.as_parameters(v)).collect();
                self.seq(&items)
            }
            Value::Many(m) => {
                let item = *self.t.values.get(m);
                let item = self.as_parameters(item);
                self.many(item)
            }
            v => v,
        }
    }
}

/// Does a block return a tuple or a dict somewhere?
pub(crate) fn returns_several(ir: &crate::ir::Module, block: crate::ir::Block) -> bool {
    use crate::ir::{Expr, Stmt};
    ir.block(block).iter().any(|&s| match ir.stmt(s) {
        Stmt::Return(Some(e)) => matches!(ir.expr(*e), Expr::Tuple(_) | Expr::Dict(_)),
        Stmt::If { then, orelse, .. } => returns_several(ir, *then) || returns_several(ir, *orelse),
        Stmt::For { body, .. } | Stmt::While { body, .. } | Stmt::With { body, .. } => {
            returns_several(ir, *body)
        }
        Stmt::Try { body, orelse, .. } => returns_several(ir, *body) || returns_several(ir, *orelse),
        _ => false,
    })
}

/// Is a table only asked how long it is, or for its names: `len(net._modules)`, `"head" in net._modules`?
fn is_asked_for_names(ir: &Module, table: ExprId) -> bool {
    match parent(ir, table).map(|around| ir.expr(around)) {
        Some(Expr::Attr { base, name }) => base == table && name.as_str() == "keys",
        Some(Expr::Compare { op: CmpOp::In | CmpOp::NotIn, right, .. }) => right == table,
        Some(Expr::Call(id)) => {
            let func = ir.call(id).func;
            func != table && ["len", "bool", "list", "sorted", "set"].iter().any(|n| ir.is_builtin(func, n))
        }
        _ => false,
    }
}
