//! SD302 unregistered-submodule: a list of modules that a resolver function returns.
//!
//! `def __init__(self, parts: List[Union[Part, str]])` takes modules or names of modules, and
//! `self.parts = [resolve(part) for part in parts]` turns each name into a module. The resolver is not interpreted. The annotation says
//! what it returns, and so does the module when it calls the elements.

use std::sync::LazyLock;

use rustc_hash::FxHashSet;

use super::CODE;
use crate::finding::{Finding, Label};
use crate::flow::is_module_class;
use crate::ir::{BinOp, Class, ClassId, CompKind, Expr, ExprId, FuncId, Slot, Stmt, Var};
use crate::link::{ClassKey, Resolved};
use crate::remedy::Remedy;
use crate::rules::check::Context;
use crate::rules::shared::file::{File, is_self};
use crate::span::{Place, Span};
use crate::sym::Sym;
use crate::torch;
use crate::words::Words;
use crate::world::World;

static MOVE_OR_LIST: Words = Words::of("methods that move or list parts");
static REGISTERING: Words = Words::of("register a part without an attribute");
pub(super) static SEQUENCES: Words = Words::of("types of sequences");

/// The methods of a class that moves, registers or lists its parts itself.
static OWN_BOOKS: LazyLock<Vec<Sym>> =
    LazyLock::new(|| MOVE_OR_LIST.all().iter().map(|name| Sym::new(name)).collect());

/// SD302 unregistered-submodule, about modules from a resolver
pub(super) fn resolved(cx: &Context<'_>) -> Vec<Finding> {
    let Some(file) = File::of(cx) else { return Vec::new() };
    file.constructed_modules().into_iter().flat_map(|(class, init)| file.resolved_by(class, init)).collect()
}

impl<'a> File<'a> {
    /// The classes of modules that rely on PyTorch to move and list their parts, with their constructors.
    pub(super) fn constructed_modules(&self) -> Vec<(&'a Class, FuncId)> {
        let mut found = Vec::new();
        for (key, class) in self.classes() {
            let init = class.methods.iter().rev().find(|(name, _)| name.as_str() == "__init__");
            if let (Some(&(_, init)), true) = (init, is_module_class(self.cx.program, key))
                && !self.keeps_books(key)
            {
                found.push((class, init));
            }
        }
        found
    }
}

