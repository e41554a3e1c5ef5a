//! The cells of a notebook, as one text that the parser can read.
//!
//! An error in one cell must not affect the next, so each cell is first parsed on its own. Statements that are not Python become blanks. So
//! do the names of commands whose argument is Python (`%time train()`). The text keeps its length: every position in it is the same
//! position in the notebook's text.

use std::borrow::Cow;
use std::ops::Range;

use memchr::{memchr, memchr2};
use rustpython_ast::ModModule;
use rustpython_ast::token::TokenKind;
use rustpython_parser::Parsed;
use rustpython_text_size::Ranged;

use super::lowerer::number;
use super::nesting::{self, Refusal};
use super::{Kind, LeftOut, SyntaxError, outdated, parse, span, syntax_errors};
use crate::span::Span;

/// The text of a notebook as Python.
pub(super) struct Readable {
    /// The text, with the same length as the original.
    pub text: String,
    /// The syntax errors, in order.
    pub errors: Vec<SyntaxError>,
    /// The parts that were not checked, in order.
    pub left_out: Vec<LeftOut>,
}

/// The line commands whose argument is a statement that runs in the notebook, each with its options that take a value.
/// <https://ipython.readthedocs.io/en/stable/interactive/magics.html>
const RUNS: [(&str, &str); 4] = [("time", ""), ("timeit", "nrp"), ("prun", "lTsD"), ("memit", "rti")];

/// The cells as byte ranges of the text. `starts`: the positions where they begin.
pub(super) fn ranges(text: &str, starts: &[u32]) -> Vec<Range<usize>> {
    let length = text.len();
    let starts = starts.iter().map(|&start| (start as usize).min(length));
    // A text without cells counts as one cell.
    let mut bounds: Vec<usize> = std::iter::once(0).chain(starts).chain([length]).collect();
    bounds.dedup();
    bounds.windows(2).map(|pair| pair[0]..pair[1]).collect()
}

/// Makes the text of a notebook readable as a whole. `starts`: the positions where the cells begin.
pub(super) fn readable(text: &str, starts: &[u32]) -> Readable {
    let mut all =
        Readable { text: String::with_capacity(text.len()), errors: Vec::new(), left_out: Vec::new() };
    for cell in ranges(text, starts) {
        let Some(own) = text.get(cell.clone()) else { continue };
        let read = one(own);
        let (offset, end) = (number(cell.start), number(cell.end));
        // An error at the end of a cell belongs to that cell, not to the beginning of the next.
        let moved = |span: Span| {
            let start = span.start.saturating_add(offset).min(end.saturating_sub(1));
            Span::new(start, span.end.saturating_add(offset).min(end).max(start))
        };
        all.text.push_str(&read.text);
        all.errors.extend(read.errors.into_iter().map(|e| SyntaxError { span: moved(e.span), ..e }));
        all.left_out.extend(read.left_out.into_iter().map(|l| LeftOut { span: moved(l.span), ..l }));
    }
    all
}

/// Makes one cell readable.
fn one(cell: &str) -> Readable {
    let cell: &str = &without_searches(cell);
    let nothing = |errors, left_out| Readable { text: blank(cell), errors, left_out };
    match nesting::refusal(cell, Kind::Notebook(&[])) {
        Some(Refusal::Wrong(error)) => return nothing(vec![error], Vec::new()),
        Some(Refusal::TooMuch(left_out)) => return nothing(Vec::new(), vec![left_out]),
        None => {}
    }
    let Some(parsed) = parse(cell, Kind::Notebook(&[])) else { return nothing(Vec::new(), Vec::new()) };
    let mut text = with_commands(cell, &parsed);
    let mut errors = syntax_errors(cell, &parsed);
    let is_read = |text: &str| parse(text, Kind::Notebook(&[])).is_some_and(|p| p.errors().is_empty());
    if errors.is_empty() {
        // The argument of a command may be any text.
        if text != cell && !is_read(&text) {
            text = cell.to_owned();
        }
        return Readable { text, errors, left_out: Vec::new() };
    }
    // IPython removes the indentation of the first line from the cell.
    if cell.trim_start_matches(['\n', '\r']).starts_with([' ', '\t']) {
        return nothing(Vec::new(), Vec::new());
    }
    if let Some((patched, renamed)) = outdated::patched(cell) {
        if is_read(&patched) {
            return Readable { text: patched, errors: renamed, left_out: Vec::new() };
        }
        errors.extend(renamed);
        errors.sort_by_key(|error| error.span.start);
    }
    let text = without_errors(cell, &parsed);
    if is_read(&text) { Readable { text, errors, left_out: Vec::new() } } else { nothing(errors, Vec::new()) }
}

