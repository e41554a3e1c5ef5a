//! Classes of modules with a base class that moves each instance in its constructor.

use crate::flow::query::relevance::file_scan::Scan;
use crate::ir::{Expr, FuncId, Var};
use crate::link::ClassKey;

impl Scan<'_> {
    /// Whether a base of the class that the function belongs to moves each instance in its constructor. Parts that are created after that
    /// stay where they are created.
    pub(crate) fn is_of_moved_base(&mut self, owner: FuncId) -> bool {
        let Some(class) = self.ir.function(owner).class else { return false };
        if let Some(&known) = self.moved_bases.get(&class) {
            return known;
        }
        let bases = &self.program.class(ClassKey { module: self.module, class }).mro;
        let moves = |key: ClassKey| {
            let Some(f) = self.program.own_method(key, self.names.init) else { return false };
            let ir = &self.program.get(key.module).ir;
            let within = ir.function(f).span;
            ir.has_attribute(self.names.to)
                && ir.calls().any(|call| {
                    matches!(ir.expr(call.func), Expr::Attr { base, name }
                        if name == self.names.to && ir.expr(base) == Expr::Var(Var::Local(0)))
                        && within.contains(ir.span(call.func))
                })
        };
        let moved = bases.iter().skip(1).any(|&key| moves(key));
        self.moved_bases.insert(class, moved);
        moved
    }
}
