//! SD803 device-overwritten: a second choice of a device replaces the first one.

use crate::finding::{Code, Finding, Label};
use crate::ir::{Block, Expr, ExprId, IfElse, Stmt, StmtId, Var};
use crate::link::Resolved;
use crate::rules::check::{Check, Context};
use crate::rules::shared::file::File;
use crate::span::{Place, Span};
use crate::sym::{Answers, Sym};
use crate::torch::{self, Without};
use crate::words::Words;
use crate::world::World;

pub(super) const CODE: Code = Code(803);
pub(super) struct Rule;

impl Check for Rule {
    fn on_file(&mut self, cx: &Context<'_>) -> Vec<Finding> {
        overwritten(cx)
    }
}

static BACK_ENDS: Words = Words::of("back ends with a flag");

thread_local! {
    static CUDA: Answers = const { Answers::new() };
}

/// The device type in a text: the part before the colon.
fn kind(text: &str) -> &str {
    text.split_once(':').map_or(text, |(kind, _)| kind)
}

/// SD803 device-overwritten
fn overwritten(cx: &Context<'_>) -> Vec<Finding> {
    let Some(file) = File::of(cx) else { return Vec::new() };
    let mut found = Vec::new();
    // A quick check: the first choice must be for CUDA.
    if !file.ir.strings.iter().any(|&text| CUDA.with(|known| known.ask(text, |text| kind(text) == "cuda"))) {
        return found;
    }
    file.in_blocks(&mut |stmts| {
        let mut before: Option<(StmtId, Choice)> = None;
        // Expression statements between the choices, such as `print(…)`, change nothing.
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

/// A variable, or an attribute of the object in one.
type Target = (Var, Option<Sym>);

/// `device = X if X.is_available() else "cpu"`, in either form.
struct Choice {
    target: Target,
    back_end: &'static str,
    /// The range of the target in the source.
    name: Span,
    /// Whether the test is a call that checks for the back end, not a flag.
    checked: bool,
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
                let targets = self.ir.list(*targets);
                let (target, name) = (self.variable(targets)?, self.ir.span(*targets.first()?));
                let Expr::IfElse(id) = self.ir.expr(self.inside_device(*value)) else { return None };
                let IfElse { test, then, orelse } = self.ir.if_else(id);
                let (back_end, checked) = self.asked_for(test, then)?;
                (self.names(then, back_end) && self.names(orelse, "cpu")).then_some(Choice {
                    target,
                    back_end,
                    name,
                    checked,
                })
            }
            Stmt::If { test, then, orelse } => {
                let (a, x, name) = self.only_assignment(*then)?;
                let (b, y, _) = self.only_assignment(*orelse)?;
                let (back_end, checked) = self.asked_for(*test, x)?;
                (a == b && self.names(x, back_end) && self.names(y, "cpu")).then_some(Choice {
                    target: a,
                    back_end,
                    name,
                    checked,
                })
            }
            _ => None,
        }
    }

    /// `if torch.cuda.is_available(): device = "cuda"`, where the variable was the CPU before.
    fn half_choice(&self, s: StmtId) -> Option<Choice> {
        let Stmt::If { test, then, orelse } = self.ir.stmt(s) else { return None };
        let (target, x, name) = self.only_assignment(*then)?;
        let (back_end, checked) = self.asked_for(*test, x)?;
        (*orelse == Block::default() && self.names(x, back_end)).then_some(Choice {
            target,
            back_end,
            name,
            checked,
        })
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

    fn only_assignment(&self, block: Block) -> Option<(Target, ExprId, Span)> {
        let [s] = self.ir.block(block) else { return None };
        match self.ir.stmt(*s) {
            Stmt::Assign { targets, value } => {
                let targets = self.ir.list(*targets);
                Some((self.variable(targets)?, *value, self.ir.span(*targets.first()?)))
            }
            _ => None,
        }
    }

    /// The back end that the test checks for, or that the user's flag selects: `"xpu" if args.xpu else …`. Also returns whether it is a
    /// check. A test of the same variable continues the first choice.
    fn asked_for(&self, test: ExprId, then: ExprId) -> Option<(&'static str, bool)> {
        self.available(test).map(|back_end| (back_end, true)).or_else(|| {
            let flag = matches!(self.ir.expr(test), Expr::Attr { .. });
            let named = BACK_ENDS.all().iter().copied().find(|b| self.names(then, b)).filter(|_| flag);
            named.map(|back_end| (back_end, false))
        })
    }

    /// The argument of `torch.device(x)`, or the expression itself.
    fn inside_device(&self, e: ExprId) -> ExprId {
        let Expr::Call(c) = self.ir.expr(e) else { return e };
        let call = self.ir.call(c);
        let [only] = call.args else { return e };
        let device = matches!(self.cx.program.resolve_expr(self.module, call.func),
            Some(Resolved::External(p)) if p.as_str() == "torch.device");
        if device { only.value } else { e }
    }

    /// Is it an expression with two outcomes, or a call that may pass one on?
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

    /// The back end that a test checks for.
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
        let name = self.cx.sources.text(at(b.name));
        let message = format!(
            "`{name}` becomes the CPU if {} is not available, even if CUDA was chosen before",
            b.back_end.to_uppercase()
        );
        let label = Label::new(at(second), "replaces the choice above");
        let check = match b.back_end {
            "mps" => Some("torch.backends.mps.is_available()"),
            "xpu" => Some("torch.xpu.is_available()"),
            _ => None,
        };
        let help = match check.filter(|_| a.checked && b.checked) {
            Some(check) => format!(
                "replace both choices by one: `{name} = \"cuda\" if torch.cuda.is_available() else \"{}\" if {check} else \"cpu\"`",
                b.back_end
            ),
            None => "replace both choices by one, with `elif` or in one expression".to_owned(),
        };
        Finding::new(CODE, World::Cuda, message, label).related(at(first), "CUDA is chosen here").help(help)
    }
}
