//! Code in messages and helps: expressions as the source has them, and lines with one expression replaced.

use crate::rules::check::Context;
use crate::span::Place;

/// Longer expressions are not repeated.
const MAX_TEXT: usize = 80;
/// Longer lines are not repeated in a help.
const MAX_LINE: usize = 110;

/// The text of the expression at a place, if it is short enough to repeat.
pub fn text<'a>(cx: &'a Context<'_>, place: Place) -> Option<&'a str> {
    let short = |text: &&str| !text.is_empty() && text.len() <= MAX_TEXT && !text.contains(['\n', '`']);
    Some(cx.sources.text(place)).filter(short)
}

/// The expression at a place in backquotes; `otherwise` if it is long or has several lines.
pub fn quoted(cx: &Context<'_>, place: Place, otherwise: &str) -> String {
    text(cx, place).map_or_else(|| otherwise.to_owned(), |text| format!("`{text}`"))
}

/// The line of an expression with other code in its place, without indentation and comment; nothing if that is no short line.
pub fn line_with(cx: &Context<'_>, place: Place, new: &str) -> Option<String> {
    let (before, after) = around(cx, place)?;
    let line = format!("{before}{new}{after}");
    (line.len() <= MAX_LINE && !line.contains('`')).then_some(line)
}

/// Is the expression a statement of its own?
pub fn is_statement(cx: &Context<'_>, place: Place) -> bool {
    around(cx, place).is_some_and(|(before, after)| before.is_empty() && after.is_empty())
}

/// Can a conditional expression stand where this expression is, without brackets?
pub fn stands_alone(cx: &Context<'_>, place: Place) -> bool {
    around(cx, place).is_some_and(|(before, after)| {
        let before = before.trim_end();
        let opens =
            before.ends_with(['(', ',', '=', '[', ':']) && !before.ends_with("==") && !before.ends_with("!=");
        opens && (after.is_empty() || after.starts_with([')', ',', ']', '}']))
    })
}

/// What the line has before the expression and after it, without indentation and comment.
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

/// The line without its comment. A `#` in a string begins none.
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
