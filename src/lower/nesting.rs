//! Refuses texts whose nesting would overflow the stack of the parser, which recurses without a limit.
//!
//! There are two checks. The first counts the bytes that could open a level, also in strings, until the rest of the text is too short to
//! reach the limit. This bound holds whatever the text means, and nearly every file passes. If a file does not, the lexer finds the code in
//! it, and the levels of each expression are counted. Both are upper bounds of the parser's recursion. Lowering then checks
//! [`super::MAX_LEVELS`] exactly.

use rustpython_ast::token::TokenKind;
use rustpython_parser::Mode;
use rustpython_parser::lexer::lex;

use super::cut::too_deep;
use super::{Kind, LeftOut, SyntaxError, span};
use crate::span::Span;

/// How many levels the parser can recurse into on a stack of [`super::STACK_BYTES`]. In a debug build, a nested block takes more than 13 KB
/// (20,000 of them overflow the stack), and everything else takes less. The tests go just below this limit.
pub(super) const PARSER_LEVELS: u32 = 10_000;

/// Why a text must not be parsed.
pub(super) enum Refusal {
    /// It has a syntax error, and may be too deep.
    Wrong(SyntaxError),
    /// It is too long or too deep; whether it is Python is not known.
    TooMuch(LeftOut),
}

/// Why this text must not be parsed; `None` if it may be.
pub(super) fn refusal(text: &str, kind: Kind<'_>) -> Option<Refusal> {
    let whole = Span::new(0, u32::try_from(text.len()).unwrap_or(u32::MAX));
    if text.len() >= u32::MAX as usize / 2 {
        let message = "the file is too large to analyse".to_owned();
        return Some(Refusal::TooMuch(LeftOut { span: whole, message }));
    }
    if !may_open(text.as_bytes(), PARSER_LEVELS) {
        return None;
    }
    let mode = if matches!(kind, Kind::Notebook(_)) { Mode::Ipython } else { Mode::Module };
    let mut lexer = lex(text, mode);
    let mut levels = Levels::default();
    loop {
        let kind = lexer.next_token();
        if kind == TokenKind::EndOfFile {
            break;
        }
        levels.token(kind);
        if levels.worst > PARSER_LEVELS {
            return Some(Refusal::TooMuch(too_deep(Span::new(0, 0))));
        }
    }
    // If a string is not closed, the parser may treat its contents as code.
    let errors = lexer.finish();
    let hidden = errors.iter().map(|e| openers(span(e.location()).slice(text).as_bytes()));
    if levels.worst.saturating_add(hidden.fold(0, u32::saturating_add)) > PARSER_LEVELS {
        let first = errors.into_iter().next();
        return first.map(|e| {
            Refusal::Wrong(SyntaxError { span: span(e.location()), message: e.error().to_string() })
        });
    }
    None
}

/// Could there be more levels than this? Most texts are too short, or their remaining part is soon too short to reach the number.
fn may_open(bytes: &[u8], levels: u32) -> bool {
    const STEP: usize = 4096;
    let (mut rest, mut open) = (bytes, 0_u32);
    while (open as usize).saturating_add(rest.len()) > levels as usize {
        if open > levels {
            return true;
        }
        // The next step begins with the last byte of this one, as the byte before its first.
        let (step, left) = (&rest[..rest.len().min(STEP)], rest.get(STEP - 1..).unwrap_or_default());
        open = open.saturating_add(openers(step));
        rest = if rest.len() > STEP { left } else { &[] };
    }
    false
}

/// The number of bytes that could begin a level: brackets, operators, the colon of a block or a lambda, the ends of `not`, `await` and
/// `else`.
///
/// Every byte of every file passes through this function. Its sums of bytes, in runs that cannot overflow, compile to vector instructions.
fn openers(bytes: &[u8]) -> u32 {
    let after = bytes.get(1..).unwrap_or_default();
    let first = bytes.first().map_or(0, |&b| opens(0, b));
    let runs = bytes.chunks(128).zip(after.chunks(128));
    let rest = runs.map(|(a, b)| u32::from(a.iter().zip(b).map(|(&a, &b)| opens(a, b)).sum::<u8>()));
    rest.fold(u32::from(first), u32::saturating_add)
}

/// 1 if a level could begin with this byte, otherwise 0.
fn opens(before: u8, byte: u8) -> u8 {
    let is = |one: u8| u8::from(byte == one);
    // `%` to `/`, but not `'`, `)` and `,`
    let arithmetic = u8::from(byte.wrapping_sub(b'%') <= b'/' - b'%') & !(is(b'\'') | is(b')') | is(b','));
    let sign =
        is(b':') | is(b'<') | is(b'>') | is(b'@') | is(b'[') | is(b'^') | is(b'{') | is(b'|') | is(b'~');
    let t = is(b't') & (u8::from(before == b'o') | u8::from(before == b'i'));
    let e = is(b'e') & u8::from(before == b's');
    let lambda = is(b'd') & u8::from(before == b'b');
    arithmetic | sign | t | e | lambda
}

