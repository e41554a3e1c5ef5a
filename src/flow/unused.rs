//! By which names a project looks functions and classes up without writing them down.
//!
//! What is only used by its own name can be followed by that: all its uses are in sight.

use rustc_hash::FxHashSet;

use super::methods::class_of_self;
use super::nodes::{Node, Target, method_around, node_of};
use super::unmoved::parent;
use crate::ir::{BinOp, Call, Expr, ExprId, ExprList, Function, Module, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Program, Resolved, Target as LinkTarget};
use crate::sym::Sym;

/// Python's own functions that call nothing of what they are given.
const READERS: &[&str] = &[
    "print",
    "str",
    "repr",
    "int",
    "float",
    "bool",
    "len",
    "isinstance",
    "issubclass",
    "hasattr",
    "setattr",
    "type",
    "id",
    "getattr",
    "callable",
];
/// So many variables are followed to where what they hold is called.
const MAX_NAMES: u32 = 2;

/// How a project comes to its functions and classes without writing their names down.
#[derive(Debug, Default)]
pub struct LookedUp {
    /// `importlib.import_module(name)`: any class may be used, under a name that is put together.
    classes: bool,
    /// `getattr(x, name)()`: any method may be.
    methods: bool,
    /// `getattr(self, name)()`: those of these classes, and of what is related to them.
    objects: Vec<ClassKey>,
    /// `getattr(x, "net_" + name)`: those whose names begin so.
    begun: FxHashSet<Sym>,
    /// `getattr(models, name)`, `models.__dict__[name]`, `globals()[name]`: all that these files define may be.
    files: FxHashSet<ModIdx>,
}

impl LookedUp {
    /// Looks for such ways in these files.
    pub fn of(program: &Program, files: &[ModIdx]) -> Self {
        let mut found = Self::default();
        for &m in files {
            let ir = &program.get(m).ir;
            for (n, expr) in ir.exprs.iter().enumerate() {
                let e = ExprId(u32::try_from(n).unwrap_or(u32::MAX));
                match *expr {
                    Expr::Call(call) => found.call(program, m, e, ir.call(call)),
                    // What an object keeps for itself are no methods.
                    Expr::Attr { base, name }
                        if name.as_str() == "__dict__" && class_of_self(ir, m, base).is_none() =>
                    {
                        found.names_of(program, m, program.resolve_expr(m, base));
                    }
                    _ => {}
                }
            }
        }
        found
    }

    fn call(&mut self, program: &Program, m: ModIdx, e: ExprId, call: Call<'_>) {
        let ir = &program.get(m).ir;
        let Some(Resolved::External(path)) = program.resolve_expr(m, call.func) else { return };
        let literal = |n: usize| call.args.get(n).is_some_and(|a| matches!(ir.expr(a.value), Expr::Str(_)));
        match path.as_str() {
            "importlib.import_module" | "builtins.__import__" if !literal(0) => self.classes = true,
            "builtins.getattr" if !literal(1) => {
                let of = call.args.first().and_then(|a| program.resolve_expr(m, a.value));
                match call.args.get(1).and_then(|a| beginning(ir, a.value)) {
                    Some(text) if !matches!(of, Some(Resolved::Module(_))) => drop(self.begun.insert(text)),
                    _ if of.is_none() && !may_run(ir, e, MAX_NAMES) => {}
                    _ => match call.args.first().and_then(|a| class_of_self(ir, m, a.value)) {
                        Some(class) => self.objects.push(class),
                        None => self.names_of(program, m, of),
                    },
                }
            }
            "builtins.globals" | "builtins.eval" | "builtins.exec" => {
                self.files.insert(m);
                let stars = program.get(m).stars.iter();
                self.files.extend(stars.filter_map(|&target| match target {
                    LinkTarget::Module(file) => Some(file),
                    _ => None,
                }));
            }
            _ => {}
        }
    }

    fn names_of(&mut self, program: &Program, m: ModIdx, of: Option<Resolved>) {
        match of {
            Some(Resolved::Module(other)) => {
                self.files.insert(other);
                // What a package takes over from its files.
                self.files.extend(program.imports(other).filter(|&file| file != m));
            }
            // What others have written has none of the project's methods.
            Some(Resolved::External(_)) => {}
            _ => self.methods = true,
        }
    }

