//! `--add-ignore`: adds suppression comments for findings, in the form of fixes.

use rustc_hash::FxHashMap;
use rustpython_ast::token::TokenKind;
use rustpython_text_size::Ranged;

use super::syntax::Syntax;
use crate::discover::Input;
use crate::finding::{Applicability, Code, Edit, Finding, Fix};
use crate::lower::Kind;
use crate::rules::page::Page;
use crate::source::Sources;
use crate::span::{FileId, Place, Span};
use crate::suppress::directive::{self, Directive};

/// Replaces the fix of each finding by a suppression comment that covers it. Nothing is suppressed in a file that was not read completely
/// (SD001, SD003). Only inputs are edited. The thread must have a stack of [`crate::lower::STACK_BYTES`].
pub fn offer_ignores(
    findings: &mut [Finding],
    inputs: &[Input],
    sources: &Sources,
    reason: &str,
    pages: &[Page],
) {
    let mut files: FxHashMap<FileId, Option<Lines<'_>>> = FxHashMap::default();
    for finding in findings {
        finding.fix = None;
        let file = finding.primary.place.file;
        if matches!(finding.code, Code(0 | 1 | 3)) || file.0 as usize >= inputs.len() {
            continue;
        }
        let lines = files.entry(file).or_insert_with(|| {
            let source = sources.get(file);
            Syntax::new(file, source.text(), Kind::of(source)).map(|syntax| Lines::new(syntax, pages))
        });
        finding.fix = lines.as_ref().and_then(|lines| lines.ignore(finding, reason));
    }
}

/// Finds places for comments in a file.
struct Lines<'a> {
    syntax: Syntax<'a>,
    /// The strings, in order: no comment can be inside one.
    strings: Vec<Span>,
    pages: &'a [Page],
}

impl<'a> Lines<'a> {
    fn new(syntax: Syntax<'a>, pages: &'a [Page]) -> Self {
        let (mut strings, mut open) = (Vec::new(), Vec::new());
        for token in syntax.all_tokens() {
            let (start, end) = (token.start().to_u32(), token.end().to_u32());
            match token.kind() {
                TokenKind::String => strings.push(Span::new(start, end)),
                // A magic command takes the whole line as its argument.
                TokenKind::IpyEscapeCommand => strings.push(Span::new(start, end + 1)),
                TokenKind::FStringStart | TokenKind::TStringStart => open.push(start),
                TokenKind::FStringEnd | TokenKind::TStringEnd => {
                    strings.extend(open.pop().map(|start| Span::new(start, end)));
                }
                _ => {}
            }
        }
        Self { syntax, strings, pages }
    }

    /// The comments that cover the finding and the other places of its cause in the same file.
    fn ignore(&self, finding: &Finding, reason: &str) -> Option<Fix> {
        let file = finding.primary.place.file;
        let others = finding.repeated().map(|label| label.place).filter(|place| place.file == file);
        let mut edits: Vec<Edit> = Vec::new();
        for place in std::iter::once(finding.primary.place).chain(others) {
            let edit = self.edit(place, finding.code, reason)?;
            if !edits.contains(&edit) {
                edits.push(edit);
            }
        }
        let message = format!("Ignore {} here", finding.code);
        Some(Fix { message, applicability: Applicability::Safe, edits })
    }

    /// An edit that covers the first line of the place. It adds the code to an existing list, or a comment to the end of the line.
    fn edit(&self, place: Place, code: Code, reason: &str) -> Option<Edit> {
        let end = self.comment_end(place.span.start)?;
        let comments = self.syntax.all_tokens().iter().filter(|token| token.kind() == TokenKind::Comment);
        let comment =
            comments.map(|token| (token.start().to_u32(), token.end().to_u32())).find(|c| c.1 == end);
        let at = |offset: u32| Place { file: place.file, span: Span::new(offset, offset) };
        let Some((start, _)) = comment else {
            let trimmed = self.syntax.text.get(..end as usize)?.trim_end_matches([' ', '\t']).len();
            let span = Span::new(u32::try_from(trimmed).ok()?, end);
            let content = format!("  {}", written(code, reason));
            return Some(Edit { place: Place { file: place.file, span }, content });
        };
        let text = self.syntax.text.get(start as usize..end as usize)?;
        let known = directive::parse(text, start, self.pages).into_iter().flatten();
        let last = |d: Directive| match (d.kind, d.items) {
            (directive::Kind::Ignore, Some(items)) => items.last().map(|item| item.span.end),
            _ => None,
        };
        Some(match known.filter_map(last).next() {
            Some(list) => Edit { place: at(list), content: format!(", {code}") },
            None => Edit { place: at(end), content: format!("  {}", written(code, reason)) },
        })
    }

    /// The end of the first line, from the offset on, at which a comment can be inserted that covers the line of the offset.
    fn comment_end(&self, from: u32) -> Option<u32> {
        let text = self.syntax.text;
        let mut at = from as usize;
        loop {
            let end = text.get(at..)?.find(['\n', '\r']).map_or(text.len(), |length| at + length);
            let offset = u32::try_from(end).ok()?;
            let next = self.strings.partition_point(|string| string.start < offset);
            let within = self.strings[..next].iter().any(|string| string.end > offset);
            if !within && !text.get(..end)?.ends_with('\\') {
                return Some(offset);
            }
            if end == text.len() {
                return None;
            }
            at = end + if text[end..].starts_with("\r\n") { 2 } else { 1 };
        }
    }
}

fn written(code: Code, reason: &str) -> String {
    let blank = if reason.is_empty() { "" } else { " " };
    format!("# samedevice: ignore[{code}]{blank}{reason}")
}
