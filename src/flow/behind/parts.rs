//! Parts that objects keep, each of one class of the project: what is called of them is that class's.

use rustc_hash::FxHashMap;

use super::filled::own_attribute;
use super::statements::may_set;
use crate::flow::nodes::{Node, Target, named};
use crate::ir::{ClassId, Expr, ExprId, FuncId, FuncKind, Module, Stmt};
use crate::link::{ClassKey, ModIdx, Program, Resolved};
use crate::sym::Sym;

/// What an attribute keeps.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    /// An instance of the class.
    One(ClassKey),
    /// Several that are called one after the other.
    Chain(Vec<ClassKey>),
    /// A list of instances of the class.
    Each(ClassKey),
    /// Nobody knows.
    Unknown,
}

/// What the methods of a class set its objects' attributes to, where that is always the same.
#[derive(Debug, Default)]
pub(super) struct Parts(FxHashMap<(ClassKey, Sym), Part>);

impl Parts {
    /// Those of the classes of these files.
    pub(super) fn of(program: &Program, files: &[ModIdx]) -> Self {
        let mut parts = Self::default();
        for &m in files {
            let ir = &program.get(m).ir;
            for (n, class) in ir.classes.iter().enumerate() {
                let key = ClassKey { module: m, class: ClassId(u32::try_from(n).unwrap_or(u32::MAX)) };
                for &(_, f) in &class.methods {
                    parts.set_in(program, key, f);
                }
            }
        }
        parts.overridden(program, files);
        parts
    }

    fn set_in(&mut self, program: &Program, class: ClassKey, f: FuncId) {
        let ir = &program.get(class.module).ir;
        for s in &ir.stmts[ir.stmts_of(ir.function(f))] {
            for target in may_set(ir, s) {
                let Some(name) = own_attribute(ir, f, target) else { continue };
                let made = match *s {
                    Stmt::Assign { targets, value } if ir.list(targets) == [target] => {
                        part(program, class.module, value)
                    }
                    _ => Part::Unknown,
                };
                let known = self.0.entry((class, name)).or_insert_with(|| made.clone());
                if *known != made {
                    *known = Part::Unknown;
                }
            }
        }
    }

    /// What a subclass sets to something else nobody can tell of an instance.
    fn overridden(&mut self, program: &Program, files: &[ModIdx]) {
        let mut set: FxHashMap<ClassKey, Vec<(Sym, Part)>> = FxHashMap::default();
        for ((class, name), made) in &self.0 {
            set.entry(*class).or_default().push((*name, made.clone()));
        }
        for &m in files {
            for (n, info) in program.get(m).classes.iter().enumerate() {
                let class = ClassKey { module: m, class: ClassId(u32::try_from(n).unwrap_or(u32::MAX)) };
                for &base in info.mro.iter().filter(|&&base| base != class) {
                    for (name, made) in set.get(&class).into_iter().flatten() {
                        if let Some(known) = self.0.get_mut(&(base, *name))
                            && known != made
                        {
                            *known = Part::Unknown;
                        }
                    }
                }
            }
        }
    }

    /// The methods that run when a function calls a part of its object, or a method of one: `self.stem(x)`, `self.stem.scale()`,
    /// `for layer in self.layers: x = layer(x)`
    pub(super) fn called(&self, program: &Program, m: ModIdx, f: FuncId, callee: ExprId) -> Vec<Target> {
        let ir = &program.get(m).ir;
        let function = ir.function(f);
        let Some(class) = function.class.filter(|_| function.kind == FuncKind::Function) else {
            return Vec::new();
        };
        let part = |e: ExprId| {
            let name = own_attribute(ir, f, e)?;
            let classes = &program.get(m).classes.get(class.0 as usize)?.mro;
            classes.iter().find_map(|&k| self.0.get(&(k, name)))
        };
        let run = |&key: &ClassKey| {
            let forward = || program.find_method(key, Sym::new("forward"));
            program.find_method(key, Sym::new("__call__")).or_else(forward)
        };
        let each = |list: ExprId| match part(counted(ir, list)) {
            Some(Part::Each(key)) => run(key).into_iter().collect(),
            _ => Vec::new(),
        };
        match (part(callee), ir.expr(callee)) {
            (Some(Part::One(key)), _) => run(key).into_iter().collect(),
            (Some(Part::Chain(keys)), _) => keys.iter().filter_map(run).collect(),
            (None, Expr::Attr { base, name }) => match part(base) {
                Some(Part::One(key)) => program.find_method(*key, name).into_iter().collect(),
                _ => Vec::new(),
            },
            (None, Expr::Index { base, .. }) => each(base),
            (None, Expr::Var(variable)) => {
                let mut loops = ir.stmts[ir.stmts_of(function)].iter().filter_map(|s| match *s {
                    Stmt::For { target, iter, .. } if ir.binds(target, variable) => Some(iter),
                    _ => None,
                });
                loops.next().filter(|_| loops.next().is_none()).map(each).unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }
}

/// `layers` of `enumerate(layers)`
fn counted(ir: &Module, iter: ExprId) -> ExprId {
    match ir.expr(iter) {
        Expr::Call(id) if ir.is_builtin(ir.call(id).func, "enumerate") => {
            ir.call(id).args.first().map_or(iter, |a| a.value)
        }
        _ => iter,
    }
}

/// What an expression makes: `Stem()`, `torch.nn.Sequential(Stem(), Head())`, `torch.nn.ModuleList([Layer() for _ in range(n)])`
fn part(program: &Program, m: ModIdx, value: ExprId) -> Part {
    let ir = &program.get(m).ir;
    let class = |e: ExprId| class_of(program, m, ir, e);
    let Expr::Call(id) = ir.expr(value) else { return list_of(ir, value, &class) };
    if let Some(key) = class(value) {
        return Part::One(key);
    }
    let call = ir.call(id);
    let Some(Resolved::External(path)) = program.resolve_expr(m, call.func) else { return Part::Unknown };
    match (path.as_str(), call.args) {
        ("torch.nn.Sequential", args) => Part::Chain(args.iter().filter_map(|a| class(a.value)).collect()),
        ("torch.nn.ModuleList", [only]) => list_of(ir, only.value, &class),
        _ => Part::Unknown,
    }
}

/// A list of which each element is an instance of one class.
fn list_of(ir: &Module, list: ExprId, class: &dyn Fn(ExprId) -> Option<ClassKey>) -> Part {
    let elements: &[ExprId] = match ir.expr(list) {
        Expr::List(elements) => ir.list(elements),
        Expr::Comp(id) if ir.comp(id).value.is_none() => &[ir.comp(id).element],
        _ => return Part::Unknown,
    };
    let mut classes = elements.iter().map(|&e| class(e));
    match classes.next() {
        Some(Some(first)) if classes.all(|k| k == Some(first)) => Part::Each(first),
        _ => Part::Unknown,
    }
}

/// The class of the project whose instance a call makes.
fn class_of(program: &Program, m: ModIdx, ir: &Module, e: ExprId) -> Option<ClassKey> {
    let Expr::Call(id) = ir.expr(e) else { return None };
    match named(program, m, ir.call(id).func)? {
        Node::Class(key) => Some(key),
        Node::Function(..) => None,
    }
}
