//! Modules that a class of the project restores: `Model.from_pretrained(path)`, whose own reading of files nobody follows.
//!
//! What reads a model and can be told to place it (`device_map=`) leaves it on the CPU where it is not told. Its constructor says
//! what it is made of.

use super::super::dims::Dims;
use super::super::value::{ObjId, Value};
use super::args::Args;
use super::meet::{Party, Rule};
use super::{Closure, Interp};
use crate::ir::{Expr, ExprId};
use crate::link::ClassKey;
use crate::sym::Sym;

/// The argument by which such functions are told where.
const PLACES: &str = "device_map";

impl Interp<'_> {
    /// Does the class method restore an instance, by its name, and does it know of placing it?
    pub(super) fn restores(&self, key: ClassKey, name: Sym, method: Closure) -> bool {
        if !matches!(name.as_str(), "from_pretrained") || !self.is_module_class(key) {
            return false;
        }
        let ir = &self.program.get(method.module).ir;
        let function = ir.function(method.func);
        let place = Sym::new(PLACES);
        function.params.iter().any(|p| p.name == place)
            || ir.has_string(place)
                && ir.exprs[ir.exprs_of(function)].iter().any(|e| matches!(*e, Expr::Str(s) if s == place))
    }

    /// The instance, if following the method has not shown one.
    pub(super) fn restored(&mut self, key: ClassKey, shown: Value, args: &Args, e: ExprId) -> Value {
        // Within another one that is gone through, it is only a part.
        if self.shallow > 0 || !matches!(shown, Value::Unknown | Value::Outer(_)) {
            return shown;
        }
        // A device by another name, or by its position, may be where it goes.
        let names_device = |v: Value| match v {
            Value::Device(_) => true,
            Value::Str(s, _) => super::device::parse_device(s.as_str()).is_some(),
            _ => false,
        };
        let placed = |k: Sym| matches!(k.as_str(), "device" | "device_map");
        let elsewhere = args.positional.iter().any(|&(v, _)| names_device(v))
            || args.keywords.iter().any(|&(k, v, _)| names_device(v) && !placed(k));
        if elsewhere || args.open || args.open_names {
            return shown;
        }
        let device = self.restored_to(args, e);
        let id = self.new_instance(key, e);
        self.watch.restored.insert(id);
        let given = Args { open: true, open_names: true, ..Args::default() };
        self.unbuilt.insert(id, given);
        // What it is made of is no part of what the program does.
        let steps = self.budget.steps;
        self.build_now(id, e);
        self.budget.steps = steps;
        self.unbuilt.remove(&id);
        if !self.is_as_made(device) {
            self.move_module(id, device);
        }
        self.made_in_half(id, args, e);
        Value::Object(id)
    }

    /// A method of such a module: gone through where it is given something that is elsewhere.
    pub(super) fn restored_method(
        &mut self,
        id: ObjId,
        (name, method): (Sym, Value),
        args: &Args,
        e: ExprId,
    ) -> Value {
        if !self.is_given_elsewhere(id, args, e) {
            // `model.enable_group_offload(…)`
            self.may_have_moved(name, Some(Value::Object(id)));
            return self.unknown_call(Value::Unknown, args, e);
        }
        self.for_what_meets(&mut |i| i.call_value(method, args, e))
    }

    /// Is it given a tensor that is not where the module is?
    pub(super) fn is_given_elsewhere(&mut self, id: ObjId, args: &Args, e: ExprId) -> bool {
        let device = self.module_device(id, 0);
        let module = Party { expr: e, device, dims: Dims::SOME, rule: Rule::STRICT };
        let given: Vec<(Value, ExprId)> = args.values().collect();
        given.into_iter().any(|(v, at)| {
            matches!(v, Value::Tensor(_) | Value::Choice(_))
                && self.party(v, at, Rule::STRICT).is_some_and(|p| !self.clashes(&module, &p).is_empty())
        })
    }

    /// Goes through something for the tensors that meet in it.
    pub(super) fn for_what_meets(&mut self, run: &mut dyn FnMut(&mut Self) -> Value) -> Value {
        self.watch.only_meetings += 1;
        let given = run(self);
        self.watch.only_meetings -= 1;
        given
    }
}
