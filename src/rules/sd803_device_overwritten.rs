//! SD803 device-overwritten: one choice of a device after the other, where the second starts over.

use crate::finding::{Code, Finding, Label};
use crate::ir::{Block, Expr, ExprId, IfElse, Stmt, StmtId, Var};
use crate::link::Resolved;
use crate::rules::check::{Check, Context};
use crate::rules::shared::file::File;
use crate::span::{Place, Span};
use crate::sym::{Answers, Sym};
use crate::torch::{self, Without};
use crate::world::World;

pub(super) const CODE: Code = Code(803);
pub(super) struct Rule;

impl Check for Rule {
    fn on_file(&mut self, cx: &Context<'_>) -> Vec<Finding> {
        overwritten(cx)
    }
}

/// Back ends for which programs have flags.
const BACK_ENDS: &[&str] = &["cuda", "mps", "xpu", "npu", "hpu", "mlu", "musa"];

thread_local! {
    static CUDA: Answers = const { Answers::new() };
}

/// The kind of device that a text names: what stands before the colon.
fn kind(text: &str) -> &str {
    text.split_once(':').map_or(text, |(kind, _)| kind)
}

/// SD803 device-overwritten
fn overwritten(cx: &Context<'_>) -> Vec<Finding> {
    let Some(file) = File::of(cx) else { return Vec::new() };
    let mut found = Vec::new();
    // The first choice is for CUDA.
    if !file.ir.strings.iter().any(|&text| CUDA.with(|known| known.ask(text, |text| kind(text) == "cuda"))) {
        return found;
    }
    file.in_blocks(&mut |stmts| {
        let mut before: Option<(StmtId, Choice)> = None;
        // What is printed in between changes nothing.
        for &s in stmts.iter().filter(|&&s| !matches!(file.ir.stmt(s), Stmt::Expr(_))) {
            let choice = file.choice(s);
            if let (Some((first, a)), Some(b)) = (&before, &choice)
                && a.target == b.target
                && a.back_end != b.back_end
                && a.back_end == "cuda"
            {
                found.push(file.fallback_finding(a, b, file.ir.stmt_span(*first), file.ir.stmt_span(s)));
            }
            before = choice.or_else(|| file.half_choice(s)).map(|choice| (s, choice));
        }
    });
    found
}

/// A variable, or an attribute of what one holds.
type Target = (Var, Option<Sym>);

/// `device = X if X.is_available() else "cpu"`, in either form.
struct Choice {
    target: Target,
    back_end: &'static str,
}

