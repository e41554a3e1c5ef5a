//! Graphs that are kept longer than they are of use.

use super::super::Draft;
use super::super::syntax::Syntax;
use super::calls::suffixed;
use super::unsafe_;
use crate::span::Span;

/// `total += loss` → `total += loss.detach()`. The numbers stay; what differentiates the sum elsewhere cannot any more.
pub(super) fn detach(syntax: &Syntax<'_>, value: Span) -> Option<Draft> {
    let changes = suffixed(syntax, syntax.expr(value)?, ".detach()")?;
    Some(unsafe_("Keep it without its graph", changes))
}
