//! From the text of a comment to the suppressions in it.
//!
//! `# samedevice: ignore[SD101, unguarded-cuda] reason`, `# samedevice: ignore`, the same with `file-ignore`, and `# noqa: SD101` or a bare
//! `# noqa`. One comment may contain several, and also pragmas of other tools.

use crate::config::Selector;
use crate::config::selector::UnknownRule;
use crate::rules::page::Page;
use crate::span::Span;
use crate::suggest::closest;

/// What a directive covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `ignore`: the lines that the comment covers.
    Ignore,
    /// `file-ignore`: the file.
    FileIgnore,
    /// `noqa`: the line at whose end it stands.
    Noqa,
}

/// A suppression.
#[derive(Debug)]
pub struct Directive {
    /// Its range in the file, from its `#` to the end of its reason.
    pub span: Span,
    /// What it covers.
    pub kind: Kind,
    /// The rules that it lists. `None`: all rules.
    pub items: Option<Vec<Item>>,
}

/// One rule in a list.
#[derive(Debug)]
pub struct Item {
    /// The text in the comment.
    pub text: String,
    /// Its place in the file.
    pub span: Span,
    /// The rules that it selects. `None`: a code of another tool.
    pub selector: Option<Result<Selector, UnknownRule>>,
}

/// A comment that starts like a suppression, but is none.
#[derive(Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Its place in the file.
    pub span: Span,
    /// What is wrong with it.
    pub message: String,
    /// What to write instead.
    pub help: String,
}

/// Finds the suppressions in a comment. `comment` is its text, from the `#`; `start` is its offset in the
/// file.
pub fn parse(comment: &str, start: u32, pages: &[Page]) -> Vec<Result<Directive, Malformed>> {
    let starts: Vec<usize> =
        comment.match_indices('#').map(|(at, _)| at).filter(|&at| is_pragma(&comment[at..])).collect();
    let ends = starts.iter().skip(1).copied().chain([comment.len()]);
    let segments = starts.iter().zip(ends).map(|(&from, to)| Segment { comment, from, to, start, pages });
    segments.filter_map(|segment| segment.parse()).collect()
}

/// Whether a pragma starts at this `#`: a word and a colon, or `noqa`. If not, the `#` is part of a text.
fn is_pragma(text: &str) -> bool {
    let text = text[1..].trim_start();
    let word: &str = &text[..text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len())];
    !word.is_empty()
        && (word.eq_ignore_ascii_case("noqa") || text[word.len()..].trim_start().starts_with(':'))
}

/// The part of a comment from the `#` of one pragma to the `#` of the next.
struct Segment<'a> {
    comment: &'a str,
    from: usize,
    to: usize,
    start: u32,
    pages: &'a [Page],
}

impl Segment<'_> {
    fn parse(&self) -> Option<Result<Directive, Malformed>> {
        let text = self.comment[self.from..self.to].trim_end();
        let body = text[1..].trim_start();
        let colon = |rest: &'_ str| rest.trim_start().starts_with(':');
        if let Some(rest) = strip_word(body, "samedevice").filter(|rest| colon(rest)) {
            return Some(self.samedevice(&rest.trim_start()[1..]));
        }
        let rest = strip_word(body, "noqa")?;
        if colon(rest) {
            self.noqa(&rest.trim_start()[1..]).map(Ok)
        } else {
            Some(Ok(self.directive(Kind::Noqa, None)))
        }
    }

    /// Parses the text after `samedevice:`.
    fn samedevice(&self, rest: &str) -> Result<Directive, Malformed> {
        let rest = rest.trim_start();
        let length =
            rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_').unwrap_or(rest.len());
        let (word, rest) = rest.split_at(length);
        let kind = match word.to_ascii_lowercase().as_str() {
            "ignore" => Kind::Ignore,
            "file-ignore" => Kind::FileIgnore,
            _ => {
                let help = closest(word, ["ignore", "file-ignore"]).unwrap_or("ignore[SD101]");
                return Err(
                    self.malformed(&format!("`{word}` is not a directive"), format!("write `{help}`"))
                );
            }
        };
        let reason = rest.trim_start();
        if let Some(list) = reason.strip_prefix('[') {
            let Some(end) = list.find(']') else {
                return Err(self.malformed("the list of rules has no closing bracket", "add `]`".to_owned()));
            };
            let items: Vec<_> = self.items(&list[..end], |c| c == ',', |_| true).collect();
            if items.is_empty() {
                let help = format!("name the rules, or remove the brackets to {word} all rules");
                return Err(self.malformed("the list of rules is empty", help));
            }
            return Ok(self.directive(kind, Some(items)));
        }
        // `ignore SD101` and `ignore: SD101` would suppress all rules, although they look as if they suppressed one.
        let first = reason.trim_start_matches([':', '=', '(', ' ']);
        let first =
            first.split(|c: char| c.is_whitespace() || matches!(c, ',' | ')' | ':')).next().unwrap_or("");
        if Selector::parse(first, self.pages).is_ok() && !first.eq_ignore_ascii_case("all") {
            let help = format!("write `{word}[{first}]`");
            return Err(self.malformed("the rules are not in brackets", help));
        }
        Ok(self.directive(kind, None))
    }

    /// Parses the text after `noqa:`. Only codes with the form of samedevice's codes count.
    fn noqa(&self, rest: &str) -> Option<Directive> {
        let items: Vec<_> = self
            .items(rest, |c| c == ',' || c.is_whitespace(), is_ours)
            .take_while(|item| is_code(&item.text))
            .collect();
        items.iter().any(|item| item.selector.is_some()).then(|| self.directive(Kind::Noqa, Some(items)))
    }

    /// The non-empty items of a part of the comment, each with the rules that it selects if `ours` is true for it.
    fn items<'t>(
        &'t self,
        list: &'t str,
        separator: fn(char) -> bool,
        ours: fn(&str) -> bool,
    ) -> impl Iterator<Item = Item> + 't {
        list.split(separator).filter(|piece| !piece.trim().is_empty()).map(move |piece| {
            let text = piece.trim();
            let span = self.span_of(text);
            let selector = ours(text).then(|| Selector::parse(text, self.pages));
            Item { text: text.to_owned(), span, selector }
        })
    }

    /// The place in the file of a piece of the comment.
    fn span_of(&self, piece: &str) -> Span {
        let at = piece.as_ptr().addr().saturating_sub(self.comment.as_ptr().addr());
        self.offsets(at, at + piece.len())
    }

    fn offsets(&self, from: usize, to: usize) -> Span {
        let offset = |at: usize| self.start.saturating_add(u32::try_from(at).unwrap_or(u32::MAX));
        Span::new(offset(from), offset(to))
    }

    fn span(&self) -> Span {
        let text = self.comment[self.from..self.to].trim_end();
        self.offsets(self.from, self.from + text.len())
    }

    fn directive(&self, kind: Kind, items: Option<Vec<Item>>) -> Directive {
        Directive { span: self.span(), kind, items }
    }

    fn malformed(&self, what: &str, help: String) -> Malformed {
        Malformed { span: self.span(), message: format!("malformed suppression: {what}"), help }
    }
}

