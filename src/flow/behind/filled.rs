//! Dicts of an object that hold nothing before CUDA has been needed.

use rustc_hash::FxHashMap;

use super::statements::may_set;
use crate::ir::{Class, ClassId, CmpOp, Expr, ExprId, FuncId, Module, Stmt, Var};
use crate::link::{ModIdx, Program};
use crate::sym::Sym;

/// The methods that put something into a dict of their object, each with the end of the statement that does it, for each dict that is
/// empty at first and not handed to anybody else.
pub(super) type Fills = FxHashMap<(ModIdx, ClassId, Sym), Vec<(FuncId, u32)>>;

/// The dicts of all classes of these files, read once.
pub(super) fn fills(program: &Program, files: &[ModIdx]) -> Fills {
    let mut found = Fills::default();
    for &m in files {
        let ir = &program.get(m).ir;
        for (n, class) in ir.classes.iter().enumerate() {
            let id = ClassId(u32::try_from(n).unwrap_or(u32::MAX));
            let dicts = dicts_of(ir, class).into_iter().filter(|(_, dict)| dict.mentioned == dict.understood);
            found.extend(dicts.map(|(name, dict)| ((m, id, name), dict.fills)));
        }
    }
    found
}

/// How the methods of a class use a dict.
#[derive(Default)]
struct Dict {
    fills: Vec<(FuncId, u32)>,
    /// How often it is named, and how often of these it is made, filled or looked into.
    mentioned: usize,
    understood: usize,
}

fn dicts_of(ir: &Module, class: &Class) -> FxHashMap<Sym, Dict> {
    let empty = |value: ExprId| matches!(ir.expr(value), Expr::Dict(list) if list.len == 0);
    let statements = |f: FuncId| ir.stmts_of(ir.function(f)).map(|n| (&ir.stmts[n], ir.stmt_spans[n].end));
    let mut dicts: FxHashMap<Sym, Dict> = FxHashMap::default();
    for &(_, f) in &class.methods {
        for (s, _) in statements(f) {
            if let Stmt::Assign { targets, value } = *s
                && empty(value)
            {
                let names = ir.list(targets).iter().filter_map(|&t| own_attribute(ir, f, t));
                names.for_each(|name| dicts.entry(name).or_default().understood += 1);
            }
        }
    }
    if dicts.is_empty() {
        return dicts;
    }
    for &(_, f) in &class.methods {
        for (s, end) in statements(f) {
            for target in may_set(ir, s) {
                if let Expr::Index { base, .. } = ir.expr(target)
                    && let Some(dict) = own_attribute(ir, f, base).and_then(|name| dicts.get_mut(&name))
                {
                    dict.fills.push((f, end));
                }
            }
        }
        for n in ir.exprs_of(ir.function(f)) {
            let named = |e: ExprId| own_attribute(ir, f, e);
            let looked_at = match ir.exprs[n] {
                Expr::Index { base, .. } => named(base),
                Expr::Compare { op: CmpOp::In | CmpOp::NotIn, right, .. } => named(right),
                _ => None,
            };
            let mentioned = named(ExprId(u32::try_from(n).unwrap_or(u32::MAX)));
            if let Some(dict) = mentioned.and_then(|name| dicts.get_mut(&name)) {
                dict.mentioned += 1;
            }
            if let Some(dict) = looked_at.and_then(|name| dicts.get_mut(&name)) {
                dict.understood += 1;
            }
        }
    }
    dicts
}

/// `name` of `self.name`, in a method that calls its object so.
pub(super) fn own_attribute(ir: &Module, f: FuncId, e: ExprId) -> Option<Sym> {
    let Expr::Attr { base, name } = ir.expr(e) else { return None };
    let receiver = ir.function(f).params.first()?;
    (ir.expr(base) == Expr::Var(Var::Local(receiver.slot))).then_some(name)
}
