//! From the text of a file to its [`ir::Module`]: the only folder that knows the parser.
//!
//! Takes a decoded text; gives the module, the syntax errors and the comments that may suppress
//! something. A broken file gives what could be parsed. It knows nothing of other files.

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

/// Stack that a thread needs which calls [`lower`] or walks a [`Lowered::module`] by recursion. It is
/// reserved, not used: only what a file's nesting touches becomes memory.
pub const STACK_BYTES: usize = 256 << 20;

/// How deep statements and expressions nest at most in a [`Lowered::module`]; each `elif` is one level.
pub const MAX_LEVELS: u32 = 2_000;

/// At most this many syntax errors of a file are kept.
pub const MAX_ERRORS: usize = 100;

/// What a file holds.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The program. Empty when the file was refused as a whole.
    pub module: ir::Module,
    /// What could not be parsed, in order, without overlaps; at most a hundred.
    pub errors: Vec<SyntaxError>,
    /// What may be fine, and was not looked at, in order.
    pub left_out: Vec<LeftOut>,
    /// The comments that could suppress something, in order.
    pub comments: Vec<Comment>,
}

/// A statement, or a whole file, that is too much: whether it is Python nobody has asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeftOut {
    /// Where.
    pub span: Span,
    /// Why, without a full stop.
    pub message: String,
}

/// Something that is not Python.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyntaxError {
    /// Where.
    pub span: Span,
    /// What is wrong, without a full stop.
    pub message: String,
}

/// A comment that contains `samedevice:` or `noqa`, in upper or lower case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Comment {
    /// From `#` to the end of the line, the line end excluded.
    pub span: Span,
    /// Is there nothing before it on its line?
    pub own_line: bool,
    /// What it speaks of, in whole lines without the last line end.
    ///
    /// After code, that is its own line, together with the lines before it that a string or a `\`
    /// ties to it (no comment can stand on those). Alone on a line it is the next logical line: the
    /// next statement, or the header of a compound one. Alone on a line within brackets, it is the
    /// next line of the text that has code.
    pub covers: Span,
}

/// What sort of file it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind<'a> {
    /// A `.py` file.
    Script,
    /// A `.pyi` file.
    Stub,
    /// The cells of a notebook, one after the other, with the byte offsets at which they begin: lines like `%cd x` and `!ls` are no
    /// errors, and what is wrong in a cell is wrong there alone.
    Notebook(&'a [u32]),
}

impl<'a> Kind<'a> {
    /// What sort of file a source is.
    pub fn of(source: &'a Source) -> Self {
        Self::named(&source.path, source.notebook())
    }

    /// The same for a file with this path.
    pub fn named(path: &Path, notebook: Option<&'a Notebook>) -> Self {
        match notebook {
            Some(notebook) => Self::Notebook(notebook.starts()),
            None if path.extension().is_some_and(|e| e == "pyi") => Self::Stub,
            None => Self::Script,
        }
    }
}

/// Lowers a file. Call it on a thread with a stack of [`STACK_BYTES`].
pub fn lower(file: FileId, text: &str, kind: Kind<'_>) -> Lowered {
    let mut lowered = lower_parts(file, text, kind);
    // Python refuses the file, wherever it has a NUL; the parser takes those in comments and strings.
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

/// Lowers the cells of a notebook, which begin at these offsets.
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
        // What follows in the next cell is another matter.
        let end = ranges.iter().map(|cell| cell.end).find(|&end| comment.span.start < number(end));
        if end.is_some_and(|end| comment.covers.end > number(end)) {
            comment.covers = comment.span;
        }
    }
    lowered
}

/// Lowers what has been parsed. Statements that are nested too deeply are left out. `cells`: those of a notebook.
fn lowered(file: FileId, text: &str, parsed: &Parsed<ModModule>, cells: &[Range<usize>]) -> Lowered {
    let mut cuts = Cuts::default();
    // The second time it is known what to leave out.
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

/// The syntax of a file, for edits in it; nothing if it is not Python as it stands, or nests too deeply to be looked into. Call it on a
/// thread with a stack of [`STACK_BYTES`].
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

/// The parser's errors, without those that stand within an earlier one.
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

/// `raise;` is Python, but the parser misses an exception before the semicolon.
fn is_end_of_raise(text: &str, error: Span) -> bool {
    let Some((before, after)) = text.split_at_checked(error.start as usize) else { return false };
    let before = before.trim_end_matches([' ', '\t', '\x0c', '\\', '\r', '\n']);
    let word = before.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next();
    word == Some("raise") && after.starts_with(';')
}

/// The range of a node in our terms.
fn span(node: impl Ranged) -> Span {
    let range = node.range();
    Span::new(range.start().to_u32(), range.end().to_u32())
}
