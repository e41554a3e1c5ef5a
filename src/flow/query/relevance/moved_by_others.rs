//! Moves of modules by functions that have not created them: `net.to(device)` of a file's variable, and `agent.net.to(device)` of an
//! object's attribute. The device of such a module in other code depends on which code has run before.

use rustc_hash::FxHashSet;

use crate::flow::project::method_calls::is_of_others;
use crate::flow::query::nodes::outermost;
use crate::flow::query::type_names::is_number_type;
use crate::ir::{Call, Expr, ExprId, FuncId, Slot, Var};
use crate::link::{ClassKey, ModIdx, Program, Resolved};
use crate::sym::{Answers, Sym};
use crate::words::Words;

/// Methods that move a module to an accelerator.
static MOVERS: Words = Words::of("move a module to an accelerator");

thread_local! {
    static MOVES: Answers = const { Answers::new() };
}

/// Whether the method is one of `MOVERS`. Called for all calls of a file.
fn is_mover(name: Sym) -> bool {
    MOVES.with(|known| known.ask(name, |name| MOVERS.has(name)))
}

/// The receiver of a move.
#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// A variable of the file.
    Global(Slot),
    /// An attribute of this name, and the whole expression.
    Attribute(Sym, ExprId),
}

/// A move, and the outermost function around it; `None` in the file's body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub(crate) what: What,
    pub(crate) within: Option<FuncId>,
}

/// The moves in a file.
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

/// Whether the call does not move to an accelerator: `.to("cpu")`, `.to(torch.float32)`
fn stays(program: &Program, m: ModIdx, call: Call<'_>) -> bool {
    let number = |path: &str| path.strip_prefix("torch.").is_some_and(is_number_type);
    !call.args.is_empty()
        && call.args.iter().all(|a| match program.get(m).ir.expr(a.value) {
            Expr::Str(text) => text.as_str() == "cpu",
            _ => matches!(program.resolve_expr(m, a.value),
                Some(Resolved::External(path)) if number(path.as_str())),
        })
}

/// Whether the moved attribute may belong to a finished object of this class. It does not if the object is certainly of another class, or
/// is still under construction.
pub(crate) fn may_be_of(program: &Program, class: ClassKey, m: ModIdx, moved: Move) -> bool {
    let What::Attribute(_, e) = moved.what else { return false };
    match own_method(program, m, moved) {
        Some((name, own)) => name.as_str() != "__init__" && program.class(class).mro.contains(&own),
        None => !is_of_others(program, m, e, class),
    }
}

/// The name of the method around a move of an attribute of `self`, and its class.
fn own_method(program: &Program, m: ModIdx, moved: Move) -> Option<(Sym, ClassKey)> {
    let ir = &program.get(m).ir;
    let What::Attribute(_, e) = moved.what else { return None };
    let Expr::Attr { base, .. } = ir.expr(e) else { return None };
    let method = ir.function(moved.within?);
    let class = method.class.filter(|_| ir.expr(base) == Expr::Var(Var::Local(0)))?;
    Some((method.name, ClassKey { module: m, class }))
}

/// The names of the attributes of this class's objects that other code in these files may move.
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
