//! Tables composed of new tensors: `torch.stack(torch.meshgrid(torch.arange(h), torch.arange(w)))`.

use crate::flow::machine::Interp;
use crate::flow::observers::transfers::host_creation::OF_ITSELF;
use crate::ir::{Expr, ExprId, Stmt, Var};
use crate::link::Resolved;
use crate::words::Words;

/// Functions whose result depends only on their arguments and is on the same device.
static TOGETHER: Words = Words::of("functions that compute from their arguments");

/// What an expression is composed of. A join is `max`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Made {
    /// Only numbers and strings.
    Numbers,
    /// Tensors that could have been created on any device, and possibly numbers.
    Tensors,
    /// Anything else.
    Otherwise,
}

/// The maximum depth of nested parts that are examined.
const DEEPEST: u32 = 8;

impl Interp<'_> {
    /// Whether the value is composed of tensors that could be created on the device directly, and that no other code uses.
    pub(crate) fn is_put_together(&mut self, value: ExprId) -> bool {
        matches!(self.linked().ir.expr(value), Expr::Call(_) | Expr::Binary { .. })
            && self.made_of(value, DEEPEST) == Made::Tensors
    }

    fn made_of(&mut self, e: ExprId, depth: u32) -> Made {
        let Some(depth) = depth.checked_sub(1) else { return Made::Otherwise };
        let ir = &self.linked().ir;
        match ir.expr(e) {
            Expr::Call(id) => {
                let call = ir.call(id);
                if self.fills_on_device(call) {
                    return Made::Tensors;
                }
                let of = match (self.program.resolve_expr(self.here().module, call.func), ir.expr(call.func))
                {
                    (Some(Resolved::External(path)), _) => {
                        let path = crate::torch::canonical(path);
                        TOGETHER.has(path.as_str()).then_some(Made::Numbers)
                    }
                    (None, Expr::Attr { base, name }) if OF_ITSELF.has(name.as_str()) => {
                        Some(self.made_of(base, depth))
                    }
                    _ => None,
                };
                match of {
                    Some(of) => call.args.iter().fold(of, |made, a| made.max(self.made_of(a.value, depth))),
                    None => self.number_or_not(e),
                }
            }
            Expr::Binary { left, right, .. } => self.made_of(left, depth).max(self.made_of(right, depth)),
            Expr::Unary { operand, .. } => self.made_of(operand, depth),
            Expr::Star(x) => self.made_of(x, depth),
            Expr::List(list) | Expr::Tuple(list) => {
                ir.list(list).iter().fold(Made::Numbers, |made, &x| made.max(self.made_of(x, depth)))
            }
            Expr::Index { base, index } => {
                let plain = matches!(
                    ir.expr(index),
                    Expr::Slice(_) | Expr::None | Expr::Ellipsis | Expr::Int(_) | Expr::Tuple(_)
                );
                if plain { self.made_of(base, depth) } else { self.number_or_not(e) }
            }
            Expr::Var(Var::Local(_)) => match self.only_given(e) {
                Some(value) => self.made_of(value, depth),
                None => self.number_or_not(e),
            },
            _ => self.number_or_not(e),
        }
    }

    /// The last assignment to a local variable, if the variable only names a part: each of its values is read once. If that assignment is
    /// conditional, it must use the previous value; otherwise the value that is read is not known.
    fn only_given(&self, e: ExprId) -> Option<ExprId> {
        let ir = &self.linked().ir;
        let function = ir.function(self.here().func);
        let reads = |n: &usize| ir.exprs[*n] == ir.expr(e);
        let uses = ir.exprs_of(function).filter(reads).count();
        let given = ir.stmts[ir.stmts_of(function)].iter().filter_map(|s| match *s {
            Stmt::Assign { targets, value } => match ir.list(targets) {
                [t] if ir.expr(*t) == ir.expr(e) => Some(value),
                // `rows, columns = torch.meshgrid(…)`
                [t] => match (ir.expr(*t), ir.expr(value)) {
                    (Expr::Tuple(names), Expr::Call(_)) => {
                        ir.list(names).iter().any(|&x| ir.expr(x) == ir.expr(e)).then_some(value)
                    }
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        });
        let given: Vec<ExprId> = given.collect();
        if let [value] = given[..] {
            return (uses == 2).then_some(value);
        }
        let at = ir.span(e);
        let value =
            given.iter().copied().filter(|&v| ir.span(v).end <= at.start).max_by_key(|&v| ir.span(v).end)?;
        let certain = || {
            let mut around = ir.stmts.iter().zip(&ir.stmt_spans).filter(|(s, span)| {
                !matches!(s, Stmt::Assign { .. } | Stmt::Expr(_)) && span.contains(ir.span(value))
            });
            around.all(|(_, span)| span.contains(at))
        };
        (uses == 2 * given.len() && (ir.exprs_in(value).any(|n| reads(&n)) || certain())).then_some(value)
    }

    fn number_or_not(&mut self, e: ExprId) -> Made {
        if self.is_number(e) { Made::Numbers } else { Made::Otherwise }
    }
}
