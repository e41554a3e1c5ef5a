//! Parameters of modules for which all calls of a project give something: what their default leads to never runs.
//!
//! `def forward(self, x, before=None)`, where every `self.cell(x, before)` gives both: nobody comes to `if before is None:`. The
//! calls of a module are those of the variables and attributes that hold one; where it may be called otherwise, nothing is known.

use rustc_hash::FxHashSet;

use super::behind::{Node, named, silent};
use super::methods::class_of_self;
use super::named_calls::function_at;
use super::unmoved::{class_of, parent};
use crate::ir::{ArgKind, Block, Call, CmpOp, Expr, ExprId, Function, Module, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Program};
use crate::span::{Place, Span};
use crate::sym::Sym;

/// The branches of a project's modules that none of its calls comes to.
pub struct FilledIn<'a> {
    program: &'a Program,
    files: &'a [ModIdx],
}

impl<'a> FilledIn<'a> {
    /// Those of these files.
    pub fn of(program: &'a Program, files: &'a [ModIdx]) -> Self {
        Self { program, files }
    }

    /// Is the place in a branch for what nobody leaves out?
    pub fn contains(&self, place: Place) -> bool {
        let Some((m, f)) = function_at(self.program, place) else { return false };
        let ir = &self.program.get(m).ir;
        let function = ir.function(f);
        let (Some(class), "forward") = (class_of(self.program, m, f), function.name.as_str()) else {
            return false;
        };
        let left_out = (1..function.params.len()).find(|&n| {
            let none = function.params[n].default.is_some_and(|d| ir.expr(d) == Expr::None);
            none && is_in_branch(ir, function, n, place.span)
        });
        left_out.is_some_and(|n| self.is_filled(class, n - 1, function.params[n].name))
    }

    /// Do all calls of such modules give something for this argument?
    fn is_filled(&self, class: ClassKey, at: usize, name: Sym) -> bool {
        let mut holders: FxHashSet<(Sym, Option<ClassKey>)> = FxHashSet::default();
        for &m in self.files {
            let ir = &self.program.get(m).ir;
            let skipped = silent(ir);
            for e in exprs(ir).filter(|e| !skipped.contains(e)) {
                if !matches!(ir.expr(e), Expr::Var(_) | Expr::Attr { .. }) {
                    continue;
                }
                if let Some(Node::Class(key)) = named(self.program, m, e)
                    && self.program.class(key).mro.contains(&class)
                {
                    let Some(holder) = holder(ir, e) else { return false };
                    holders.extend(holder.and_then(|e| Some((ir.last_name(e)?, own_class(ir, m, e)))));
                }
            }
        }
        let mut called = false;
        for &m in self.files {
            let ir = &self.program.get(m).ir;
            for e in exprs(ir) {
                let Some(name_here) = ir.last_name(e) else { continue };
                let own = own_class(ir, m, e);
                // What another class keeps under that name for itself is not it.
                let related = |k: ClassKey, other: ClassKey| self.program.class(k).mro.contains(&other);
                let may_be = |of: Option<ClassKey>| match (of, own) {
                    (Some(a), Some(b)) => related(a, b) || related(b, a),
                    _ => true,
                };
                if !holders.iter().any(|&(name, of)| name == name_here && may_be(of)) {
                    continue;
                }
                match use_of(ir, e) {
                    Use::Call(call) if gives(ir, call, at, name) => called = true,
                    Use::Call(_) | Use::Other => return false,
                    Use::Nothing => {}
                }
            }
        }
        called
    }
}

fn exprs(ir: &Module) -> impl Iterator<Item = ExprId> + use<> {
    (0..ir.exprs.len()).map(|n| ExprId(u32::try_from(n).unwrap_or(u32::MAX)))
}

/// Is the place in a branch for machines on which the parameter has been left out: `if p is None:`?
fn is_in_branch(ir: &Module, function: &Function, param: usize, at: Span) -> bool {
    let slot = function.params[param].slot;
    let is_param = |e: ExprId| ir.expr(e) == Expr::Var(Var::Local(slot));
    let covers = |block: Block| ir.block(block).iter().any(|&s| ir.stmt_span(s).contains(at));
    let stmts = || ir.stmts[ir.stmts_of(function)].iter().zip(&ir.stmt_spans[ir.stmts_of(function)]);
    let branch = stmts().find_map(|(s, &span)| match *s {
        Stmt::If { test, then, orelse } => match ir.expr(test) {
            Expr::Compare { op, left, right } if is_param(left) && ir.expr(right) == Expr::None => {
                let inside = match op {
                    CmpOp::Is => covers(then),
                    CmpOp::IsNot => covers(orelse),
                    _ => false,
                };
                inside.then_some(span)
            }
            _ => None,
        },
        _ => None,
    });
    // What the function puts there itself may be none, too.
    let set_before = |start: u32| {
        stmts().any(|(s, span)| {
            span.start < start
                && matches!(*s, Stmt::Assign { targets, .. } if ir.list(targets).iter().any(|&t| is_param(t)))
        })
    };
    branch.is_some_and(|span| !set_before(span.start))
}

