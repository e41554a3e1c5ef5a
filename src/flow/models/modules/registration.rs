//! What a module registers, and lists of modules.

use crate::flow::domain::dims::Dims;
use crate::flow::domain::value::{ObjId, Reason, Role, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::flow::models::dtypes::type_method::TypeTarget;
use crate::ir::ExprId;
use crate::sym::Sym;
use crate::torch::ModuleOp;

impl Interp<'_> {
    /// `module.type(torch.cuda.FloatTensor)` moves it.
    pub(crate) fn type_module(&mut self, id: ObjId, target: Value, e: ExprId) {
        let (TypeTarget::Place(device) | TypeTarget::Cpu(device)) = self.type_target(target, e) else {
            return;
        };
        let device = self.because(device, e, Reason::Moved);
        self.move_module(id, device);
        self.note_accelerator(id, device);
    }

    /// The name to register under. If the real name is unknown, it is a new name.
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
        // Under an unknown name, it may replace any parameter of a layer.
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

    /// The value, with this role for each tensor that it may be.
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
            // Weights of PyTorch's layers have at least one dimension.
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

    /// Does its `forward` return tuples or dicts? Their elements may be anything.
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

/// Does a `return` in the block return a tuple or a dict?
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
