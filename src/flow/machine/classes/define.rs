//! Classes of the project: their kind, variables and methods.

use crate::flow::domain::value::{Closure, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::classes::instances::may_be_module;
use crate::ir::{ClassId, Expr, ExprId, Stmt};
use crate::link::{ClassKey, Resolved};
use crate::sym::Sym;
use crate::torch::{Base, Decorator};

/// How a function in a class body takes its receiver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MethodKind {
    Normal,
    Static,
    Class,
    Property,
}

impl Interp<'_> {
    /// Handles `class`. The body is not interpreted: methods and plain variables are looked up at their use.
    pub(crate) fn define_class(&mut self, class: ClassId) -> Value {
        let module = self.here().module;
        let key = ClassKey { module, class };
        for &(_, f) in &self.program.get(module).ir.class(class).methods {
            self.names.def_paths.insert((module, f), self.path);
            self.check_tests_of_defaults(f);
        }
        self.check_tests_of_class(class);
        self.runs_at_definition_of_class(class);
        Value::Class(key)
    }

    /// Whether the class is an `nn.Module`, as far as the known bases show.
    pub(crate) fn is_module_class(&self, key: ClassKey) -> bool {
        let info = self.program.class(key);
        info.externals
            .iter()
            .any(|&path| crate::torch::base_class(path).is_some_and(|b| b.kind == Base::Module))
            || (info.unknown_base || info.externals.iter().any(|&path| may_be_module(path)))
                && (self.has_forward_of_module(key)
                    || info.externals.iter().all(|&path| crate::torch::base_class(path).is_none())
                        && self.program.registers_state(key))
    }

    /// Whether the class has a `forward` like a module's. A `forward` without parameters counts only if the class has
    /// layers.
    fn has_forward_of_module(&self, key: ClassKey) -> bool {
        let Some((m, f)) = self.program.find_method(key, self.known.forward) else { return false };
        self.program.get(m).ir.function(f).params.len() > 1
            || self.program.registers_state(key)
            || self.program.class(key).mro.iter().any(|k| {
                let ir = &self.program.get(k.module).ir;
                let span = ir.class(k.class).span;
                ir.calls().any(|call| {
                    span.contains(ir.span(call.func))
                        && matches!(self.program.resolve_expr(k.module, call.func),
                            Some(Resolved::External(path)) if crate::torch::module(path).is_some())
                })
            })
    }

    /// Whether the class is a `torch.autograd.Function`.
    pub(crate) fn is_autograd_function(&self, key: ClassKey) -> bool {
        let function = |b: crate::torch::BaseFact| b.kind == Base::Function;
        self.program
            .class(key)
            .externals
            .iter()
            .any(|&path| crate::torch::base_class(path).is_some_and(function))
    }

    /// Whether a framework moves such modules, or their inputs, for the user.
    pub(crate) fn is_moved_for_user(&self, key: ClassKey) -> bool {
        let info = self.program.class(key);
        info.externals.iter().any(|&path| crate::torch::base_class(path).is_some_and(|b| b.moves_for_user))
    }

    /// The value of a variable of the class body: `device = "cuda"`.
    pub(crate) fn class_variable(&mut self, key: ClassKey, name: Sym) -> Option<Value> {
        let known = self.names.class_cells.get(&(key, name)).map(|&cell| self.store.get(cell));
        if let Some(v) = known.filter(|&v| v != Value::Absent) {
            return Some(v);
        }
        let v = self.class_variable_as_written(key, name)?;
        // All reads of a class's list or dict give the same object.
        if let Value::Object(_) = v {
            self.set_class_variable(key, name, v);
        }
        Some(v)
    }

    /// Assigns `Config.device = "cpu"`.
    pub(crate) fn set_class_variable(&mut self, key: ClassKey, name: Sym, v: Value) {
        let cell = match self.names.class_cells.get(&(key, name)) {
            Some(&cell) => cell,
            None => {
                let cell = self.store.alloc(1);
                self.names.class_cells.insert((key, name), cell);
                cell
            }
        };
        self.store.set(cell, v);
    }

    fn class_variable_as_written(&mut self, key: ClassKey, name: Sym) -> Option<Value> {
        let ir = &self.program.get(key.module).ir;
        let scope = ir.function(ir.class(key.class).body);
        if !scope.slots.contains(&name) {
            return None;
        }
        let body = scope.body;
        let found = ir.block(body).iter().rev().find_map(|&s| match ir.stmt(s) {
            Stmt::Assign { targets, value } => {
                let named =
                    |&t: &ExprId| matches!(ir.expr(t), Expr::Var(v) if self.slot_name(key, v) == Some(name));
                ir.list(*targets).iter().any(named).then_some(*value)
            }
            Stmt::AnnAssign { target, value: Some(value), .. } => {
                matches!(ir.expr(*target), Expr::Var(v) if self.slot_name(key, v) == Some(name))
                    .then_some(*value)
            }
            _ => None,
        })?;
        Some(self.eval_in(key.module, self.program.get(key.module).ir.class(key.class).body, found))
    }

    pub(crate) fn slot_name(&self, key: ClassKey, var: crate::ir::Var) -> Option<Sym> {
        let ir = &self.program.get(key.module).ir;
        match var {
            crate::ir::Var::Local(slot) => {
                ir.function(ir.class(key.class).body).slots.get(slot as usize).copied()
            }
            _ => None,
        }
    }

    /// How a method takes its receiver, by its decorators.
    pub(crate) fn method_kind(&self, c: Closure) -> MethodKind {
        let ir = &self.program.get(c.module).ir;
        let function = ir.function(c.func);
        for &d in ir.list(function.decorators) {
            let fact = match self.program.resolve_expr(c.module, d) {
                Some(Resolved::External(path)) => {
                    crate::torch::call(path).and_then(|f| f.decorator).or_else(|| builtin_decorator(path))
                }
                _ => None,
            };
            match fact {
                Some(Decorator::Static) => return MethodKind::Static,
                Some(Decorator::Class) => return MethodKind::Class,
                Some(Decorator::Property) => return MethodKind::Property,
                _ => {}
            }
        }
        MethodKind::Normal
    }
}

fn builtin_decorator(path: Sym) -> Option<Decorator> {
    match path.as_str() {
        "builtins.staticmethod" => Some(Decorator::Static),
        "builtins.classmethod" => Some(Decorator::Class),
        "builtins.property" => Some(Decorator::Property),
        _ => None,
    }
}
