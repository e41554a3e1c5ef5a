//! What is wrong with a configuration, and where.

use std::fmt;
use std::ops::Range;
use std::path::Path;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};

use crate::report::{is_dangerous, one_line};

/// A mistake in a configuration file or in a flag. The run ends with exit code 2.
#[derive(Debug)]
pub struct ConfigError(Box<Mistake>);

#[derive(Debug)]
struct Mistake {
    message: String,
    /// What to write instead, as a sentence without a full stop.
    help: Option<String>,
    /// The file's name as shown, and its text.
    source: Option<NamedSource<String>>,
    span: Option<Range<usize>>,
}

impl ConfigError {
    /// A mistake that is in no file, such as in a flag.
    pub fn new(message: impl Into<String>) -> Self {
        Self(Box::new(Mistake { message: message.into(), help: None, source: None, span: None }))
    }

    /// Puts words before the message.
    #[must_use]
    pub fn prefixed(mut self, words: &str) -> Self {
        self.0.message.insert_str(0, words);
        self
    }

    /// Says what to write instead.
    #[must_use]
    pub fn help(mut self, help: Option<String>) -> Self {
        self.0.help = help;
        self
    }

    /// The byte range of the mistake in the file that [`ConfigError::in_file`] will name.
    #[must_use]
    pub fn at(mut self, span: Range<usize>) -> Self {
        self.0.span = Some(span);
        self
    }

    /// The file (name as shown, text) that the mistake is in.
    #[must_use]
    pub fn in_file(mut self, name: &str, text: &str) -> Self {
        self.0.source = Some(NamedSource::new(one_line(name), printable(text)));
        self
    }

    /// A configuration file that cannot be read.
    pub fn unreadable(path: &Path, reason: impl fmt::Display) -> Self {
        Self::new(format!("cannot read `{}`: {reason}", path.display()))
    }

    /// The message on one line, after the file and its 1-based row.
    pub fn with_place(&self) -> String {
        let Mistake { message, source, span, .. } = &*self.0;
        let message = one_line(message);
        let Some(source) = source else { return message.into_owned() };
        let before = span.as_ref().and_then(|span| source.inner().get(..span.start));
        let row = before.map(|before| format!(":{}", before.matches('\n').count() + 1)).unwrap_or_default();
        format!("{}{row}: {message}", source.name())
    }

    /// Is there a piece of a file to show?
    pub fn has_source(&self) -> bool {
        self.0.source.is_some() && self.0.span.is_some()
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&one_line(&self.0.message))
    }
}

impl std::error::Error for ConfigError {}

/// The text with every character that a terminal would act on replaced by one that takes as many bytes, so that places stay.
fn printable(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\r' | '\t' => c,
        c if !is_dangerous(c) => c,
        c => match c.len_utf8() {
            1 => '?',
            2 => '\u{bf}',
            _ => char::REPLACEMENT_CHARACTER,
        },
    };
    text.chars().map(shown).collect()
}

impl Diagnostic for ConfigError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.0.help.as_ref().map(|help| Box::new(one_line(help)) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.0.source.as_ref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let label = LabeledSpan::new_with_span(None, self.0.span.clone()?);
        Some(Box::new(std::iter::once(label)))
    }
}
