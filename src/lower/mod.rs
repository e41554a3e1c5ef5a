//! From the text of a file to its [`ir::Module`]. Only this folder knows the parser.
//!
//! Takes a decoded text and returns the module, the syntax errors and the comments that may suppress findings. A file with errors gives
//! what could be parsed. This station knows nothing about other files.

mod bindings;
mod cells;
mod comments;
mod cut;
mod documented;
#[cfg(test)]
mod dump;
mod expr;
mod function;
mod lowerer;
mod nesting;
mod outdated;
mod pattern;
mod scope;
mod stmt;
#[cfg(test)]
mod tests;
pub mod tokens;
mod unreachable;

use std::ops::Range;
use std::path::Path;

use memchr::memchr;
use rustpython_ast::{ModModule, PySourceType, PythonVersion};
use rustpython_parser::{ParseOptions, Parsed, parse_unchecked};
use rustpython_text_size::Ranged;

use self::cut::Cuts;
use self::lowerer::number;
use self::nesting::Refusal;
use crate::ir;
use crate::notebook::Notebook;
use crate::source::Source;
use crate::span::{FileId, Span};

#[cfg(test)]
pub(crate) use dump::dump;

/// The stack size of a thread that calls [`lower`], or that walks a [`Lowered::module`] recursively. The memory is reserved; only what a
/// file's nesting needs is used.
pub const STACK_BYTES: usize = 256 << 20;

/// The maximum nesting depth of statements and expressions in a [`Lowered::module`]. Each `elif` is one level.
pub const MAX_LEVELS: u32 = 2_000;

/// How many syntax errors of a file are kept at most.
pub const MAX_ERRORS: usize = 100;

/// The result of lowering a file.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The program. Empty if the file was refused as a whole.
    pub module: ir::Module,
    /// The syntax errors, in order, without overlaps; at most [`MAX_ERRORS`].
    pub errors: Vec<SyntaxError>,
    /// The parts that were not checked although they may be correct, in order.
    pub left_out: Vec<LeftOut>,
    /// The comments that may suppress findings, in order.
    pub comments: Vec<Comment>,
}

/// A statement, or a whole file, that is too large or too deep to check. It may or may not be valid Python.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeftOut {
    /// Its place.
    pub span: Span,
    /// The reason, without a full stop.
    pub message: String,
}

/// A syntax error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyntaxError {
    /// Its place.
    pub span: Span,
    /// The message, without a full stop.
    pub message: String,
}

/// A comment that contains `samedevice:` or `noqa`, in upper or lower case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Comment {
    /// From `#` to the end of the line, without the line end.
    pub span: Span,
    /// Is the comment alone on its line?
    pub own_line: bool,
    /// The lines that it covers, without the last line end.
    ///
    /// After code, these are its own line, and the lines before it that a string or a `\` joins to it (no comment can be on those). If the
    /// comment is alone on its line, it covers the next logical line: the next statement, or the header of a compound statement. If it is
    /// alone on a line within brackets, it covers the next line with code.
    pub covers: Span,
}

/// The kind of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind<'a> {
    /// A `.py` file.
    Script,
    /// A `.pyi` file.
    Stub,
    /// The cells of a notebook, one after the other, with the byte offsets at which they begin. Lines such as `%cd x` and `!ls` are no
    /// errors, and an error in a cell only affects that cell.
    Notebook(&'a [u32]),
}

impl<'a> Kind<'a> {
    /// The kind of a source.
    pub fn of(source: &'a Source) -> Self {
        Self::named(&source.path, source.notebook())
    }

    /// The kind of a file with this path.
    pub fn named(path: &Path, notebook: Option<&'a Notebook>) -> Self {
        match notebook {
            Some(notebook) => Self::Notebook(notebook.starts()),
            None if path.extension().is_some_and(|e| e == "pyi") => Self::Stub,
            None => Self::Script,
        }
    }
}

/// Lowers a file. The thread must have a stack of [`STACK_BYTES`].
pub fn lower(file: FileId, text: &str, kind: Kind<'_>) -> Lowered {
    let mut lowered = lower_parts(file, text, kind);
    // Python rejects a file with a NUL anywhere; the parser accepts NULs in comments and strings.
    if let Some(at) = memchr(0, text.as_bytes()).and_then(|at| u32::try_from(at).ok()) {
        lowered.errors.retain(|error| memchr(0, error.span.slice(text).as_bytes()).is_none());
        let message = "source code cannot contain null bytes".to_owned();
        lowered.errors.push(SyntaxError { span: Span::new(at, at + 1), message });
        lowered.errors.sort_by_key(|error| error.span.start);
        lowered.errors.truncate(MAX_ERRORS);
    }
    lowered
}

