//! The calls in a file that reach functions of its own.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{ClassKey, ModIdx, Program, Resolved};
use crate::ir::{CallId, Expr, ExprId, FuncId, FuncKind, Function, Module, Var};
use crate::sym::Sym;

/// The calls in a file that reach functions of its own, by function.
#[derive(Default)]
pub struct Sites {
    /// Calls that name the function.
    pub by_name: FxHashMap<FuncId, Vec<CallId>>,
    /// Calls of static methods and class methods through the class's name.
    pub by_class: FxHashMap<FuncId, Vec<CallId>>,
}

impl Sites {
    /// Is the function called in one of these ways?
    pub fn call(&self, f: FuncId) -> bool {
        self.by_name.contains_key(&f) || self.by_class.contains_key(&f)
    }
}

impl Program {
    /// The calls that reach functions of their own file. Computed when first needed.
    pub fn sites(&self, module: ModIdx) -> &Sites {
        self.get(module).sites.get_or_init(|| self.find_sites(module))
    }

    fn find_sites(&self, module: ModIdx) -> Sites {
        let ir = &self.get(module).ir;
        let mut methods: Vec<(u32, FuncId)> = ir
            .functions
            .iter()
            .enumerate()
            .filter(|(_, f)| f.class.is_some() && f.kind == FuncKind::Function)
            .map(|(n, f)| (f.span.start, FuncId(u32::try_from(n).unwrap_or(u32::MAX))))
            .collect();
        methods.sort_unstable();
        let init = Sym::new("__init__");
        let mut sites = Sites::default();
        let of_class = |f: &&Function| f.class.is_some() && f.decorators.len > 0;
        let decorated: FxHashSet<Sym> = ir.functions.iter().filter(of_class).map(|f| f.name).collect();
        let named: FxHashSet<Sym> = methods.iter().map(|&(_, f)| ir.function(f).name).collect();
        for (n, call) in ir.calls().enumerate() {
            let id = CallId(u32::try_from(n).unwrap_or(u32::MAX));
            if let Expr::Attr { name, .. } = ir.expr(call.func)
                && decorated.contains(&name)
                && let Some((m, f)) = self.method_of_class(module, call.func)
                && m == module
            {
                sites.by_class.entry(f).or_default().push(id);
            }
            for func in one_of(ir, call.func).into_iter().flatten() {
                // Methods of other files do not count here.
                let own = match ir.expr(func) {
                    Expr::Attr { name, .. } if named.contains(&name) => {
                        self.method_of_self(module, &methods, func)
                    }
                    _ => None,
                };
                let target = own.or_else(|| match self.callee(module, func)? {
                    Resolved::Function(m, f) => Some((m, f)),
                    Resolved::Class(key) => self.find_method(key, init),
                    _ => None,
                });
                let Some((m, f)) = target else { continue };
                // Calls from other files do not count, so that linting a part of a project gives the same result as linting all of it.
                if m == module {
                    sites.by_name.entry(f).or_default().push(id);
                }
            }
        }
        sites
    }

    /// `self.name(…)` in a method: the class's method with that name. `methods` has the file's methods by their start.
    fn method_of_self(
        &self,
        module: ModIdx,
        methods: &[(u32, FuncId)],
        func: ExprId,
    ) -> Option<(ModIdx, FuncId)> {
        let ir = &self.get(module).ir;
        let Expr::Attr { base, name } = ir.expr(func) else { return None };
        let Expr::Var(Var::Local(slot)) = ir.expr(base) else { return None };
        let span = ir.span(func);
        let before = methods.partition_point(|&(start, _)| start <= span.start);
        let method = methods[..before]
            .iter()
            .rev()
            .take(8)
            .map(|&(_, f)| ir.function(f))
            .find(|f| f.span.contains(span))?;
        let receiver = method.params.first()?;
        if receiver.slot != slot || receiver.name.as_str() != "self" {
            return None;
        }
        self.find_method(ClassKey { module, class: method.class? }, name)
    }

    fn callee(&self, module: ModIdx, func: ExprId) -> Option<Resolved> {
        let ir = &self.get(module).ir;
        match ir.expr(func) {
            Expr::Attr { .. } if self.begins_in_function(module, func) => None,
            Expr::Var(Var::Global(_) | Var::Unbound(_)) | Expr::Attr { .. } => {
                self.resolve_expr(module, func)
            }
            // In module-level code, the slot is a slot of the module. In a function, it is a local variable.
            Expr::Var(Var::Local(slot)) => {
                let name = ir.functions.first()?.slots.get(slot as usize)?;
                let span = ir.span(func);
                let inside = ir.functions.iter().skip(1).any(|f| f.span.contains(span));
                if inside { None } else { self.lookup(module, *name) }
            }
            _ => None,
        }
    }
}

/// The callees of a call: `(Large if large else Small)(width)` has two.
fn one_of(ir: &Module, func: ExprId) -> [Option<ExprId>; 2] {
    match ir.expr(func) {
        Expr::IfElse(id) => [ir.if_else(id).then, ir.if_else(id).orelse].map(Some),
        _ => [Some(func), None],
    }
}
