//! What differentiates what a model gives: helpers that are handed its result, and models that do so themselves.

use rustc_hash::FxHashSet;

use super::super::host_side::tables;
use super::super::nodes::{Node, Target, named};
use super::super::scan::is_module_class;
use super::super::site::own_method;
use super::super::value::{ObjId, Value};
use super::Interp;
use crate::ir::{Expr, ExprId, FuncId, Module, Var};
use crate::link::{ClassKey, ModIdx, Resolved};
use crate::sym::Sym;

/// Names of what walks a graph back.
const WALKS_BACK: &[&str] = &["backward", "manual_backward", "grad", "jacobian", "hessian", "vjp", "jvp"];
/// So many functions are followed into one another.
const MAX_DEPTH: u32 = 2;
/// So many modules, and functions of theirs.
const MAX_MODULES: u32 = 3;
/// In more files than this no model is looked for.
const MAX_FILES: usize = 500;
/// Where PyTorch keeps what differentiates.
const AUTOGRAD: [&str; 2] = ["torch.autograd.", "torch.func."];

impl Interp<'_> {
    /// Does the module, or one that it keeps, take gradients as it computes? Forces are what an energy changes by; without a
    /// graph it would raise.
    pub(super) fn takes_gradients(&self, id: ObjId) -> bool {
        self.takes_gradients_within(id, MAX_MODULES)
    }

    /// Is it one of several models of which one in sight does? Whoever calls them has all of them in mind.
    pub(super) fn is_one_that_takes_gradients(&self, v: Value) -> bool {
        !self.watch.evaluated.is_empty()
            && self.values_of(v).into_iter().any(|v| match v {
                Value::Object(id) => self.is_module_object(id) && self.takes_gradients(id),
                _ => false,
            })
    }

    /// Does the program pick its models out of a table, and take one of them gradients as it computes? Whoever calls a model of which
    /// nobody knows what it is has all of them in mind.
    pub(super) fn picks_models_that_take_gradients(&self) -> bool {
        let (mut files, mut next) = (vec![self.entry], 0);
        let mut seen = FxHashSet::from_iter([self.entry]);
        while let Some(&m) = files.get(next) {
            next += 1;
            files.extend(self.program.imports(m).filter(|&file| seen.insert(file)));
            if files.len() > MAX_FILES {
                return false;
            }
        }
        let asking: FxHashSet<Target> = files.iter().flat_map(|&m| self.functions_with_autograd(m)).collect();
        let takes = |class: ClassKey| {
            let forward = self.program.find_method(class, self.known.forward);
            is_module_class(self.program, class)
                && forward.is_some_and(|f| self.reaches(f, MAX_MODULES, &|_, f| asking.contains(&f)))
        };
        !asking.is_empty() && files.iter().any(|&m| self.classes_in_tables(m).into_iter().any(takes))
    }

    /// The classes that stand in tables at the top of a file.
    fn classes_in_tables(&self, m: ModIdx) -> FxHashSet<ClassKey> {
        let tabled = tables(&self.program.get(m).ir, m);
        let class = |e: ExprId| match self.program.resolve_expr(m, e) {
            Some(Resolved::Class(key)) => Some(key),
            _ => None,
        };
        tabled.into_keys().filter_map(class).collect()
    }

    /// The functions of a file that call `torch.autograd`.
    fn functions_with_autograd(&self, m: ModIdx) -> Vec<Target> {
        let linked = self.program.get(m);
        let imported = linked
            .ir
            .imports
            .iter()
            .any(|i| AUTOGRAD.iter().any(|a| i.whole().as_str().starts_with(a.trim_end_matches('.'))));
        if !imported && !["autograd", "func"].iter().any(|name| linked.ir.has_attribute(Sym::new(name))) {
            return Vec::new();
        }
        let count = u32::try_from(linked.ir.functions.len()).unwrap_or(u32::MAX);
        (1..count).map(|f| (m, FuncId(f))).filter(|&f| self.asks_autograd(f)).collect()
    }

    fn takes_gradients_within(&self, id: ObjId, depth: u32) -> bool {
        let object = self.obj(id);
        let forward = object.class.and_then(|class| self.program.find_method(class, self.known.forward));
        forward.is_some_and(|f| self.reaches(f, MAX_MODULES, &|i, f| i.asks_autograd(f)))
            || depth > 0
                && object.attrs.iter().any(|&(_, cell)| match self.store.get(cell) {
                    Value::Object(part) => part != id && self.takes_gradients_within(part, depth - 1),
                    _ => false,
                })
    }

    /// Does the function call `torch.autograd`?
    fn asks_autograd(&self, (m, f): Target) -> bool {
        let ir = &self.program.get(m).ir;
        let autograd = |path: Sym| AUTOGRAD.iter().any(|p| path.as_str().starts_with(p));
        ir.exprs[ir.exprs_of(ir.function(f))].iter().any(|e| {
            let Expr::Call(id) = *e else { return false };
            matches!(self.program.resolve_expr(m, ir.call(id).func), Some(Resolved::External(path)) if autograd(path))
        })
    }

    /// Does one of these callees of a function, which are all given the result, differentiate it?
    pub(super) fn is_handed_to_backward(&self, (m, f): Target, callees: &[ExprId]) -> bool {
        callees.iter().any(|&callee| {
            let walks_back = |i: &Self, f| i.has_word(WALKS_BACK, f, &|_| true);
            self.called_function(m, f, callee).is_some_and(|f| self.reaches(f, MAX_DEPTH, &walks_back))
        })
    }

    /// Does the function do so, or one that it calls?
    fn reaches(&self, (m, f): Target, depth: u32, does: &dyn Fn(&Self, Target) -> bool) -> bool {
        if does(self, (m, f)) {
            return true;
        }
        let ir = &self.program.get(m).ir;
        let span = ir.function(f).span;
        depth > 0
            && ir.calls().filter(|c| span.contains(ir.span(c.func))).any(|c| {
                let called = self.called_function(m, f, c.func).filter(|&called| called != (m, f));
                called.is_some_and(|called| self.reaches(called, depth - 1, does))
            })
    }

    /// The function of the project that is called by its name, of the object itself, or out of the functions around.
    fn called_function(&self, m: ModIdx, f: FuncId, callee: ExprId) -> Option<(ModIdx, FuncId)> {
        match named(self.program, m, callee) {
            Some(Node::Function(m, f)) => return Some((m, f)),
            Some(Node::Class(_)) => return None,
            None => {}
        }
        let ir = &self.program.get(m).ir;
        match ir.expr(callee) {
            Expr::Var(Var::Local(_)) => nested(ir, f, ir.variable_of(callee)?).map(|f| (m, f)),
            Expr::Var(Var::Enclosing { depth, slot }) => {
                let around = (0..depth).try_fold(ir.function_around(callee), |f, _| ir.function(f).parent)?;
                let name = *ir.function(around).slots.get(usize::from(slot))?;
                nested(ir, around, name).map(|f| (m, f))
            }
            _ => own_method(self.program, m, f, callee),
        }
    }
}

/// The function of this name that is defined in the function.
fn nested(ir: &Module, around: FuncId, name: Sym) -> Option<FuncId> {
    let inside = |f: &crate::ir::Function| f.parent == Some(around) && f.name == name;
    let n = ir.functions.iter().position(inside)?;
    Some(FuncId(u32::try_from(n).unwrap_or(u32::MAX)))
}
