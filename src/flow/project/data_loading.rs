//! Which functions and classes only ever work on the host: everything in the project that leads to them prepares data.
//!
//! What a data set makes its items of, what a collate function calls, and the steps of a `Compose` that makes tensors of
//! pictures are given tensors on the CPU, for nothing has moved them yet. A function or class is on the host side if the
//! project's other code mentions it, and each mention is in such a place, or in what is on the host side itself. What nobody
//! mentions is there for others, who may give it anything.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::query::nodes::{Node, Target, named, node_of};
use crate::ir::{Arg, ArgKind, Call, ClassId, Expr, ExprId, FuncId, Function, Module, Slot, Stmt};
use crate::link::{ClassKey, ModIdx, Program, Resolved};
use crate::sym::Sym;
use crate::torch::{Base, base_class};

/// What makes a picture of a file.
const OPENS_PICTURES: &[&str] = &["PIL.Image.open", "cv2.imread", "imageio.imread", "skimage.io.imread"];

/// Registries of the steps that make a data set's items.
const REGISTRIES: &[&str] = &["PIPELINES", "TRANSFORMS"];

/// What code mentions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Thing {
    Function(ModIdx, FuncId),
    Class(ClassKey),
    /// A table of functions or classes.
    Table(ModIdx, Slot),
}

impl From<Node> for Thing {
    fn from(node: Node) -> Self {
        match node {
            Node::Function(m, f) => Self::Function(m, f),
            Node::Class(key) => Self::Class(key),
        }
    }
}

/// Who mentions functions and classes, and which of them are on the host side.
#[derive(Debug, Default)]
pub struct HostSide {
    /// Who mentions it: something of the project, or a place that may be anywhere.
    mentions: FxHashMap<Thing, Vec<Option<Thing>>>,
    /// Mentioned where data is prepared.
    handed: FxHashSet<Thing>,
    /// Data sets and collate functions.
    roots: FxHashSet<Thing>,
    host: FxHashSet<Thing>,
}

impl HostSide {
    /// Looks at these files of the program.
    pub fn of(program: &Program, files: &[ModIdx]) -> Self {
        let mut search = Search { program, side: Self::default() };
        for &m in files {
            search.file(m);
        }
        search.side.solve()
    }

    /// Is the function on the host side?
    pub fn contains(&self, program: &Program, (m, f): Target) -> bool {
        node_of(&program.get(m).ir, m, f).is_some_and(|node| self.host.contains(&node.into()))
    }

    /// The names of the function and of what leads to it, whose mentions decide; none if a mention in these files may be
    /// anywhere.
    pub fn leading_to(&self, program: &Program, (m, f): Target) -> Vec<&'static str> {
        let mut todo: Vec<Thing> = node_of(&program.get(m).ir, m, f).into_iter().map(Thing::from).collect();
        let mut seen: FxHashSet<Thing> = todo.iter().copied().collect();
        while let Some(thing) = todo.pop() {
            for &from in self.mentions.get(&thing).into_iter().flatten() {
                let Some(from) = from else { return Vec::new() };
                if !self.roots.contains(&from) && seen.insert(from) {
                    todo.push(from);
                }
            }
        }
        seen.into_iter().map(|thing| name(program, thing)).collect()
    }

    /// What is mentioned by nothing but the host side joins it.
    fn solve(mut self) -> Self {
        self.host.clone_from(&self.roots);
        loop {
            let joins = |&(thing, from): &(&Thing, &Vec<Option<Thing>>)| {
                let some = self.handed.contains(thing) || !from.is_empty();
                some && from.iter().all(|f| f.is_some_and(|f| self.host.contains(&f)))
            };
            let more: Vec<Thing> = self
                .mentions
                .iter()
                .filter(|(thing, _)| !self.host.contains(thing))
                .filter(joins)
                .map(|(&thing, _)| thing)
                .collect();
            if more.is_empty() {
                return self;
            }
            self.host.extend(more);
        }
    }
}

fn name(program: &Program, thing: Thing) -> &'static str {
    match thing {
        Thing::Function(m, f) => program.get(m).ir.function(f).name.as_str(),
        Thing::Class(key) => program.get(key.module).ir.class(key.class).name.as_str(),
        Thing::Table(m, slot) => {
            program.get(m).ir.function(FuncId(0)).slots.get(usize::from(slot)).map_or("", |s| s.as_str())
        }
    }
}

struct Search<'a> {
    program: &'a Program,
    side: HostSide,
}

