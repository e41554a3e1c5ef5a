//! The comments that may suppress findings, and the lines that they cover.

use memchr::{memchr, memchr2, memchr3_iter};
use rustpython_ast::ModModule;
use rustpython_ast::token::{Token, TokenKind};
use rustpython_parser::Parsed;
use rustpython_text_size::Ranged;

use super::{Comment, span};
use crate::span::Span;
use crate::work::spend;

/// All comments of the file with a word that may suppress findings.
pub(super) fn comments(text: &str, parsed: &Parsed<ModModule>) -> Vec<Comment> {
    let mut comments = Vec::new();
    if !may_hold_any(text) {
        return comments;
    }
    let tokens: &[Token] = parsed.tokens();
    let mut brackets = 0u32;
    let mut code_end = 0;
    let mut last_below = (0, None);
    for (i, token) in tokens.iter().enumerate() {
        match token.kind() {
            TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace => brackets += 1,
            TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace => brackets = brackets.saturating_sub(1),
            TokenKind::Newline => brackets = 0,
            TokenKind::Comment if may_suppress(span(token).slice(text)) => {
                let span = span(token);
                let line = line_start(text, span.start);
                // The last code before the comment ends on an earlier line, so only white space is before the comment on its line.
                let own_line = code_end <= line;
                let covers = if own_line {
                    // Several comments in a row are above the same code, so that code is searched once.
                    if last_below.0 <= i {
                        last_below = below(text, tokens, i + 1, brackets > 0);
                    }
                    last_below.1.unwrap_or(span)
                } else {
                    Span::new(tied_start(text, &tokens[..i], line), span.end)
                };
                comments.push(Comment { span, own_line, covers });
            }
            _ => {}
        }
        if !is_layout(token.kind()) {
            code_end = token.end().to_u32();
        }
    }
    comments
}

/// Is there a word that may suppress findings after any `#`? Most files have none.
fn may_hold_any(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = memchr(b'#', rest.as_bytes()) {
        let line = &rest[at..];
        let end = memchr2(b'\n', b'\r', line.as_bytes()).unwrap_or(line.len());
        if may_suppress(&line[..end]) {
            return true;
        }
        rest = &line[end..];
    }
    false
}

/// Does it contain `noqa` or `samedevice:`, in upper or lower case? The search looks for a rare character of each.
fn may_suppress(text: &str) -> bool {
    let text = text.as_bytes();
    memchr3_iter(b'q', b'Q', b':', text).any(|at| {
        let (before, after) = text.split_at(at);
        if after.starts_with(b":") {
            before.last_chunk::<10>().is_some_and(|word| word.eq_ignore_ascii_case(b"samedevice"))
        } else {
            before.last_chunk::<2>().is_some_and(|start| start.eq_ignore_ascii_case(b"no"))
                && after.get(1).is_some_and(|end| end.eq_ignore_ascii_case(&b'a'))
        }
    })
}

/// The start of the lines that a string or a `\` joins to this line. They cannot have comments of their own.
fn tied_start(text: &str, before: &[Token], mut line: u32) -> u32 {
    let mut f_strings = 0u32;
    for token in before.iter().rev() {
        spend(1);
        let (kind, place) = (token.kind(), span(token));
        match kind {
            TokenKind::FStringEnd | TokenKind::TStringEnd => f_strings += 1,
            TokenKind::FStringStart | TokenKind::TStringStart => f_strings = f_strings.saturating_sub(1),
            _ => {}
        }
        if matches!(kind, TokenKind::Newline | TokenKind::NonLogicalNewline) && f_strings == 0 {
            break;
        }
        if place.start < line {
            line = line_start(text, place.start);
        }
    }
    line
}

/// The index of the first token of the next code, and its lines: the whole logical line, or its first line within brackets.
fn below(text: &str, tokens: &[Token], from: usize, in_brackets: bool) -> (usize, Option<Span>) {
    let is_code = |t: &Token| !is_layout(t.kind()) && t.kind() != TokenKind::EndOfFile;
    let Some(first) = tokens[from..].iter().position(is_code).map(|i| from + i) else {
        spend(tokens.len() - from);
        return (tokens.len(), None);
    };
    let ends_line = |t: &Token| {
        t.kind() == TokenKind::Newline || (in_brackets && t.kind() == TokenKind::NonLogicalNewline)
    };
    let rest = &tokens[first..];
    let length = rest.iter().position(ends_line).unwrap_or(rest.len());
    spend(first - from + length);
    let last = rest[..length].iter().rev().find(|t| t.kind() != TokenKind::EndOfFile);
    let end = last.map_or(rest[0].end(), |t| t.end()).to_u32();
    (first, Some(Span::new(line_start(text, rest[0].start().to_u32()), end)))
}

fn is_layout(kind: TokenKind) -> bool {
    use TokenKind as T;
    matches!(kind, T::Comment | T::Newline | T::NonLogicalNewline | T::Indent | T::Dedent)
}

fn line_start(text: &str, offset: u32) -> u32 {
    let before = &text.as_bytes()[..offset as usize];
    let end = before.iter().rposition(|&b| b == b'\n' || b == b'\r');
    spend(before.len() - end.unwrap_or(0));
    end.map_or(0, |i| u32::try_from(i + 1).unwrap_or(u32::MAX))
}