/// The text with all characters other than line ends replaced by blanks.
fn blank(text: &str) -> String {
    text.bytes().map(|b| if matches!(b, b'\n' | b'\r') { char::from(b) } else { ' ' }).collect()
}

/// The cell with statements that contain an error replaced by blanks, and also with everything else that is neither a statement nor a
/// comment.
fn without_errors(cell: &str, parsed: &Parsed<ModModule>) -> String {
    // An error after the end of the cell is in its last line.
    let last = number(cell.trim_end().len().saturating_sub(1));
    let here = |at: Span| Span::new(at.start.min(last), at.end);
    let errors: Vec<Range<usize>> =
        parsed.errors().iter().map(|e| lines_of(cell, here(span(e.location)))).collect();
    let statements: Vec<Range<usize>> = parsed.suite().iter().map(|s| lines_of(cell, span(s))).collect();
    let meets = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end;
    let bad: Vec<&Range<usize>> =
        statements.iter().filter(|s| errors.iter().any(|error| meets(s, error))).collect();
    let good: Vec<&Range<usize>> =
        statements.iter().filter(|s| !bad.iter().any(|other| meets(s, other))).collect();
    let mut text = String::with_capacity(cell.len());
    for line in cell.split_inclusive('\n') {
        let start = text.len();
        let here = start..start + line.len();
        let kept = good.iter().any(|range| meets(range, &here))
            || line.starts_with('#') && !bad.iter().any(|range| meets(range, &here));
        let begins = bad.iter().any(|range| range.start == start);
        match rebound(line).filter(|_| begins && !kept) {
            Some(line) => text.push_str(&line),
            None if kept => text.push_str(line),
            None => text.push_str(&blank(line)),
        }
    }
    text
}

/// A line that binds the names of this line to an unknown value, if there is room for it. The value is `_`, the last result of IPython.
fn rebound(line: &str) -> Option<String> {
    let code = line.trim_end_matches(['\n', '\r']);
    let is_name = |name: &str| {
        name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_alphanumeric() || c == '_')
    };
    let names = match ["def ", "async def ", "class "].iter().find_map(|word| code.strip_prefix(word)) {
        Some(rest) => rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next()?,
        None => code.split_once('=').filter(|(_, value)| !value.starts_with('='))?.0.trim_end(),
    };
    if !names.split(',').all(|name| is_name(name.trim())) {
        return None;
    }
    let assignment = format!("{names}=_");
    let room = code.len().checked_sub(assignment.len())?;
    Some(assignment + &" ".repeat(room) + &line[code.len()..])
}

/// The cell with blanks for lines that search for names, such as `torch.*Tensor?`, because the parser does not know them.
fn without_searches(cell: &str) -> Cow<'_, str> {
    let is_search = |line: &str| {
        let name = line.trim();
        let pattern = name.trim_matches('?');
        let asks = name.len() - pattern.len();
        (1..=2).contains(&asks)
            && pattern.contains('*')
            && pattern.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '*' | '%'))
    };
    if !cell.contains('?') || !cell.lines().any(is_search) {
        return Cow::Borrowed(cell);
    }
    let lines = cell.split_inclusive('\n');
    Cow::Owned(lines.map(|line| if is_search(line) { blank(line) } else { line.to_owned() }).collect())
}