/// An upper bound of the height of the syntax tree, from the tokens alone.
///
/// Between two commas of one pair of brackets, a tree is at most as high as the number of operators plus the height of the highest brackets
/// inside. That holds for chains to the left and to the right.
#[derive(Default)]
struct Levels {
    open: Vec<Segment>,
    now: Segment,
    indentation: u32,
    worst: u32,
}

/// The text since the last comma in a pair of brackets.
#[derive(Default, Clone, Copy)]
struct Segment {
    /// The levels around it.
    outside: u32,
    /// The number of operators in it.
    links: u32,
    /// The height of the highest brackets in it.
    highest: u32,
    /// The height of the highest earlier segment in these brackets.
    best: u32,
    /// Whether a colon ends it, because it contains the parameters of a lambda.
    parameters: bool,
}

impl Levels {
    fn token(&mut self, kind: TokenKind) {
        use TokenKind as T;
        match kind {
            T::Lpar | T::Lsqb | T::Lbrace | T::FStringStart | T::TStringStart => self.push(false),
            T::Rpar | T::Rsqb | T::Rbrace | T::FStringEnd | T::TStringEnd => {
                while self.now.parameters && !self.open.is_empty() {
                    self.pop();
                }
                self.pop();
                self.now.links += u32::from(!matches!(kind, T::FStringEnd | T::TStringEnd));
            }
            T::Lambda => {
                self.now.links += 1;
                self.push(true);
            }
            T::Colon if self.now.parameters => self.pop(),
            T::Comma => self.comma(),
            T::Newline | T::Semi => self.statement(),
            T::Indent => self.indentation += 1,
            T::Dedent => self.indentation = self.indentation.saturating_sub(1),
            // No expression contains these keywords. In unclosed brackets, the parser begins a statement at them.
            T::Def | T::Class | T::Return | T::Import | T::While | T::Try | T::With | T::Raise => {
                self.statement()
            }
            T::Del | T::Assert | T::Pass | T::Break | T::Continue | T::Global => self.statement(),
            // Leaves, and operators that make one flat node of many operands.
            T::Name | T::Int | T::Float | T::Complex | T::String | T::FStringMiddle | T::TStringMiddle => {}
            T::NonLogicalNewline | T::Comment | T::None | T::True | T::False | T::Ellipsis => {}
            T::And | T::Or | T::EqEqual | T::NotEqual | T::Less | T::LessEqual => {}
            T::Greater | T::GreaterEqual | T::In | T::Is => {}
            _ => self.now.links += 1,
        }
        let height = self.now.outside + self.now.links + self.now.highest;
        self.worst = self.worst.max(height + self.indentation);
    }

    fn push(&mut self, parameters: bool) {
        let outside = self.now.outside + self.now.links + 1;
        self.open.push(self.now);
        self.now = Segment { outside, parameters, ..Segment::default() };
    }

    fn pop(&mut self) {
        self.comma();
        if let Some(around) = self.open.pop() {
            let height = self.now.best + 1;
            self.now = around;
            self.now.highest = self.now.highest.max(height);
        }
    }

    fn comma(&mut self) {
        let now = &mut self.now;
        now.best = now.best.max(now.links + now.highest);
        (now.links, now.highest) = (0, 0);
    }

    fn statement(&mut self) {
        self.open.clear();
        self.now = Segment::default();
    }
}

#[cfg(test)]
mod tests {
    use super::super::Kind;
    use super::{PARSER_LEVELS, openers, refusal};

    fn refused(text: &str) -> bool {
        refusal(text, Kind::Script).is_some()
    }

    #[test]
    fn every_opener_is_counted() {
        let signs = "([{%&*+-./:<>@^|~";
        let n = u32::try_from(signs.len()).unwrap_or(0) * 100;
        assert_eq!(openers(signs.repeat(100).as_bytes()), n);
        assert_eq!(openers("not await else lambda ".repeat(100).as_bytes()), 400);
        assert_eq!(openers("),]}'\"=;!# abc\n".repeat(100).as_bytes()), 0);
    }

    #[test]
    fn wide_is_not_deep() {
        let n = PARSER_LEVELS as usize * 3;
        for line in ["f(-1, (2), [3])\n", "x = a.b + c[d]\n", "g = lambda x, y=1: x + y\n"] {
            assert!(!refused(&line.repeat(n)), "{line}");
        }
        assert!(!refused(&format!("x = [{}]", "-1, ".repeat(n))));
        assert!(!refused(&format!("x = [{}]", "lambda a, b: a.b, ".repeat(n))));
        assert!(!refused(&format!("x = {{{}}}", "f'{a:{b}}': {1: (2, -3)},\n".repeat(n))));
        assert!(!refused(&format!("x = '{}'", "(lambda x=".repeat(n))));
    }

    #[test]
    fn deep_is_refused_whatever_hides_it() {
        let deep = "(".repeat(PARSER_LEVELS as usize + 1);
        for text in
            [deep.clone(), format!("f'''{{''' {deep}"), format!("x = f'{{a!r' {deep}"), format!("f({deep}")]
        {
            assert!(refused(&text));
        }
    }
}