impl File<'_> {
    /// Does the class move or list its parts itself, or does a framework do it?
    pub(super) fn keeps_books(&self, key: ClassKey) -> bool {
        let program = self.cx.program;
        let moved = |&path: &Sym| torch::base_class(path).is_some_and(|b| b.moves_for_user);
        program.class(key).externals.iter().any(moved)
            || OWN_BOOKS.iter().any(|&name| program.find_method(key, name).is_some())
    }

    /// The lists of resolved modules that a constructor stores.
    fn resolved_by(&self, class: &Class, init: FuncId) -> Vec<Finding> {
        let ir = self.ir;
        let function = ir.function(init);
        let taken: Vec<Slot> = function
            .params
            .iter()
            .filter(|p| p.annotation.is_some_and(|a| self.says_modules_or_names(a)))
            .map(|p| p.slot)
            .collect();
        if taken.is_empty() || self.registers(init) {
            return Vec::new();
        }
        let mut found = Vec::new();
        let body = ir.stmts_of(function);
        for (stmt, &at) in ir.stmts[body.clone()].iter().zip(&ir.stmt_spans[body]) {
            let Stmt::Assign { targets, value } = *stmt else { continue };
            let [target] = *ir.list(targets) else { continue };
            let Expr::Attr { base, name } = ir.expr(target) else { continue };
            if is_self(ir, base) && self.resolves_each(value, &taken) && self.calls_items(class, name) {
                found.push(self.resolved_finding(name, at));
            }
        }
        found
    }

    pub(super) fn resolved_finding(&self, name: Sym, at: Span) -> Finding {
        let message = format!(
            "`self.{name}` is a plain list: `.to()`, `parameters()` and `state_dict()` do not see its modules"
        );
        let attribute = Place { file: self.cx.file, span: at };
        let label = Label::new(attribute, "does not register its modules");
        Finding::new(CODE, World::Always, message, label)
            .help("make it an `nn.ModuleList`, which registers its modules")
            .remedy([Remedy::Hold { attribute, class: "ModuleList" }])
    }

    /// Does a constructor register parts by name, or in a container of PyTorch?
    pub(super) fn registers(&self, init: FuncId) -> bool {
        let function = self.ir.function(init);
        (function.exprs.start..function.exprs.end).any(|n| {
            let name = match self.ir.expr(ExprId(n)) {
                Expr::Attr { name, .. } | Expr::Var(Var::Unbound(name)) => Some(name),
                Expr::Var(Var::Global(_)) => self.ir.variable_of(ExprId(n)),
                _ => None,
            };
            name.is_some_and(|name| REGISTERING.has(name.as_str()))
        })
    }

    /// Is it `List[Union[Part, str]]`, where `Part` is a class of modules with weights, as far as is known?
    fn says_modules_or_names(&self, annotation: ExprId) -> bool {
        let Expr::Index { base, index } = self.ir.expr(annotation) else { return false };
        let Some(name) = self.ir.last_name(base) else { return false };
        let item = match self.ir.expr(index) {
            Expr::Tuple(list) => self.ir.list(list).first().copied(),
            _ => Some(index),
        };
        match (name.as_str(), item) {
            ("Optional", Some(item)) => self.says_modules_or_names(item),
            (name, Some(item)) if SEQUENCES.has(name) => {
                let mut kinds = Vec::new();
                self.kinds(item, &mut kinds);
                kinds.iter().any(|&k| self.is_text(k))
                    && kinds.iter().any(|&k| self.is_weighty_class(k))
                    && kinds.iter().all(|&k| {
                        self.is_text(k) || self.is_weighty_class(k) || self.ir.expr(k) == Expr::None
                    })
            }
            _ => false,
        }
    }

    /// The members of `Union[…]`, `Optional[…]` and `A | B`.
    fn kinds(&self, e: ExprId, kinds: &mut Vec<ExprId>) {
        match self.ir.expr(e) {
            Expr::Index { base, index } => {
                let union = self.ir.last_name(base);
                match (union.map(Sym::as_str), self.ir.expr(index)) {
                    (Some("Union"), Expr::Tuple(list)) => {
                        self.ir.list(list).iter().for_each(|&part| self.kinds(part, kinds));
                    }
                    (Some("Union" | "Optional"), _) => self.kinds(index, kinds),
                    _ => kinds.push(e),
                }
            }
            Expr::Binary { op: BinOp::BitOr, left, right } => {
                self.kinds(left, kinds);
                self.kinds(right, kinds);
            }
            _ => kinds.push(e),
        }
    }

    fn is_text(&self, e: ExprId) -> bool {
        self.ir.expr(e) == Expr::Var(Var::Unbound(Sym::new("str")))
    }

    /// Is it a class of modules, some of which have weights? These are `nn.Module`, and classes of the project if they or their subclasses
    /// have weights.
    pub(super) fn is_weighty_class(&self, e: ExprId) -> bool {
        match self.cx.program.resolve_expr(self.module, e) {
            Some(Resolved::External(path)) => {
                torch::base_class(path).is_some_and(|b| b.kind == torch::Base::Module)
            }
            Some(Resolved::Class(key)) => {
                is_module_class(self.cx.program, key) && self.some_have_weights(key)
            }
            _ => false,
        }
    }

    /// Does the class, or a subclass in a file that this one imports directly or indirectly, create parameters or layers?
    fn some_have_weights(&self, base: ClassKey) -> bool {
        let program = self.cx.program;
        let (mut seen, mut todo) = (FxHashSet::from_iter([self.module]), vec![self.module]);
        while let Some(module) = todo.pop() {
            todo.extend(program.imports(module).filter(|&m| seen.insert(m)));
            let classes = 0..program.get(module).ir.classes.len();
            let mut keys =
                classes.map(|c| ClassKey { module, class: ClassId(u32::try_from(c).unwrap_or(u32::MAX)) });
            if keys.any(|key| program.class(key).mro.contains(&base) && self.makes_parts(key)) {
                return true;
            }
        }
        false
    }

    fn makes_parts(&self, key: ClassKey) -> bool {
        let ir = &self.cx.program.get(key.module).ir;
        let span = ir.class(key.class).span;
        ir.calls
            .iter()
            .any(|call| span.contains(ir.span(call.func)) && self.makes_weights(key.module, call.func))
    }

    /// Is it `[resolve(part) for part in parts]`, for one of these parameters?
    fn resolves_each(&self, value: ExprId, taken: &[Slot]) -> bool {
        let ir = self.ir;
        let comp = match ir.expr(value) {
            Expr::Comp(comp) => ir.comp(comp),
            // `tuple(resolve(part) for part in parts)`
            Expr::Call(call) => match ir.call(call).args {
                [only]
                    if matches!(
                        ir.variable_of(ir.call(call).func).map(Sym::as_str),
                        Some("list" | "tuple")
                    ) =>
                {
                    match ir.expr(only.value) {
                        Expr::Comp(comp) => ir.comp(comp),
                        _ => return false,
                    }
                }
                _ => return false,
            },
            _ => return false,
        };
        let [generator] = &*comp.generators else { return false };
        let of_taken = ir.exprs_in(generator.iter).any(|n| match ir.exprs[n] {
            Expr::Var(Var::Local(slot)) => taken.contains(&slot),
            _ => false,
        });
        let Expr::Call(call) = ir.expr(comp.element) else { return false };
        let call = ir.call(call);
        let item = |e: ExprId| matches!(ir.expr(e), Expr::Var(var) if ir.binds(generator.target, var));
        // A builtin returns no module, and a method is called on another object than the element.
        let resolver = match ir.expr(call.func) {
            Expr::Var(Var::Unbound(_)) => false,
            Expr::Attr { base, .. } => !item(base),
            _ => true,
        };
        matches!(comp.kind, CompKind::List | CompKind::Generator)
            && of_taken
            && resolver
            && call.args.iter().any(|a| item(a.value))
    }

    /// Does a method call the elements of the list: `for part in self.parts: x = part(x)`?
    pub(super) fn calls_items(&self, class: &Class, name: Sym) -> bool {
        let ir = self.ir;
        let is_list = |e: ExprId| {
            ir.exprs_in(e).any(|n| match ir.exprs[n] {
                Expr::Attr { base, name: n } => n == name && is_self(ir, base),
                _ => false,
            })
        };
        let inside = |e: ExprId| class.span.contains(ir.span(e));
        let loops = ir.stmts.iter().filter_map(|s| match *s {
            Stmt::For { target, iter, .. } => Some((target, iter)),
            _ => None,
        });
        let comps = ir.comps.iter().flat_map(|c| c.generators.iter().map(|g| (g.target, g.iter)));
        let items: Vec<ExprId> = loops
            .chain(comps)
            .filter(|&(_, iter)| inside(iter) && is_list(iter))
            .map(|(target, _)| target)
            .collect();
        ir.calls.iter().any(|call| {
            inside(call.func)
                && match ir.expr(call.func) {
                    Expr::Index { base, .. } => is_list(base),
                    Expr::Var(var) => items.iter().any(|&target| {
                        ir.binds(target, var) && ir.function_around(target) == ir.function_around(call.func)
                    }),
                    _ => false,
                }
        })
    }
}
