//! Memory that is given back all at once.
//!
//! A syntax tree is made of many small pieces, which live just as long as one file is lowered. To have each of them from the allocator
//! and to give it back takes longer than to go through them in between, and scatters them. So each thread has a region
//! for one tree: pieces stand in it one behind the other, and go together. What has no room there comes from the allocator.
#![allow(unsafe_code, reason = "an allocator has no other interface")]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::ptr;

/// How large a region is: room for the tree of a file of more than a megabyte. It is reserved, not used: what no file needs never
/// becomes memory.
const ROOM: usize = 16 << 20;

/// No piece needs more, and neither does the page that the region begins with.
const ALIGNMENT: usize = 4096;

thread_local! {
    // It has no destructor and is there from the beginning, so that the allocator may use it.
    static REGION: Region = const { Region::new() };
}

/// The memory of one thread's trees.
struct Region {
    /// Where it begins, once it is reserved.
    start: Cell<*mut u8>,
    /// How large it is: nothing before it is reserved.
    room: Cell<usize>,
    /// How much of it is taken.
    taken: Cell<usize>,
    /// Does what is allocated now come from here?
    open: Cell<bool>,
    /// Does it belong to a value that is there?
    lent: Cell<bool>,
    /// Did a piece of that value find no room?
    full: Cell<bool>,
}

impl Region {
    const fn new() -> Self {
        Self {
            start: Cell::new(ptr::null_mut()),
            room: Cell::new(0),
            taken: Cell::new(0),
            open: Cell::new(false),
            lent: Cell::new(false),
            full: Cell::new(false),
        }
    }

    /// The place of a piece from its beginning on, if it is one of this region's.
    fn place(&self, piece: *mut u8) -> Option<usize> {
        let place = piece.addr().wrapping_sub(self.start.get().addr());
        (place < self.room.get()).then_some(place)
    }

    /// Room for a piece; null where there is none.
    fn take(&self, layout: Layout, allocator: &impl GlobalAlloc) -> *mut u8 {
        if self.room.get() == 0 && !self.reserve(allocator) {
            return self.none();
        }
        let place = self.taken.get().next_multiple_of(layout.align());
        match place.checked_add(layout.size()) {
            Some(end) if end <= self.room.get() && layout.align() <= ALIGNMENT => {
                self.taken.set(end);
                self.start.get().wrapping_add(place)
            }
            _ => self.none(),
        }
    }

    fn none(&self) -> *mut u8 {
        self.full.set(true);
        ptr::null_mut()
    }

    fn reserve(&self, allocator: &impl GlobalAlloc) -> bool {
        let Ok(layout) = Layout::from_size_align(ROOM, ALIGNMENT) else { return false };
        // SAFETY: the size is not zero.
        let start = unsafe { allocator.alloc(layout) };
        if start.is_null() {
            return false;
        }
        self.start.set(start);
        self.room.set(ROOM);
        true
    }

    /// A piece is over. Only the last one leaves room for others.
    fn leave(&self, place: usize, size: usize) {
        if place + size == self.taken.get() {
            self.taken.set(place);
        }
    }

    /// May a piece of this size have another one, and stay where it is?
    fn resize(&self, place: usize, before: usize, now: usize) -> bool {
        let last = place + before == self.taken.get();
        if last && now <= self.room.get() - place {
            self.taken.set(place + now);
        }
        now <= before || last && now <= self.room.get() - place
    }
}

/// An allocator whose memory may come from a region instead.
pub struct Memory<A>(pub A);

// SAFETY: a piece of a region is aligned, of the size that was asked for, and no other piece's until it is given back or the region is,
// of which `together` says that nobody uses it then. All else is the inner allocator's, and goes back to it.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Memory<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let piece = REGION.with(|r| if r.open.get() { r.take(layout, &self.0) } else { ptr::null_mut() });
        // SAFETY: as the caller says.
        if piece.is_null() { unsafe { self.0.alloc(layout) } } else { piece }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !REGION.with(|r| r.open.get()) {
            // SAFETY: as the caller says.
            return unsafe { self.0.alloc_zeroed(layout) };
        }
        // SAFETY: as the caller says; a piece that is not null is as large as the layout.
        unsafe {
            let piece = self.alloc(layout);
            if !piece.is_null() {
                piece.write_bytes(0, layout.size());
            }
            piece
        }
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        REGION.with(|r| match r.place(piece) {
            Some(place) => r.leave(place, layout.size()),
            // SAFETY: no region's, hence the inner allocator's.
            None => unsafe { self.0.dealloc(piece, layout) },
        });
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match REGION.with(|r| r.place(piece).map(|place| r.resize(place, layout.size(), size))) {
            // SAFETY: no region's, hence the inner allocator's.
            None => unsafe { self.0.realloc(piece, layout, size) },
            Some(true) => piece,
            // SAFETY: the caller has seen to the size; both pieces are at least as large as the smaller one, and are not the same.
            Some(false) => unsafe {
                let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
                if !moved.is_null() {
                    ptr::copy_nonoverlapping(piece, moved, layout.size().min(size));
                }
                moved
            },
        }
    }
}

