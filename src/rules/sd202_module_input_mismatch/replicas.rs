//! SD202 module-input-mismatch: a bound method is an attribute of a module, and replicas share it.
//!
//! `DataParallel` copies a module's attributes to a replica on each GPU, and then replaces the weights by copies. A bound method among the
//! attributes stays bound to the original: after `self.forward = self.fast`, every replica runs the weights of the first GPU on its own
//! part of the batch. (torch/nn/modules/module.py, `_replicate_for_data_parallel`.) Only a method that replaces `forward` is reported,
//! because replicas call `forward`.

use super::CODE;
use crate::finding::{Finding, Label};
use crate::flow::is_module_class;
use crate::ir::{Expr, ExprId, FuncId, FuncKind, IfElse, Module, Var};
use crate::link::{ClassKey, ModIdx, Resolved};
use crate::rules::check::Context;
use crate::rules::shared::file::{File, assigned_to_own, is_self};
use crate::rules::shared::test_code::in_tests;
use crate::span::{Place, Span};
use crate::sym::Sym;
use crate::world::World;

/// How many methods deep the search for weights goes.
const MAX_DEPTH: u32 = 3;

/// SD202 module-input-mismatch, about replicas
pub(super) fn kept_methods(cx: &Context<'_>) -> Vec<Finding> {
    let Some(file) = File::of(cx) else { return Vec::new() };
    let here = Place { file: cx.file, span: Span::default() };
    if in_tests(here, cx) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (key, class) in file.classes() {
        if !is_module_class(cx.program, key) {
            continue;
        }
        let init = class.methods.iter().rev().find(|(name, _)| name.as_str() == "__init__");
        if let Some(&(_, init)) = init {
            found.extend(file.kept_by(key, init));
        }
    }
    found
}

impl File<'_> {
    /// The bound method that a constructor assigns to `forward`.
    fn kept_by(&self, key: ClassKey, init: FuncId) -> Option<Finding> {
        let kept = assigned_to_own(self.ir, init).into_iter().filter(|(name, ..)| name.as_str() == "forward");
        let (bound, at) = kept.into_iter().find_map(|(_, value, at)| {
            let bound = self.bound_method(key, init, value)?;
            Some((bound, at))
        })?;
        let place = |span| Place { file: self.cx.file, span };
        let what = self.cx.sources.text(place(self.ir.span(bound)));
        let message = format!(
            "`DataParallel` raises with this module: every replica calls `{what}` of the original, with the weights on the first GPU"
        );
        let label = Label::new(place(at), "a method bound to this instance: copies of the module keep it");
        let help = format!("define a method `forward` that returns `{what}(…)`");
        Some(Finding::new(CODE, World::Cuda, message, label).help(help))
    }

    /// A method bound to the instance, or to a part that it registers, if the method uses weights.
    fn bound_method(&self, key: ClassKey, init: FuncId, value: ExprId) -> Option<ExprId> {
        match self.ir.expr(value) {
            Expr::IfElse(id) => {
                let IfElse { then, orelse, .. } = self.ir.if_else(id);
                [then, orelse].into_iter().find_map(|v| self.bound_method(key, init, v))
            }
            Expr::Attr { base, name } => {
                let forward = name.as_str() == "forward";
                let own = !forward && is_self(self.ir, base) && self.runs_weights(key, name);
                (own || forward && self.is_registered_part(init, base)).then_some(value)
            }
            _ => None,
        }
    }

    /// `self.model`, or `model` if the constructor stores it.
    fn is_registered_part(&self, init: FuncId, part: ExprId) -> bool {
        match self.ir.expr(part) {
            Expr::Attr { base, name } => {
                let held = assigned_to_own(self.ir, init).into_iter().filter(|&(n, ..)| n == name);
                is_self(self.ir, base)
                    && !held.into_iter().any(|(_, value, _)| self.makes_plain_object(value))
            }
            var @ Expr::Var(Var::Local(_)) => {
                assigned_to_own(self.ir, init).iter().any(|&(_, value, _)| self.ir.expr(value) == var)
            }
            _ => false,
        }
    }

    /// Is it an object of a project's class that is not a module? It cannot be registered.
    fn makes_plain_object(&self, value: ExprId) -> bool {
        let Expr::Call(call) = self.ir.expr(value) else { return false };
        let class = self.cx.program.resolve_expr(self.module, self.ir.call(call).func);
        matches!(class, Some(Resolved::Class(k)) if !is_module_class(self.cx.program, k))
    }

    /// Is there a method of this name that reads a weight or a layer of its instance?
    fn runs_weights(&self, key: ClassKey, name: Sym) -> bool {
        let weights = self.weights(key);
        self.reads(key, name, &weights, MAX_DEPTH)
    }

    fn reads(&self, key: ClassKey, name: Sym, weights: &[Sym], depth: u32) -> bool {
        let Some((m, f)) = self.cx.program.find_method(key, name) else { return false };
        let ir = &self.cx.program.get(m).ir;
        let function = ir.function(f);
        // Static methods, class methods and properties are bound to no instance, or are none.
        if depth == 0 || function.kind != FuncKind::Function || !ir.list(function.decorators).is_empty() {
            return false;
        }
        let own = (function.exprs.start..function.exprs.end).filter_map(|n| match ir.expr(ExprId(n)) {
            Expr::Attr { base, name } if is_self(ir, base) => Some(name),
            _ => None,
        });
        let own: Vec<Sym> = own.collect();
        own.iter().any(|n| weights.contains(n))
            || own.iter().any(|&n| n != name && self.reads(key, n, weights, depth - 1))
    }

    /// The attributes to which the constructors of the class assign parameters, layers with weights, or modules of the project.
    fn weights(&self, key: ClassKey) -> Vec<Sym> {
        let mut weights = Vec::new();
        for &k in &self.cx.program.class(key).mro {
            let Some(init) = self.cx.program.own_method(k, Sym::new("__init__")) else { continue };
            let ir = &self.cx.program.get(k.module).ir;
            for (name, value, _) in assigned_to_own(ir, init) {
                if self.makes_part(k.module, ir, value) {
                    weights.push(name);
                }
            }
        }
        weights
    }

    fn makes_part(&self, module: ModIdx, ir: &Module, value: ExprId) -> bool {
        let Expr::Call(call) = ir.expr(value) else { return false };
        let func = ir.call(call).func;
        let own = |k: ClassKey| is_module_class(self.cx.program, k);
        self.makes_weights(module, func)
            || matches!(self.cx.program.resolve_expr(module, func), Some(Resolved::Class(k)) if own(k))
    }
}
