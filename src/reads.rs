//! Records which files of the program a computation reads, so that its result can be kept until one of them changes.
//!
//! Recording is per thread. It costs nothing worth mentioning while nothing records.

use std::cell::{Cell, RefCell};
use std::sync::OnceLock;

/// The files that a computation has read.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Reads {
    /// One bit for each file, by its index in the program.
    bits: Vec<u64>,
    /// Whether it has read every file of the program.
    all: bool,
}

impl Reads {
    fn insert(&mut self, file: u32) {
        let at = file as usize / 64;
        if at >= self.bits.len() {
            self.bits.resize(at + 1, 0);
        }
        self.bits[at] |= 1 << (file % 64);
    }

    fn extend(&mut self, other: &Self) {
        self.all |= other.all;
        if self.bits.len() < other.bits.len() {
            self.bits.resize(other.bits.len(), 0);
        }
        self.bits.iter_mut().zip(&other.bits).for_each(|(own, more)| *own |= more);
    }

    /// Whether it has read every file of the program, so that an additional file also matters.
    pub const fn is_all(&self) -> bool {
        self.all
    }

    /// The indices of the files that were read one by one, in order.
    pub fn files(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.bits).flat_map(|(n, &bits)| {
            (0..u64::BITS).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| n * u64::BITS + bit)
        })
    }
}

/// No file has this index.
const NONE: u32 = u32::MAX;

thread_local! {
    static RECORDING: Cell<bool> = const { Cell::new(false) };
    /// The file that was read last: code often reads one file many times in a row.
    static LAST: Cell<u32> = const { Cell::new(NONE) };
    static READS: RefCell<Reads> = const { RefCell::new(Reads { bits: Vec::new(), all: false }) };
}

/// Whether this thread records reads.
pub fn is_recording() -> bool {
    RECORDING.get()
}

/// Says that the current computation reads the file with this index.
#[inline]
pub fn note(file: u32) {
    if RECORDING.get() && LAST.replace(file) != file {
        READS.with_borrow_mut(|reads| reads.insert(file));
    }
}

/// Says that the current computation reads every file of the program.
pub fn note_all() {
    if RECORDING.get() {
        READS.with_borrow_mut(|reads| reads.all = true);
    }
}

/// Says that the current computation uses a result that was made from these files.
pub fn note_these(files: &Reads) {
    if RECORDING.get() {
        READS.with_borrow_mut(|reads| reads.extend(files));
    }
}

/// The state of this thread before a recording, restored when it ends, also by a panic.
struct Outer {
    recording: bool,
    reads: Reads,
}

impl Drop for Outer {
    fn drop(&mut self) {
        let inner = READS.replace(std::mem::take(&mut self.reads));
        RECORDING.set(self.recording);
        LAST.set(NONE);
        // What the inner computation has read, the outer one has read, too.
        note_these(&inner);
    }
}

/// Does the work. Returns its result and the files that it has read.
pub fn recorded<T>(work: impl FnOnce() -> T) -> (T, Reads) {
    let outer = Outer { recording: RECORDING.replace(true), reads: READS.take() };
    LAST.set(NONE);
    let result = work();
    let reads = READS.with_borrow(Clone::clone);
    drop(outer);
    (result, reads)
}

/// A value that is computed once and used by several computations. Each of them has read what it was made from.
#[derive(Debug)]
pub struct Shared<T>(OnceLock<(T, Reads)>);

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<T> Shared<T> {
    /// The value. `make` computes it when it is first needed.
    pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        let (value, reads) = self.0.get_or_init(|| recorded(make));
        note_these(reads);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::{Shared, is_recording, note, note_all, recorded};

    #[test]
    fn a_recording_has_what_was_read_within_it() {
        note(1);
        let ((), reads) = recorded(|| [70, 2, 2, 70].into_iter().for_each(note));
        assert_eq!(reads.files().collect::<Vec<_>>(), [2, 70]);
        assert!(!reads.is_all() && !is_recording());
        let ((), reads) = recorded(note_all);
        assert!(reads.is_all());
    }

    #[test]
    fn the_outer_recording_has_what_the_inner_one_read() {
        let ((), outer) = recorded(|| {
            note(1);
            let ((), inner) = recorded(|| note(2));
            assert_eq!(inner.files().collect::<Vec<_>>(), [2]);
            note(1);
            note(3);
        });
        assert_eq!(outer.files().collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn a_panic_ends_a_recording() {
        let caught = std::panic::catch_unwind(|| recorded(|| std::panic::resume_unwind(Box::new(()))));
        assert!(caught.is_err() && !is_recording());
    }

    #[test]
    fn who_uses_a_shared_value_has_read_what_it_was_made_from() {
        let shared = Shared::default();
        for _ in 0..2 {
            let ((), reads) = recorded(|| {
                shared.get_or_init(|| note(5));
            });
            assert_eq!(reads.files().collect::<Vec<_>>(), [5]);
        }
    }
}
