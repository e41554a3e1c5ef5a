//! Places that only processes of a group reach, in projects that create NCCL groups only: without CUDA, there would be no group.
//!
//! `if get_world_size() == 1: return` excludes single processes, and `if dist.is_initialized():` excludes processes without a group.

use rustc_hash::FxHashMap;

use crate::flow::project::CallGraph;
use crate::flow::project::call_graph::{Mention, node_at};
use crate::flow::project::context::Context;
use crate::flow::project::facts::chooses_before;
use crate::flow::query::path_conditions::conditions;
use crate::ir::{Call, CmpOp, Expr, ExprId, FuncId, IfElse, Module, Stmt, UnaryOp, Var, Whole};
use crate::link::{ModIdx, Program, Resolved};
use crate::span::{Place, Span};
use crate::sym::Sym;
use crate::torch;

/// The maximum number of wrappers around the functions that return the group's size or existence.
const MAX_HANDS: u32 = 3;

/// A query about the group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Asked {
    /// The number of processes in it.
    Size,
    /// Whether it exists.
    There,
}

/// Whether the project creates groups, and all of them with NCCL.
pub fn all_nccl(program: &Program, files: &[ModIdx]) -> bool {
    let (maker, other) = (Sym::new(torch::GROUP_MAKER), Sym::new(torch::GPU_GROUP_MAKER));
    let makes = |m: ModIdx, call: Call<'_>| -> Option<bool> {
        let ir = &program.get(m).ir;
        let name = ir.last_name(call.func)?;
        if name == maker {
            return Some(is_nccl(ir, call));
        }
        let on_gpus = name == other
            && matches!(program.resolve_expr(m, call.func), Some(Resolved::External(path))
                if torch::GPU_GROUPS.contains(&path.as_str()));
        on_gpus.then_some(true)
    };
    let calls = files.iter().flat_map(|&m| program.get(m).ir.calls().filter_map(move |call| makes(m, call)));
    let made: Vec<bool> = calls.collect();
    !made.is_empty() && made.into_iter().all(|nccl| nccl)
}

/// Whether the project creates groups, and uses NCCL for them wherever CUDA is available. A Gloo group that the same function creates as
/// an alternative is for machines without CUDA: `"nccl" if torch.cuda.is_available() else "gloo"`.
pub fn nccl_where_cuda_is(program: &Program, files: &[ModIdx]) -> bool {
    let mut makers: FxHashMap<(ModIdx, FuncId), bool> = FxHashMap::default();
    for &m in files {
        let ir = &program.get(m).ir;
        for call in ir.calls().filter(|c| ir.last_name(c.func) == Some(Sym::new(torch::GROUP_MAKER))) {
            let Some(nccl) = may_be_nccl(ir, call) else { return false };
            *makers.entry((m, ir.function_around(call.func))).or_default() |= nccl;
        }
    }
    !makers.is_empty() && makers.values().all(|&nccl| nccl)
}

/// Whether NCCL is one of the back ends that this call may name. `None` if not all of them are literals.
fn may_be_nccl(ir: &Module, call: Call<'_>) -> Option<bool> {
    let backend = crate::flow::query::call_sites::argument(call, 0, Sym::new("backend"))?;
    let Expr::Var(Var::Local(slot)) = ir.expr(backend) else { return names_nccl(ir, backend) };
    let function = ir.function(ir.function_around(call.func));
    if function.params.iter().any(|p| p.slot == slot) {
        return None;
    }
    let body = ir.stmts_of(function);
    let given = ir.stmts[body].iter().filter_map(|s| match *s {
        Stmt::Assign { targets, value } if ir.list(targets).iter().any(|&t| ir.asks_about(backend, t)) => {
            Some(names_nccl(ir, value))
        }
        _ => None,
    });
    given.reduce(|a, b| Some(a? | b?))?
}

