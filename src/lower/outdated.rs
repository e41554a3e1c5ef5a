//! `x.cuda(async=True)`: what PyTorch's argument was called until Python 3.7 made a keyword of its name.
//!
//! No Python of today reads such a file, and a parser that stumbles over the word loses the statement around it. So it is read as
//! what PyTorch calls the argument now, and told.

use memchr::memmem::Finder;

use super::SyntaxError;
use crate::span::Span;

/// The word, and one of the same length for the parser.
const WORD: &str = "async";
const STAND_IN: &str = "asynk";
/// What PyTorch calls it since 0.4.
const TODAY: &str = "non_blocking";

/// The name of an argument, as it is called today.
pub(super) fn renamed(name: &str) -> &str {
    if name == STAND_IN { TODAY } else { name }
}

/// The text with a name that parses in each such place, and what to say of these places. Nothing if there is none.
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

/// Does the word stand where an argument is named: after `(` or `,`, before one `=`?
fn is_argument(text: &str, at: usize) -> bool {
    let (before, after) = (&text[..at], &text[at + WORD.len()..]);
    let after = after.trim_start();
    before.trim_end().ends_with(['(', ',']) && after.starts_with('=') && !after.starts_with("==")
}
