//! Names that stand for an answer to whether CUDA is there, or is what has been chosen.
//!
//! `args.fast = torch.cuda.is_available()`, `self.ahead = device.type == "cuda"`: who tests that later has asked, whatever it is
//! called, if nothing but such answers is put there.

use rustc_hash::FxHashSet;

use super::super::site::argument;
use super::super::value::{Device, OuterId, OuterKey};
use super::Interp;
use super::device::{asked_for_kind, parse_device};
use crate::ir::{CmpOp, Expr, ExprId, ExprList, FuncId, Function, Module, Slot, Stmt, Var};
use crate::link::{ModIdx, Program, Resolved, Target};
use crate::sym::Sym;
use crate::torch::{self, Accelerator, Without};

/// So many functions, variables and parameters are followed to their answers.
const DEPTH: u32 = 3;

impl Interp<'_> {
    /// Is it an attribute under whose name the file puts nothing but such answers, or a parameter for which all calls in the
    /// file give one?
    pub(super) fn is_answer(&self, o: OuterId) -> bool {
        match self.t.get_outer(o).key {
            OuterKey::Attr { name, .. } => self.holds_answers(self.here().module, name),
            OuterKey::Param { module, func, index } => {
                let ir = &self.program.get(module).ir;
                let param = ir.function(func).params.get(usize::from(index));
                param.is_some_and(|p| variable_answers(self.program, module, ir, func, p.slot, DEPTH))
            }
            _ => false,
        }
    }

    /// Does the file put answers to whether CUDA is there under this attribute's name, and nothing else but `None` and `False`?
    /// Or does one that it imports, and the file puts nothing there?
    pub(super) fn holds_answers(&self, m: ModIdx, name: Sym) -> bool {
        let mut answers = self.answers.borrow_mut();
        let mut has =
            |m: ModIdx| answers.entry(m).or_insert_with(|| answering(self.program, m)).contains(&name);
        if has(m) {
            return true;
        }
        let imported = self.program.get(m).targets.values().filter_map(|target| match *target {
            Target::Module(m) | Target::Member(m, _) => Some(m),
            _ => None,
        });
        let mut imported: Vec<ModIdx> = imported.collect();
        imported.sort_unstable();
        imported.dedup();
        imported.into_iter().any(has) && !assigns(&self.program.get(m).ir, name)
    }
}

