//! SD302 unregistered-submodule: a list of modules that a constructor gets from its caller.
//!
//! The annotation in `def __init__(self, parts: List[nn.Module])` says that the list has modules, and `self.parts = list(parts)` registers
//! none of them. The finding requires that the module calls the elements of the list. This shows that they are parts of it, and not left
//! out on purpose.

use super::list_of_resolved::SEQUENCES;
use crate::finding::Finding;
use crate::ir::{Class, Expr, ExprId, FuncId, Function, Param, ParamKind, Slot, Stmt, Var};
use crate::rules::check::Context;
use crate::rules::shared::file::{File, is_self};
use crate::span::Span;
use crate::sym::Sym;
use crate::words::Words;

static LOOKS: Words = Words::of("read a list");

/// SD302 unregistered-submodule, about modules from the caller
pub(super) fn kept(cx: &Context<'_>) -> Vec<Finding> {
    let Some(file) = File::of(cx) else { return Vec::new() };
    file.constructed_modules()
        .into_iter()
        .flat_map(|(class, init)| file.lists_of_given(class, init))
        .collect()
}

impl File<'_> {
    /// The lists of modules from the caller that a constructor stores.
    fn lists_of_given(&self, class: &Class, init: FuncId) -> Vec<Finding> {
        let function = self.ir.function(init);
        let given = function.params.iter().filter(|p| {
            p.annotation.is_some_and(|a| match p.kind {
                ParamKind::Star => self.is_weighty_class(a),
                _ => self.says_modules(a),
            })
        });
        let given: Vec<Slot> = given.map(|p| p.slot).collect();
        if given.is_empty()
            || class.methods.iter().any(|&(_, f)| self.registers(f))
            || self.are_handed_on(function, &given)
        {
            return Vec::new();
        }
        let lists = self.own_lists(function);
        let kept = lists.iter().filter(|&&(name, value, _)| {
            (self.is_list_of(function, value, &given)
                || self.is_empty_list(value) && self.is_filled_from(function, name, &given))
                && self.calls_items(class, name)
        });
        kept.map(|&(name, _, at)| self.resolved_finding(name, at)).collect()
    }

    /// `super().__init__(*parts)`, `nn.ModuleList(parts)`: does the function pass them to other code, which may register them?
    fn are_handed_on(&self, function: &Function, given: &[Slot]) -> bool {
        let ir = self.ir;
        let keeps = |func: ExprId| match ir.expr(func) {
            Expr::Attr { base, name } => {
                name.as_str() == "append"
                    && matches!(ir.expr(base), Expr::Attr { base, .. } if is_self(ir, base))
            }
            _ => LOOKS.all().iter().any(|name| ir.is_builtin(func, name)),
        };
        let mentions: Vec<Span> = self
            .inside(function)
            .filter(|(_, e, _)| matches!(e, Expr::Var(Var::Local(slot)) if given.contains(slot)))
            .map(|(.., at)| at)
            .collect();
        self.calls_in(function)
            .filter(|(call, _)| !keeps(call.func))
            .any(|(call, _)| call.args.iter().any(|a| mentions.iter().any(|&m| ir.span(a.value).contains(m))))
    }

    /// Is it `List[nn.Module]`, or a list of a project's class with weights?
    fn says_modules(&self, annotation: ExprId) -> bool {
        let Expr::Index { base, index } = self.ir.expr(annotation) else { return false };
        let item = match self.ir.expr(index) {
            Expr::Tuple(list) => self.ir.list(list).first().copied(),
            _ => Some(index),
        };
        match (self.ir.last_name(base).map(Sym::as_str), item) {
            (Some("Optional"), Some(item)) => self.says_modules(item),
            (Some(name), Some(item)) if SEQUENCES.has(name) => self.is_weighty_class(item),
            _ => false,
        }
    }

    /// The assignments `self.name = value` in the function.
    fn own_lists(&self, function: &Function) -> Vec<(Sym, ExprId, Span)> {
        let body = self.ir.stmts_of(function);
        let stmts = self.ir.stmts[body.clone()].iter().zip(&self.ir.stmt_spans[body]);
        let set = stmts.filter_map(|(stmt, &at)| match *stmt {
            Stmt::Assign { targets, value } => match *self.ir.list(targets) {
                [target] => Some((target, value, at)),
                _ => None,
            },
            Stmt::AnnAssign { target, value: Some(value), .. } => Some((target, value, at)),
            _ => None,
        });
        set.filter_map(|(target, value, at)| match self.ir.expr(target) {
            Expr::Attr { base, name } if is_self(self.ir, base) => Some((name, value, at)),
            _ => None,
        })
        .collect()
    }

    /// `list(parts)`, `tuple(parts)`, `[part for part in parts]`
    fn is_list_of(&self, function: &Function, value: ExprId, given: &[Slot]) -> bool {
        let ir = self.ir;
        let one_of = |e: ExprId| matches!(ir.expr(e), Expr::Var(Var::Local(slot)) if given.contains(&slot));
        match ir.expr(value) {
            // A parameter other than `*parts` may be an `nn.ModuleList`, whatever its annotation says.
            Expr::Var(Var::Local(slot)) => {
                let behind_star = |p: &&Param| p.slot == slot && p.kind == ParamKind::Star;
                one_of(value) && function.params.iter().any(|p| behind_star(&p))
            }
            Expr::Call(call) => match ir.call(call).args {
                [only] => {
                    let func = ir.call(call).func;
                    (ir.is_builtin(func, "list") || ir.is_builtin(func, "tuple")) && one_of(only.value)
                }
                _ => false,
            },
            Expr::Comp(comp) => {
                let comp = ir.comp(comp);
                matches!(&*comp.generators, [g] if one_of(g.iter)
                    && matches!(ir.expr(comp.element), Expr::Var(var) if ir.binds(g.target, var)))
            }
            _ => false,
        }
    }

    /// `[]`
    fn is_empty_list(&self, value: ExprId) -> bool {
        matches!(self.ir.expr(value), Expr::List(list) if list.len == 0)
    }

    /// `self.parts = []`, and then `for part in parts: self.parts.append(part)`
    fn is_filled_from(&self, function: &Function, name: Sym, given: &[Slot]) -> bool {
        let ir = self.ir;
        let body = ir.stmts_of(function);
        ir.stmts[body.clone()].iter().zip(&ir.stmt_spans[body]).any(|(stmt, &at)| {
            let Stmt::For { target, iter, .. } = *stmt else { return false };
            let taken = matches!(ir.expr(iter), Expr::Var(Var::Local(slot)) if given.contains(&slot));
            taken && self.inside(function).any(|(_, e, call)| {
                let Expr::Call(id) = e else { return false };
                let Expr::Attr { base, name: method } = ir.expr(ir.call(id).func) else { return false };
                let own =
                    matches!(ir.expr(base), Expr::Attr { base, name: n } if n == name && is_self(ir, base));
                own && at.contains(call)
                    && method.as_str() == "append"
                    && ir
                        .call(id)
                        .args
                        .iter()
                        .any(|a| matches!(ir.expr(a.value), Expr::Var(var) if ir.binds(target, var)))
            })
        })
    }
}
