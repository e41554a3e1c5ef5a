//! Calls and their arguments.

use rustpython_ast::token::TokenKind;
use rustpython_ast::{AnyNodeRef, Expr, ExprCall, ExprRef};

use super::super::Draft;
use super::super::apply::Change;
use super::super::syntax::{Syntax, span, start};
use super::{safe, unsafe_};
use crate::span::Span;

/// `torch.cuda.is_available` → `torch.cuda.is_available()`. Code that tests a function means its result.
pub(super) fn call(syntax: &Syntax<'_>, at: Span) -> Option<Draft> {
    let changes = suffixed(syntax, syntax.expr(at)?, "()")?;
    Some(safe(format!("Call `{}()`", at.slice(syntax.text)), changes))
}

/// `torch.load(path)` → `torch.load(path, map_location="cpu")`. Code that expects tensors on a GPU must then move them.
pub(super) fn map_location(syntax: &Syntax<'_>, at: Span) -> Option<Draft> {
    let call = syntax.call(at)?;
    let named = |k: &&rustpython_ast::Keyword| k.arg.as_ref().is_some_and(|n| n.as_str() == "map_location");
    let given = match call.arguments.keywords.iter().find(named) {
        Some(keyword) => Some(&keyword.value),
        None => call.arguments.args.get(1),
    };
    let change = match given {
        Some(none @ Expr::NoneLiteral(_)) => Change { span: span(none), content: "\"cpu\"".to_owned() },
        Some(_) => return None,
        None => argument(syntax, call, "map_location", "\"cpu\"")?,
    };
    Some(unsafe_("Load to the CPU", vec![change]))
}

/// Removes a keyword argument from a call. The argument only affects speed.
pub(super) fn without(syntax: &Syntax<'_>, at: Span, keyword: &str) -> Option<Draft> {
    let call = syntax.call(at)?;
    let named = |k: &&rustpython_ast::Keyword| k.arg.as_ref().is_some_and(|n| n.as_str() == keyword);
    let argument = span(call.arguments.keywords.iter().find(named)?);
    let tokens = syntax.tokens(span(&call.arguments));
    let significant: Vec<_> = tokens.iter().filter(|t| !t.kind().is_trivia()).collect();
    let first = significant.iter().position(|t| start(*t) == argument.start)?;
    let before = significant.get(first.checked_sub(1)?)?;
    let after = significant.iter().find(|t| start(**t) >= argument.end)?;
    let range = match (before.kind(), after.kind()) {
        (TokenKind::Comma, _) => Span::new(start(*before), argument.end),
        (_, TokenKind::Comma) => {
            let next = significant.iter().find(|t| start(**t) >= span(*after).end)?;
            Span::new(argument.start, start(*next))
        }
        _ => argument,
    };
    let change = Change { span: range, content: String::new() };
    Some(safe(format!("Leave out `{keyword}`"), vec![change]))
}

/// Adds `keyword=value` to a call that has no such argument.
pub(super) fn argument(syntax: &Syntax<'_>, call: &ExprCall, keyword: &str, value: &str) -> Option<Change> {
    let arguments = &call.arguments;
    // The keys of a dict of arguments are not known.
    let taken = arguments.keywords.iter().any(|k| k.arg.as_ref().is_none_or(|n| n.as_str() == keyword));
    if taken || matches!(&*arguments.args, [Expr::Generator(g)] if !g.parenthesized) {
        return None;
    }
    let tokens = syntax.tokens(span(arguments));
    let mut back = tokens.iter().rev().filter(|t| !t.kind().is_trivia());
    let (close, last) = (back.next()?, back.next()?);
    if close.kind() != TokenKind::Rpar {
        return None;
    }
    let insert = |at: u32, content: String| Some(Change { span: Span::new(at, at), content });
    match last.kind() {
        TokenKind::Lpar => insert(span(last).end, format!("{keyword}={value}")),
        TokenKind::Comma => {
            let end = span(last).end;
            // If each argument has a line of its own, the new one gets one too.
            let first = arguments.args.iter().map(start).chain(arguments.keywords.iter().map(start)).max()?;
            let line = Span::new(end, start(close)).slice(syntax.text);
            let alone = line.trim_start_matches([' ', '\t']).starts_with(['\n', '\r']);
            match syntax.indentation(first) {
                Some(indent) if alone => {
                    insert(end, format!("{}{indent}{keyword}={value},", syntax.line_end()))
                }
                _ => insert(span(back.next()?).end, format!(", {keyword}={value}")),
            }
        }
        _ => insert(span(last).end, format!(", {keyword}={value}")),
    }
}

/// Appends a suffix such as `.cpu()` to an expression, with parentheses if necessary.
pub(super) fn suffixed(syntax: &Syntax<'_>, e: ExprRef<'_>, suffix: &str) -> Option<Vec<Change>> {
    let insert = |at: u32, content: String| Change { span: Span::new(at, at), content };
    let (bare, whole) = (span(&e), syntax.parenthesized(e));
    let binds_tightly =
        matches!(e, ExprRef::Name(_) | ExprRef::Attribute(_) | ExprRef::Call(_) | ExprRef::Subscript(_));
    if whole != bare || binds_tightly {
        return Some(vec![insert(whole.end, suffix.to_owned())]);
    }
    if matches!(e, ExprRef::Starred(_) | ExprRef::Yield(_) | ExprRef::YieldFrom(_) | ExprRef::Generator(_)) {
        return None;
    }
    Some(vec![insert(bare.start, "(".to_owned()), insert(bare.end, format!("){suffix}"))])
}

/// Is the expression, or an expression that contains it, the target of an assignment?
pub(super) fn is_target(syntax: &Syntax<'_>, at: Span) -> bool {
    let stored = |ctx: rustpython_ast::ExprContext| ctx != rustpython_ast::ExprContext::Load;
    syntax.around(at).iter().any(|node| match node {
        AnyNodeRef::ExprName(e) => stored(e.ctx),
        AnyNodeRef::ExprAttribute(e) => stored(e.ctx),
        // The index in the brackets is only read.
        AnyNodeRef::ExprSubscript(e) => stored(e.ctx) && !span(&*e.slice).contains(at),
        _ => false,
    })
}