/// What holds the module whose class is mentioned: nothing if it is a mention that makes none, or `None` if it gets out of sight.
fn holder(ir: &Module, mention: ExprId) -> Option<Option<ExprId>> {
    let made = parent(ir, mention)?;
    match ir.expr(made) {
        Expr::Call(id) if ir.call(id).func == mention => {}
        // `super(Cell, self)`
        Expr::Call(id) => {
            let func = ir.call(id).func;
            let base = matches!(ir.expr(func), Expr::Var(Var::Unbound(name)) if name.as_str() == "super");
            return base.then_some(None);
        }
        _ => return None,
    }
    if parent(ir, made).is_some() {
        return None;
    }
    let mut stmts = ir.stmts.iter();
    let targets = stmts.find_map(|s| match *s {
        Stmt::Assign { targets, value } if value == made => Some(targets),
        _ => None,
    })?;
    match ir.list(targets) {
        &[only] => ir.last_name(only).map(|_| Some(only)),
        _ => None,
    }
}

/// The class whose methods' `self` has this attribute.
fn own_class(ir: &Module, m: ModIdx, e: ExprId) -> Option<ClassKey> {
    let Expr::Attr { base, .. } = ir.expr(e) else { return None };
    class_of_self(ir, m, base)
}

/// What is done with a module.
enum Use<'a> {
    /// It is called.
    Call(Call<'a>),
    /// It is only bound, or one of its attributes is read.
    Nothing,
    /// It may be called by others.
    Other,
}

fn use_of(ir: &Module, e: ExprId) -> Use<'_> {
    let Some(around) = parent(ir, e) else {
        let bound = ir
            .stmts
            .iter()
            .any(|s| matches!(*s, Stmt::Assign { targets, .. } if ir.list(targets).contains(&e)));
        return if bound { Use::Nothing } else { Use::Other };
    };
    match ir.expr(around) {
        Expr::Call(id) if ir.call(id).func == e => Use::Call(ir.call(id)),
        Expr::Attr { name, .. } if name.as_str() == "forward" => match parent(ir, around).map(|p| ir.expr(p))
        {
            Some(Expr::Call(id)) if ir.call(id).func == around => Use::Call(ir.call(id)),
            _ => Use::Other,
        },
        Expr::Attr { .. } => Use::Nothing,
        _ => Use::Other,
    }
}

/// Does the call give something else than nothing?
fn gives(ir: &Module, call: Call<'_>, at: usize, name: Sym) -> bool {
    if call.args.iter().any(|a| matches!(a.kind, ArgKind::Star | ArgKind::DoubleStar)) {
        return false;
    }
    let positional = call.args.iter().filter(|a| a.kind == ArgKind::Positional).nth(at);
    let given = positional.or_else(|| call.args.iter().find(|a| a.kind == ArgKind::Keyword(name)));
    given.is_some_and(|a| is_something(ir, a.value))
}

/// Is it never `None`? A variable is not if nothing of its name is set to that, and it is no parameter that may be.
fn is_something(ir: &Module, e: ExprId) -> bool {
    match ir.expr(e) {
        Expr::Var(_) | Expr::Attr { .. } => {
            let name = ir.last_name(e);
            let same = |t: ExprId| ir.last_name(t) == name;
            let may_be = |value: ExprId| {
                matches!(ir.expr(value), Expr::None | Expr::IfElse(_) | Expr::Or(_) | Expr::And(_))
            };
            let mut set = ir.stmts.iter().filter_map(|s| match *s {
                Stmt::Assign { targets, value } if ir.list(targets).iter().any(|&t| same(t)) => Some(value),
                _ => None,
            });
            let unpacked = |list| ir.list(list).iter().any(|&t| same(t));
            let several = ir.stmts.iter().any(|s| match *s {
                Stmt::Assign { targets, .. } => ir
                    .list(targets)
                    .iter()
                    .any(|&t| matches!(ir.expr(t), Expr::Tuple(list) | Expr::List(list) if unpacked(list))),
                _ => false,
            });
            let param = ir.functions.iter().flat_map(|f| f.params.iter()).find(|p| Some(p.name) == name);
            let left_out = param.is_some_and(|p| p.default.is_some_and(may_be));
            let known = set.next();
            !left_out
                && !may_be(known.unwrap_or(e))
                && !set.any(may_be)
                && (known.is_some() || several || param.is_some())
        }
        Expr::None | Expr::IfElse(_) | Expr::Or(_) | Expr::And(_) => false,
        _ => true,
    }
}
