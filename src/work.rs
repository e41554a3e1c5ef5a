//! Counts the work of a run, in steps of the searches and of the interpreter: the same for the same files on every machine,
//! unlike time. Tests hold it against the length of a program.

use std::cell::Cell;

thread_local! {
    static SPENT: Cell<u64> = const { Cell::new(0) };
}

/// This thread has done so many steps more.
#[inline]
pub fn spend(steps: usize) {
    SPENT.with(|spent| spent.set(spent.get().saturating_add(steps as u64)));
}

/// What this thread has spent since this was asked last.
pub fn take() -> u64 {
    SPENT.replace(0)
}
