//! Suppression comments.

use crate::span::Span;

/// MERGE: comes from `crate::lower`. A comment of the source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Comment {
    /// From the `#` to the end of the line.
    pub span: Span,
    /// Is there nothing else on its line?
    pub own_line: bool,
    /// What it speaks of: its own logical line, or the next one if it stands alone.
    pub covers: Span,
}
