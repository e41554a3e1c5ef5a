//! Files that are run as scripts.

use crate::flow::query::relevance::file_scan::is_module_class;
use crate::flow::query::relevance::import_effects::asks_for_main;
use crate::ir::{Call, Function, Module, Stmt};
use crate::link::{ClassKey, ModIdx, Program};
use crate::span::{Place, Span};
use crate::words::Words;

/// Whether the file is run as a script: `if __name__ == "__main__":`.
pub(crate) fn is_script(ir: &Module) -> bool {
    ir.stmts.iter().any(|s| matches!(*s, Stmt::If { test, .. } if asks_for_main(ir, test)))
}

/// Whether only the demo of a library file shows what is at this place: behind `if __name__ == "__main__":` of a file that defines a
/// module. The place is in the demo, or in a method of a module that is called from there, at `from`. A demo reads nothing, has no
/// loops and trains nothing.
pub fn is_in_demo(program: &Program, place: Place, from: Place) -> bool {
    is_demo(program, place) || is_demo(program, from) && is_in_module_class(program, place)
}

fn is_demo(program: &Program, place: Place) -> bool {
    let Some(module) = program.module_of(place.file) else { return false };
    let ir = &program.get(module).ir;
    let demo = |(s, &span): (&Stmt, &Span)| {
        matches!(*s, Stmt::If { test, .. } if span.contains(place.span) && asks_for_main(ir, test))
            && does_little(ir, span)
    };
    ir.stmts.iter().zip(&ir.stmt_spans).any(demo) && defines_module(program, module)
}

/// Whether the file has a class that is a module, or that has a method `forward`.
fn defines_module(program: &Program, module: ModIdx) -> bool {
    let ir = &program.get(module).ir;
    ir.functions.iter().any(|f: &Function| {
        let module = |class| is_module_class(program, ClassKey { module, class });
        f.class.is_some_and(|class| f.name.as_str() == "forward" || module(class))
    })
}

/// Whether the place is in a method of a module.
fn is_in_module_class(program: &Program, place: Place) -> bool {
    let Some(module) = program.module_of(place.file) else { return false };
    let ir = &program.get(module).ir;
    let mut around = ir.functions_around(place.span).filter_map(|f| ir.function(f).class);
    around.any(|class| is_module_class(program, ClassKey { module, class }))
}

/// Names of functions that programs call and demos do not.
static WORKS: Words = Words::of("do work in a program");

/// Whether the branch has no loop and calls nothing that programs call.
fn does_little(ir: &Module, whole: Span) -> bool {
    let inside = |at: Span| whole.contains(at);
    let looped = ir
        .stmts
        .iter()
        .zip(&ir.stmt_spans)
        .any(|(s, &span)| matches!(s, Stmt::For { .. } | Stmt::While { .. }) && inside(span));
    let works = |call: Call<'_>| {
        inside(ir.span(call.func)) && ir.last_name(call.func).is_some_and(|name| WORKS.has(name.as_str()))
    };
    !looped && !ir.calls().any(works)
}

/// Whether the file is a program and not a test file: it is run as a script and contains no tests.
pub fn is_program(ir: &Module) -> bool {
    is_script(ir)
        && !ir.classes.iter().any(|class| class.name.as_str().starts_with("Test"))
        && !ir.functions.iter().any(|function| function.name.as_str().starts_with("test_"))
}
