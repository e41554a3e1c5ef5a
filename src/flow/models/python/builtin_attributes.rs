//! `hasattr` and `getattr`.

use crate::flow::domain::diagram::TRUE;
use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::ir::ExprId;
use crate::sym::Sym;

impl Interp<'_> {
    pub(crate) fn has_attr(&mut self, v: Value, args: &Args, e: ExprId) -> Value {
        match (v, args.positional.get(1)) {
            (Value::External(path), Some(&(Value::Str(n, _), _)))
                if path.as_str() == "torch" && n.as_str() == "cuda" =>
            {
                Value::Bool(TRUE)
            }
            // `hasattr(torch, "xpu")` alone says nothing about the machine.
            (Value::External(path), Some(&(Value::Str(n, _), _))) if path.as_str() == "torch" => {
                let Some(backend) = crate::world::Backend::from_name(n.as_str()) else {
                    return Value::Bool(
                        self.keyed_test(crate::flow::machine::expressions::compare::has_test(v, n), e),
                    );
                };
                let atom = match self.tests.plugin_atoms.get(&backend) {
                    Some(&atom) => atom,
                    None => {
                        let place = self.place(e);
                        let atom = self.atoms.add(crate::flow::domain::atom::Atom::Opaque { place });
                        self.tests.plugin_atoms.insert(backend, atom);
                        atom
                    }
                };
                // If the attribute is missing, the back end is not available either.
                let (there, asked) = (self.available(Some(backend)), self.d.atom(atom));
                Value::Bool(self.d.or(there, asked))
            }
            // A version of a library has an attribute or not, so all tests of it give the same answer.
            (Value::External(_), Some(&(Value::Str(n, _), _))) => {
                Value::Bool(self.keyed_test(crate::flow::machine::expressions::compare::has_test(v, n), e))
            }
            (Value::External(_), _) => Value::Bool(self.unknown_test(e)),
            (Value::Object(id), Some(&(Value::Str(n, _), _))) => {
                if self.get_field(id, n) != Value::Absent {
                    return Value::Bool(TRUE);
                }
                // Plain lists and dicts have no method that moves them.
                let held = match self.obj(id).kind {
                    ObjKind::List { module } | ObjKind::Dict { module } => !module,
                    _ => false,
                };
                if held && self.obj(id).class.is_none() && matches!(n.as_str(), "to" | "cuda" | "cpu") {
                    return Value::Bool(crate::flow::domain::diagram::FALSE);
                }
                Value::Bool(self.unknown_test(e))
            }
            (Value::Outer(_), Some(&(Value::Str(n, _), _))) => {
                Value::Bool(self.keyed_test(crate::flow::machine::expressions::compare::has_test(v, n), e))
            }
            _ => Value::Bool(self.unknown_test(e)),
        }
    }

    /// Is it an attribute that a PyTorch layer does not have and that no code has set: `getattr(layer, "weights", None)`?
    fn is_unset_on_layer(&self, v: Value, name: Sym) -> bool {
        let Value::Object(id) = v else { return false };
        let ObjKind::ForeignModule(Some(op)) = self.obj(id).kind else { return false };
        let own = ["weight", "bias", "in_proj", "running", "num_", "training", "device", "module"];
        op.name.as_str().starts_with("torch.nn.")
            && self.get_field(id, name) == Value::Absent
            && !op.constructor.iter().any(|p| p.name == name)
            && !own.iter().any(|prefix| name.as_str().starts_with(prefix))
            && !name.as_str().starts_with('_')
    }

    /// Is the value certainly a tensor, and the name a method of all tensors?
    fn is_method_of_tensors(&self, v: Value, name: Sym) -> bool {
        matches!(v, Value::Tensor(t) if self.get_tensor(t).certain) && crate::torch::method(name).is_some()
    }

    pub(crate) fn get_attr(&mut self, v: Value, args: &Args, e: ExprId) -> Value {
        match args.positional.get(1) {
            Some(&(Value::Str(n, _), _)) => {
                let found = self.attr(v, n, e);
                match args.positional.get(2) {
                    Some(&(Value::None, _)) if self.is_unset_on_layer(v, n) => Value::None,
                    // `getattr(x, "to", None)` of a tensor
                    Some(_) if self.is_method_of_tensors(v, n) => found,
                    Some(&(default, _)) => {
                        let c = match v {
                            Value::External(_) => {
                                let has = self.has_attr(v, args, e);
                                self.as_cond(has, e)
                            }
                            _ => self.unknown_test(e),
                        };
                        self.ite(c, found, default)
                    }
                    None => found,
                }
            }
            // `getattr(torch.optim.lr_scheduler, config.name)`: some scheduler.
            _ if v == Value::External(Sym::new("torch.optim.lr_scheduler")) => {
                Value::External(Sym::new("torch.optim.lr_scheduler.LRScheduler"))
            }
            _ => self.result_of(e),
        }
    }
}