impl File<'_> {
    fn in_blocks(&self, f: &mut dyn FnMut(&[StmtId])) {
        for function in &self.ir.functions {
            self.below(function.body, f);
        }
    }

    fn below(&self, block: Block, f: &mut dyn FnMut(&[StmtId])) {
        let stmts = self.ir.block(block);
        f(stmts);
        for &s in stmts {
            match self.ir.stmt(s) {
                Stmt::If { then, orelse, .. } => {
                    self.below(*then, f);
                    self.below(*orelse, f);
                }
                Stmt::For { body, .. } | Stmt::While { body, .. } | Stmt::With { body, .. } => {
                    self.below(*body, f)
                }
                Stmt::Try { body, .. } => self.below(*body, f),
                _ => {}
            }
        }
    }

    fn choice(&self, s: StmtId) -> Option<Choice> {
        match self.ir.stmt(s) {
            Stmt::Assign { targets, value } if self.may_choose(*value) => {
                let target = self.variable(self.ir.list(*targets))?;
                let Expr::IfElse(id) = self.ir.expr(self.inside_device(*value)) else { return None };
                let IfElse { test, then, orelse } = self.ir.if_else(id);
                let back_end = self.asked_for(test, then)?;
                (self.names(then, back_end) && self.names(orelse, "cpu"))
                    .then_some(Choice { target, back_end })
            }
            Stmt::If { test, then, orelse } => {
                let (a, x) = self.only_assignment(*then)?;
                let (b, y) = self.only_assignment(*orelse)?;
                let back_end = self.asked_for(*test, x)?;
                (a == b && self.names(x, back_end) && self.names(y, "cpu"))
                    .then_some(Choice { target: a, back_end })
            }
            _ => None,
        }
    }

    /// `if torch.cuda.is_available(): device = "cuda"`, of what was the CPU before.
    fn half_choice(&self, s: StmtId) -> Option<Choice> {
        let Stmt::If { test, then, orelse } = self.ir.stmt(s) else { return None };
        let (target, x) = self.only_assignment(*then)?;
        let back_end = self.asked_for(*test, x)?;
        (*orelse == Block::default() && self.names(x, back_end)).then_some(Choice { target, back_end })
    }

    fn variable(&self, targets: &[ExprId]) -> Option<Target> {
        match targets {
            [t] => match self.ir.expr(*t) {
                Expr::Var(v) => Some((v, None)),
                // `self.device`
                Expr::Attr { base, name } => match self.ir.expr(base) {
                    Expr::Var(v) => Some((v, Some(name))),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    fn only_assignment(&self, block: Block) -> Option<(Target, ExprId)> {
        let [s] = self.ir.block(block) else { return None };
        match self.ir.stmt(*s) {
            Stmt::Assign { targets, value } => Some((self.variable(self.ir.list(*targets))?, *value)),
            _ => None,
        }
    }

    /// The back end that the test asks for, or that the user's flag stands for: `"xpu" if args.xpu else …`. A test of
    /// the same variable goes on from the first choice.
    fn asked_for(&self, test: ExprId, then: ExprId) -> Option<&'static str> {
        self.available(test).or_else(|| {
            let flag = matches!(self.ir.expr(test), Expr::Attr { .. });
            flag.then(|| BACK_ENDS.iter().copied().find(|b| self.names(then, b))).flatten()
        })
    }

    /// `torch.device(x)` is about `x`.
    fn inside_device(&self, e: ExprId) -> ExprId {
        let Expr::Call(c) = self.ir.expr(e) else { return e };
        let call = self.ir.call(c);
        let [only] = call.args else { return e };
        let device = matches!(self.cx.program.resolve_expr(self.module, call.func),
            Some(Resolved::External(p)) if p.as_str() == "torch.device");
        if device { only.value } else { e }
    }

    /// Is it an expression with two outcomes, or a call that may hand one on?
    fn may_choose(&self, e: ExprId) -> bool {
        match self.ir.expr(e) {
            Expr::IfElse(_) => true,
            Expr::Call(c) => match self.ir.call(c).args {
                [only] => matches!(self.ir.expr(only.value), Expr::IfElse(_)),
                _ => false,
            },
            _ => false,
        }
    }

    /// Does the expression name a device of this kind?
    fn names(&self, e: ExprId, kind: &str) -> bool {
        match self.ir.expr(self.inside_device(e)) {
            Expr::Str(s) => kind == self::kind(s.as_str()),
            _ => false,
        }
    }

    /// The back end that a test asks for.
    fn available(&self, test: ExprId) -> Option<&'static str> {
        let Expr::Call(c) = self.ir.expr(test) else { return None };
        let Some(Resolved::External(path)) = self.cx.program.resolve_expr(self.module, self.ir.call(c).func)
        else {
            return None;
        };
        let fact = torch::call(path).and_then(|f| f.accelerator)?;
        if fact.without != Without::Availability {
            return None;
        }
        match fact.accelerator {
            torch::Accelerator::Cuda => Some("cuda"),
            torch::Accelerator::Backend(b) => Some(b.name()),
            torch::Accelerator::Any => None,
        }
    }

    fn fallback_finding(&self, a: &Choice, b: &Choice, first: Span, second: Span) -> Finding {
        let at = |span| Place { file: self.cx.file, span };
        let message = format!(
            "this choice starts over: where {} is not there the device is the CPU, whatever was chosen before",
            b.back_end.to_uppercase()
        );
        let label = Label::new(at(second), "overwrites the choice above");
        Finding::new(CODE, World::Cuda, message, label)
            .related(at(first), format!("{} is chosen here, and lost", a.back_end.to_uppercase()))
            .help("go on from the first choice: `elif`, or one expression with both checks")
    }
}
