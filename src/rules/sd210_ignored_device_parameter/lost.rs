//! SD210 ignored-device-parameter: a function takes a device and loses it on some machines or paths.

use super::IGNORES_CALLER;
use crate::finding::Finding;
use crate::flow::conditions;
use crate::ir::{ArgKind, Call, CmpOp, Expr, ExprId, Function, IfElse, Param, Stmt, UnaryOp, Var};
use crate::link::Resolved;
use crate::rules::shared::calls::CallAt;
use crate::rules::shared::code::quotable;
use crate::rules::shared::file::File;
use crate::span::Span;
use crate::words::Words;
use crate::world::World;

static OF_ONE_DEVICE: Words = Words::of("use the current GPU by default");

/// A function and one of its parameters.
struct Look<'a> {
    file: &'a File<'a>,
    function: &'a Function,
    own: Var,
}

/// Is the caller's device lost on some machines or paths?
pub(super) fn lost(file: &File<'_>, function: &Function, param: &Param) -> Option<Finding> {
    let look = Look { file, function, own: Var::Local(param.slot) };
    look.without_cuda().or_else(|| look.not_the_current_one()).or_else(|| look.before_it_is_chosen(param))
}

impl Look<'_> {
    fn is_own(&self, e: ExprId) -> bool {
        self.file.ir.expr(e) == Expr::Var(self.own)
    }

    fn mentions(&self, at: Span) -> bool {
        self.uses().any(|x| at.contains(x))
    }

    fn uses(&self) -> impl Iterator<Item = Span> {
        let own = Expr::Var(self.own);
        self.file.inside(self.function).filter(move |&(_, e, _)| e == own).map(|(.., at)| at)
    }

    /// The statements of the function.
    fn statements(&self) -> impl Iterator<Item = (&Stmt, Span)> {
        let ir = self.file.ir;
        let range = ir.stmts_of(self.function);
        ir.stmts[range.clone()].iter().zip(ir.stmt_spans[range].iter().copied())
    }

    /// Is the place in a branch of a test of the parameter?
    fn is_asked_around(&self, at: Span) -> bool {
        let ir = self.file.ir;
        let statements = self.statements().filter_map(|(s, span)| match *s {
            Stmt::If { test, .. } => Some((test, span)),
            _ => None,
        });
        let expressions = self.file.inside(self.function).filter_map(|(_, e, span)| match e {
            Expr::IfElse(id) => Some((ir.if_else(id).test, span)),
            _ => None,
        });
        statements.chain(expressions).any(|(test, span)| span.contains(at) && self.mentions(ir.span(test)))
    }

    fn asks_for_cuda(&self, e: ExprId) -> bool {
        let Expr::Call(call) = self.file.ir.expr(e) else { return false };
        matches!(self.file.cx.program.resolve_expr(self.file.module, self.file.ir.call(call).func),
            Some(Resolved::External(path)) if path.as_str() == "torch.cuda.is_available")
    }

    /// `device or "cuda" if torch.cuda.is_available() else "cpu"`: the `or` is only in the first branch.
    fn without_cuda(&self) -> Option<Finding> {
        let ir = self.file.ir;
        let at = self.file.inside(self.function).find_map(|(_, e, at)| {
            let Expr::IfElse(id) = e else { return None };
            let IfElse { test, then, orelse } = ir.if_else(id);
            let Expr::Or(list) = ir.expr(then) else { return None };
            let first = *ir.list(list).first()?;
            let lost = self.is_own(first)
                && self.asks_for_cuda(test)
                && self.file.chooses_device(orelse)
                && !self.mentions(ir.span(orelse));
            lost.then_some(at)
        })?;
        // If a test has found the parameter to be `None`, nothing is lost.
        if self.is_asked_around(at) {
            return None;
        }
        let name = self.name();
        let message =
            format!("without CUDA this ignores `{name}`: the `else` applies to all of `{name} or …`");
        let mut finding = self.file.parameter_finding(at, message, IGNORES_CALLER, self.function.name_span);
        finding.world = World::NoCuda;
        finding.help = Some(format!("put the choice in parentheses: `{}`", self.in_parentheses(at)));
        Some(finding)
    }

    /// `if "cuda" in device: torch.cuda.synchronize()`, in a function that does nothing else with the device.
    fn not_the_current_one(&self) -> Option<Finding> {
        let ir = self.file.ir;
        let mut uses = self.uses().peekable();
        uses.peek()?;
        let tests: Vec<Span> = self
            .statements()
            .filter_map(|(s, _)| match *s {
                Stmt::If { test, .. } => Some(ir.span(test)),
                _ => None,
            })
            .collect();
        let asked = |at: Span| tests.iter().any(|t| t.contains(at));
        let told = |at: Span| {
            self.file.inside(self.function).any(|(_, e, s)| matches!(e, Expr::Format(_)) && s.contains(at))
        };
        // A quick check: most functions do not test it.
        if !self.uses().any(asked) || !uses.all(|at| asked(at) || told(at)) {
            return None;
        }
        let (at, path) = self.file.inside(self.function).find_map(|(_, e, at)| {
            let Expr::Call(call) = e else { return None };
            let call = ir.call(call);
            match self.file.cx.program.resolve_expr(self.file.module, call.func) {
                Some(Resolved::External(path))
                    if call.args.is_empty()
                        && OF_ONE_DEVICE.has(path.as_str())
                        && !self.is_the_current_one(at) =>
                {
                    Some((at, path))
                }
                _ => None,
            }
        })?;
        let message = format!(
            "`{path}()` works on the current GPU, but `{}` takes `{}`",
            self.function.name,
            self.name()
        );
        let mut finding = self.file.parameter_finding(
            at,
            message,
            "not always the device of the caller",
            self.function.name_span,
        );
        finding.help = Some(format!("pass it on: `{path}({})`", self.name()));
        Some(finding)
    }

    /// Is it only reached with a device that means the current GPU: after `if device != "cuda": return`?
    fn is_the_current_one(&self, at: Span) -> bool {
        conditions(self.file.ir, at).into_iter().any(|(test, truth)| self.means_the_current_one(test, truth))
    }

    fn means_the_current_one(&self, test: ExprId, truth: bool) -> bool {
        let ir = self.file.ir;
        let indexless = |e: ExprId| matches!(ir.expr(e), Expr::Str(text) if !text.as_str().contains(':'));
        match ir.expr(test) {
            Expr::Compare { op: CmpOp::Eq, left, right } => truth && self.is_own(left) && indexless(right),
            Expr::Compare { op: CmpOp::NotEq, left, right } => {
                !truth && self.is_own(left) && indexless(right)
            }
            Expr::And(list) if truth => ir.list(list).iter().any(|&e| self.means_the_current_one(e, true)),
            Expr::Or(list) if !truth => ir.list(list).iter().any(|&e| self.means_the_current_one(e, false)),
            _ => false,
        }
    }

    /// `self.device = device or choose()`, followed by `module.to(device)`, which moves nothing for `None`.
    fn before_it_is_chosen(&self, param: &Param) -> Option<Finding> {
        let ir = self.file.ir;
        if !param.default.is_some_and(|d| ir.expr(d) == Expr::None) {
            return None;
        }
        let body = ir.block(self.function.body);
        let (chosen, name) = body.iter().find_map(|&s| {
            let (target, value) = match *ir.stmt(s) {
                Stmt::Assign { targets, value } => match ir.list(targets) {
                    &[target] => (target, value),
                    _ => return None,
                },
                Stmt::AnnAssign { target, value: Some(value), .. } => (target, value),
                _ => return None,
            };
            let Expr::Attr { base, name } = ir.expr(target) else { return None };
            let own = matches!(ir.expr(base), Expr::Var(Var::Local(_)));
            (own && self.falls_back(value)).then_some((ir.stmt_span(s), name))
        })?;
        let bound = self.statements().any(|(s, _)| {
            let at = |targets| ir.list(targets).iter().any(|&t| self.is_own(t));
            matches!(*s, Stmt::Assign { targets, .. } if at(targets))
        });
        let at = self.file.inside(self.function).find_map(|(_, e, at)| {
            let Expr::Call(call) = e else { return None };
            (at.start >= chosen.end && self.moves(ir.call(call)) && !self.is_asked_around(at)).then_some(at)
        })?;
        if bound {
            return None;
        }
        let message =
            format!("this moves nothing if `{}` is `None`: `self.{name}` has the chosen device", self.name());
        let label = format!("`{}` may be `None`", self.name());
        let mut finding = self.file.parameter_finding(at, message, label, self.function.name_span);
        let place = |span| crate::span::Place { file: self.file.cx.file, span };
        let code = CallAt::new(self.file.cx, place(at))
            .and_then(|call| quotable(format!("{}(self.{name})", call.callee())));
        let code = code.unwrap_or_else(|| format!(".to(self.{name})"));
        finding.help = Some(format!("move it to the chosen device: `{code}`"));
        Some(finding.related(place(chosen), "the device is chosen here"))
    }

    /// `device or other`, `device if device is not None else other`
    fn falls_back(&self, value: ExprId) -> bool {
        let ir = self.file.ir;
        let none = |test: ExprId| match ir.expr(test) {
            Expr::Compare { left, right, .. } => self.is_own(left) && ir.expr(right) == Expr::None,
            Expr::Unary { op: UnaryOp::Not, operand } => self.is_own(operand),
            _ => self.is_own(test),
        };
        match ir.expr(value) {
            Expr::Or(list) => ir.list(list).first().is_some_and(|&x| self.is_own(x)),
            Expr::IfElse(id) => {
                let IfElse { test, then, orelse } = ir.if_else(id);
                none(test) && (self.is_own(then) != self.is_own(orelse))
            }
            _ => false,
        }
    }

    /// `x.to(device)`
    fn moves(&self, call: Call<'_>) -> bool {
        let to = matches!(self.file.ir.expr(call.func), Expr::Attr { name, .. } if name.as_str() == "to");
        to && matches!(call.args, [a] if a.kind == ArgKind::Positional && self.is_own(a.value))
    }

    /// `device or (choice)` for the conditional expression at this place.
    fn in_parentheses(&self, at: Span) -> String {
        let (ir, name) = (self.file.ir, self.name());
        let text = |e: ExprId| self.file.text_of(ir.span(e));
        let code = self.file.inside(self.function).find_map(|(_, e, span)| {
            let Expr::IfElse(id) = e else { return None };
            let IfElse { test, then, orelse } = ir.if_else(id);
            let Expr::Or(list) = ir.expr(then) else { return None };
            let &[_, choice] = ir.list(list) else { return None };
            let code = format!("{name} or ({} if {} else {})", text(choice), text(test), text(orelse));
            (span == at).then(|| quotable(code))?
        });
        code.unwrap_or_else(|| format!("{name} or (… if … else …)"))
    }

    fn name(&self) -> &'static str {
        let Var::Local(slot) = self.own else { return "device" };
        self.function.slots.get(usize::from(slot)).map_or("device", |name| name.as_str())
    }
}
