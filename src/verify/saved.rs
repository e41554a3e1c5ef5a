//! Saved reports, as shells save them and as people hand them on.

use std::io;
use std::path::Path;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use super::machine::{Machine, SCHEMA};
use crate::source::read;

/// Reads a saved report; `-` is standard input.
///
/// # Errors
/// In words, if there is none or it is none.
pub fn load(path: &Path) -> Result<Machine, String> {
    let (shown, bytes) = if path == Path::new("-") {
        let mut bytes = Vec::new();
        let read = read::upto_max(io::stdin().lock(), &mut bytes);
        let reason = |error: &io::Error| format!("cannot read standard input: {}", read::io_reason(error));
        read.map_err(|error| reason(&error))?;
        if bytes.len() as u64 > read::MAX_BYTES {
            return Err(format!("cannot read standard input: {}", read::Unreadable::TooLarge));
        }
        ("standard input".to_owned(), bytes)
    } else {
        let shown = format!("`{}`", path.display());
        let bytes = read::bytes(path).map_err(|reason| format!("cannot read {shown}: {reason}"))?;
        (shown, bytes)
    };
    let how = "create one with `samedevice verify --output-format json --output-file FILE` on that machine";
    let read = decode(&bytes).and_then(|text| parse(&text));
    read.map_err(|reason| format!("{shown} is {reason}; {how}"))
}

/// The text of the bytes: UTF-8, or UTF-16, which PowerShell before 7 writes with `>`. JSON begins with a character of ASCII, so that the place of
/// the first zero tells the kind of UTF-16 without a byte order mark, too (RFC 4627, section 3).
fn decode(bytes: &[u8]) -> Result<String, String> {
    let encoding = match bytes {
        [0, first, ..] if *first != 0 => UTF_16BE,
        [first, 0, ..] if *first != 0 => UTF_16LE,
        _ => Encoding::for_bom(bytes).map_or(UTF_8, |(encoding, _)| encoding),
    };
    let (text, encoding, damaged) = encoding.decode(bytes);
    if damaged {
        return Err(format!("not a machine report: it is not {}", encoding.name()));
    }
    if text.trim().is_empty() {
        return Err("not a machine report: it is empty".to_owned());
    }
    Ok(text.into_owned())
}

/// The report that this text is.
///
/// # Errors
/// What it is instead, such as "not a machine report: …", with the path of the field that is wrong.
pub fn parse(text: &str) -> Result<Machine, String> {
    let none = |reason: &dyn std::fmt::Display| format!("not a machine report: {reason}");
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| none(&error))?;
    match value.get("schema").and_then(serde_json::Value::as_u64) {
        None => return Err(none(&"it has no `schema`")),
        Some(schema) if schema != u64::from(SCHEMA) => {
            return Err(format!("a report of schema {schema}, and this samedevice reads schema {SCHEMA}"));
        }
        Some(_) => {}
    }
    // From the text, so that the error has its line.
    let mut reader = serde_json::Deserializer::from_str(text);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| match error.path().to_string().as_str() {
        "." => none(&error.inner()),
        path => none(&format_args!("`{path}`: {}", error.inner())),
    })
}

#[cfg(test)]
mod tests {
    use super::{decode, parse};

    #[test]
    fn whatever_a_shell_makes_of_it_is_read() {
        let text = "{\"a\": \"é\"}";
        let le: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let be: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for bytes in [
            text.as_bytes().to_vec(),
            [b"\xef\xbb\xbf", text.as_bytes()].concat(),
            [&b"\xff\xfe"[..], &le].concat(),
            [&b"\xfe\xff"[..], &be].concat(),
            le,
            be,
        ] {
            assert_eq!(decode(&bytes).as_deref(), Ok(text), "{bytes:?}");
        }
        for (bytes, says) in [
            (&b"{\"a\": \"\xff\"}"[..], "it is not UTF-8"),
            (b"", "it is empty"),
            (b"\xff\xfe", "it is empty"),
            (b"\xff\xfe{", "it is not UTF-16LE"),
        ] {
            assert!(decode(bytes).is_err_and(|error| error.contains(says)), "{bytes:?}");
        }
    }

    #[test]
    fn errors_name_the_field() {
        let report = include_str!("../../fixtures/machines/one-gpu.json");
        let changed = |from: &str, to: &str| {
            assert!(report.contains(from));
            parse(&report.replace(from, to)).expect_err("it is wrong")
        };
        let error = changed("\"index\": 0", "\"index\": \"zero\"");
        assert!(
            error.contains("`devices[0].index`: invalid type: string \"zero\", expected u32 at line"),
            "{error}"
        );
        let error = changed("\"kind\": \"answered\"", "\"kind\": \"answers\"");
        assert!(error.contains("`driver.outcome"), "{error}");
        let error = changed("\"status\": \"usable\",", "");
        assert!(error.contains("missing field `status`"), "{error}");
    }
}
