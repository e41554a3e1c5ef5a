//! Which functions ask about the machine, so that what they call may count on an answer.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::found::number;
use super::scan::Scan;
use crate::ir::{Expr, ExprId, FuncId, Stmt, Var};
use crate::link::{ModIdx, Resolved};
use crate::sym::{Answers, Sym};

/// Words in names that stand for a question about the machine, or for its answer.
const ASKING: &[&str] = &["available", "gpu", "device_count", "device_type", "accelerator", "cuda_", "_cuda"];

/// How far an answer is followed through variables.
const MAX_STEPS: u32 = 3;

thread_local! {
    static ASKS: Answers = const { Answers::new() };
}

/// They, looked for all at once: every name of every file is asked about.
static WORDS: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(ASKING).ok());

pub(super) fn asks(name: Sym) -> bool {
    ASKS.with(|known| known.ask(name, |name| WORDS.as_ref().is_some_and(|words| words.is_match(name))))
}

impl Scan<'_> {
    /// Notes the functions that go by an answer that was asked for elsewhere: `if has_gpu:` of a variable of a file, `if on_npu():` of
    /// a function.
    pub(super) fn answers(&mut self) {
        let ir = self.ir;
        let tests = ir.stmts.iter().filter_map(|s| match *s {
            Stmt::If { test, .. } | Stmt::Assert { test, .. } => Some(test),
            _ => None,
        });
        for test in tests {
            let owner = self.owner(test);
            if owner != FuncId(0)
                && !self.found.asking.contains(&owner)
                && self.goes_by_answer(self.module, test, MAX_STEPS)
            {
                self.found.asking.insert(owner);
            }
        }
    }

    /// Does a variable of a file or a function that the expression names stand for an answer about the machine?
    fn goes_by_answer(&self, m: ModIdx, e: ExprId, steps: u32) -> bool {
        let Some(steps) = steps.checked_sub(1) else { return false };
        let program = self.program;
        let ir = &program.get(m).ir;
        let asked = |m: ModIdx, range: Range<usize>| {
            let ir = &program.get(m).ir;
            range.into_iter().any(|n| matches!(ir.exprs[n], Expr::Attr { name, .. } if asks(name)))
        };
        ir.exprs_in(e).map(|n| ExprId(number(n))).any(|part| match ir.expr(part) {
            Expr::Var(Var::Global(_) | Var::Local(_)) | Expr::Attr { .. } => {
                match program.resolve_expr(m, part) {
                    Some(Resolved::Variable(..)) => program.bound_to(m, part).is_some_and(|(m, value)| {
                        asked(m, program.get(m).ir.exprs_in(value)) || self.goes_by_answer(m, value, steps)
                    }),
                    Some(Resolved::Function(m, f)) => {
                        let ir = &program.get(m).ir;
                        asked(m, ir.exprs_of(ir.function(f)))
                    }
                    _ => false,
                }
            }
            _ => false,
        })
    }

    /// Notes the function around the expression if that asks about the machine: by name, or by comparing something with the
    /// name of a device.
    pub(super) fn question(&mut self, e: ExprId, expr: Expr, asking: Asking) {
        let asks = match expr {
            Expr::Attr { name, .. } if asking.attributes => asks(name),
            Expr::Var(Var::Unbound(name)) => asks(name),
            Expr::Var(Var::Local(slot)) if asking.variables => {
                let owner = self.owner(e);
                let name = self.ir.function(owner).slots.get(usize::from(slot)).copied();
                name.is_some_and(asks)
            }
            Expr::Compare { left, right, .. } => [left, right]
                .into_iter()
                .any(|side| matches!(self.ir.expr(side), Expr::Str(s) if super::scan::names_place(s))),
            _ => false,
        };
        if asks {
            let owner = self.owner(e);
            self.found.asking.insert(owner);
        }
    }

    /// What need not be looked at in this file at all.
    pub(super) fn asking_names(&self) -> Asking {
        Asking {
            variables: self.ir.functions.iter().any(|f| f.slots.iter().any(|&name| asks(name))),
            attributes: self.ir.attributes.iter().any(|&name| asks(name)),
        }
    }
}

/// Which names of a file ask about the machine.
#[derive(Clone, Copy)]
pub(super) struct Asking {
    /// That of a variable.
    variables: bool,
    /// That of an attribute.
    attributes: bool,
}