/// Extends a range to whole lines.
fn lines_of(text: &str, span: Span) -> Range<usize> {
    let (start, end) = (span.start as usize, (span.end.max(span.start + 1)) as usize);
    let before = text.get(..start).and_then(|before| before.rfind('\n')).map_or(0, |at| at + 1);
    let last = end.saturating_sub(1).min(text.len());
    let after = memchr(b'\n', text.as_bytes().get(last..).unwrap_or_default());
    before..after.map_or(text.len(), |at| last + at + 1)
}

/// The cell with line commands replaced by the statements that they run: `x = %time f()` becomes `x =       f()`.
fn with_commands(cell: &str, parsed: &Parsed<ModModule>) -> String {
    let mut text = cell.to_owned();
    for token in parsed.tokens().iter().filter(|token| token.kind() == TokenKind::IpyEscapeCommand) {
        let start = token.start().to_usize();
        let Some(command) = cell.get(start..token.end().to_usize()) else { continue };
        let Some(length) = length_of_name(command) else { continue };
        let alone =
            cell[..start].rsplit(['\n', '\r', ';']).next().is_some_and(|before| before.trim().is_empty());
        // Blanks at the beginning of a line would be indentation.
        let name = if alone { format!("0;{}", " ".repeat(length - 2)) } else { " ".repeat(length) };
        text.replace_range(start..start + length, &name);
    }
    text
}

/// The number of bytes of a command before the statement that it runs; `None` if it runs none.
fn length_of_name(command: &str) -> Option<usize> {
    // A backslash continues the command on the next line.
    if memchr2(b'\n', b'\r', command.as_bytes()).is_some() {
        return None;
    }
    let rest = command.strip_prefix('%')?;
    let (_, valued) =
        RUNS.iter().find(|(name, _)| rest.strip_prefix(name).is_some_and(|r| r.starts_with([' ', '\t'])))?;
    let mut words = rest.split_whitespace().skip(1);
    let mut word = words.next()?;
    while let Some(option) = word.strip_prefix('-') {
        let takes = option.len() == 1 && valued.contains(option);
        if takes {
            words.next()?;
        }
        word = words.next()?;
    }
    Some(word.as_ptr().addr() - command.as_ptr().addr())
}

#[cfg(test)]
mod tests {
    use super::{one, readable};

    /// The text, with `·` for new blanks at the ends of lines, and the number of errors.
    fn read(cell: &str) -> (String, usize) {
        let read = one(cell);
        assert_eq!(read.text.len(), cell.len());
        let lines: Vec<&str> = read.text.lines().map(str::trim_end).collect();
        (lines.join("|"), read.errors.len())
    }

    #[test]
    fn commands_that_run_statements_are_followed() {
        assert_eq!(read("%time f()\n"), ("0;    f()".to_owned(), 0));
        assert_eq!(read("x = %time f()\n"), ("x =       f()".to_owned(), 0));
        assert_eq!(
            read("if x:\n    %timeit -n 3 -r2 f()\n"),
            ("if x:|    0;               f()".to_owned(), 0)
        );
        for same in
            ["%time", "%timeit -n", "%timer f()", "%time f(", "%cd x", "!time f()", "%time f() \\\n g"]
        {
            assert_eq!(one(same).text, same);
        }
    }

    #[test]
    fn statements_with_errors_become_blanks() {
        assert_eq!(read("a = 1\nb = (\n"), ("a = 1|b=_".to_owned(), 1));
        assert_eq!(read("# c\ndef f(:\n    x\ny = 1\n").0, "# c|f=_||");
        assert_eq!(read("print 'x'\ny = 1\n").0, "|y = 1");
        assert_eq!(read("x=\n").0, "");
        assert_eq!(read("  x = 1\n  y = 2\n"), ("|".to_owned(), 0), "IPython takes the indentation off");
        assert_eq!(read("torch.*Tensor?\nx = 1\n"), ("|x = 1".to_owned(), 0));
    }

    #[test]
    fn an_error_at_the_end_of_a_cell_is_in_that_cell() {
        let read = readable("x = (\ny = 1\n", &[0, 6]);
        assert!(
            read.errors.iter().all(|error| error.span.end <= 6 && error.span.start < 6),
            "{:?}",
            read.errors
        );
        assert_eq!(read.text, "x=_  \ny = 1\n");
    }
}
