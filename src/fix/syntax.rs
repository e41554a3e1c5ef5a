//! The syntax of a file to be edited: finds nodes and tokens by place.

use rustpython_ast::find_node::covering_node;
use rustpython_ast::token::{Token, TokenKind, parenthesized_range};
use rustpython_ast::{AnyNodeRef, ExprCall, ExprRef, ModModule, StmtFunctionDef};
use rustpython_parser::Parsed;
use rustpython_text_size::{Ranged, TextRange, TextSize};

use crate::lower::{self, Kind};
use crate::span::{FileId, Place, Span};

/// A parsed file.
pub(super) struct Syntax<'a> {
    file: FileId,
    pub(super) text: &'a str,
    parsed: Parsed<ModModule>,
}

impl<'a> Syntax<'a> {
    /// Parses a file; `None` if it has syntax errors.
    pub(super) fn new(file: FileId, text: &'a str, kind: Kind) -> Option<Self> {
        Some(Self { file, text, parsed: lower::syntax(text, kind)? })
    }

    /// The whole file.
    pub(super) fn module(&self) -> &ModModule {
        self.parsed.syntax()
    }

    /// The place of a range in this file.
    pub(super) fn place(&self, span: Span) -> Place {
        Place { file: self.file, span }
    }

    /// The nodes around a range, the file first; empty if the range is not in the file.
    pub(super) fn around(&self, at: Span) -> Vec<AnyNodeRef<'_>> {
        let root = AnyNodeRef::from(self.module());
        let range = range(at);
        if !root.range().contains_range(range) {
            return Vec::new();
        }
        let mut nodes: Vec<_> = covering_node(root, range).ancestors().collect();
        nodes.reverse();
        nodes
    }

    /// The innermost expression with exactly this range.
    pub(super) fn expr(&self, at: Span) -> Option<ExprRef<'_>> {
        let exact = |node: &AnyNodeRef<'_>| span(node) == at && node.is_expression();
        self.around(at).into_iter().rev().find(exact)?.as_expr_ref()
    }

    /// The call with exactly this range.
    pub(super) fn call(&self, at: Span) -> Option<&ExprCall> {
        let exact = |node: AnyNodeRef<'_>| node.range() == range(at);
        self.around(at).into_iter().rev().find_map(|node| match node {
            AnyNodeRef::ExprCall(call) if exact(node) => Some(call),
            _ => None,
        })
    }

    /// The functions around a range, the outermost first. A decorator, a default or an annotation is outside its function.
    pub(super) fn functions(&self, at: Span) -> Vec<&StmtFunctionDef> {
        let nodes = self.around(at).into_iter();
        let functions = nodes.filter_map(|node| match node {
            AnyNodeRef::StmtFunctionDef(function) => Some(function),
            _ => None,
        });
        functions.filter(|f| f.body.first().is_some_and(|first| start(first) <= at.start)).collect()
    }

    /// The range of an expression with the parentheses around it, if there are any.
    pub(super) fn parenthesized(&self, e: ExprRef<'_>) -> Span {
        let around = self.around(span(&e));
        let parent = around.iter().rev().find(|node| node.range() != e.range());
        parent
            .and_then(|parent| parenthesized_range(e, *parent, self.parsed.tokens()))
            .map_or_else(|| span(&e), |range| span(&range))
    }

    /// The tokens in a range that begins and ends at the boundaries of nodes.
    pub(super) fn tokens(&self, at: Span) -> &[Token] {
        self.parsed.tokens().in_range(range(at))
    }

    /// All tokens of the file.
    pub(super) fn all_tokens(&self) -> &[Token] {
        self.parsed.tokens()
    }

    /// Does the range contain a comment?
    pub(super) fn has_comment(&self, at: Span) -> bool {
        let within = |token: &&Token| token.start().to_u32() < at.end && token.end().to_u32() > at.start;
        let tokens = self.parsed.tokens().iter();
        tokens.filter(within).any(|token| token.kind() == TokenKind::Comment)
    }

    /// The text of a node.
    pub(super) fn slice(&self, node: &impl Ranged) -> &'a str {
        span(node).slice(self.text)
    }

    /// The line end that the file uses.
    pub(super) fn line_end(&self) -> &'static str {
        let end = self.text.find(['\n', '\r']).map(|at| &self.text[at..]);
        match end {
            Some(rest) if rest.starts_with("\r\n") => "\r\n",
            Some(rest) if rest.starts_with('\r') => "\r",
            _ => "\n",
        }
    }

    /// The lines of a statement with their line ends, if they contain nothing else.
    pub(super) fn whole_lines(&self, at: Span) -> Option<Span> {
        let indentation = u32::try_from(self.indentation(at.start)?.len()).ok()?;
        let rest = self.text.get(at.end as usize..)?;
        let end = rest.find(['\n', '\r']).unwrap_or(rest.len());
        let line = rest.get(..end)?;
        let stop = if rest[end..].starts_with("\r\n") { end + 2 } else { (end + 1).min(rest.len()) };
        let alone = line.bytes().all(|b| matches!(b, b' ' | b'\t'));
        alone.then(|| Span::new(at.start - indentation, at.end + u32::try_from(stop).unwrap_or(0)))
    }

    /// The indentation of a line, if the offset is the start of its first code.
    pub(super) fn indentation(&self, offset: u32) -> Option<&'a str> {
        let before = self.text.get(..offset as usize)?;
        let line = before.rfind(['\n', '\r']).map_or(before, |end| &before[end + 1..]);
        line.bytes().all(|b| matches!(b, b' ' | b'\t' | b'\x0c')).then_some(line)
    }
}

/// The range of a node.
pub(super) fn span(node: &impl Ranged) -> Span {
    let range = node.range();
    Span::new(range.start().to_u32(), range.end().to_u32())
}

/// The start of a node.
pub(super) fn start(node: &impl Ranged) -> u32 {
    node.start().to_u32()
}

/// The range in the parser's type.
pub(super) fn range(at: Span) -> TextRange {
    TextRange::new(TextSize::new(at.start), TextSize::new(at.end.max(at.start)))
}
