//! `x.cuda(async=True)`: the argument's name in PyTorch until `async` became a keyword in Python 3.7.
//!
//! No current Python accepts such a file, and the parser loses the statement around the word. So the argument is read under its current
//! name, and reported as a syntax error.

use memchr::memmem::Finder;

use super::SyntaxError;
use crate::span::Span;

/// The old name; and next, a name of the same length for the parser.
const WORD: &str = "async";
const STAND_IN: &str = "asynk";
/// The argument's name since PyTorch 0.4.
const TODAY: &str = "non_blocking";

/// The current name of an argument.
pub(super) fn renamed(name: &str) -> &str {
    if name == STAND_IN { TODAY } else { name }
}

/// The text with a name that parses in each such place, and the errors to report there. `None` if there is no such place.
pub(super) fn patched(text: &str) -> Option<(String, Vec<SyntaxError>)> {
    let places: Vec<usize> =
        Finder::new(WORD).find_iter(text.as_bytes()).filter(|&at| is_argument(text, at)).collect();
    if places.is_empty() {
        return None;
    }
    let mut patched = text.to_owned();
    let mut errors = Vec::new();
    for at in places {
        let end = at + WORD.len();
        patched.replace_range(at..end, STAND_IN);
        let (Ok(start), Ok(end)) = (u32::try_from(at), u32::try_from(end)) else { continue };
        let message = format!(
            "`{WORD}` is a keyword since Python 3.7, and no name for an argument: PyTorch calls it `{TODAY}`"
        );
        errors.push(SyntaxError { span: Span::new(start, end), message });
    }
    Some((patched, errors))
}

/// Is the word the name of an argument: after `(` or `,`, and before a single `=`?
fn is_argument(text: &str, at: usize) -> bool {
    let (before, after) = (&text[..at], &text[at + WORD.len()..]);
    let after = after.trim_start();
    before.trim_end().ends_with(['(', ',']) && after.starts_with('=') && !after.starts_with("==")
}