/// Whether NCCL is among the possible values: `"nccl"`, `"gloo"`, or a conditional expression.
fn names_nccl(ir: &Module, e: ExprId) -> Option<bool> {
    match ir.expr(e) {
        Expr::Str(s) if torch::is_nccl(s.as_str()) => Some(true),
        Expr::Str(s) if s.as_str().eq_ignore_ascii_case("gloo") => Some(false),
        Expr::IfElse(id) => {
            let IfElse { then, orelse, .. } = ir.if_else(id);
            Some(names_nccl(ir, then)? | names_nccl(ir, orelse)?)
        }
        _ => None,
    }
}

/// `backend="nccl"`, or a variable that the same function assigns that value.
fn is_nccl(ir: &Module, call: Call<'_>) -> bool {
    let nccl = |e: ExprId| match ir.expr(e) {
        Expr::Str(s) => torch::starts_nccl(s.as_str()),
        // The alternative only runs after a GPU has been selected.
        Expr::IfElse(id) => is_nccl_where_there(ir, ir.if_else(id)) && chooses_before(ir, call.func),
        _ => false,
    };
    let Some(backend) = crate::flow::query::call_sites::argument(call, 0, Sym::new("backend")) else {
        return false;
    };
    let set = |value: ExprId, target: ExprId| nccl(value) && ir.asks_about(backend, target);
    nccl(backend)
        || matches!(ir.expr(backend), Expr::Attr { .. } | Expr::Var(Var::Local(_)))
            && ir.stmts[ir.stmts_of(ir.function(ir.function_around(call.func)))].iter().any(
                |s| matches!(*s, Stmt::Assign { targets, value } if ir.list(targets).iter().any(|&t| set(value, t))),
            )
}

/// `"nccl" if dist.is_nccl_available() else "gloo"`
fn is_nccl_where_there(ir: &Module, choice: IfElse) -> bool {
    let asks = match ir.expr(choice.test) {
        Expr::Call(id) => ir.last_name(ir.call(id).func).is_some_and(|n| n.as_str() == "is_nccl_available"),
        _ => false,
    };
    asks && matches!(ir.expr(choice.then), Expr::Str(s) if torch::is_nccl(s.as_str()))
}

/// The code that only processes of a group reach.
#[derive(Debug)]
pub struct Grouped(Context);

impl Grouped {
    /// Solves the query as far as these places need it.
    pub fn of(program: &Program, graph: &CallGraph, places: impl Iterator<Item = Place>) -> Self {
        let grouped = |mention: &Mention| is_grouped(program, mention.module, mention.span(program));
        Self(Context::after(program, graph, places.filter_map(|place| node_at(program, place)), &grouped))
    }

    /// Whether only processes of a group reach the place.
    pub fn contains(&self, program: &Program, place: Place) -> bool {
        let Some(m) = program.module_of(place.file) else { return false };
        is_grouped(program, m, place.span) || node_at(program, place).is_some_and(|node| self.0.holds(node))
    }
}

/// Whether the tests around a place in a function let only processes of a group reach it.
fn is_grouped(program: &Program, module: ModIdx, at: Span) -> bool {
    let group = Group { program, module };
    conditions(group.ir(), at).into_iter().any(|(test, outcome)| group.joined(test, outcome))
}

/// The analysis of one file.
struct Group<'a> {
    program: &'a Program,
    module: ModIdx,
}