impl Search<'_> {
    fn file(&mut self, m: ModIdx) {
        let program = self.program;
        let ir = &program.get(m).ir;
        let mut skipped = ir.silent().clone();
        skipped.extend(targets(ir));
        let prepared = self.prepared(m);
        let tables = tables(ir, m);
        for n in 0..ir.exprs.len() {
            let e = ExprId(u32::try_from(n).unwrap_or(u32::MAX));
            if !matches!(ir.expr(e), Expr::Var(_) | Expr::Attr { .. }) || skipped.contains(e) {
                continue;
            }
            let Some(thing) = self.thing(m, e) else { continue };
            let from = tables
                .get(&e)
                .map(|&(m, slot)| Thing::Table(m, slot))
                .or_else(|| Some(node_of(ir, m, ir.function_around(e))?.into()));
            if prepared.contains(&e) {
                self.side.handed.insert(thing);
                self.side.mentions.entry(thing).or_default();
            } else if from != Some(thing) {
                self.side.mentions.entry(thing).or_default().push(from);
            }
        }
        self.roots(m);
        self.registered(m);
    }

    fn thing(&self, m: ModIdx, e: ExprId) -> Option<Thing> {
        match named(self.program, m, e) {
            Some(node) => Some(node.into()),
            None => match self.program.resolve_expr(m, e)? {
                Resolved::Variable(m, slot) => Some(Thing::Table(m, slot)),
                _ => None,
            },
        }
    }

    /// The file's data sets and collate functions are on the host side from the beginning; subclasses run the methods of
    /// their bases.
    fn roots(&mut self, m: ModIdx) {
        let linked = self.program.get(m);
        for (n, info) in linked.classes.iter().enumerate() {
            let class = ClassKey { module: m, class: ClassId(u32::try_from(n).unwrap_or(u32::MAX)) };
            for &base in info.mro.iter().filter(|&&k| k != class) {
                let from = Some(Thing::Class(class));
                self.side.mentions.entry(Thing::Class(base)).or_default().push(from);
            }
            let step = is_registered_step(&linked.ir, class.class) || is_step(self.program, class);
            if is_data_set(self.program, class) || collates(&linked.ir, class.class) || step {
                self.side.roots.insert(Thing::Class(class));
            }
        }
        for (n, f) in linked.ir.functions.iter().enumerate() {
            let func = FuncId(u32::try_from(n).unwrap_or(u32::MAX));
            let Some(node) = node_of(&linked.ir, m, func) else { continue };
            if node == Node::Function(m, func) && is_collate(f) {
                self.side.roots.insert(node.into());
            }
        }
    }

    /// `@register("name")`, where `register` puts what it is given into a table: who reads the table comes to it.
    fn registered(&mut self, m: ModIdx) {
        let program = self.program;
        let ir = &program.get(m).ir;
        let functions = ir.functions.iter().enumerate().filter(|(_, f)| f.class.is_none());
        let functions = functions.map(|(n, f)| {
            let func = FuncId(u32::try_from(n).unwrap_or(u32::MAX));
            (Thing::Function(m, func), f.decorators)
        });
        let classes = ir.classes.iter().enumerate().map(|(n, c)| {
            let class = ClassId(u32::try_from(n).unwrap_or(u32::MAX));
            (Thing::Class(ClassKey { module: m, class }), c.decorators)
        });
        let all: Vec<_> = functions.chain(classes).collect();
        for (thing, decorators) in all {
            for &d in ir.list(decorators) {
                let by = match ir.expr(d) {
                    Expr::Call(id) => ir.call(id).func,
                    _ => d,
                };
                let Some(Node::Function(rm, r)) = named(program, m, by) else { continue };
                let there = &program.get(rm).ir;
                let range = there.exprs_of(there.function(r));
                for table in filled(there).filter(|e| range.contains(&(e.0 as usize))) {
                    let Some(table) = self.thing(rm, table) else { continue };
                    self.side.mentions.entry(thing).or_default().push(Some(table));
                }
            }
        }
    }

    /// What is handed over where data is prepared: `collate_fn=…`, `transform=…` of a data set, the steps of a `Compose`.
    fn prepared(&self, m: ModIdx) -> FxHashSet<ExprId> {
        let ir = &self.program.get(m).ir;
        let mut found = FxHashSet::default();
        let mut add = |e: ExprId| {
            found.extend(ir.exprs_in(e).map(|n| ExprId(u32::try_from(n).unwrap_or(u32::MAX))));
        };
        for call in ir.calls() {
            let data = self.makes_data_set(m, call);
            for a in call.args.iter().filter(|a| is_for_data(a, data)) {
                add(a.value);
                put_into(ir, call, a.value).into_iter().for_each(&mut add);
            }
            let compose = ir.last_name(call.func).is_some_and(|name| name.as_str() == "Compose");
            if compose && pictures(ir, call.func) {
                call.args.iter().for_each(|a| add(a.value));
                for e in call.args.iter().flat_map(|a| steps(ir, a.value)) {
                    put_into(ir, call, e).into_iter().for_each(&mut add);
                }
            } else if adds_step(ir, call) {
                call.args.iter().for_each(|a| add(a.value));
            }
        }
        found
    }

    /// Is it a call that makes a data set: one of the project's, or one that torchvision and others have?
    fn makes_data_set(&self, m: ModIdx, call: Call<'_>) -> bool {
        match self.program.resolve_expr(m, call.func) {
            Some(Resolved::Class(key)) => is_data_set(self.program, key),
            Some(Resolved::External(path)) => {
                let path = path.as_str();
                path.starts_with("torchvision.datasets.") || path.ends_with("Dataset")
            }
            _ => false,
        }
    }
}

