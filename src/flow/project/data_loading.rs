//! Which functions and classes only run on the host: all paths in the project to them prepare data.
//!
//! Such code gets CPU tensors, because no other code has moved the data yet. Examples are the code of data sets, collate functions, and
//! the steps of a `Compose` that converts pictures to tensors. A function or class is on the host side if the project mentions it, and
//! each mention is in such a place or in code on the host side. Code without mentions is for other projects, which may pass it anything.

use std::cell::RefCell;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::project::CallGraph;
use crate::flow::project::call_graph::{Node, Route, made_at};
use crate::flow::project::context::{Context, Fact};
use crate::flow::query::nodes::Target;
use crate::ir::{Arg, ArgKind, Call, ClassId, Expr, ExprId, Function, Module, Stmt};
use crate::link::{ClassKey, ModIdx, Program, Resolved};
use crate::sym::Sym;
use crate::torch::{Base, base_class};
use crate::words::Words;

/// Functions that read a picture from a file.
static OPENS_PICTURES: Words = Words::of("open a picture");

/// Methods that add an element to a list.
static GROW_A_LIST: Words = Words::of("grow a list");

/// Arguments of data sets that prepare each item.
static PREPARES: Words = Words::of("prepare the items of a data set");

/// Transforms that turn a picture into a tensor.
static TO_TENSOR: Words = Words::of("turn a picture into a tensor");

/// Registries of steps that prepare the items of a data set.
const REGISTRIES: &[&str] = &["PIPELINES", "TRANSFORMS"];

/// The functions and classes on the host side.
#[derive(Debug, Default)]
pub struct HostSide {
    graph: Arc<CallGraph>,
    /// A cache: for each file, the expressions at places where data is prepared.
    prepared: RefCell<FxHashMap<ModIdx, FxHashSet<ExprId>>>,
}

impl HostSide {
    /// Uses the files of this call graph.
    pub fn of(graph: Arc<CallGraph>) -> Self {
        Self { graph, prepared: RefCell::default() }
    }

    /// Whether the function is on the host side.
    pub fn contains(&self, program: &Program, target: Target) -> bool {
        node(program, target).is_some_and(|node| self.context(program, &[target]).holds(node))
    }

    /// The names of the code that leads to these functions, as far as its mentions decide.
    pub fn leading_to(&self, program: &Program, targets: &[Target]) -> FxHashSet<Sym> {
        self.context(program, targets).names(program)
    }

    fn context(&self, program: &Program, targets: &[Target]) -> Context {
        let fact = Fact {
            route: Route::Made,
            at: &|_, mention| {
                let mut known = self.prepared.borrow_mut();
                let places = known.entry(mention.module).or_insert_with(|| prepared(program, mention.module));
                places.contains(&mention.expr).into()
            },
            of: &|node| prepares(program, node).into(),
        };
        Context::of(program, &self.graph, targets.iter().filter_map(|&target| node(program, target)), &fact)
    }
}

fn node(program: &Program, (m, f): Target) -> Option<Node> {
    made_at(&program.get(m).ir, m, f)
}

/// Whether the node is a data set, a step of one, or a collate function.
fn prepares(program: &Program, node: Node) -> bool {
    match node {
        Node::Function(m, f) => is_collate(program.get(m).ir.function(f)),
        Node::Class(key) | Node::Instance(key) => {
            let ir = &program.get(key.module).ir;
            is_data_set(program, key)
                || collates(ir, key.class)
                || is_registered_step(ir, key.class)
                || is_step(program, key)
        }
        Node::Table(..) => false,
    }
}

