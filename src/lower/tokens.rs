//! The tokens of a text without what formatters change: quotes, line breaks, parentheses, commas, comments.
//!
//! If a formatter turns one text into another, both have equal tokens, statement by statement. The converse is false (`f(a)` and `f, a` are
//! equal). So this serves to find a statement again, not to understand it.

use std::ops::Range;

use rustpython_ast::ModModule;
use rustpython_ast::token::{Token as ParserToken, TokenKind};
use rustpython_parser::Parsed;

use super::{Kind, STACK_BYTES, cells, nesting, parse, span};
use crate::shield::shielded;
use crate::span::Span;

/// Separates two tokens in [`Tokens::normal`].
const SEPARATOR: char = '\u{1f}';

/// The tokens of a file.
#[derive(Debug, Default)]
pub struct Tokens {
    /// The normalized texts of all tokens, with separators.
    pub normal: String,
    /// The tokens, in the order of the file.
    pub tokens: Vec<Token>,
    /// The statements, as non-empty ranges of `tokens`. The header of a compound statement is a statement of its own.
    pub statements: Vec<Range<usize>>,
}

/// One token.
#[derive(Debug)]
pub struct Token {
    /// Its place in the file.
    pub span: Span,
    /// The byte range of its text in [`Tokens::normal`].
    pub normal: Range<usize>,
}

/// The tokens of a Python text. If the text has errors or nests too deeply, the tokens are its words, and each line is a statement. Can be
/// called on any thread: the recursive parser gets a thread of its own.
pub fn tokens(text: &str, kind: Kind<'_>) -> Tokens {
    let parsed = || shielded(|| parsed_tokens(text, kind)).ok();
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let tokens = std::thread::scope(|scope| thread.spawn_scoped(scope, parsed).ok()?.join().ok()?);
    tokens.unwrap_or_else(|| {
        let mut writer = Writer::default();
        writer.words(text, 0..text.len());
        writer.out
    })
}

fn parsed_tokens(text: &str, kind: Kind<'_>) -> Tokens {
    let mut writer = Writer::default();
    let parts = match kind {
        // A bracket that one cell leaves open is not closed by another cell.
        Kind::Notebook(starts) => cells::ranges(text, starts),
        Kind::Script | Kind::Stub => cells::ranges(text, &[]),
    };
    for part in parts {
        let own = text.get(part.clone()).unwrap_or_default();
        let parsed = if nesting::refusal(own, kind).is_none() { parse(own, kind) } else { None };
        match parsed {
            Some(parsed) => writer.parsed(text, part.start, &parsed),
            None => writer.words(text, part),
        }
    }
    writer.out
}

fn range_span(range: Range<usize>) -> Span {
    let offset = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    Span::new(offset(range.start), offset(range.end))
}

/// The state of the current statement.
#[derive(Default)]
struct Line {
    /// The number of open brackets.
    depth: u32,
    /// Whether it has begun; and next, whether it began with a word that needs a colon.
    begun: bool,
    header: bool,
    /// The number of lambdas outside brackets whose colons are still missing.
    lambdas: u32,
    ended: bool,
}

impl Line {
    fn token(&mut self, kind: TokenKind) {
        use TokenKind as T;
        match kind {
            T::Lpar | T::Lsqb | T::Lbrace => self.depth += 1,
            T::Rpar | T::Rsqb | T::Rbrace => self.depth = self.depth.saturating_sub(1),
            T::Newline => (self.ended, self.depth) = (true, 0),
            T::Semi => self.ended = self.depth == 0,
            T::Lambda if self.depth == 0 => self.lambdas += 1,
            T::Colon if self.depth == 0 && self.lambdas > 0 => self.lambdas -= 1,
            T::Colon if self.depth == 0 => self.ended = self.header,
            T::Comment | T::NonLogicalNewline | T::Indent | T::Dedent => return,
            _ => {}
        }
        if !self.begun {
            self.begun = true;
            self.header = matches!(
                kind,
                T::If | T::Elif | T::Else | T::For | T::While | T::With | T::Try | T::Except | T::Finally
            ) || matches!(kind, T::Def | T::Class | T::Async | T::Match | T::Case);
        }
    }
}

#[derive(Default)]
struct Writer {
    out: Tokens,
    /// The index of the statement's first token.
    first: usize,
    /// Whether the last token is a piece of a string. Adjacent pieces are one string.
    in_string: bool,
}

impl Writer {
    /// Adds the words of a part of the text.
    fn words(&mut self, text: &str, part: Range<usize>) {
        let start_of = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
        for line in text.get(part).unwrap_or_default().lines() {
            for word in line.split_whitespace() {
                let start = start_of(word);
                self.push(range_span(start..start + word.len()), word);
            }
            self.end_statement();
        }
    }

    /// Adds the tokens of a part of the text that begins at `start`.
    fn parsed(&mut self, text: &str, start: usize, parsed: &Parsed<ModModule>) {
        let offset = u32::try_from(start).unwrap_or(u32::MAX);
        let mut line = Line::default();
        for token in parsed.tokens().iter() {
            let (kind, place) = (token.kind(), span(token));
            let place = Span::new(place.start.saturating_add(offset), place.end.saturating_add(offset));
            line.token(kind);
            self.token(token, place.slice(text), place);
            if line.ended {
                self.end_statement();
                line = Line { depth: line.depth, ..Line::default() };
            }
        }
        self.end_statement();
    }