/// Is it a data set whose own code names no accelerator?
pub fn is_data_set(program: &Program, class: ClassKey) -> bool {
    let known = |p: &Sym| base_class(*p).is_some_and(|b| b.kind == Base::Dataset && !b.moves_for_user);
    let info = program.class(class);
    let ir = &program.get(class.module).ir;
    let c = ir.class(class.class);
    let gives = c.methods.iter().any(|(name, _)| matches!(name.as_str(), "__getitem__" | "__iter__"));
    let called = |p: &Sym| p.as_str().ends_with("Dataset");
    let data =
        info.externals.iter().any(known) || gives && (called(&c.name) || info.externals.iter().any(called));
    (data || reads_pictures(program, class)) && !names_accelerator(ir, class.class)
}

/// Does it put the items of a batch together?
fn is_collate(f: &Function) -> bool {
    let name = f.name.as_str();
    name.contains("collate") && !name.contains("cuda") && !name.contains("gpu")
}

/// Is it the class of what a loader calls for that: `class Collator` with a `__call__`?
fn collates(ir: &Module, class: ClassId) -> bool {
    let c = ir.class(class);
    let named = ["Collator", "Collate"].iter().any(|part| c.name.as_str().contains(part));
    named && c.methods.iter().any(|(name, _)| name.as_str() == "__call__") && !names_accelerator(ir, class)
}

/// `@PIPELINES.register_module()`: the registries out of which OpenMMLab's data sets build the steps that make their items
/// (mmengine/dataset/base_dataset.py, `Compose`), and those of projects that have taken over its ways.
fn is_registered_step(ir: &Module, class: ClassId) -> bool {
    let c = ir.class(class);
    let registers = |e: ExprId| {
        let by = match ir.expr(e) {
            Expr::Call(id) => ir.call(id).func,
            _ => e,
        };
        let Expr::Attr { base, name } = ir.expr(by) else { return false };
        matches!(name.as_str(), "register_module" | "register")
            && ir.last_name(base).is_some_and(|registry| REGISTRIES.contains(&registry.as_str()))
    };
    ir.list(c.decorators).iter().any(|&d| registers(d)) && !names_accelerator(ir, class)
}

/// Is it, by its base, such a step (mmcv/transforms/base.py)?
fn is_step(program: &Program, class: ClassKey) -> bool {
    let base = |p: &Sym| p.as_str().starts_with("mmcv.transforms.");
    program.class(class).externals.iter().any(base)
        && !names_accelerator(&program.get(class.module).ir, class.class)
}

/// Does the class's own code name an accelerator?
fn names_accelerator(ir: &Module, class: ClassId) -> bool {
    ir.exprs[ir.exprs_of(ir.function(ir.class(class).body))].iter().any(|e| match *e {
        Expr::Attr { name, .. } => name.as_str() == "cuda",
        Expr::Str(text) => text.as_str().starts_with("cuda"),
        _ => false,
    })
}

/// Does it give items by number, which it reads from files of pictures?
fn reads_pictures(program: &Program, class: ClassKey) -> bool {
    let ir = &program.get(class.module).ir;
    let method =
        |wanted: &str| ir.class(class.class).methods.iter().find(|(name, _)| name.as_str() == wanted);
    let (Some(&(_, item)), Some(_)) = (method("__getitem__"), method("__len__")) else { return false };
    ir.exprs_of(ir.function(item)).any(|n| match ir.exprs[n] {
        Expr::Call(call) => matches!(program.resolve_expr(class.module, ir.call(call).func),
            Some(Resolved::External(path)) if OPENS_PICTURES.contains(&path.as_str())),
        _ => false,
    })
}

