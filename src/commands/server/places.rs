//! Positions and file names as the protocol counts and writes them.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use lsp_types::{Position, PositionEncodingKind, Range, Uri};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::source::Source;
use crate::span::Span;

/// The unit of columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Encoding {
    /// Bytes.
    Utf8,
    /// UTF-16 code units, which every client understands.
    Utf16,
}

impl Encoding {
    /// UTF-8 if the client offers it.
    pub(super) fn chosen(offered: &[PositionEncodingKind]) -> Self {
        if offered.contains(&PositionEncodingKind::UTF8) { Self::Utf8 } else { Self::Utf16 }
    }

    fn width(self, text: &str) -> usize {
        match self {
            Self::Utf8 => text.len(),
            Self::Utf16 => text.encode_utf16().count(),
        }
    }

    /// The position of a byte offset.
    fn position(self, source: &Source, offset: u32) -> Position {
        let row = source.row(offset);
        let start = source.line_starts()[row - 1] as usize;
        let before = source.text().get(start..offset as usize).unwrap_or_default();
        let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Position::new(number(row - 1), number(self.width(before)))
    }

    /// The range of a span.
    pub(super) fn range(self, source: &Source, span: Span) -> Range {
        Range::new(self.position(source, span.start), self.position(source, span.end.max(span.start)))
    }
}

/// What a path in a URI need not escape.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The path of a `file:` URI.
pub(super) fn path_of(uri: &Uri) -> Option<PathBuf> {
    let rest = uri.as_str().strip_prefix("file://")?;
    let path = &rest[rest.find('/')?..];
    let path = percent_decode_str(path).decode_utf8().ok()?;
    // `/c:/code` on Windows
    let drive = cfg!(windows) && path.as_bytes().get(2) == Some(&b':');
    Some(PathBuf::from(if drive { &path[1..] } else { &*path }))
}

/// The `file:` URI of an absolute path.
pub(super) fn uri_of(path: &Path) -> Option<Uri> {
    let text = path.to_str()?.replace(std::path::MAIN_SEPARATOR, "/");
    let slash = if text.starts_with('/') { "" } else { "/" };
    Uri::from_str(&format!("file://{slash}{}", utf8_percent_encode(&text, PLAIN))).ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Encoding, path_of, uri_of};
    use crate::source::Source;
    use crate::span::Span;

    #[test]
    fn columns_are_in_the_unit_that_was_chosen() {
        let source = Source::new("x.py".into(), "x.py".into(), "a\n\u{e9}\u{1f600}x\n".to_owned());
        let at = |encoding: Encoding| encoding.range(&source, Span { start: 8, end: 9 }).start;
        assert_eq!((at(Encoding::Utf8).line, at(Encoding::Utf8).character), (1, 6));
        assert_eq!((at(Encoding::Utf16).line, at(Encoding::Utf16).character), (1, 3));
    }

    #[cfg(not(windows))]
    #[test]
    fn a_path_survives_its_uri() {
        for path in ["/a b/c%20d/\u{e9}#?.py", "/x.py"] {
            let uri = uri_of(Path::new(path));
            assert_eq!(uri.as_ref().and_then(path_of).as_deref(), Some(Path::new(path)), "{uri:?}");
        }
    }
}
