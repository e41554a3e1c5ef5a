//! Modules that functions move which have not made them: `net.to(device)` of a file's variable, and `agent.net.to(device)` of what
//! an object keeps. Where such a module is when something else runs hangs on what has run before.

use rustc_hash::FxHashSet;

use crate::flow::project::method_calls::is_of_others;
use crate::flow::query::nodes::outermost;
use crate::flow::query::type_names::is_number_type;
use crate::ir::{Call, Expr, ExprId, FuncId, Slot, Var};
use crate::link::{ClassKey, ModIdx, Program, Resolved};
use crate::sym::{Answers, Sym};

/// Methods that move a module to an accelerator.
const MOVERS: &[&str] = &["to", "cuda", "xpu", "npu", "mps", "hpu", "to_empty"];

thread_local! {
    static MOVES: Answers = const { Answers::new() };
}

/// Is it one of them? All calls of a file are asked about.
fn is_mover(name: Sym) -> bool {
    MOVES.with(|known| known.ask(name, |name| MOVERS.contains(&name)))
}

/// What is moved.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// A variable of the file.
    Global(Slot),
    /// An attribute of this name; the expression as a whole.
    Attribute(Sym, ExprId),
}

/// A move, and the function in which it is written; none in the file's body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub(crate) what: What,
    pub(crate) within: Option<FuncId>,
}

/// What a file moves.
pub(crate) fn moves_in(program: &Program, m: ModIdx) -> Vec<Move> {
    let ir = &program.get(m).ir;
    if !ir.attributes.iter().any(|&name| is_mover(name)) {
        return Vec::new();
    }
    let found = ir.calls().filter_map(|call| {
        let Expr::Attr { base, name } = ir.expr(call.func) else { return None };
        if !is_mover(name) {
            return None;
        }
        let what = match ir.expr(base) {
            Expr::Var(Var::Global(slot)) => What::Global(slot),
            Expr::Attr { name, .. } => What::Attribute(name, base),
            _ => return None,
        };
        (!stays(program, m, call)).then(|| Move { what, within: outermost(ir, base) })
    });
    found.collect()
}

/// `.to("cpu")`, `.to(torch.float32)`
fn stays(program: &Program, m: ModIdx, call: Call<'_>) -> bool {
    let number = |path: &str| path.strip_prefix("torch.").is_some_and(is_number_type);
    !call.args.is_empty()
        && call.args.iter().all(|a| match program.get(m).ir.expr(a.value) {
            Expr::Str(text) => text.as_str() == "cpu",
            _ => matches!(program.resolve_expr(m, a.value),
                Some(Resolved::External(path)) if number(path.as_str())),
        })
}

/// May the attribute that is moved there be one of an object of this class that has been made? Not if the object is for certain
/// one of another class, or is still being made.
pub(crate) fn may_be_of(program: &Program, class: ClassKey, m: ModIdx, moved: Move) -> bool {
    let What::Attribute(_, e) = moved.what else { return false };
    match own_method(program, m, moved) {
        Some((name, own)) => name.as_str() != "__init__" && program.class(class).mro.contains(&own),
        None => !is_of_others(program, m, e, class),
    }
}

/// The method that moves a part of its own object, and its class.
fn own_method(program: &Program, m: ModIdx, moved: Move) -> Option<(Sym, ClassKey)> {
    let ir = &program.get(m).ir;
    let What::Attribute(_, e) = moved.what else { return None };
    let Expr::Attr { base, .. } = ir.expr(e) else { return None };
    let method = ir.function(moved.within?);
    let class = method.class.filter(|_| ir.expr(base) == Expr::Var(Var::Local(0)))?;
    Some((method.name, ClassKey { module: m, class }))
}

/// The names of the parts of this class's objects that others in these files may move.
pub fn parts_moved_by_others(program: &Program, files: &[ModIdx], class: ClassKey) -> FxHashSet<Sym> {
    let mut names = FxHashSet::default();
    for &m in files {
        for moved in moves_in(program, m) {
            if let What::Attribute(name, _) = moved.what
                && own_method(program, m, moved).is_none()
                && may_be_of(program, class, m, moved)
            {
                names.insert(name);
            }
        }
    }
    names
}