/// The expressions that are passed where data is prepared: `collate_fn=…`, `transform=…` of a data set, the steps of a `Compose`.
fn prepared(program: &Program, m: ModIdx) -> FxHashSet<ExprId> {
    let ir = &program.get(m).ir;
    let mut found = FxHashSet::default();
    let mut add = |e: ExprId| {
        found.extend(ir.exprs_in(e).map(|n| ExprId(u32::try_from(n).unwrap_or(u32::MAX))));
    };
    for call in ir.calls() {
        let data = makes_data_set(program, m, call);
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

/// Whether the call creates a data set: one of the project's, or one of torchvision or a similar library.
fn makes_data_set(program: &Program, m: ModIdx, call: Call<'_>) -> bool {
    match program.resolve_expr(m, call.func) {
        Some(Resolved::Class(key)) => is_data_set(program, key),
        Some(Resolved::External(path)) => {
            let path = path.as_str();
            path.starts_with("torchvision.datasets.") || path.ends_with("Dataset")
        }
        _ => false,
    }
}

/// Whether the class is a data set whose own code names no accelerator.
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

/// Whether the function collates the items of a batch.
fn is_collate(f: &Function) -> bool {
    let name = f.name.as_str();
    name.contains("collate") && !name.contains("cuda") && !name.contains("gpu")
}

/// Whether the class is a callable collator: `class Collator` with a `__call__`.
fn collates(ir: &Module, class: ClassId) -> bool {
    let c = ir.class(class);
    let named = ["Collator", "Collate"].iter().any(|part| c.name.as_str().contains(part));
    named && c.methods.iter().any(|(name, _)| name.as_str() == "__call__") && !names_accelerator(ir, class)
}

/// `@PIPELINES.register_module()`: OpenMMLab's data sets build their preparation steps from these registries
/// (mmengine/dataset/base_dataset.py, `Compose`). Other projects have adopted the pattern.
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

/// Whether the class is such a step according to its base class (mmcv/transforms/base.py).
fn is_step(program: &Program, class: ClassKey) -> bool {
    let base = |p: &Sym| p.as_str().starts_with("mmcv.transforms.");
    program.class(class).externals.iter().any(base)
        && !names_accelerator(&program.get(class.module).ir, class.class)
}

/// Whether the class's own code names an accelerator.
fn names_accelerator(ir: &Module, class: ClassId) -> bool {
    ir.exprs[ir.exprs_of(ir.function(ir.class(class).body))].iter().any(|e| match *e {
        Expr::Attr { name, .. } => name.as_str() == "cuda",
        Expr::Str(text) => text.as_str().starts_with("cuda"),
        _ => false,
    })
}

/// Whether the class returns items by number and reads them from picture files.
fn reads_pictures(program: &Program, class: ClassKey) -> bool {
    let ir = &program.get(class.module).ir;
    let method =
        |wanted: &str| ir.class(class.class).methods.iter().find(|(name, _)| name.as_str() == wanted);
    let (Some(&(_, item)), Some(_)) = (method("__getitem__"), method("__len__")) else { return false };
    ir.exprs_of(ir.function(item)).any(|n| match ir.exprs[n] {
        Expr::Call(call) => matches!(program.resolve_expr(class.module, ir.call(call).func),
            Some(Resolved::External(path)) if OPENS_PICTURES.has(path.as_str())),
        _ => false,
    })
}

/// Whether it is an argument that prepares the items of a loader or a data set.
fn is_for_data(a: &Arg, data: bool) -> bool {
    let ArgKind::Keyword(name) = a.kind else { return false };
    name.as_str() == "collate_fn" || data && PREPARES.has(name.as_str())
}

/// Whether the function around the expression converts pictures to tensors. Then a `Compose` in it does so as well.
fn pictures(ir: &Module, at: ExprId) -> bool {
    let around = ir.function(ir.function_around(at));
    ir.exprs_of(around).any(|n| is_to_tensor(ir, ExprId(u32::try_from(n).unwrap_or(u32::MAX))))
}

fn is_to_tensor(ir: &Module, e: ExprId) -> bool {
    ir.last_name(e).is_some_and(|name| TO_TENSOR.has(name.as_str()))
}

/// `train.transforms.append(step)`
fn adds_step(ir: &Module, call: Call<'_>) -> bool {
    let Expr::Attr { base, name } = ir.expr(call.func) else { return false };
    GROW_A_LIST.has(name.as_str())
        && matches!(ir.expr(base), Expr::Attr { name, .. } if name.as_str() == "transforms")
}

/// The argument of a `Compose`, and its elements if it is a list.
fn steps(ir: &Module, given: ExprId) -> impl Iterator<Item = ExprId> + '_ {
    let listed = match ir.expr(given) {
        Expr::List(list) | Expr::Tuple(list) => ir.list(list),
        _ => &[],
    };
    std::iter::once(given).chain(listed.iter().copied())
}

/// The values that the same function assigns to the variable `given`, or adds to the list in it.
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
        Expr::Attr { base, name } if is(base) && GROW_A_LIST.has(name.as_str()) => {
            call.args.last().map(|a| a.value)
        }
        _ => None,
    });
    put.chain(added).collect()
}
