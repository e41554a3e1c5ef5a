//! Shields: a bug that one file or one pass triggers must not end the run over the others.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook, take_hook};
use std::sync::{Mutex, Once, PoisonError};

thread_local! {
    /// `Some` while this thread runs behind a shield; after a panic, it contains the message.
    static CAUGHT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The number of shields that cover all threads, and the message of a panic on any of them.
static ANYWHERE: Mutex<(usize, String)> = Mutex::new((0, String::new()));

/// Does the work. If it panics, nothing is printed, and the error contains the message and the place. The caller must then discard
/// everything that the work was changing.
///
/// # Errors
/// The panic's message and place.
pub fn shielded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    listen();
    // Shields can be nested: rayon may run the work of one file while another file waits.
    let outer = CAUGHT.replace(Some(String::new()));
    let result = catch_unwind(AssertUnwindSafe(work));
    let caught = CAUGHT.replace(outer);
    result.map_err(|_| caught.unwrap_or_default())
}

/// Does work that other threads may take part in.
///
/// # Errors
/// The panic's message and place, on any thread.
pub fn shielded_with_threads<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    with_all(|(shields, _)| *shields += 1);
    let result = shielded(work);
    let elsewhere = with_all(|(shields, said)| {
        *shields -= 1;
        std::mem::take(said)
    });
    result.map_err(|here| if here.is_empty() { elsewhere } else { here })
}

/// Installs a hook that stores panics behind a shield instead of printing them.
fn listen() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |info| {
            if !is_kept(info) {
                previous(info);
            }
        }));
    });
}

/// Stores the message of a panic, if there is a shield.
fn is_kept(info: &PanicHookInfo<'_>) -> bool {
    let text = || info.to_string().replace('\n', " ");
    let here = CAUGHT.with_borrow_mut(|caught| caught.as_mut().map(|caught| *caught = text()).is_some());
    here || with_all(|(shields, said)| {
        if *shields > 0 {
            *said = text();
        }
        *shields > 0
    })
}

fn with_all<T>(work: impl FnOnce(&mut (usize, String)) -> T) -> T {
    work(&mut ANYWHERE.lock().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use rayon::prelude::*;

    use super::{shielded, shielded_with_threads};

    #[test]
    fn a_panic_becomes_words() {
        assert_eq!(shielded(|| 1), Ok(1));
        let words = shielded(|| panic!("what a mess")).expect_err("it panics");
        assert!(words.contains("what a mess") && words.contains("shield.rs"), "{words}");
        let nested = shielded(|| shielded(|| panic!("inner")).is_err());
        assert_eq!(nested, Ok(true));
    }

    #[test]
    fn so_does_one_on_another_thread() {
        let work = || (0..64_u32).into_par_iter().for_each(|n| assert!(n != 63, "a mess elsewhere"));
        let words = shielded_with_threads(work).expect_err("it panics");
        assert!(words.contains("a mess elsewhere"), "{words}");
        assert_eq!(shielded_with_threads(|| 2), Ok(2));
    }
}
