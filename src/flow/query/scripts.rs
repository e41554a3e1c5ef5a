//! Files that are run as scripts.

use crate::flow::query::relevance::import_effects::asks_for_main;
use crate::ir::{Call, Module, Stmt};
use crate::span::Span;

/// Is it run itself: `if __name__ == "__main__":`?
pub(crate) fn is_script(ir: &Module) -> bool {
    ir.stmts.iter().any(|s| matches!(*s, Stmt::If { test, .. } if asks_for_main(ir, test)))
}

/// Is the place in the demo of a file that is there to be imported: behind `if __name__ == "__main__":` of a file with a module, where
/// nothing is read, looped over or trained?
pub fn is_in_demo(ir: &Module, at: Span) -> bool {
    let defines = ir.functions.iter().any(|f| f.class.is_some() && f.name.as_str() == "forward");
    defines
        && ir.stmts.iter().zip(&ir.stmt_spans).any(|(s, &span)| {
            matches!(*s, Stmt::If { test, .. } if span.contains(at) && asks_for_main(ir, test))
                && is_demo(ir, span)
        })
}

/// What programs call, and demos do not.
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

/// Is it a program, and no file of tests, whatever it is called? It is run itself, and has none.
pub fn is_program(ir: &Module) -> bool {
    is_script(ir)
        && !ir.classes.iter().any(|class| class.name.as_str().starts_with("Test"))
        && !ir.functions.iter().any(|function| function.name.as_str().starts_with("test_"))
}
