//! Files that are run as scripts.

use super::import_time::asks_for_main;
use crate::ir::{Module, Stmt};

/// Is it run itself: `if __name__ == "__main__":`?
pub(super) fn is_script(ir: &Module) -> bool {
    ir.stmts.iter().any(|s| matches!(*s, Stmt::If { test, .. } if asks_for_main(ir, test)))
}

/// Is it a program, and no file of tests, whatever it is called? It is run itself, and has none.
pub fn is_program(ir: &Module) -> bool {
    is_script(ir)
        && !ir.classes.iter().any(|class| class.name.as_str().starts_with("Test"))
        && !ir.functions.iter().any(|function| function.name.as_str().starts_with("test_"))
}
