//! Autograd graphs that are kept longer than necessary.

use rustpython_ast::ExprRef;

use super::super::Draft;
use super::super::apply::Change;
use super::super::names::is_bound;
use super::super::syntax::Syntax;
use super::calls::suffixed;
use super::unsafe_;
use crate::span::Span;

/// `state = new` → `state = tuple(s.detach() for s in new)`
pub(super) fn detach_parts(syntax: &Syntax<'_>, value: Span) -> Option<Draft> {
    let (ExprRef::Name(_) | ExprRef::Attribute(_)) = syntax.expr(value)? else { return None };
    let part = ["s", "part"].into_iter().find(|name| !is_bound(syntax, name, value))?;
    let content = format!("tuple({part}.detach() for {part} in {})", value.slice(syntax.text));
    Some(unsafe_("Detach the parts from their graphs", vec![Change { span: value, content }]))
}

/// `total += loss` → `total += loss.detach()`. The numbers stay the same, but other code can no longer differentiate the sum.
pub(super) fn detach(syntax: &Syntax<'_>, value: Span) -> Option<Draft> {
    let changes = suffixed(syntax, syntax.expr(value)?, ".detach()")?;
    Some(unsafe_("Detach it from its graph", changes))
}