    /// May somebody use the method by a name that is put together?
    fn looks_up(&self, program: &Program, key: ClassKey, method: Sym) -> bool {
        let related =
            |&of: &ClassKey| program.class(of).mro.contains(&key) || program.class(key).mro.contains(&of);
        self.methods
            || self.objects.iter().any(related)
            || self.begun.iter().any(|text| method.as_str().starts_with(text.as_str()))
    }

    /// Does the method only run where it is called by its name?
    pub fn is_called_by_name(&self, program: &Program, (m, f): Target) -> bool {
        let ir = &program.get(m).ir;
        match (node_of(ir, m, f), method_around(ir, f)) {
            (Some(Node::Class(key)), Some(method)) => self.is_own_method(program, key, ir.function(method)),
            _ => false,
        }
    }

    fn is_own_method(&self, program: &Program, key: ClassKey, method: &Function) -> bool {
        !self.looks_up(program, key, method.name)
            && is_plain(program, key.module, method.decorators)
            && is_own(program, key, method.name)
    }
}

/// May what the expression gives be called, as far as the function around it shows?
fn may_run(ir: &Module, e: ExprId, names: u32) -> bool {
    let Some(around) = parent(ir, e) else { return names == 0 || is_kept_to_run(ir, e, names - 1) };
    match ir.expr(around) {
        Expr::Call(id) => {
            ir.call(id).func == e || !READERS.iter().any(|f| ir.is_builtin(ir.call(id).func, f))
        }
        Expr::Compare { .. } | Expr::Binary { .. } | Expr::Unary { .. } | Expr::Format(_) => false,
        Expr::Attr { .. } => false,
        Expr::Index { base, .. } => base != e,
        Expr::List(_) | Expr::Tuple(_) | Expr::Comp(_) | Expr::IfElse(_) | Expr::And(_) | Expr::Or(_) => {
            may_run(ir, around, names)
        }
        _ => true,
    }
}

/// The same of what a statement does with it.
fn is_kept_to_run(ir: &Module, e: ExprId, names: u32) -> bool {
    let is = |x: ExprId| x == e;
    let by = |s: &Stmt| match *s {
        Stmt::Expr(x) => is(x).then_some(false),
        Stmt::If { test, .. } | Stmt::While { test, .. } | Stmt::Assert { test, .. } => {
            is(test).then_some(false)
        }
        Stmt::For { iter, .. } => is(iter).then_some(false),
        Stmt::Assign { targets, value } if is(value) => Some(match *ir.list(targets) {
            [target] if matches!(ir.expr(target), Expr::Var(Var::Local(_))) => {
                let function = ir.function(ir.function_around(e));
                let mut own = (function.exprs.start..function.exprs.end).map(ExprId);
                own.any(|x| x != target && ir.expr(x) == ir.expr(target) && may_run(ir, x, names))
            }
            _ => true,
        }),
        _ => None,
    };
    ir.stmts.iter().find_map(by).unwrap_or(true)
}

/// How the text begins that is put together there, as far as that is written down.
fn beginning(ir: &Module, e: ExprId) -> Option<Sym> {
    let text = |e: ExprId| match ir.expr(e) {
        Expr::Str(text) if !text.as_str().is_empty() => Some(text),
        _ => None,
    };
    match ir.expr(e) {
        Expr::Binary { op: BinOp::Add, left, .. } => text(left).or_else(|| beginning(ir, left)),
        Expr::Format(parts) => text(*ir.list(parts).first()?),
        _ => None,
    }
}

/// Is the method one that only the project's own code calls: no base from elsewhere knows it, nor Python itself?
fn is_own(program: &Program, key: ClassKey, name: Sym) -> bool {
    let info = program.class(key);
    let bare = |p: &Sym| matches!(p.as_str(), "torch.nn.Module" | "builtins.object");
    let text = name.as_str();
    !text.starts_with("__") && text != "forward" && !info.unknown_base && info.externals.iter().all(bare)
}

/// Do the decorators leave it where it is, so that nobody has put it into a table?
pub(super) fn is_plain(program: &Program, m: ModIdx, decorators: ExprList) -> bool {
    let ir: &Module = &program.get(m).ir;
    ir.list(decorators).iter().all(|&d| {
        let called = match ir.expr(d) {
            Expr::Call(call) => ir.call(call).func,
            _ => d,
        };
        matches!(program.resolve_expr(m, called), Some(Resolved::External(path))
            if ["torch.", "builtins.", "functools.", "dataclasses.", "typing."].iter().any(|p| path.as_str().starts_with(p)))
    })
}
