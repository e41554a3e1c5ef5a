//! Modules without parameters and buffers: losses, activations, and modules that contain only these.

use crate::flow::domain::value::{ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::frame::ObjKind;
use crate::ir::{Expr, ExprId, Stmt, Var};
use crate::sym::Sym;
use crate::torch::State;

impl Interp<'_> {
    /// Has the module certainly neither parameters nor buffers? Then a move of it uses no device, because
    /// `nn.Module.cuda()` moves only its tensors (`Module._apply`). A module without submodules counts only if the engine could
    /// follow its constructor.
    pub(crate) fn moves_nothing(&self, id: ObjId, depth: u32) -> bool {
        match self.obj(id).kind {
            ObjKind::ForeignModule(Some(op)) => match op.state {
                State::No => true,
                // A loss may have received weights.
                State::Sometimes => op.name.as_str().ends_with("Loss") && self.obj(id).attrs.is_empty(),
                State::Yes | State::Unknown => false,
            },
            ObjKind::Module if self.obj(id).outer.is_none() && !self.has_foreign_parts(id) => {
                let attrs = &self.obj(id).attrs;
                let has_parts = attrs
                    .iter()
                    .any(|&(_, c)| matches!(self.store.get(c), Value::Object(o) if self.is_module_object(o)));
                (has_parts || self.is_plainly_made(id))
                    && attrs.iter().all(|&(name, c)| {
                        self.has_nothing_to_move(self.store.get(c), depth) || self.is_setting(id, name)
                    })
            }
            ObjKind::List { module: true } => self.has_nothing_to_move(self.own(id), depth),
            _ => false,
        }
    }

    /// Do the constructors of the class and its bases only set attributes, all of which the object has? Then the engine has followed
    /// them and sees everything in the object. A class that moves unregistered tensors itself does not count.
    fn is_plainly_made(&self, id: ObjId) -> bool {
        let Some(key) = self.obj(id).class else { return false };
        let has = |name: Sym| self.obj(id).attrs.iter().any(|&(n, _)| n == name);
        !self.moves_itself_by_hand(id)
            && self.program.class(key).mro.iter().all(|&k| {
                let Some(f) = self.program.own_method(k, self.known.init) else { return true };
                let ir = &self.program.get(k.module).ir;
                let function = ir.function(f);
                let is_self = |e: ExprId| ir.expr(e) == Expr::Var(Var::Local(0));
                let sets = ir.stmts[ir.stmts_of(function)].iter().all(|s| match *s {
                    Stmt::Assign { targets, .. } => ir.list(targets).iter().all(|&t| match ir.expr(t) {
                        Expr::Attr { base, name } if is_self(base) => has(name),
                        _ => true,
                    }),
                    _ => true,
                });
                let mut calls = ir.calls().filter(|call| function.span.contains(ir.span(call.func)));
                sets && calls.all(|call| match ir.expr(call.func) {
                    // `super().__init__()`, `Base.__init__(self)`
                    Expr::Attr { name, .. } if name == self.known.init => true,
                    Expr::Attr { base, .. } if is_self(base) => false,
                    Expr::Var(Var::Unbound(name)) if name.as_str() == "super" => true,
                    _ => !call.args.iter().any(|a| is_self(a.value)),
                })
            })
    }

    /// `self.margin = margin`, where the default of the parameter `margin` is a number, a string or a Boolean.
    pub(crate) fn is_setting(&self, id: ObjId, name: Sym) -> bool {
        let init = self.obj(id).class.and_then(|key| self.program.find_method(key, self.known.init));
        let Some((module, func)) = init else { return false };
        let ir = &self.program.get(module).ir;
        let function = ir.function(func);
        let plain = |e: ExprId| {
            matches!(ir.expr(e), Expr::Int(_) | Expr::Float(_) | Expr::Str(_) | Expr::True | Expr::False)
        };
        let param = |e: ExprId| match ir.expr(e) {
            Expr::Var(Var::Local(slot)) => function.params.iter().find(|p| p.slot == slot),
            _ => None,
        };
        let own = |&t: &ExprId| matches!(ir.expr(t), Expr::Attr { base, name: n } if n == name && ir.expr(base) == Expr::Var(Var::Local(0)));
        ir.stmts[ir.stmts_of(function)].iter().any(|s| match *s {
            Stmt::Assign { targets, value } => {
                ir.list(targets).iter().any(own) && param(value).and_then(|p| p.default).is_some_and(plain)
            }
            _ => false,
        })
    }

    /// Does an attribute's value contain nothing that moves? An unknown value may be a parameter, and an empty list may
    /// have been filled later.
    pub(crate) fn has_nothing_to_move(&self, v: Value, depth: u32) -> bool {
        if depth > 4 {
            return false;
        }
        self.values_of(v).into_iter().all(|v| match v {
            Value::Absent | Value::None | Value::Bool(_) | Value::Int(_) | Value::Str(..) => true,
            Value::Host(_) | Value::Device(_) | Value::External(_) | Value::Closure(_) => true,
            Value::Tensor(t) => !self.get_tensor(t).role.registered(),
            Value::Object(o) if self.is_module_object(o) => self.moves_nothing(o, depth + 1),
            // Plain lists and dicts are not registered. Only modules are.
            Value::Object(o) => matches!(self.obj(o).kind, ObjKind::List { .. } | ObjKind::Dict { .. }),
            Value::Seq(s) => {
                let items = self.seq_items(s);
                !items.is_empty() && items.iter().all(|&item| self.has_nothing_to_move(item, depth + 1))
            }
            Value::Many(m) => self.has_nothing_to_move(self.each_of(m), depth + 1),
            _ => false,
        })
    }
}
