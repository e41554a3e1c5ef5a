//! Files that are run as scripts.

use crate::flow::query::relevance::import_effects::asks_for_main;
use crate::ir::{Call, Module, Stmt};
use crate::span::Span;

/// Whether the file is run as a script: `if __name__ == "__main__":`.
pub(crate) fn is_script(ir: &Module) -> bool {
    ir.stmts.iter().any(|s| matches!(*s, Stmt::If { test, .. } if asks_for_main(ir, test)))
}

/// Whether the place is in the demo of a library file: behind `if __name__ == "__main__":` of a file that defines a module. A demo reads
/// nothing, has no loops and trains nothing.
pub fn is_in_demo(ir: &Module, at: Span) -> bool {
    let defines = ir.functions.iter().any(|f| f.class.is_some() && f.name.as_str() == "forward");
    defines
        && ir.stmts.iter().zip(&ir.stmt_spans).any(|(s, &span)| {
            matches!(*s, Stmt::If { test, .. } if span.contains(at) && asks_for_main(ir, test))
                && is_demo(ir, span)
        })
}

/// Names of functions that programs call and demos do not.
const WORKS: [&str; 10] = [
    "parse_args",
    "parse_known_args",
    "backward",
    "load",
    "main",
    "train",
    "fit",
    "run",
    "step",
    "DataLoader",
];

fn is_demo(ir: &Module, whole: Span) -> bool {
    let inside = |at: Span| whole.contains(at);
    let looped = ir
        .stmts
        .iter()
        .zip(&ir.stmt_spans)
        .any(|(s, &span)| matches!(s, Stmt::For { .. } | Stmt::While { .. }) && inside(span));
    let works = |call: Call<'_>| {
        inside(ir.span(call.func))
            && ir.last_name(call.func).is_some_and(|name| WORKS.contains(&name.as_str()))
    };
    !looped && !ir.calls().any(works)
}

/// Whether the file is a program and not a test file: it is run as a script and contains no tests.
pub fn is_program(ir: &Module) -> bool {
    is_script(ir)
        && !ir.classes.iter().any(|class| class.name.as_str().starts_with("Test"))
        && !ir.functions.iter().any(|function| function.name.as_str().starts_with("test_"))
}