fn lower_parts(file: FileId, text: &str, kind: Kind<'_>) -> Lowered {
    match nesting::refusal(text, kind) {
        Some(Refusal::Wrong(error)) => return refused(file, text, vec![error], Vec::new()),
        Some(Refusal::TooMuch(left_out)) => return refused(file, text, Vec::new(), vec![left_out]),
        None => {}
    }
    if let Kind::Notebook(starts) = kind {
        return notebook(file, text, starts);
    }
    let Some(parsed) = parse(text, kind) else {
        return refused(file, text, Vec::new(), Vec::new());
    };
    let outdated = if parsed.errors().is_empty() { None } else { outdated::patched(text) };
    if let Some((patched, renamed)) = outdated
        && let Some(parsed) = parse(&patched, kind)
    {
        let mut lowered = lowered(file, &patched, &parsed, &[]);
        lowered.errors.extend(renamed);
        lowered.errors.sort_by_key(|error| error.span.start);
        lowered.errors.truncate(MAX_ERRORS);
        return lowered;
    }
    lowered(file, text, &parsed, &[])
}

/// Lowers a notebook whose cells begin at these offsets.
fn notebook(file: FileId, text: &str, starts: &[u32]) -> Lowered {
    let cells::Readable { text, errors, left_out } = cells::readable(text, starts);
    let Some(parsed) = parse(&text, Kind::Notebook(starts)) else {
        return refused(file, &text, errors, left_out);
    };
    let ranges = cells::ranges(&text, starts);
    let mut lowered = lowered(file, &text, &parsed, &ranges);
    lowered.errors.extend(errors);
    lowered.errors.sort_by_key(|error| error.span.start);
    lowered.errors.truncate(MAX_ERRORS);
    lowered.left_out.extend(left_out);
    lowered.left_out.sort_by_key(|left_out| left_out.span.start);
    for comment in &mut lowered.comments {
        // A comment does not cover code in the next cell.
        let end = ranges.iter().map(|cell| cell.end).find(|&end| comment.span.start < number(end));
        if end.is_some_and(|end| comment.covers.end > number(end)) {
            comment.covers = comment.span;
        }
    }
    lowered
}

/// Lowers a parsed file. Leaves out statements that are nested too deeply. `cells`: the cells of a notebook.
fn lowered(file: FileId, text: &str, parsed: &Parsed<ModModule>, cells: &[Range<usize>]) -> Lowered {
    let mut cuts = Cuts::default();
    // The first attempt finds the statements to leave out.
    for _ in 0..2 {
        match lowerer::module(file, text, parsed, &cuts, cells) {
            Ok(module) => {
                let (errors, left_out) = (syntax_errors(text, parsed), cuts.told());
                return Lowered { module, errors, left_out, comments: comments::comments(text, parsed) };
            }
            Err(deep) => deep.into_iter().for_each(|place| cuts.add(place)),
        }
    }
    refused(file, text, Vec::new(), cuts.told())
}

/// The syntax tree of a file, for edits. `None` if the file has syntax errors or nests too deeply. The thread must have a stack of
/// [`STACK_BYTES`].
pub fn syntax(text: &str, kind: Kind<'_>) -> Option<Parsed<ModModule>> {
    if nesting::refusal(text, kind).is_some() || memchr(0, text.as_bytes()).is_some() {
        return None;
    }
    parse(text, kind).filter(|parsed| syntax_errors(text, parsed).is_empty())
}

fn parse(text: &str, kind: Kind<'_>) -> Option<Parsed<ModModule>> {
    let source = match kind {
        Kind::Script => PySourceType::Python,
        Kind::Stub => PySourceType::Stub,
        Kind::Notebook(_) => PySourceType::Ipynb,
    };
    let options = ParseOptions::from(source).with_target_version(PythonVersion::latest());
    parse_unchecked(text, options).try_into_module()
}

fn refused(file: FileId, text: &str, errors: Vec<SyntaxError>, left_out: Vec<LeftOut>) -> Lowered {
    Lowered { module: lowerer::empty(file, text), errors, left_out, comments: Vec::new() }
}

/// The parser's errors, without those inside an earlier one.
fn syntax_errors(text: &str, parsed: &Parsed<ModModule>) -> Vec<SyntaxError> {
    if parsed.errors().is_empty() {
        return Vec::new();
    }
    let mut found: Vec<_> = parsed.errors().iter().map(|e| (span(e.location), e)).collect();
    found.sort_by_key(|(span, _)| (span.start, span.end));
    let mut errors: Vec<SyntaxError> = Vec::new();
    for (span, error) in found {
        let overlaps = |last: &SyntaxError| span.start < last.span.end || span.start == last.span.start;
        if errors.last().is_some_and(overlaps) || is_end_of_raise(text, span) {
            continue;
        }
        if errors.len() == MAX_ERRORS {
            break;
        }
        let message = error.error.to_string().trim_end_matches('.').to_owned();
        errors.push(SyntaxError { span, message });
    }
    errors
}

/// Is the error about a missing exception in `raise;`? That is valid Python, which the parser rejects.
fn is_end_of_raise(text: &str, error: Span) -> bool {
    let Some((before, after)) = text.split_at_checked(error.start as usize) else { return false };
    let before = before.trim_end_matches([' ', '\t', '\x0c', '\\', '\r', '\n']);
    let word = before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next();
    word == Some("raise") && after.starts_with(';')
}

/// The range of a node as a [`Span`].
fn span(node: impl Ranged) -> Span {
    let range = node.range();
    Span::new(range.start().to_u32(), range.end().to_u32())
}
