//! The encoding of Python files: UTF-8 unless a byte order mark or a PEP 263 cookie declares another.

use encoding_rs::{Encoding, UTF_16BE, UTF_16LE, X_USER_DEFINED};

use super::read::{MAX_BYTES, Unreadable};

/// Decodes the bytes of a Python file.
///
/// # Errors
/// [`Unreadable`] with the reason, if there can be no text.
pub fn decode(mut bytes: Vec<u8>) -> Result<String, Unreadable> {
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Unreadable::TooLarge);
    }
    let mark = bytes.starts_with(b"\xef\xbb\xbf");
    if mark {
        bytes.drain(..3);
    }
    match cookie(&bytes) {
        None => utf8(bytes, ", and it declares no other encoding (PEP 263)"),
        Some(name) => match Charset::named(&name) {
            None => Err(Unreadable::UnknownEncoding(name)),
            Some(Charset::Utf8) => utf8(bytes, ""),
            Some(_) if mark => Err(Unreadable::MarkAgainstCookie(name)),
            Some(charset) => charset.decode(bytes, name),
        },
    }
}

/// A text that cannot be written in its file's encoding.
#[derive(Debug, thiserror::Error)]
pub enum Unencodable {
    /// The encoding of the file has no such character.
    #[error("its encoding, `{0}`, has no character for what would be written")]
    NoCharacter(String),
    /// The first lines now declare another encoding, or one that is not known.
    #[error("its declared encoding would change")]
    Cookie,
}

/// The bytes of a Python file with a new text: in the encoding, and with the byte order mark, of the bytes that it has now.
///
/// # Errors
/// [`Unencodable`] with the reason, if the text cannot be written so.
pub fn encode(old: &[u8], text: &str) -> Result<Vec<u8>, Unencodable> {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    let mark = old.starts_with(MARK);
    let old_cookie = cookie(if mark { &old[MARK.len()..] } else { old });
    if cookie(text.as_bytes()) != old_cookie {
        return Err(Unencodable::Cookie);
    }
    let charset = match &old_cookie {
        None => Charset::Utf8,
        Some(name) => Charset::named(name).ok_or(Unencodable::Cookie)?,
    };
    let bytes =
        charset.encode(text).ok_or_else(|| Unencodable::NoCharacter(old_cookie.unwrap_or_default()))?;
    Ok(if mark { [MARK, &bytes].concat() } else { bytes })
}

pub(super) fn utf8(bytes: Vec<u8>, hint: &'static str) -> Result<String, Unreadable> {
    String::from_utf8(bytes).map_err(|error| {
        let bytes = error.as_bytes();
        let wide =
            [&b"\xff\xfe"[..], b"\xfe\xff", b"\0\0\xfe\xff"].iter().any(|mark| bytes.starts_with(mark));
        if wide { Unreadable::Wide } else { at(bytes, error.utf8_error().valid_up_to(), "UTF-8", hint) }
    })
}

/// The error about the byte at this offset.
fn at(bytes: &[u8], offset: usize, encoding: &str, hint: &'static str) -> Unreadable {
    let before = bytes.get(..offset).unwrap_or(bytes);
    let ends = |(i, &b): (usize, &u8)| b == b'\n' || (b == b'\r' && before.get(i + 1) != Some(&b'\n'));
    Unreadable::NotEncoded {
        encoding: encoding.to_owned(),
        byte: bytes.get(offset).copied().unwrap_or(0),
        row: before.iter().enumerate().filter(|&pair| ends(pair)).count() + 1,
        hint,
    }
}

/// What a cookie can ask for. Two names mean less to Python than to the web, whose tables `encoding_rs` has:
/// there, `latin-1` and `ascii` are both windows-1252.
enum Charset {
    Utf8,
    Latin1,
    Ascii,
    Web(&'static Encoding),
}

impl Charset {
    /// The encoding that Python has under this name, if it can be had here.
    fn named(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase().replace('_', "-");
        match name.as_str() {
            "utf-8" | "utf8" | "u8" | "utf-8-sig" | "cp65001" => return Some(Self::Utf8),
            // UTF-8 with what every Python has by now (the package `future-fstrings`).
            "future-fstrings" | "utf8-future-fstrings" => return Some(Self::Utf8),
            "latin-1" | "latin1" | "latin" | "l1" | "iso-8859-1" | "iso8859-1" | "8859" | "cp819"
            | "iso-latin-1" => return Some(Self::Latin1),
            "ascii" | "us-ascii" | "646" => return Some(Self::Ascii),
            // As CPython's tokenizer has it: whatever follows the name of these is a line end convention.
            _ if name.starts_with("utf-8-") => return Some(Self::Utf8),
            _ if name.starts_with("latin-1-") || name.starts_with("iso-8859-1-") => {
                return Some(Self::Latin1);
            }
            _ => {}
        }
        let web = match name.as_str() {
            "cp932" | "mskanji" | "ms-kanji" => "windows-31j",
            "cp936" => "gbk",
            "cp949" | "uhc" => "windows-949",
            "cp950" => "big5",
            "mac-roman" | "macroman" => "macintosh",
            other => other,
        };
        let encoding = Encoding::for_label(web.as_bytes())
            .or_else(|| Encoding::for_label(web.replace('-', "_").as_bytes()))?;
        let usable = encoding.is_ascii_compatible()
            && ![UTF_16BE, UTF_16LE, X_USER_DEFINED].contains(&encoding)
            && encoding.name() != "replacement";
        usable.then_some(Self::Web(encoding))
    }