/// Does the file put something under this attribute's name?
fn assigns(ir: &Module, name: Sym) -> bool {
    let named = |t: ExprId| matches!(ir.expr(t), Expr::Attr { name: n, .. } if n == name);
    ir.stmts.iter().any(|s| match *s {
        Stmt::Assign { targets, .. } => ir.list(targets).iter().any(|&t| named(t)),
        Stmt::AnnAssign { target, value: Some(_), .. } => named(target),
        _ => false,
    })
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
    let says_other = |value: ExprId| !says_no(ir, value) && !is_answer(value);
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

/// `None` or `False`.
fn says_no(ir: &Module, e: ExprId) -> bool {
    matches!(ir.expr(e), Expr::None | Expr::False)
}

/// Is the expression only true where CUDA is there, or where something is on an accelerator, as far as it says so itself?
fn is_answer(program: &Program, m: ModIdx, ir: &Module, e: ExprId, depth: u32) -> bool {
    let says = |called: Option<Resolved>, without: Without| match called {
        Some(Resolved::External(path)) => torch::call(path)
            .and_then(|fact| fact.accelerator)
            .is_some_and(|a| a.accelerator == Accelerator::Cuda && a.without == without),
        _ => false,
    };
    let answers = |part: ExprId| is_answer(program, m, ir, part, depth);
    match ir.expr(e) {
        Expr::And(list) => ir.list(list).iter().any(|&part| answers(part)),
        Expr::Or(list) => ir.list(list).iter().all(|&part| answers(part)),
        Expr::IfElse(id) => {
            let choice = ir.if_else(id);
            says_no(ir, choice.orelse) && (answers(choice.test) || answers(choice.then))
        }
        Expr::Compare { op: CmpOp::Gt, left, .. } => match ir.expr(left) {
            Expr::Call(id) => says(program.resolve_expr(m, ir.call(id).func), Without::Count),
            _ => false,
        },
        Expr::Compare { op, left, right } => tells_accelerator(ir, op, left, right),
        Expr::Attr { name, .. } => asked_for_kind(name).is_some_and(|kind| kind != Device::Cpu),
        Expr::Var(Var::Local(slot)) if depth > 0 => {
            variable_answers(program, m, ir, ir.function_around(e), slot, depth - 1)
        }
        Expr::Call(id) if program.begins_in_function(m, ir.call(id).func) => names_accelerator_first(ir, id),
        Expr::Call(id) => {
            let call = ir.call(id);
            match program.resolve_expr(m, call.func) {
                Some(Resolved::Function(m, f)) if depth > 0 => returns_answers(program, m, f, depth - 1),
                _ if ir.is_builtin(call.func, "bool") => call.args.first().is_some_and(|a| answers(a.value)),
                called => says(called, Without::Availability) || names_accelerator_first(ir, id),
            }
        }
        _ => false,
    }
}

/// Does the function give answers, and nothing else?
fn returns_answers(program: &Program, m: ModIdx, f: FuncId, depth: u32) -> bool {
    let ir = &program.get(m).ir;
    let mut returned = ir.stmts[ir.stmts_of(ir.function(f))].iter().filter_map(|s| match *s {
        Stmt::Return(value) => Some(value),
        _ => None,
    });
    let answers =
        |value: Option<ExprId>| value.is_none_or(|e| says_no(ir, e) || is_answer(program, m, ir, e, depth));
    returned.clone().any(|value| value.is_some()) && returned.all(answers)
}

/// `device.type == "cuda"`, `str(device) != "cpu"`, `"cuda" in name`, `device.type in ("cuda", "xpu")`
fn tells_accelerator(ir: &Module, op: CmpOp, left: ExprId, right: ExprId) -> bool {
    let device = |e: ExprId| match ir.expr(e) {
        Expr::Str(s) => parse_device(s.as_str()),
        _ => None,
    };
    let accelerator = |e: ExprId| matches!(device(e), Some(Device::Cuda(_) | Device::Other(_)));
    match op {
        CmpOp::Eq => accelerator(left) || accelerator(right),
        CmpOp::NotEq => device(left) == Some(Device::Cpu) || device(right) == Some(Device::Cpu),
        CmpOp::In => match ir.expr(right) {
            Expr::Tuple(list) | Expr::List(list) | Expr::Set(list) => {
                list.len > 0 && ir.list(list).iter().all(|&item| accelerator(item))
            }
            _ => accelerator(left),
        },
        _ => false,
    }
}

/// `device.startswith("cuda")`
fn names_accelerator_first(ir: &Module, call: crate::ir::CallId) -> bool {
    let call = ir.call(call);
    let asks = matches!(ir.expr(call.func), Expr::Attr { name, .. } if name.as_str() == "startswith");
    asks && call.args.first().is_some_and(|a| {
        matches!(ir.expr(a.value), Expr::Str(s)
            if matches!(parse_device(s.as_str()), Some(Device::Cuda(_) | Device::Other(_))))
    })
}

/// Does a function's own variable only ever hold such answers: by its assignments, or by what all calls in the file give for it?
fn variable_answers(program: &Program, m: ModIdx, ir: &Module, func: FuncId, slot: Slot, depth: u32) -> bool {
    let function = ir.function(func);
    let fits = |value: ExprId| says_no(ir, value) || is_answer(program, m, ir, value, depth);
    let is_it = |t: ExprId| ir.expr(t) == Expr::Var(Var::Local(slot));
    let (mut any, mut all) = (false, true);
    for s in &ir.stmts[ir.stmts_of(function)] {
        let value = match *s {
            Stmt::Assign { targets, value } if ir.list(targets).iter().any(|&t| is_it(t)) => value,
            Stmt::AnnAssign { target, value: Some(value), .. } if is_it(target) => value,
            _ => continue,
        };
        any |= !says_no(ir, value);
        all &= fits(value);
    }
    let Some(at) = function.params.iter().position(|p| p.slot == slot) else { return any && all };
    let given = given_by_calls(program, m, ir, (func, function), at);
    all && !given.is_empty()
        && given.iter().all(|value| value.is_some_and(fits))
        && function.params[at].default.is_none_or(fits)
}

/// What the calls in the file give for a parameter of a function or constructor, where they do.
fn given_by_calls(
    program: &Program,
    m: ModIdx,
    ir: &Module,
    (func, function): (FuncId, &Function),
    at: usize,
) -> Vec<Option<ExprId>> {
    let Some(calls) = program.sites(m).by_name.get(&func) else { return Vec::new() };
    let (name, default) = (function.params[at].name, function.params[at].default);
    let bound = usize::from(function.class.is_some());
    calls.iter().map(|&call| argument(ir.call(call), at.saturating_sub(bound), name).or(default)).collect()
}
