//! Names that stand for an answer to whether CUDA is there.
//!
//! `args.fast = torch.cuda.is_available()`: who tests that later has asked, whatever it is called, if nothing but such answers is
//! put there.

use rustc_hash::FxHashSet;

use super::super::value::{OuterId, OuterKey};
use super::Interp;
use crate::ir::{CmpOp, Expr, ExprId, ExprList, Module, Stmt};
use crate::link::{ModIdx, Program, Resolved};
use crate::sym::Sym;
use crate::torch::{self, Accelerator, Without};

/// So many functions are followed to their answers.
const DEPTH: u32 = 2;

impl Interp<'_> {
    /// Is it an attribute under whose name the file puts nothing but such answers?
    pub(super) fn is_answer(&self, o: OuterId) -> bool {
        match self.t.get_outer(o).key {
            OuterKey::Attr { name, .. } => self.holds_answers(self.here().module, name),
            _ => false,
        }
    }

    /// Does the file put answers to whether CUDA is there under this attribute's name, and nothing else but `None` and `False`?
    pub(super) fn holds_answers(&self, m: ModIdx, name: Sym) -> bool {
        let mut answers = self.answers.borrow_mut();
        answers.entry(m).or_insert_with(|| answering(self.program, m)).contains(&name)
    }
}

/// The attributes of a file under whose names it puts such answers, and nothing else but `None` and `False`.
fn answering(program: &Program, m: ModIdx) -> FxHashSet<Sym> {
    let ir = &program.get(m).ir;
    let named = |t: ExprId| if let Expr::Attr { name, .. } = ir.expr(t) { Some(name) } else { None };
    let names = |targets: ExprList| ir.list(targets).iter().filter_map(|&t| named(t));
    let is_answer = |value: ExprId| is_answer(program, m, ir, value, DEPTH);
    let mut answers: FxHashSet<Sym> = FxHashSet::default();
    for s in &ir.stmts {
        match *s {
            Stmt::Assign { targets, value } if names(targets).next().is_some() && is_answer(value) => {
                answers.extend(names(targets));
            }
            Stmt::AnnAssign { target, value: Some(value), .. } if is_answer(value) => {
                answers.extend(named(target));
            }
            _ => {}
        }
    }
    // Few files have any.
    if answers.is_empty() {
        return answers;
    }
    let says_other = |value: ExprId| !matches!(ir.expr(value), Expr::None | Expr::False) && !is_answer(value);
    let mut others: FxHashSet<Sym> = FxHashSet::default();
    for s in &ir.stmts {
        match *s {
            Stmt::Assign { targets, value } => {
                // What is unpacked may be anything.
                for &t in ir.list(targets) {
                    if let Expr::Tuple(list) | Expr::List(list) = ir.expr(t) {
                        others.extend(names(list).filter(|&name| !names(targets).any(|n| n == name)));
                    }
                }
                if says_other(value) {
                    others.extend(names(targets));
                }
            }
            Stmt::AnnAssign { target, value: Some(value), .. } if says_other(value) => {
                others.extend(named(target));
            }
            Stmt::AugAssign { target, .. } | Stmt::For { target, .. } => others.extend(named(target)),
            _ => {}
        }
    }
    answers.retain(|name| !others.contains(name));
    answers
}

/// Is the expression only true where CUDA is there, as far as it says so itself?
fn is_answer(program: &Program, m: ModIdx, ir: &Module, e: ExprId, depth: u32) -> bool {
    let says = |called: Option<Resolved>, without: Without| match called {
        Some(Resolved::External(path)) => torch::call(path)
            .and_then(|fact| fact.accelerator)
            .is_some_and(|a| a.accelerator == Accelerator::Cuda && a.without == without),
        _ => false,
    };
    match ir.expr(e) {
        Expr::And(list) => ir.list(list).iter().any(|&part| is_answer(program, m, ir, part, depth)),
        Expr::Or(list) => ir.list(list).iter().all(|&part| is_answer(program, m, ir, part, depth)),
        Expr::Compare { op: CmpOp::Gt, left, .. } => match ir.expr(left) {
            Expr::Call(id) => says(program.resolve_expr(m, ir.call(id).func), Without::Count),
            _ => false,
        },
        Expr::Call(id) if program.begins_in_function(m, ir.call(id).func) => false,
        Expr::Call(id) => {
            let call = ir.call(id);
            match program.resolve_expr(m, call.func) {
                Some(Resolved::Function(m, f)) if depth > 0 => {
                    let ir = &program.get(m).ir;
                    let mut returned =
                        ir.stmts[ir.stmts_of(ir.function(f))].iter().filter_map(|s| match *s {
                            Stmt::Return(value) => Some(value),
                            _ => None,
                        });
                    let answers = |value: Option<ExprId>| {
                        value.is_none_or(|e| {
                            matches!(ir.expr(e), Expr::None | Expr::False)
                                || is_answer(program, m, ir, e, depth - 1)
                        })
                    };
                    returned.clone().any(|value| value.is_some()) && returned.all(answers)
                }
                _ if ir.is_builtin(call.func, "bool") => {
                    call.args.first().is_some_and(|a| is_answer(program, m, ir, a.value, depth))
                }
                called => says(called, Without::Availability),
            }
        }
        _ => false,
    }
}