    fn token(&mut self, token: &ParserToken, text: &str, place: Span) {
        use TokenKind as T;
        match token.kind() {
            T::Comment | T::NonLogicalNewline | T::Newline | T::Indent | T::Dedent | T::EndOfFile => {}
            T::Semi | T::Lpar | T::Rpar | T::Comma | T::FStringEnd | T::TStringEnd => {}
            T::String => {
                let bare = text.trim_start_matches(|c: char| c.is_ascii_alphabetic());
                let quotes = if bare.starts_with("\"\"\"") || bare.starts_with("'''") { 3 } else { 1 };
                let end = bare.len().saturating_sub(quotes).max(quotes);
                self.string(place, &unescaped(bare.get(quotes..end).unwrap_or_default()));
            }
            T::FStringStart | T::TStringStart => self.string(place, ""),
            T::FStringMiddle | T::TStringMiddle => {
                let braces = text.replace("{{", "{").replace("}}", "}");
                self.string(place, &unescaped(&braces));
            }
            T::Int | T::Float | T::Complex => self.push(place, &number(text)),
            _ => self.push(place, text),
        }
    }

    fn push(&mut self, span: Span, text: &str) {
        self.out.normal.push(SEPARATOR);
        let start = self.out.normal.len();
        self.out.normal.push_str(text);
        self.out.tokens.push(Token { span, normal: start..self.out.normal.len() });
        self.in_string = false;
    }

    /// Adds a piece of a string.
    fn string(&mut self, span: Span, text: &str) {
        if !self.in_string {
            self.push(span, "\"");
            self.in_string = true;
        } else {
            let end = self.out.normal.len();
            self.out.tokens.push(Token { span, normal: end..end });
        }
        self.out.normal.push_str(text);
        if let Some(token) = self.out.tokens.last_mut() {
            token.normal.end = self.out.normal.len();
        }
    }

    fn end_statement(&mut self) {
        let end = self.out.tokens.len();
        if end > self.first {
            self.out.statements.push(self.first..end);
        }
        (self.first, self.in_string) = (end, false);
    }
}

/// The content of a string without the escapes that its quotes require, and with each run of white space as one blank.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if matches!(chars.peek(), Some('"' | '\'')) => {}
            '\\' => {
                out.push(c);
                out.extend(chars.next());
            }
            c if c.is_whitespace() => {
                if !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            c => out.push(c),
        }
    }
    out
}

/// Normalizes a number: `1.` and `1.0`, `.5` and `0.5`, `1E5` and `1e5`, `0XFF` and `0xff` are the same.
fn number(text: &str) -> String {
    let mut out = text.to_ascii_lowercase();
    if out.starts_with('.') {
        out.insert(0, '0');
    }
    match out.find('.') {
        Some(at) if !out[at + 1..].starts_with(|c: char| c.is_ascii_digit()) => out.insert(at + 1, '0'),
        _ => {}
    }
    out
}

#[cfg(test)]
mod tests {
    use super::tokens;

    /// The statements, with blanks between the tokens.
    fn statements(text: &str) -> Vec<String> {
        let tokens = tokens(text, super::Kind::Script);
        let normal = |range: &std::ops::Range<usize>| {
            let (first, last) = (&tokens.tokens[range.start], &tokens.tokens[range.end - 1]);
            tokens.normal[first.normal.start..last.normal.end].replace('\u{1f}', " ")
        };
        tokens.statements.iter().map(normal).collect()
    }

    #[test]
    fn what_formatters_change_does_not_matter() {
        for (before, after) in [
            ("x = f(a, b)\n", "x = f(\n    a,\n    b,  # why\n)\n"),
            ("x = 'it\\'s'\n", "x = \"it's\"\n"),
            ("x = u'a' 'b'\n", "x = \"ab\"\n"),
            ("f('a' f'{x}' 'b')\n", "f(f\"a{x}b\")\n"),
            ("f(f'{d[\"k\"]:>{w}} {{}}')\n", "f(f\"{d['k']:>{w}} {{}}\")\n"),
            ("x = 1,\n", "x = (1,)\n"),
            ("return (a +\n    b)\n", "return a + b\n"),
            ("if (x): y = 1; z = lambda: 2\n", "if x:\n    y = 1\n    z = lambda: 2\n"),
            ("x = a + \\\n    b\n", "x = a + b\n"),
            ("class A(): pass\n", "class A:\n    pass\n"),
            ("with (a as b): pass\n", "with a as b:\n    pass\n"),
            ("x: int = d[1:2]; y = .5 + 1. + 0XFF\n", "x: int = d[1:2]\ny = 0.5 + 1.0 + 0xFF\n"),
            ("for x, in y: pass\n", "for (x,) in y:\n    pass\n"),
        ] {
            assert_eq!(statements(before), statements(after));
        }
        assert_eq!(statements("if lambda: 1: x = {'a': 1}\n"), ["if lambda : 1 :", "x = { \"a : 1 }"]);
    }

    #[test]
    fn what_differs_differs() {
        assert_ne!(statements("x = 'a'\n"), statements("x = a\n"));
        assert_ne!(statements("x = 'a' + 'b'\n"), statements("x = 'a' 'b'\n"));
        assert_ne!(statements("x = a[b]\n"), statements("x = a(b)\n"));
    }

    #[test]
    fn every_text_has_tokens() {
        assert_eq!(statements(""), [""; 0]);
        assert!(statements("x = (\ny = 'a\n").concat().contains('y'));
        let deep = format!("x = {}1\ny = 2\n", "(".repeat(100_000));
        assert_eq!(statements(&deep).len(), 2);
    }
}
