//! Which functions ask about the machine, so that what they call may count on an answer.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::found::number;
use super::scan::Scan;
use crate::ir::{Expr, ExprId, FuncId, Module, Stmt, Var};
use crate::link::{ModIdx, Resolved};
use crate::sym::{Answers, Sym};
use crate::world::Backend;

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
            if owner == FuncId(0) || self.found.asking.contains(&owner) {
                continue;
            }
            match self.answer(self.module, test, MAX_STEPS) {
                Some(About::Cuda) => self.found.asking.insert(owner),
                Some(About::Another) => self.found.asking_of_others.insert(owner),
                None => continue,
            };
        }
    }

    /// What of the machine a variable of a file or a function that the expression names stands for.
    fn answer(&self, m: ModIdx, e: ExprId, steps: u32) -> Option<About> {
        let steps = steps.checked_sub(1)?;
        let program = self.program;
        let ir = &program.get(m).ir;
        let parts = ir.exprs_in(e).map(|n| ExprId(number(n)));
        let named = parts.filter(|&part| {
            matches!(ir.expr(part), Expr::Var(_) | Expr::Attr { .. }) && !program.begins_in_function(m, part)
        });
        let about = named.filter_map(|part| match program.resolve_expr(m, part)? {
            Resolved::Variable(..) => {
                let (m, value) = program.bound_to(m, part)?;
                let ir = &program.get(m).ir;
                asked_in(ir, ir.exprs_in(value)).or_else(|| self.answer(m, value, steps))
            }
            Resolved::Function(m, f) => {
                let ir = &program.get(m).ir;
                asked_in(ir, ir.exprs_of(ir.function(f)))
            }
            _ => None,
        });
        about.max()
    }

    /// Notes the function around the expression if that asks about the machine: by name, or by comparing something with the
    /// name of a device.
    pub(super) fn question(&mut self, e: ExprId, expr: Expr, asking: &Asking) {
        let asks = match expr {
            Expr::Attr { name, .. } => asking.attributes.contains(&name),
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
            attributes: self.ir.attributes.iter().copied().filter(|&name| asks(name)).collect(),
        }
    }
}

/// What a question about the machine is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum About {
    /// Accelerators, and none of them is CUDA.
    Another,
    /// CUDA, or any accelerator.
    Cuda,
}

/// What these expressions ask.
fn asked_in(ir: &Module, range: Range<usize>) -> Option<About> {
    let names = || {
        ir.exprs[range.clone()]
            .iter()
            .filter_map(|e| if let Expr::Attr { name, .. } = *e { Some(name) } else { None })
    };
    if !names().any(asks) {
        return None;
    }
    let cuda = names().any(|name| name.as_str() == "cuda");
    let another = names().any(|name| Backend::from_name(name.as_str()).is_some());
    Some(if another && !cuda { About::Another } else { About::Cuda })
}

/// Which names of a file ask about the machine.
pub(super) struct Asking {
    /// That of a variable.
    variables: bool,
    /// These of attributes; mostly none.
    attributes: Vec<Sym>,
}
