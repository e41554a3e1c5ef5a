//! Methods of what is given as an instance of a class of the project: `def forward(self, data: Graph): data.subgraph(mask)`.
//!
//! What such a method gives is not followed, for the object may be of a subclass as well. But what is made here and handed to it
//! meets there what the object holds.

use super::super::value::{OuterId, OuterKey, Value};
use super::args::Args;
use super::{Interp, TRUE};
use crate::ir::{ExprId, FuncId};
use crate::link::{ModIdx, Resolved};
use crate::sym::Sym;

impl Interp<'_> {
    /// Interprets the method for what happens in it, if it is given a tensor of which it is known where it is.
    pub(super) fn run_by_annotation(&mut self, o: OuterId, name: Sym, args: &Args, e: ExprId) {
        if args.open || !args.values().any(|(v, _)| self.is_placed(v)) {
            return;
        }
        if let Some((m, f)) = self.method_by_annotation(o, name) {
            let before = self.path;
            self.call_function(m, f, None, Some(Value::Outer(o)), args, e);
            self.path = before;
        }
    }

    /// Is it a tensor, and not where some outside thing is?
    fn is_placed(&self, v: Value) -> bool {
        match v {
            Value::Tensor(t) => {
                let t = self.get_tensor(t);
                t.certain && self.is_cpu(t.device)
            }
            _ => false,
        }
    }

    /// The method of the class that a parameter has by its annotation.
    fn method_by_annotation(&self, o: OuterId, name: Sym) -> Option<(ModIdx, FuncId)> {
        let OuterKey::Param { module, func, index } = self.t.get_outer(o).key else { return None };
        let (m, annotation) = self.annotation_of(module, func, index)?;
        let Some(Resolved::Class(key)) = self.program.resolve_expr(m, annotation) else { return None };
        // Modules say where they are themselves.
        if self.is_module_class(key) {
            return None;
        }
        let (m, f) = self.program.find_method(key, name)?;
        let function = self.program.get(m).ir.function(f);
        (function.decorators.len == 0 && !function.is_generator).then_some((m, f))
    }

    /// Is something known not to be `None` here that is asked for under this name? Then it is there.
    pub(super) fn has_been_found(&mut self, o: OuterId, name: Sym) -> bool {
        let held = Value::Outer(self.outer_attr(o, name));
        let Some(&missing) = self.tests.get(&super::Test::Compare(0, held, Value::None)) else {
            return false;
        };
        let missing = self.d.atom(missing);
        let there = self.d.not(missing);
        there == TRUE || self.d.implies(self.path, there)
    }
}
