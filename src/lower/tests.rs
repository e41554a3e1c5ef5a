//! The results of lowering small programs.

mod comments;
mod hostile;
mod scopes;
mod syntax;
mod unreachable;

use super::{Kind, Lowered, dump, lower};
use crate::span::FileId;

fn lowered(text: &str) -> Lowered {
    lower(FileId(0), text, Kind::Script)
}

/// The module, printed; there must be no syntax error.
fn ir(text: &str) -> String {
    let lowered = lowered(text);
    assert_eq!(lowered.errors, [], "{text}");
    dump(&lowered.module)
}
