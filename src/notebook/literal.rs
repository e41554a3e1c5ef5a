//! JSON strings, character by character: what each stands for, and how it is written.

use std::ops::Range;

/// One character of a string.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Unit {
    /// What it stands for.
    pub decoded: char,
    /// Where it is written, in bytes of the file: one character, or an escape sequence.
    pub raw: Range<usize>,
}

/// The characters of the string that stands at these bytes of the file, quotes included. Half of a surrogate pair, which no
/// text of Rust or of a file can hold, becomes U+FFFD.
pub(super) fn units(file: &str, literal: Range<usize>) -> Units<'_> {
    Units { file, at: literal.start + 1, end: literal.end.saturating_sub(1) }
}

/// See [`units`].
pub(super) struct Units<'a> {
    file: &'a str,
    at: usize,
    end: usize,
}

impl Iterator for Units<'_> {
    type Item = Unit;

    fn next(&mut self) -> Option<Unit> {
        let rest = self.file.get(self.at..self.end)?;
        let first = rest.chars().next()?;
        let (decoded, length) = if first == '\\' { escape(rest) } else { (first, first.len_utf8()) };
        let raw = self.at..(self.at + length).min(self.end);
        self.at = raw.end;
        Some(Unit { decoded, raw })
    }
}

/// The character of the escape sequence that the text begins with, and how many bytes that takes.
fn escape(text: &str) -> (char, usize) {
    match text.as_bytes().get(1) {
        Some(b'n') => ('\n', 2),
        Some(b't') => ('\t', 2),
        Some(b'r') => ('\r', 2),
        Some(b'b') => ('\u{8}', 2),
        Some(b'f') => ('\u{c}', 2),
        Some(b'u') => code_point(text),
        Some(&other) => (char::from(other), 2),
        None => ('\\', 1),
    }
}

fn code_point(text: &str) -> (char, usize) {
    let unit = |at: usize| {
        let digits = text.get(at..)?.strip_prefix("\\u")?.get(..4)?;
        u32::from_str_radix(digits, 16).ok()
    };
    let Some(high) = unit(0) else { return (char::REPLACEMENT_CHARACTER, 2) };
    match unit(6) {
        Some(low) if (0xd800..0xdc00).contains(&high) && (0xdc00..0xe000).contains(&low) => {
            let point = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
            (char::from_u32(point).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
        }
        _ => (char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER), 6),
    }
}

/// How a character is written in a JSON string. `ascii`: with nothing but ASCII, as Python's `json.dumps` does by default.
pub(super) fn encoded(c: char, ascii: bool) -> String {
    match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\r' => "\\r".to_owned(),
        '\t' => "\\t".to_owned(),
        '\u{8}' => "\\b".to_owned(),
        '\u{c}' => "\\f".to_owned(),
        c if c < ' ' || (ascii && !c.is_ascii()) => {
            let mut pair = [0; 2];
            c.encode_utf16(&mut pair).iter().map(|unit| format!("\\u{unit:04x}")).collect()
        }
        c => c.to_string(),
    }
}

/// Does a piece of JSON hold an escape sequence for a character that is not ASCII?
pub(super) fn escapes_non_ascii(json: &str) -> bool {
    json.match_indices("\\u").any(|(at, _)| {
        let digits = json.get(at + 2..at + 6).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        digits.is_some_and(|code| code > 0x7f) && !is_escaped(json, at)
    })
}

/// Is the backslash at this place itself escaped?
fn is_escaped(json: &str, at: usize) -> bool {
    let before = json.as_bytes().get(..at).unwrap_or_default();
    before.iter().rev().take_while(|&&b| b == b'\\').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::{encoded, escapes_non_ascii, units};

    fn decoded(literal: &str) -> String {
        units(literal, 0..literal.len()).map(|unit| unit.decoded).collect()
    }

    #[test]
    fn every_escape_sequence_is_read() {
        assert_eq!(decoded(r#""a\n\t\r\b\f\/\\\"\u00e9\ud83d\ude00é""#), "a\n\t\r\u{8}\u{c}/\\\"é😀é");
        assert_eq!(decoded(r#""\ud83dx""#), "\u{fffd}x");
        assert_eq!(decoded(r#""""#), "");
        let text = r#""é\n\ud83d\ude00""#;
        let raws: Vec<&str> = units(text, 0..text.len()).map(|unit| &text[unit.raw]).collect();
        assert_eq!(raws, ["é", "\\n", "\\ud83d\\ude00"]);
    }

    #[test]
    fn what_is_written_is_read_again() {
        for ascii in [false, true] {
            let text = "a\"\\\n\r\t\u{8}\u{c}\u{1}\u{7f}é😀\u{2028}";
            let json: String = text.chars().map(|c| encoded(c, ascii)).collect();
            assert_eq!(decoded(&format!("\"{json}\"")), text);
            assert_eq!(serde_json::from_str::<String>(&format!("\"{json}\"")).ok().as_deref(), Some(text));
            assert_eq!(json.is_ascii(), ascii);
        }
    }

    #[test]
    fn escapes_of_other_characters_are_told_apart() {
        assert!(escapes_non_ascii(r"a\u00e9"));
        assert!(!escapes_non_ascii(r"a\u0041"));
        assert!(!escapes_non_ascii(r"a\\u00e9"));
        assert!(!escapes_non_ascii(r"a\u"));
    }
}
