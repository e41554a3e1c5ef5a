//! Loops that replace each element of a container: `for i in range(len(xs)): xs[i] = xs[i].to(device)`.

use crate::flow::domain::value::{ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::frame::ObjKind;
use crate::ir::{Block, Expr, ExprId, Module, Stmt, Var};
use crate::sym::Sym;

impl Interp<'_> {
    /// Records what the first round of a loop stores in a container whose elements are not kept separately.
    pub(crate) fn note_put(&mut self, target: ExprId, id: ObjId, value: Value) {
        if let Some(l) = self.here_mut().loops.last_mut()
            && !l.put.iter().any(|p| p.0 == target)
        {
            l.put.push((target, id, value));
        }
    }

    /// Handles the end of a `for`. If each round replaces one element of the container, and there is a round for each
    /// element, no old element remains.
    pub(crate) fn all_replaced(&mut self, target: ExprId, iter: ExprId, body: Block) {
        let Some(frame) = self.here().loops.last().filter(|l| !l.put.is_empty() && l.breaks.is_empty())
        else {
            return;
        };
        let ir = &self.linked().ir;
        let Some((container, index)) = gone_through(ir, target, iter) else { return };
        let replaces = |e: ExprId| match ir.expr(e) {
            Expr::Index { base, index: at } => {
                crate::flow::machine::statements::try_blocks::same(ir, base, container)
                    && crate::flow::machine::statements::try_blocks::same(ir, at, index)
            }
            _ => false,
        };
        // A statement that leaves a round early keeps some elements as they were.
        let assigned =
            ir.block(body).iter().take_while(|&&s| matches!(ir.stmt(s), Stmt::Assign { .. } | Stmt::Expr(_)));
        let whole: Vec<(ObjId, Value)> = assigned
            .filter_map(|&s| match *ir.stmt(s) {
                Stmt::Assign { targets, .. } => ir.list(targets).iter().copied().find(|&t| replaces(t)),
                _ => None,
            })
            .filter_map(|t| frame.put.iter().find(|p| p.0 == t).map(|&(_, id, value)| (id, value)))
            .collect();
        for (id, value) in whole {
            let content = self.own(id);
            let listed = matches!(self.obj(id).kind, ObjKind::List { .. } | ObjKind::Dict { .. });
            if listed && matches!(content, Value::Many(_)) {
                let content = self.many(value);
                self.set_own(id, content);
            }
        }
    }
}

/// The container whose elements the loop visits, and the variable with the position. These are `xs` and `i` of
/// `for i in range(len(xs))` and of `for i, x in enumerate(xs)`. Loops over a dict's keys or items count as well.
fn gone_through(ir: &Module, target: ExprId, iter: ExprId) -> Option<(ExprId, ExprId)> {
    let first = || match ir.expr(target) {
        Expr::Tuple(list) => ir.list(list).first().copied(),
        _ => None,
    };
    let Expr::Call(call) = ir.expr(iter) else { return Some((iter, target)) };
    let call = ir.call(call);
    match (ir.expr(call.func), call.args) {
        (Expr::Var(Var::Unbound(name)), [arg]) => match name.as_str() {
            "range" => Some((counted(ir, arg.value)?, target)),
            "enumerate" => Some((arg.value, first()?)),
            _ => None,
        },
        (Expr::Attr { base, name }, []) => match name.as_str() {
            "keys" => Some((base, target)),
            "items" => Some((base, first()?)),
            _ => None,
        },
        _ => None,
    }
}

/// The argument `xs` of `len(xs)`.
fn counted(ir: &Module, e: ExprId) -> Option<ExprId> {
    let Expr::Call(call) = ir.expr(e) else { return None };
    let call = ir.call(call);
    let [arg] = call.args else { return None };
    let is_len = matches!(ir.expr(call.func), Expr::Var(Var::Unbound(name)) if name == Sym::new("len"));
    is_len.then_some(arg.value)
}
