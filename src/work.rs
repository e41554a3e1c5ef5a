//! Counts the work of a run, in steps of the searches and of the interpreter. Unlike time, the count is the same for the same files on
//! every machine. Tests compare it with the length of a program.

use std::cell::Cell;

thread_local! {
    static SPENT: Cell<u64> = const { Cell::new(0) };
}

/// Adds this many steps to the count of this thread.
#[inline]
pub fn spend(steps: usize) {
    SPENT.with(|spent| spent.set(spent.get().saturating_add(steps as u64)));
}

/// The steps of this thread since the last call. Resets the count.
pub fn take() -> u64 {
    SPENT.replace(0)
}
