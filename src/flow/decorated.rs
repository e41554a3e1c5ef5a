//! Functions that run only where their decorators let them: `@pytest.mark.skipif(not torch.cuda.is_available(), …)`, `@require_gpu`.
//!
//! They ask about the machine before they begin, as a function does that asks in its first line. What they hand over to be
//! called, in a process of its own say, is called by them.

use rustc_hash::FxHashMap;

use super::found::{Node, number};
use super::host_side::tables;
use super::questions::asks;
use super::scan::Scan;
use crate::ir::{Expr, ExprId, ExprList, FuncId, FuncKind, Module, Slot, Stmt, Var};
use crate::link::{Binding, ClassKey};
use crate::sym::Sym;

/// How the names of decorators begin that let a function run only on some machines.
const CONDITIONS: &[&str] = &["skip", "require", "only_"];

impl Scan<'_> {
    /// Notes the functions that ask by their decorators, and what they hand over.
    pub(super) fn decorated(&mut self) {
        let ir = self.ir;
        let mut guarded: Vec<FuncId> = Vec::new();
        for (n, f) in ir.functions.iter().enumerate() {
            if f.kind == FuncKind::Function && self.decide(f.decorators) {
                guarded.push(FuncId(number(n)));
            }
        }
        for class in &ir.classes {
            if self.decide(class.decorators) {
                guarded.extend(class.methods.iter().map(|&(_, f)| f));
            }
        }
        // Few files have any.
        if guarded.is_empty() {
            return;
        }
        self.found.asking.extend(&guarded);
        for call in ir.calls() {
            let owner = self.owner(call.func);
            if !self.is_in(owner, &guarded) {
                continue;
            }
            for arg in call.args {
                if let Some(f) = self.own_function(owner, arg.value) {
                    self.edge(owner, ir.span(arg.value), Node::Function(self.module, f));
                    self.found.handed.insert(f);
                }
            }
        }
        self.tabled(&guarded);
    }

    /// The functions in tables at the top of the file that nobody reads but these: `@parametrize("case", CASES)`.
    fn tabled(&mut self, guarded: &[FuncId]) {
        let (ir, body) = (self.ir, FuncId(0));
        let held: Vec<(FuncId, Slot)> = tables(ir, self.module)
            .into_iter()
            .filter_map(|(e, (_, table))| Some((self.own_function(body, e)?, table)))
            .collect();
        if held.is_empty() {
            return;
        }
        let decorates = |e: ExprId| {
            let decorators = guarded.iter().flat_map(|&f| ir.list(ir.function(f).decorators));
            decorators.into_iter().any(|&d| ir.span(d).contains(ir.span(e)))
        };
        let reads = |slot: Slot| {
            let numbers = (0..ir.exprs.len()).map(|n| ExprId(number(n)));
            let all = numbers.filter(move |&e| match ir.expr(e) {
                Expr::Var(Var::Global(s)) => s == slot,
                Expr::Var(Var::Local(s)) => s == slot && ir.function_around(e) == body,
                _ => false,
            });
            all.filter(|&e| !is_bound_at(ir, e)).collect::<Vec<ExprId>>()
        };
        let mut known: FxHashMap<Slot, bool> = FxHashMap::default();
        for (f, table) in held {
            let only_here = *known.entry(table).or_insert_with(|| {
                let reads = reads(table);
                !reads.is_empty()
                    && reads.into_iter().all(|e| decorates(e) || self.is_in(self.owner(e), guarded))
            });
            if only_here {
                self.found.handed.insert(f);
            }
        }
    }

    /// Does one of the decorators decide by the machine?
    fn decide(&self, decorators: ExprList) -> bool {
        self.ir.list(decorators).iter().any(|&d| {
            self.asks_in(d)
                || match self.ir.expr(d) {
                    Expr::Var(Var::Local(slot) | Var::Global(slot)) => {
                        matches!(self.program.get(self.module).bindings.get(usize::from(slot)),
                            Some(&Binding::Value(e)) if self.asks_in(e))
                    }
                    _ => false,
                }
        })
    }

    /// Is there a question about the machine in the expression, or a name that begins like a condition?
    fn asks_in(&self, e: ExprId) -> bool {
        let body = &self.ir.functions[0].slots;
        let name = |n: usize| match self.ir.exprs[n] {
            Expr::Attr { name, .. } | Expr::Var(Var::Unbound(name)) => Some(name),
            Expr::Var(Var::Local(slot) | Var::Global(slot)) => body.get(usize::from(slot)).copied(),
            _ => None,
        };
        let tells = |name: Sym| {
            asks(name) || CONDITIONS.iter().any(|c| name.as_str().starts_with(c)) && name.as_str() != "skip"
        };
        self.ir.exprs_in(e).filter_map(name).any(tells)
    }

    /// Is the function one of these, or in one?
    fn is_in(&self, mut f: FuncId, those: &[FuncId]) -> bool {
        loop {
            if those.contains(&f) {
                return true;
            }
            match self.ir.function(f).parent {
                Some(parent) => f = parent,
                None => return false,
            }
        }
    }

    /// The function of this file that is named here: `work`, `self.work`, `cls.work`.
    fn own_function(&self, mut owner: FuncId, e: ExprId) -> Option<FuncId> {
        let program = self.program;
        let found = match self.ir.expr(e) {
            Expr::Var(Var::Local(_)) if owner != FuncId(0) => return None,
            Expr::Var(Var::Global(slot) | Var::Local(slot)) => {
                match program.get(self.module).bindings.get(usize::from(slot)) {
                    Some(&Binding::Def(f)) => return Some(f),
                    _ => return None,
                }
            }
            Expr::Attr { base, name } => match self.ir.expr(base) {
                Expr::Var(Var::Local(slot)) => {
                    let class = loop {
                        let f = self.ir.function(owner);
                        match (f.class.filter(|_| f.kind == FuncKind::Function), f.parent) {
                            (Some(class), _) => break class,
                            (None, Some(parent)) => owner = parent,
                            (None, None) => return None,
                        }
                    };
                    let receiver = self.ir.function(owner).params.first()?;
                    let key = ClassKey { module: self.module, class };
                    (receiver.slot == slot).then(|| program.find_method(key, name)).flatten()
                }
                _ => None,
            },
            _ => None,
        };
        found.and_then(|(m, f)| (m == self.module).then_some(f))
    }
}

/// Is the expression what a statement of the file's body sets?
fn is_bound_at(ir: &Module, e: ExprId) -> bool {
    ir.block(ir.function(FuncId(0)).body).iter().any(|&s| match *ir.stmt(s) {
        Stmt::Assign { targets, .. } => ir.list(targets).contains(&e),
        Stmt::AnnAssign { target, .. } => target == e,
        _ => false,
    })
}