/// The text after `word`, if `text` starts with it as a whole word. Ignores case.
fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let rest = text.get(word.len()..)?;
    let whole = !rest.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-'));
    (text[..word.len()].eq_ignore_ascii_case(word) && whole).then_some(rest)
}

/// Does it have the form of a code of samedevice?
fn is_ours(text: &str) -> bool {
    text.get(..2).is_some_and(|prefix| prefix.eq_ignore_ascii_case("SD"))
        && text.bytes().skip(2).all(|b| b.is_ascii_digit())
}

/// Letters followed by digits, as in the codes of all linters.
fn is_code(text: &str) -> bool {
    let digits = text.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    digits.len() < text.len() && !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::config::sample::pages;

    /// The parsed directives in a short form.
    fn read(comment: &str) -> String {
        let show = |result| match result {
            Err(super::Malformed { message, help, .. }) => format!("{message} ({help})"),
            Ok(super::Directive { span, kind, items }) => {
                let item = |i: &super::Item| match &i.selector {
                    None => format!("{}~", i.text),
                    Some(Err(_)) => format!("{}?", i.text),
                    Some(Ok(selector)) => {
                        assert_eq!(i.span.slice(&format!("ab{comment}")), i.text);
                        selector.to_string()
                    }
                };
                let items =
                    items.map_or("all".to_owned(), |i| i.iter().map(item).collect::<Vec<_>>().join(" "));
                format!("{}..{} {kind:?} {items}", span.start, span.end)
            }
        };
        parse(comment, 2, pages()).into_iter().map(show).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn directives_are_read_as_people_write_them() {
        assert_eq!(read("# samedevice: ignore[SD101, unguarded-cuda] why"), "2..49 Ignore SD101 SD101");
        assert_eq!(read("#SameDevice:ignore [sd2,SD999] "), "2..32 Ignore SD2 SD999?");
        assert_eq!(read("# samedevice: ignore"), "2..22 Ignore all");
        assert_eq!(read("# samedevice: file-ignore: legacy"), "2..35 FileIgnore all");
        assert_eq!(read("# samedevice is nice"), "");
        assert_eq!(read("# see #12"), "");
    }

    #[test]
    fn noqa_counts_for_our_codes_only() {
        assert_eq!(read("# noqa"), "2..8 Noqa all");
        assert_eq!(read("# NOQA because"), "2..16 Noqa all");
        assert_eq!(read("# noqa: E501,sd101 W291 and more"), "2..34 Noqa E501~ SD101 W291~");
        assert_eq!(read("# noqa : SD1O1 SD999"), "");
        assert_eq!(read("# noqa:SD999"), "2..14 Noqa SD999?");
        for other in ["# noqa: E501", "# noqa:", "# noqa: reason", "# noqas", "# ruff: noqa"] {
            assert_eq!(read(other), "", "{other}");
        }
    }

    #[test]
    fn several_pragmas_share_a_comment() {
        assert_eq!(
            read("# type: ignore # samedevice: ignore[SD101] see #7 # noqa: SD2, é"),
            "17..51 Ignore SD101; 52..67 Noqa SD2"
        );
    }

    #[test]
    fn slips_are_told() {
        assert!(
            read("# samedevice: ingore[SD101]").ends_with("`ingore` is not a directive (write `ignore`)")
        );
        assert!(read("# samedevice: ignore SD101").ends_with("(write `ignore[SD101]`)"));
        assert!(read("# samedevice: ignore: unguarded-cuda").ends_with("(write `ignore[unguarded-cuda]`)"));
        assert!(read("# samedevice: ignore[SD101").contains("no closing bracket"));
        assert!(read("# samedevice: ignore[ , ]").contains("is empty"));
        assert!(read("# samedevice:").contains("`` is not a directive"));
    }
}