    fn decode(&self, bytes: Vec<u8>, name: String) -> Result<String, Unreadable> {
        match self {
            Self::Utf8 => utf8(bytes, ""),
            Self::Latin1 => Ok(encoding_rs::mem::decode_latin1(&bytes).into_owned()),
            Self::Ascii => match bytes.iter().position(|b| !b.is_ascii()) {
                Some(offset) => Err(at(&bytes, offset, "ASCII, which it declares", "")),
                None => utf8(bytes, ""),
            },
            Self::Web(encoding) => encoding
                .decode_without_bom_handling_and_without_replacement(&bytes)
                .map(std::borrow::Cow::into_owned)
                .ok_or(Unreadable::NotAsDeclared(name)),
        }
    }

    /// The bytes of the text; nothing if it has a character that the encoding has not.
    fn encode(&self, text: &str) -> Option<Vec<u8>> {
        match self {
            Self::Utf8 => Some(text.as_bytes().to_vec()),
            Self::Latin1 => text.chars().map(|c| u8::try_from(u32::from(c)).ok()).collect(),
            Self::Ascii => text.is_ascii().then(|| text.as_bytes().to_vec()),
            Self::Web(encoding) => {
                // Some encodings can be read and are never written.
                let (bytes, used, unmappable) = encoding.encode(text);
                (used == *encoding && !unmappable).then(|| bytes.into_owned())
            }
        }
    }
}

/// The name in the PEP 263 cookie: a comment in the first line, or in the second if the first has nothing
/// but blanks and a comment.
fn cookie(bytes: &[u8]) -> Option<String> {
    let (first, rest) = split_line(bytes);
    match comment(first) {
        Comment::Code => return None,
        Comment::Blank => {}
        Comment::Text(text) => {
            if let Some(name) = declared(text) {
                return Some(name);
            }
        }
    }
    match comment(split_line(rest).0) {
        Comment::Text(text) => declared(text),
        Comment::Blank | Comment::Code => None,
    }
}

/// The first line without its end, and what follows it.
fn split_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes.iter().position(|b| matches!(b, b'\n' | b'\r')).unwrap_or(bytes.len());
    let (line, rest) = bytes.split_at(end);
    (line, rest.strip_prefix(b"\r\n").or_else(|| rest.get(1..)).unwrap_or(rest))
}

/// What a line has besides blanks.
enum Comment<'a> {
    Blank,
    Text(&'a [u8]),
    Code,
}

fn comment(line: &[u8]) -> Comment<'_> {
    match line.iter().position(|b| !matches!(b, b' ' | b'\t' | b'\x0c')) {
        None => Comment::Blank,
        Some(at) if line[at] == b'#' => Comment::Text(&line[at..]),
        Some(_) => Comment::Code,
    }
}

