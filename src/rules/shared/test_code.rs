//! Recognises test code.

use crate::rules::check::Context;
use crate::span::Place;

/// Is it test code? Tests create small objects once, load their own files, and decide the devices themselves.
pub fn in_tests(place: Place, cx: &Context<'_>) -> bool {
    let path = &cx.sources.get(place.file).path;
    crate::source::is_test(path, cx.root)
        && (crate::source::is_among_tests(path, cx.root)
            || !cx
                .program
                .module_of(place.file)
                .is_some_and(|m| crate::flow::is_program(&cx.program.get(m).ir)))
}

/// Is it in a test file that contains tests? A program that trains and tests may also be called `train_test.py`.
pub fn has_tests(place: Place, cx: &Context<'_>) -> bool {
    in_tests(place, cx) && defines(place, "test_", cx)
}

/// Is it in a test file that contains no tests? Callers of its helpers skip tests that cannot run.
pub fn helps_tests(place: Place, cx: &Context<'_>) -> bool {
    in_tests(place, cx) && !defines(place, "test", cx)
}

/// Does the file define a function whose name has this prefix?
fn defines(place: Place, name: &str, cx: &Context<'_>) -> bool {
    let named = |f: &crate::ir::Function| f.name.as_str().starts_with(name);
    cx.program.module_of(place.file).is_some_and(|m| cx.program.get(m).ir.functions.iter().any(named))
}
