//! A bug that one file brings out must not end the run over the others.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// `Some` while this thread works behind the shield; then holds what the panic said.
    static CAUGHT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Does the work. If it panics, nothing is printed and the error says what happened and where. What the work
/// was changing must be thrown away then.
///
/// # Errors
/// The panic's message and place.
pub fn shielded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |info| {
            let behind_shield = CAUGHT.with_borrow_mut(|caught| match caught {
                Some(text) => {
                    *text = info.to_string().replace('\n', " ");
                    true
                }
                None => false,
            });
            if !behind_shield {
                previous(info);
            }
        }));
    });
    // Shields can be nested: rayon may run one file's work while another's waits.
    let outer = CAUGHT.replace(Some(String::new()));
    let result = catch_unwind(AssertUnwindSafe(work));
    let caught = CAUGHT.replace(outer);
    result.map_err(|_| caught.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::shielded;

    #[test]
    fn a_panic_becomes_words() {
        assert_eq!(shielded(|| 1), Ok(1));
        let words = shielded(|| panic!("what a mess")).expect_err("it panics");
        assert!(words.contains("what a mess") && words.contains("shield.rs"), "{words}");
        let nested = shielded(|| shielded(|| panic!("inner")).is_err());
        assert_eq!(nested, Ok(true));
    }
}
