//! Branches of functions and methods that nothing in a project comes to, for what its own calls give.
//!
//! `def forward(self, x, before=None)`, where every `self.cell(x, before)` gives both: nobody comes to `if before is None:`. And in
//! a class that is only made with `Drop(0.0)`, a method which returns `if self.share == 0.0:` returns. What a parameter may
//! be is what the calls give for it (`fixed/sites.rs`), and what an attribute may be is what methods put there
//! (`fixed/values.rs`). Where others may call, or set it, nothing is known.

mod flags;
mod sites;
mod values;

use std::cell::RefCell;

use rustc_hash::{FxHashMap, FxHashSet};

use self::values::{Const, For, Values};
use super::methods::class_of_self;
use super::nodes::Target;
use super::unused::LookedUp;
use crate::ir::{Block, CmpOp, Expr, ExprId, ExprList, FuncId, FuncKind, Module, Stmt, StmtId, UnaryOp, Var};
use crate::link::{ClassKey, ModIdx, Program};
use crate::span::{Place, Span};
use crate::sym::Sym;

/// What a project's calls leave of the ways through its functions.
pub struct Fixed<'a> {
    program: &'a Program,
    files: &'a [ModIdx],
    looked_up: LookedUp,
    /// May a file that is no source name such a class or function?
    named_elsewhere: &'a dyn Fn(Sym) -> bool,
    params: RefCell<FxHashMap<(Target, usize), Option<Values>>>,
    attributes: RefCell<FxHashMap<(ClassKey, Sym), Option<Values>>>,
    /// The variables that are being looked up.
    asked: RefCell<FxHashSet<(ModIdx, FuncId, u16)>>,
    /// The mentions in a file by which nothing runs.
    silent: RefCell<FxHashMap<ModIdx, FxHashSet<ExprId>>>,
}

impl<'a> Fixed<'a> {
    /// Those of these files.
    pub fn of(program: &'a Program, files: &'a [ModIdx], named_elsewhere: &'a dyn Fn(Sym) -> bool) -> Self {
        Self {
            program,
            files,
            looked_up: LookedUp::of(program, files),
            named_elsewhere,
            params: RefCell::default(),
            attributes: RefCell::default(),
            asked: RefCell::default(),
            silent: RefCell::default(),
        }
    }

    /// Is the place in a branch that nobody comes to?
    pub fn contains(&self, place: Place) -> bool {
        let Some(m) = self.program.module_of(place.file) else { return false };
        conditions(&self.program.get(m).ir, place.span)
            .into_iter()
            .any(|(test, truth)| self.outcome(m, test) == Some(!truth))
    }

    /// How a test comes out for everybody.
    fn outcome(&self, m: ModIdx, test: ExprId) -> Option<bool> {
        let ir = &self.program.get(m).ir;
        match ir.expr(test) {
            Expr::Unary { op: UnaryOp::Not, operand } => self.outcome(m, operand).map(|truth| !truth),
            Expr::And(list) => self.all(m, list, true),
            Expr::Or(list) => self.all(m, list, false),
            Expr::Compare { op, left, right } => match op {
                CmpOp::In => self.is_among(m, left, right),
                CmpOp::NotIn => self.is_among(m, left, right).map(|truth| !truth),
                _ => {
                    let (left, right) = (self.values(m, left, For::Test)?, self.values(m, right, For::Test)?);
                    same(left.iter().flat_map(|&a| right.iter().map(move |&b| compared(op, a, b))))
                }
            },
            _ => same(self.values(m, test, For::Test)?.into_iter().map(Const::truth)),
        }
    }

    /// Of tests of which all must come out so, or else the other way.
    fn all(&self, m: ModIdx, list: ExprList, so: bool) -> Option<bool> {
        let outcomes: Vec<Option<bool>> =
            self.program.get(m).ir.list(list).iter().map(|&e| self.outcome(m, e)).collect();
        match outcomes.contains(&Some(!so)) {
            true => Some(!so),
            false => outcomes.iter().all(|o| *o == Some(so)).then_some(so),
        }
    }

    /// `self.kind in ("a", "b")`
    fn is_among(&self, m: ModIdx, left: ExprId, right: ExprId) -> Option<bool> {
        let ir = &self.program.get(m).ir;
        let (Expr::Tuple(list) | Expr::List(list) | Expr::Set(list)) = ir.expr(right) else { return None };
        let members: Vec<Values> =
            ir.list(list).iter().map(|&e| self.values(m, e, For::Test)).collect::<Option<_>>()?;
        let is = |a: Const| {
            let each = || members.iter().map(|b| same(b.iter().map(|&b| compared(CmpOp::Eq, a, b))));
            match each().any(|e| e == Some(true)) {
                true => Some(true),
                false => each().all(|e| e == Some(false)).then_some(false),
            }
        };
        same(self.values(m, left, For::Test)?.into_iter().map(is))
    }
}