/// Closes this thread's region to new pieces, also where a panic leads out.
struct Closing;

impl Drop for Closing {
    fn drop(&mut self) {
        REGION.with(|r| r.open.set(false));
    }
}

/// Gives what `using` makes of what `make` has made, in memory that is given back all at once if [`Memory`] is the allocator. After a panic that
/// memory is left alone for good.
///
/// # Safety
/// Nothing that `make` allocates may be used later, or on another thread, but what is in the value, on which dropping does
/// nothing that matters. `using` keeps nothing of it.
pub unsafe fn together<T, U>(make: impl FnOnce() -> T, using: impl FnOnce(&T) -> U) -> U {
    // One tree at a time.
    if REGION.with(|r| r.lent.replace(true)) {
        return using(&make());
    }
    REGION.with(|r| {
        r.full.set(false);
        r.open.set(true);
    });
    let closing = Closing;
    let value = ManuallyDrop::new(make());
    drop(closing);
    let result = using(&value);
    REGION.with(|r| {
        // Pieces elsewhere want to be given back one by one.
        if r.full.get() || r.taken.get() == 0 {
            drop(ManuallyDrop::into_inner(value));
        }
        r.taken.set(0);
        r.lent.set(false);
    });
    result
}

#[cfg(test)]
mod tests {
    use std::alloc::{GlobalAlloc, Layout, System};

    use super::{Memory, REGION, ROOM, together};

    /// Pieces of these sizes, and whether each is in the region.
    fn pieces(sizes: &[usize]) -> Vec<(usize, bool)> {
        let memory = Memory(System);
        let piece = |&size: &usize| {
            let layout = Layout::from_size_align(size, 16).expect("a size");
            // SAFETY: no size is zero, and nobody writes there; what is not given back is lost.
            let piece = unsafe { memory.alloc(layout) };
            (piece.addr(), REGION.with(|r| r.place(piece).is_some()))
        };
        sizes.iter().map(piece).collect()
    }

    #[test]
    fn pieces_stand_one_behind_the_other_and_go_together() {
        // SAFETY: only addresses are kept.
        let round = || unsafe { together(|| pieces(&[16, 24, 8]), Clone::clone) };
        let first = round();
        assert_eq!(round(), first);
        assert!(first.iter().all(|&(_, inside)| inside));
        assert_eq!([first[1].0 - first[0].0, first[2].0 - first[1].0], [16, 32]);
        assert!(!pieces(&[16])[0].1);
    }

    #[test]
    fn what_has_no_room_comes_from_the_allocator() {
        // SAFETY: only addresses are kept.
        let sizes = unsafe { together(|| pieces(&[16, ROOM, 16]), Clone::clone) };
        assert_eq!(sizes.iter().map(|&(_, inside)| inside).collect::<Vec<_>>(), [true, false, true]);
    }

    #[test]
    fn pieces_grow_where_they_are_if_they_are_the_last() {
        let memory = Memory(System);
        let layout = Layout::from_size_align(8, 8).expect("a size");
        let make = || {
            // SAFETY: all pieces are large enough for what is written and read.
            unsafe {
                let first = memory.alloc(layout);
                first.write(7);
                let grown = memory.realloc(first, layout, 16);
                let second = memory.alloc_zeroed(layout);
                let moved = memory.realloc(grown, Layout::from_size_align_unchecked(16, 8), 32);
                (first == grown, grown == moved, moved.read(), second.read())
            }
        };
        // SAFETY: only numbers are kept.
        assert_eq!(unsafe { together(make, |&told| told) }, (true, false, 7, 0));
    }

    #[test]
    fn a_panic_leaves_it_alone() {
        let work = || {
            let caught = crate::shield::shielded(|| {
                // SAFETY: nothing is made.
                unsafe { together(|| panic!("on the way"), |&()| ()) }
            });
            assert!(caught.is_err());
            // SAFETY: only addresses are kept.
            unsafe { together(|| pieces(&[16]), Clone::clone) }
        };
        assert!(std::thread::spawn(work).join().is_ok_and(|pieces| !pieces[0].1));
    }
}