/// `coding[:=][ \t]*([-_.a-zA-Z0-9]+)`, leftmost.
fn declared(comment: &[u8]) -> Option<String> {
    const WORD: &[u8] = b"coding";
    comment.windows(WORD.len() + 1).enumerate().find_map(|(at, window)| {
        let (word, sign) = window.split_at(WORD.len());
        if word != WORD || !matches!(sign, b":" | b"=") {
            return None;
        }
        let rest = comment.get(at + WORD.len() + 1..)?;
        let name: String = rest
            .iter()
            .skip_while(|b| matches!(b, b' ' | b'\t'))
            .take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
            .map(|&b| char::from(b))
            .collect();
        (!name.is_empty()).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::{cookie, decode, encode};

    fn reason(bytes: &[u8]) -> String {
        decode(bytes.to_vec()).map_or_else(|error| error.to_string(), |text| format!("read as {text:?}"))
    }

    fn text(bytes: &[u8]) -> String {
        decode(bytes.to_vec()).unwrap_or_else(|error| format!("error: {error}"))
    }

    #[test]
    fn cookies_are_found_where_python_looks() {
        for (source, name) in [
            (&b"# coding: latin-1\n"[..], Some("latin-1")),
            (b"#!/usr/bin/python\r\n# -*- coding: cp1252 -*-\r\n", Some("cp1252")),
            (b"#!x\r# vim: set fileencoding=utf8 :\r", Some("utf8")),
            (b"\n \t\x0c# coding=koi8_r", Some("koi8_r")),
            (b"\n\n# coding=koi8-r", None),
            (b"\r\n\r\n# coding=koi8-r", None),
            (b"x = 1\n# coding: latin-1", None),
            (b"x = 1 # coding: latin-1", None),
            (b"# coding :latin-1", None),
            (b"# coding: coding:\n# coding: b", Some("coding")),
            (b"# decoding coding= \n", None),
            (b"", None),
        ] {
            assert_eq!(cookie(source).as_deref(), name, "{}", String::from_utf8_lossy(source));
        }
    }

    #[test]
    fn the_declared_encoding_decodes() {
        assert_eq!(text(b"# coding: latin-1\n\xe9\x80"), "# coding: latin-1\n\u{e9}\u{80}");
        assert_eq!(text(b"# coding: iso_8859_1\n\x80"), "# coding: iso_8859_1\n\u{80}");
        assert_eq!(text(b"# coding: cp1252\n\x80"), "# coding: cp1252\n€");
        assert_eq!(text(b"# coding: cp932\n\x82\xa0"), "# coding: cp932\nあ");
        assert_eq!(text(b"# coding: KOI8_R\n\xc1"), "# coding: KOI8_R\nа");
        assert_eq!(text(b"# coding: euc_jp\n\xa4\xa2"), "# coding: euc_jp\nあ");
        assert_eq!(text("# coding: utf8\né".as_bytes()), "# coding: utf8\né");
        assert_eq!(
            text("# -*- coding: future_fstrings -*-\né".as_bytes()),
            "# -*- coding: future_fstrings -*-\né"
        );
    }

    #[test]
    fn marks_go_and_everything_else_stays() {
        assert_eq!(text(b"\xef\xbb\xbfx = 1\r\n\x0cy\0\r"), "x = 1\r\n\x0cy\0\r");
        assert_eq!(text(b"\xef\xbb\xbf# coding: utf-8\n"), "# coding: utf-8\n");
        assert_eq!(text(b""), "");
    }

    #[test]
    fn a_text_is_encoded_as_its_file_was() {
        let again = |old: &[u8], add: &str| {
            let text = decode(old.to_vec()).unwrap_or_default() + add;
            encode(old, &text).map_err(|error| error.to_string())
        };
        let latin = b"# coding: latin-1\r\nx = '\xe9\x80'\r\n";
        assert_eq!(again(latin, ""), Ok(latin.to_vec()));
        assert!(again(latin, "y = '\u{20ac}'").is_err_and(|why| why.contains("latin-1")));
        let japanese = b"# coding: cp932\n\x82\xa0";
        assert_eq!(again(japanese, "\u{3044}"), Ok([&japanese[..], b"\x82\xa2"].concat()));
        let marked = b"\xef\xbb\xbfx = 1\n";
        assert_eq!(again(marked, "\u{e9}"), Ok([&marked[..], "\u{e9}".as_bytes()].concat()));
        assert!(again(b"# coding: ascii\n", "\u{e9}").is_err());
        assert!(encode(b"x = 1\n", "# coding: latin-1\nx = 1\n").is_err());
    }

    #[test]
    fn what_cannot_be_decoded_says_why() {
        assert_eq!(
            reason(b"a\r\nb\n\xe9"),
            "it is not UTF-8 (byte 0xe9 in line 3), and it declares no other encoding (PEP 263)"
        );
        assert_eq!(reason(b"# coding: utf8\n\xe9"), "it is not UTF-8 (byte 0xe9 in line 2)");
        assert_eq!(
            reason(b"# coding: ascii\n\xe9"),
            "it is not ASCII, which it declares (byte 0xe9 in line 2)"
        );
        assert_eq!(
            reason(b"# coding: rot13\n"),
            "it declares the encoding `rot13`, which samedevice does not know"
        );
        assert_eq!(
            reason(b"# coding: utf-16\n"),
            "it declares the encoding `utf-16`, which samedevice does not know"
        );
        assert_eq!(
            reason(b"# coding: sjis\n\xff"),
            "it declares the encoding `sjis`, but its bytes are not valid in it"
        );
        assert!(reason(b"\xef\xbb\xbf# coding: cp1252\n").contains("byte order mark"));
        assert!(reason(b"\xff\xfex\0").contains("UTF-16"));
    }
}
