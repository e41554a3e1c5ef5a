//! Code in messages and helps: expressions as the source has them, and lines with one expression replaced.

use crate::ir::{Expr, ExprId, Module, Stmt};
use crate::link::ModIdx;
use crate::rules::check::Context;
use crate::span::Place;

/// The length of the longest expression that a message quotes.
const MAX_TEXT: usize = 80;
/// The length of the longest code that a help quotes.
const MAX_LINE: usize = 110;

/// The code at a place, if a message can quote it.
pub fn text<'a>(cx: &'a Context<'_>, place: Place) -> Option<&'a str> {
    let short = |text: &&str| !text.is_empty() && text.len() <= MAX_TEXT && !text.contains(['\n', '`']);
    Some(cx.sources.text(place)).filter(short)
}

/// The code, if a help can quote it: one line that is not too long.
pub fn quotable(code: String) -> Option<String> {
    (!code.is_empty() && code.len() <= MAX_LINE && !code.contains(['\n', '`'])).then_some(code)
}

/// The expression at a place in backquotes; `otherwise` if it is long or has several lines.
pub fn quoted(cx: &Context<'_>, place: Place, otherwise: &str) -> String {
    text(cx, place).map_or_else(|| otherwise.to_owned(), |text| format!("`{text}`"))
}

/// The line of an expression with other code in its place, without indentation and comment; nothing if the line is long, or holds only
/// a part of an expression.
pub fn line_with(cx: &Context<'_>, place: Place, new: &str) -> Option<String> {
    let (before, after) = around(cx, place)?;
    let line = format!("{before}{new}{after}");
    let closed = [('(', ')'), ('[', ']'), ('{', '}')]
        .into_iter()
        .all(|(open, close)| line.matches(open).count() == line.matches(close).count());
    quotable(line.trim_end_matches(',').to_owned()).filter(|_| closed)
}

/// Is the expression a statement of its own?
pub fn is_statement(cx: &Context<'_>, place: Place) -> bool {
    around(cx, place).is_some_and(|(before, after)| before.is_empty() && after.is_empty())
}

/// Can a conditional expression replace this expression without parentheses?
pub fn stands_alone(cx: &Context<'_>, place: Place) -> bool {
    around(cx, place).is_some_and(|(before, after)| {
        let before = before.trim_end();
        let opens =
            before.ends_with(['(', ',', '=', '[', ':']) && !before.ends_with("==") && !before.ends_with("!=");
        opens && (after.is_empty() || after.starts_with([')', ',', ']', '}']))
    })
}

/// The expression as an operand of a method call, in parentheses if necessary.
pub fn operand(cx: &Context<'_>, place: Place) -> Option<String> {
    let code = text(cx, place)?;
    let plain = |e: &Expr| matches!(e, Expr::Var(_) | Expr::Attr { .. } | Expr::Call(_) | Expr::Index { .. });
    let plain = expression(cx, place, plain).is_some();
    Some(if plain { code.to_owned() } else { format!("({code})") })
}

/// The text at a place, if it is a variable, an attribute or an element of one and a message can quote it.
pub fn variable<'a>(cx: &'a Context<'_>, place: Place) -> Option<&'a str> {
    let is_name = |e: &Expr| matches!(e, Expr::Var(_) | Expr::Attr { .. } | Expr::Index { .. });
    expression(cx, place, is_name).and_then(|_| text(cx, place))
}

/// The assignment whose target, or which itself, is at this place: the target, the value and its text.
pub fn assigned<'a>(cx: &'a Context<'_>, at: Place) -> Option<(&'a str, Expr, &'a str)> {
    let ir = &cx.program.get(cx.program.module_of(at.file)?).ir;
    let code = |e: ExprId| cx.sources.text(Place { span: ir.span(e), ..at });
    ir.stmts.iter().zip(&ir.stmt_spans).find_map(|(stmt, &span)| {
        let (target, value) = match *stmt {
            Stmt::Assign { targets, value } => match ir.list(targets) {
                &[target] => (target, value),
                _ => return None,
            },
            Stmt::AnnAssign { target, value: Some(value), .. } => (target, value),
            _ => return None,
        };
        let is_it = ir.span(target) == at.span || span == at.span;
        is_it.then(|| (code(target), ir.expr(value), code(value)))
    })
}

/// The expression at a place that satisfies the condition, with its module.
pub fn expression<'a>(
    cx: &'a Context<'_>,
    place: Place,
    is_it: impl Fn(&Expr) -> bool,
) -> Option<(ModIdx, &'a Module, ExprId)> {
    let module = cx.program.module_of(place.file)?;
    let ir = &cx.program.get(module).ir;
    let n = (0..ir.exprs.len()).find(|&n| ir.expr_spans[n] == place.span && is_it(&ir.exprs[n]))?;
    Some((module, ir, ExprId(u32::try_from(n).ok()?)))
}

/// The text of the line before and after the expression, without indentation and comment.
fn around<'a>(cx: &'a Context<'_>, place: Place) -> Option<(&'a str, &'a str)> {
    if cx.sources.text(place).contains('\n') {
        return None;
    }
    let source = cx.sources.get(place.file).text();
    let (from, to) = (place.span.start as usize, place.span.end as usize);
    let (before, after) = (source.get(..from)?, source.get(to..)?);
    let before = before.rsplit('\n').next()?.trim_start();
    let after = after.split('\n').next()?;
    Some((before, without_comment(after).trim_end()))
}

/// The line without its comment. A `#` in a string does not begin a comment.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (c, quote) {
            ('#', None) => return &line[..at],
            ('"' | '\'', None) => quote = Some(c),
            _ if Some(c) == quote => quote = None,
            _ => {}
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::without_comment;

    #[test]
    fn comments_begin_outside_of_strings() {
        assert_eq!(without_comment(") else \"cpu\"  # why"), ") else \"cpu\"  ");
        assert_eq!(without_comment("(\"#1\", '#')"), "(\"#1\", '#')");
    }
}