/// Is the place in a branch that hangs on a parameter, or on an attribute of the function's own object?
pub fn hangs_on_values(program: &Program, place: Place) -> bool {
    let Some(m) = program.module_of(place.file) else { return false };
    let ir = &program.get(m).ir;
    let is_param = |e: ExprId| match ir.expr(e) {
        Expr::Var(Var::Local(slot)) => {
            ir.function(ir.function_around(e)).params.iter().any(|p| p.slot == slot)
        }
        Expr::Attr { base, .. } => class_of_self(ir, m, base).is_some(),
        _ => false,
    };
    let number = |n: usize| ExprId(u32::try_from(n).unwrap_or(u32::MAX));
    let tests = conditions(ir, place.span).into_iter();
    tests.flat_map(|(test, _)| ir.exprs_in(test)).any(|n| is_param(number(n)))
}

/// The answer, if all are the same. Of nothing there is none.
fn same(mut outcomes: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let first = outcomes.next()??;
    outcomes.all(|o| o == Some(first)).then_some(first)
}

fn compared(op: CmpOp, a: Const, b: Const) -> Option<bool> {
    match op {
        CmpOp::Is | CmpOp::Eq => a.is(b, op == CmpOp::Eq),
        CmpOp::IsNot | CmpOp::NotEq => a.is(b, op == CmpOp::NotEq).map(|is| !is),
        _ => {
            let (Const::Number(a), Const::Number(b)) = (a, b) else { return None };
            match op {
                CmpOp::Lt => Some(a < b),
                CmpOp::LtE => Some(a <= b),
                CmpOp::Gt => Some(a > b),
                CmpOp::GtE => Some(a >= b),
                _ => None,
            }
        }
    }
}

/// What must have come out how for the place to be reached, in the functions that it is in.
pub fn conditions(ir: &Module, at: Span) -> Vec<(ExprId, bool)> {
    let mut found = Vec::new();
    let around =
        |f: &&crate::ir::Function| f.kind == FuncKind::Function && f.parent.is_some() && f.span.contains(at);
    for function in ir.functions.iter().filter(around) {
        in_block(ir, function.body, at, &mut found);
        in_expressions(ir, ir.exprs_of(function), at, &mut found);
    }
    found
}

fn in_block(ir: &Module, block: Block, at: Span, found: &mut Vec<(ExprId, bool)>) {
    let covers = |block: Block| ir.block(block).iter().any(|&s| ir.stmt_span(s).contains(at));
    for &s in ir.block(block) {
        if !ir.stmt_span(s).contains(at) {
            if ir.stmt_span(s).end <= at.start {
                came_past(ir, s, found);
            }
            continue;
        }
        let mut inside = |block: Block, condition: Option<(ExprId, bool)>| {
            if covers(block) {
                found.extend(condition);
                in_block(ir, block, at, found);
            }
        };
        match ir.stmt(s) {
            &Stmt::If { test, then, orelse } => {
                inside(then, Some((test, true)));
                inside(orelse, Some((test, false)));
            }
            &Stmt::While { body, orelse, .. } | &Stmt::For { body, orelse, .. } => {
                inside(body, None);
                inside(orelse, None);
            }
            Stmt::With { body, .. } => inside(*body, None),
            &Stmt::Try { body, handlers, orelse, finally } => {
                [body, orelse, finally].into_iter().for_each(|b| inside(b, None));
                ir.handlers(handlers).iter().for_each(|h| inside(h.body, None));
            }
            Stmt::Match { cases, .. } => cases.iter().for_each(|c| inside(c.body, None)),
            _ => {}
        }
    }
}

/// What a statement says that has been gone past.
fn came_past(ir: &Module, s: StmtId, found: &mut Vec<(ExprId, bool)>) {
    match *ir.stmt(s) {
        Stmt::If { test, then, orelse } => {
            if ends(ir, then) {
                found.push((test, false));
            }
            if ends(ir, orelse) {
                found.push((test, true));
            }
        }
        Stmt::Assert { test, .. } => found.push((test, true)),
        _ => {}
    }
}

/// Does nothing come past the block?
fn ends(ir: &Module, block: Block) -> bool {
    ir.block(block).iter().any(|&s| match *ir.stmt(s) {
        Stmt::Return(_) | Stmt::Raise { .. } | Stmt::Break | Stmt::Continue => true,
        Stmt::If { then, orelse, .. } => ends(ir, then) && ends(ir, orelse),
        Stmt::With { body, .. } => ends(ir, body),
        _ => false,
    })
}

/// `b(x) if a else c(x)`, `a and b(x)`
fn in_expressions(ir: &Module, exprs: std::ops::Range<usize>, at: Span, found: &mut Vec<(ExprId, bool)>) {
    let covers = |e: ExprId| ir.span(e).contains(at);
    for n in exprs.filter(|&n| ir.expr_spans[n].contains(at)) {
        match ir.exprs[n] {
            Expr::IfElse(id) => {
                let parts = ir.if_else(id);
                found.extend(covers(parts.then).then_some((parts.test, true)));
                found.extend(covers(parts.orelse).then_some((parts.test, false)));
            }
            Expr::And(list) | Expr::Or(list) => {
                let truth = matches!(ir.exprs[n], Expr::And(_));
                let list = ir.list(list);
                let before = list.iter().position(|&e| covers(e)).unwrap_or_default();
                found.extend(list[..before].iter().map(|&e| (e, truth)));
            }
            _ => {}
        }
    }
}
