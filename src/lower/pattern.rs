//! The cases of a `match`.

use rustpython_ast::{MatchCase, Pattern, PatternMatchSingleton, Singleton};

use super::bindings::pattern_names;
use super::lowerer::Lowerer;
use super::span;
use crate::ir::{Case, Expr, ExprList, Var};
use crate::work::spend;

/// The number of captured names up to which repetitions are removed.
const MOST_COMPARED: usize = 100;

impl<'a> Lowerer<'a> {
    /// Lowers a case.
    pub fn case(&mut self, case: &'a MatchCase) -> Case {
        let mut binds: Vec<Var> = Vec::new();
        pattern_names(&case.pattern, &mut |name| {
            let var = self.var(name);
            // The alternatives of an or-pattern capture the same names.
            let compared = binds.len() <= MOST_COMPARED;
            spend(if compared { binds.len() } else { 1 });
            if !(compared && binds.contains(&var)) {
                binds.push(var);
            }
        });
        Case {
            binds: binds.into(),
            values: self.pattern_values(&case.pattern),
            irrefutable: case.guard.is_none() && case.pattern.is_irrefutable(),
            guard: self.maybe(case.guard.as_deref()),
            body: self.block(&case.body),
        }
    }

    /// The values of a pattern that consists only of values.
    fn pattern_values(&mut self, pattern: &'a Pattern) -> ExprList {
        let alternatives = match pattern {
            Pattern::MatchOr(or) => or.patterns.as_slice(),
            one => std::slice::from_ref(one),
        };
        let plain = |p: &Pattern| matches!(p, Pattern::MatchValue(_) | Pattern::MatchSingleton(_));
        if !alternatives.iter().all(plain) {
            return ExprList::default();
        }
        let mark = self.exprs.len();
        for alternative in alternatives {
            let value = match alternative {
                Pattern::MatchValue(p) => self.expr(&p.value),
                Pattern::MatchSingleton(p) => self.add(singleton(p), span(p)),
                _ => continue,
            };
            self.exprs.push(value);
        }
        self.list_since(mark)
    }
}

fn singleton(pattern: &PatternMatchSingleton) -> Expr {
    match pattern.value {
        Singleton::None => Expr::None,
        Singleton::True => Expr::True,
        Singleton::False => Expr::False,
    }
}