impl Group<'_> {
    fn ir(&self) -> &Module {
        &self.program.get(self.module).ir
    }

    /// Whether this outcome of the test implies a group.
    fn joined(&self, test: ExprId, truth: bool) -> bool {
        let ir = self.ir();
        match ir.expr(test) {
            Expr::Unary { op: UnaryOp::Not, operand } => self.joined(operand, !truth),
            Expr::And(list) if truth => ir.list(list).iter().any(|&part| self.joined(part, true)),
            Expr::Or(list) if !truth => ir.list(list).iter().any(|&part| self.joined(part, false)),
            Expr::Compare { left, op, right } => {
                let several = match (op, ir.expr(right)) {
                    (CmpOp::Gt | CmpOp::NotEq, Expr::Int(Whole(1))) | (CmpOp::GtE, Expr::Int(Whole(2))) => {
                        true
                    }
                    (CmpOp::Eq | CmpOp::LtE, Expr::Int(Whole(1))) | (CmpOp::Lt, Expr::Int(Whole(2))) => false,
                    _ => return false,
                };
                several == truth && self.tells(left) == Some(Asked::Size)
            }
            _ => truth && self.tells(test) == Some(Asked::There),
        }
    }

    /// The query about the group that an expression answers.
    fn tells(&self, e: ExprId) -> Option<Asked> {
        let ir = self.ir();
        match ir.expr(e) {
            Expr::Call(id) => told_by(self.program, self.module, ir.call(id).func, MAX_HANDS),
            // `world_size = get_world_size()`, and nothing else.
            Expr::Var(var @ Var::Local(_)) => {
                let function = ir.function(ir.function_around(e));
                let mut given = ir.stmts[ir.stmts_of(function)].iter().filter_map(|s| match *s {
                    Stmt::Assign { targets, value } if ir.list(targets).iter().any(|&t| ir.binds(t, var)) => {
                        Some(value)
                    }
                    _ => None,
                });
                match (given.next(), given.next()) {
                    (Some(value), None) if matches!(ir.expr(value), Expr::Call(_)) => self.tells(value),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// The query about the group that a function answers: PyTorch's own functions, and wrappers in the project.
fn told_by(program: &Program, m: ModIdx, callee: ExprId, hands: u32) -> Option<Asked> {
    match program.resolve_expr(m, callee)? {
        Resolved::External(path) => match torch::canonical(path).as_str() {
            "torch.distributed.get_world_size" => Some(Asked::Size),
            "torch.distributed.is_initialized" => Some(Asked::There),
            _ => None,
        },
        Resolved::Function(m, f) => {
            let hands = hands.checked_sub(1)?;
            let ir = &program.get(m).ir;
            let mut told = None;
            // Without a group, a wrapper returns 0, 1 or a constant truth value.
            for s in &ir.stmts[ir.stmts_of(ir.function(f))] {
                let Stmt::Return(Some(value)) = *s else { continue };
                match ir.expr(value) {
                    Expr::Int(Whole(0 | 1)) | Expr::True | Expr::False => {}
                    _ => told = Some(asked_in(program, m, value, hands)?),
                }
            }
            told.or_else(|| is_told(program, m, f, hands))
        }
        _ => None,
    }
}

/// The query that the calls in an expression answer: `dist.is_available() and dist.is_initialized()`.
fn asked_in(program: &Program, m: ModIdx, e: ExprId, hands: u32) -> Option<Asked> {
    let ir = &program.get(m).ir;
    match ir.expr(e) {
        Expr::Call(id) => told_by(program, m, ir.call(id).func, hands),
        Expr::And(list) => ir.list(list).iter().find_map(|&part| asked_in(program, m, part, hands)),
        _ => None,
    }
}

/// `if not dist.is_initialized(): return False`, and `return True` at the end.
fn is_told(program: &Program, m: ModIdx, f: FuncId, hands: u32) -> Option<Asked> {
    let ir = &program.get(m).ir;
    let body = ir.block(ir.function(f).body);
    let ends =
        matches!(body.last().map(|&s| ir.stmt(s)), Some(&Stmt::Return(Some(e))) if ir.expr(e) == Expr::True);
    let asks = body.iter().any(|&s| match *ir.stmt(s) {
        Stmt::If { test, .. } => match ir.expr(test) {
            Expr::Unary { op: UnaryOp::Not, operand } => {
                asked_in(program, m, operand, hands) == Some(Asked::There)
            }
            _ => false,
        },
        _ => false,
    });
    (ends && asks).then_some(Asked::There)
}
