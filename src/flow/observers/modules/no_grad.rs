//! Modules that never record a graph, because all the work of `forward` is under `torch.no_grad()`.

use crate::flow::domain::diagram::{FALSE, TRUE};
use crate::flow::domain::value::{ObjId, Value};
use crate::flow::machine::Interp;
use crate::ir::{Block, Expr, ExprId, FuncId, Module, Stmt, StmtId, UnaryOp, Var};
use crate::link::ModIdx;
use crate::words::Words;

/// Context managers and decorators under which PyTorch records no graph.
const CUTS: &[&str] = &["no_grad", "inference_mode"];
/// Attributes that code reads from a part of a module without using the part's weights.
static ASKED: Words = Words::of("attributes without weights");
/// How many calls of a module's methods to follow into one another.
const MAX_DEPTH: u32 = 4;

/// A method of a module that is being searched.
struct Method<'a> {
    id: ObjId,
    ir: &'a Module,
    receiver: Option<Expr>,
    depth: u32,
}

impl Interp<'_> {
    /// Does `forward` use all parts of the module without recording a graph?
    pub(crate) fn records_nothing(&self, id: ObjId) -> bool {
        let forward =
            self.obj(id).class.and_then(|class| self.program.find_method(class, self.known.forward));
        forward.is_some_and(|(m, f)| !self.records(id, m, f, MAX_DEPTH))
    }

    fn records(&self, id: ObjId, module: ModIdx, f: FuncId, depth: u32) -> bool {
        let ir = &self.program.get(module).ir;
        let function = ir.function(f);
        if is_cut(ir, ir.list(function.decorators).iter().copied()) {
            return false;
        }
        let receiver = function.params.first().map(|p| Expr::Var(Var::Local(p.slot)));
        let method = Method { id, ir, receiver, depth };
        self.block_records(&method, function.body)
    }

    fn block_records(&self, at: &Method<'_>, block: Block) -> bool {
        let ir = at.ir;
        for &s in ir.block(block) {
            let records = match *ir.stmt(s) {
                Stmt::If { test, then, orelse } => match self.attribute_decides(at, test) {
                    Some(true) => self.block_records(at, then),
                    Some(false) => self.block_records(at, orelse),
                    None => self.block_records(at, then) || self.block_records(at, orelse),
                },
                Stmt::With { ref items, body } => {
                    !is_cut(ir, items.iter().map(|&(manager, _)| manager)) && self.block_records(at, body)
                }
                _ => self.speaks_of_parts(at, s),
            };
            if records {
                return true;
            }
            if self.leaves(at, s) {
                break;
            }
        }
        false
    }

    /// Does the function always end at or inside this statement?
    fn leaves(&self, at: &Method<'_>, s: StmtId) -> bool {
        let leaves = |block: Block| at.ir.block(block).iter().any(|&s| self.leaves(at, s));
        match *at.ir.stmt(s) {
            Stmt::Return(_) | Stmt::Raise { .. } => true,
            Stmt::With { body, .. } => leaves(body),
            Stmt::If { test, then, orelse } => match self.attribute_decides(at, test) {
                Some(true) => leaves(then),
                Some(false) => leaves(orelse),
                None => leaves(then) && leaves(orelse),
            },
            _ => false,
        }
    }

    /// The result of a test of the module's own attributes, where their values are known.
    fn attribute_decides(&self, at: &Method<'_>, test: ExprId) -> Option<bool> {
        match at.ir.expr(test) {
            Expr::Unary { op: UnaryOp::Not, operand } => {
                self.attribute_decides(at, operand).map(|truth| !truth)
            }
            Expr::Attr { base, name } if Some(at.ir.expr(base)) == at.receiver => {
                // This analysis is about modules in evaluation mode.
                if name.as_str() == "training" {
                    return Some(false);
                }
                let &(_, cell) = self.obj(at.id).attrs.iter().find(|(n, _)| *n == name)?;
                match self.store.get(cell) {
                    Value::None | Value::Bool(FALSE) => Some(false),
                    Value::Bool(TRUE) => Some(true),
                    Value::Int(n) => Some(n != 0),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Does the statement use a part of the module, or call a method that records?
    fn speaks_of_parts(&self, at: &Method<'_>, s: StmtId) -> bool {
        let (ir, span) = (at.ir, at.ir.stmt_span(s));
        if let Stmt::Assert { .. } = ir.stmt(s) {
            return false;
        }
        let inside =
            ir.exprs.iter().zip(&ir.expr_spans).enumerate().filter(|(_, (_, at))| span.contains(**at));
        // `self.encoder.device` only asks for the device.
        let asked: Vec<ExprId> = inside
            .clone()
            .filter_map(|(_, (e, _))| match *e {
                Expr::Attr { base, name } if ASKED.has(name.as_str()) => Some(base),
                _ => None,
            })
            .flat_map(|base| chain_of(ir, base))
            .collect();
        inside.map(|(n, (e, _))| (n, e)).any(|(n, e)| match *e {
            Expr::Attr { base, name } if Some(ir.expr(base)) == at.receiver => {
                if asked.iter().any(|asked| asked.0 as usize == n) {
                    return false;
                }
                let class = self.obj(at.id).class;
                match class.and_then(|class| self.program.find_method(class, name)) {
                    Some((m, f)) => at.depth == 0 || self.records(at.id, m, f, at.depth - 1),
                    None => true,
                }
            }
            Expr::Var(Var::Unbound(name)) => name.as_str() == "super",
            _ => false,
        })
    }
}

/// The expression and the bases of its attributes: `self.encoder.weight`, `self.encoder` and `self`.
fn chain_of(ir: &Module, e: ExprId) -> impl Iterator<Item = ExprId> {
    std::iter::successors(Some(e), |&e| match ir.expr(e) {
        Expr::Attr { base, .. } => Some(base),
        _ => None,
    })
}

/// Is one of these context managers or decorators `torch.no_grad()`, with or without parentheses?
fn is_cut(ir: &Module, mut managers: impl Iterator<Item = ExprId>) -> bool {
    managers.any(|e| {
        let named = match ir.expr(e) {
            Expr::Call(call) => ir.call(call).func,
            _ => e,
        };
        ir.last_name(named).is_some_and(|name| CUTS.contains(&name.as_str()))
    })
}