/// Is it an argument with which a loader or a data set prepares its items?
fn is_for_data(a: &Arg, data: bool) -> bool {
    let ArgKind::Keyword(name) = a.kind else { return false };
    match name.as_str() {
        "collate_fn" => true,
        "transform" | "transforms" | "target_transform" | "pre_transform" | "pre_filter" => data,
        _ => false,
    }
}

/// Does the function around make tensors of pictures? Then so does the `Compose` that it builds.
fn pictures(ir: &Module, at: ExprId) -> bool {
    let around = ir.function(ir.function_around(at));
    ir.exprs_of(around).any(|n| is_to_tensor(ir, ExprId(u32::try_from(n).unwrap_or(u32::MAX))))
}

fn is_to_tensor(ir: &Module, e: ExprId) -> bool {
    let named = |name: &str| matches!(name, "ToTensor" | "PILToTensor" | "ToTensorV2" | "ToImage");
    ir.last_name(e).is_some_and(|name| named(name.as_str()))
}

/// `train.transforms.append(step)`
fn adds_step(ir: &Module, call: Call<'_>) -> bool {
    let Expr::Attr { base, name } = ir.expr(call.func) else { return false };
    matches!(name.as_str(), "append" | "insert" | "extend")
        && matches!(ir.expr(base), Expr::Attr { name, .. } if name.as_str() == "transforms")
}

/// What a `Compose` is given, and what is in it if that is a list.
fn steps(ir: &Module, given: ExprId) -> impl Iterator<Item = ExprId> + '_ {
    let listed = match ir.expr(given) {
        Expr::List(list) | Expr::Tuple(list) => ir.list(list),
        _ => &[],
    };
    std::iter::once(given).chain(listed.iter().copied())
}

/// What is put into the variable, or into the list in it, that the call is given: in the same function.
fn put_into(ir: &Module, call: Call<'_>, given: ExprId) -> Vec<ExprId> {
    let Expr::Var(var) = ir.expr(given) else { return Vec::new() };
    let f = ir.function_around(call.func);
    let is = |e: ExprId| ir.expr(e) == Expr::Var(var) && ir.function_around(e) == f;
    let put = ir.stmts.iter().filter_map(|stmt| match *stmt {
        Stmt::Assign { targets, value } if ir.list(targets).iter().any(|&t| is(t)) => Some(value),
        Stmt::AugAssign { target, value, .. } | Stmt::AnnAssign { target, value: Some(value), .. }
            if is(target) =>
        {
            Some(value)
        }
        _ => None,
    });
    let added = ir.calls().filter_map(|call| match ir.expr(call.func) {
        Expr::Attr { base, name } if is(base) && matches!(name.as_str(), "append" | "insert" | "extend") => {
            call.args.last().map(|a| a.value)
        }
        _ => None,
    });
    put.chain(added).collect()
}

/// Targets of assignments, and tables that something is put into: nothing is read there.
fn targets(ir: &Module) -> FxHashSet<ExprId> {
    let assigned = ir.stmts.iter().filter_map(|stmt| match *stmt {
        Stmt::Assign { targets, .. } => Some(targets),
        _ => None,
    });
    let assigned = assigned.flat_map(|targets| ir.list(targets).iter().copied());
    assigned.chain(filled(ir)).collect()
}

/// `table` of `table[name] = f`.
fn filled(ir: &Module) -> impl Iterator<Item = ExprId> + '_ {
    let assigned = ir.stmts.iter().filter_map(|stmt| match *stmt {
        Stmt::Assign { targets, .. } => Some(targets),
        _ => None,
    });
    assigned.flat_map(|targets| ir.list(targets)).filter_map(|&t| match ir.expr(t) {
        Expr::Index { base, .. } => Some(base),
        _ => None,
    })
}

/// The table at the top of a file in which an expression stands: `{"plain": Matcher}`.
pub(crate) fn tables(ir: &Module, m: ModIdx) -> FxHashMap<ExprId, (ModIdx, Slot)> {
    let mut found = FxHashMap::default();
    for &s in ir.block(ir.function(FuncId(0)).body) {
        let (target, value) = match *ir.stmt(s) {
            Stmt::Assign { targets, value } => match *ir.list(targets) {
                [target] => (target, value),
                _ => continue,
            },
            Stmt::AnnAssign { target, value: Some(value), .. } => (target, value),
            _ => continue,
        };
        let (Expr::Var(crate::ir::Var::Local(slot)), Expr::Dict(_) | Expr::List(_) | Expr::Tuple(_)) =
            (ir.expr(target), ir.expr(value))
        else {
            continue;
        };
        let within = ir.exprs_in(value).map(|n| ExprId(u32::try_from(n).unwrap_or(u32::MAX)));
        found.extend(within.map(|e| (e, (m, slot))));
    }
    found
}
