//! What can be done about a finding, and what is said of it when the pointer rests on it.

use std::path::{Path, PathBuf};

use lsp_types::{
    CodeAction, CodeActionKind, CodeActionOrCommand, CodeActionParams, DocumentChanges, Hover, HoverContents,
    HoverParams, MarkupContent, MarkupKind, OneOf, OptionalVersionedTextDocumentIdentifier, Position, Range,
    TextDocumentEdit, TextEdit, WorkspaceEdit,
};

use super::lint::{Linter, Shown};
use super::places::{path_of, uri_of};
use crate::finding::{Applicability, Edit, Fix};
use crate::fix::apply::{Change, together};
use crate::rules::registry::registry;

/// The kind of the action that applies all safe fixes of a file.
pub(super) const FIX_ALL: &str = "source.fixAll.samedevice";

impl Linter {
    /// The actions for a range: the fixes of its findings, comments that suppress them, and all safe fixes of the file.
    pub(super) fn actions(&self, params: &CodeActionParams) -> Vec<CodeActionOrCommand> {
        let Some(path) = path_of(&params.text_document.uri) else { return Vec::new() };
        let wanted = params.context.only.as_deref();
        // A client that asks for `source.fixAll` means those of all servers.
        let is_wanted = |kind: &str| {
            wanted.is_none_or(|kinds| {
                kinds.iter().any(|k| kind == k.as_str() || kind.starts_with(&format!("{}.", k.as_str())))
            })
        };
        let mut actions = Vec::new();
        if is_wanted("quickfix") {
            let here =
                self.shown.iter().filter(|shown| shown.path == path && meet(shown.range, params.range));
            actions.extend(here.flat_map(|shown| self.quick(shown)));
        }
        if is_wanted(FIX_ALL) {
            actions.extend(self.all_safe(&path));
        }
        actions.into_iter().map(CodeActionOrCommand::CodeAction).collect()
    }

    fn quick(&self, shown: &Shown) -> Vec<CodeAction> {
        let action = |title: String, edits: &[Edit], preferred: bool| {
            Some(CodeAction {
                title,
                kind: Some(CodeActionKind::QUICKFIX),
                diagnostics: Some(vec![self.diagnostic(shown)]),
                edit: Some(self.edit(edits)?),
                is_preferred: Some(preferred),
                ..CodeAction::default()
            })
        };
        let fix = shown.finding.fix.as_ref().filter(|fix| fix.applicability != Applicability::Display);
        let fix = fix.and_then(|fix| {
            let safe = fix.applicability == Applicability::Safe;
            let note = if safe { "" } else { " (unsafe: it may change what the program does)" };
            action(format!("samedevice: {}{note}", fix.message), &fix.edits, safe)
        });
        let code = shown.finding.code;
        let ignore = shown.ignore.as_ref();
        let ignore =
            ignore.and_then(|fix| action(format!("samedevice: suppress {code} here"), &fix.edits, false));
        fix.into_iter().chain(ignore).collect()
    }

    /// All safe fixes of a file that exclude each other nowhere.
    fn all_safe(&self, path: &Path) -> Option<CodeAction> {
        let sources = &self.last.as_ref()?.sources;
        let within = |fix: &&Fix| {
            fix.applicability == Applicability::Safe
                && fix.edits.iter().all(|edit| sources.get(edit.place.file).path == path)
        };
        let fixes: Vec<&Fix> =
            self.shown.iter().filter_map(|shown| shown.finding.fix.as_ref()).filter(within).collect();
        let file = fixes.first()?.edits.first()?.place.file;
        let changes: Vec<Vec<Change>> =
            fixes.iter().map(|fix| fix.edits.iter().map(Change::from).collect()).collect();
        let edit = |change: Change| Edit {
            place: crate::span::Place { file, span: change.span },
            content: change.content,
        };
        let edits: Vec<Edit> = together(&changes).1.into_iter().map(edit).collect();
        Some(CodeAction {
            title: "samedevice: apply all safe fixes".to_owned(),
            kind: Some(CodeActionKind::new(FIX_ALL)),
            edit: Some(self.edit(&edits)?),
            ..CodeAction::default()
        })
    }

    /// The edits, by file. `None` if a file has no URI.
    fn edit(&self, edits: &[Edit]) -> Option<WorkspaceEdit> {
        let sources = &self.last.as_ref()?.sources;
        let mut files: Vec<(PathBuf, Vec<OneOf<TextEdit, lsp_types::AnnotatedTextEdit>>)> = Vec::new();
        for edit in edits {
            let source = sources.get(edit.place.file);
            let one = OneOf::Left(TextEdit::new(
                self.encoding.range(source, edit.place.span),
                edit.content.clone(),
            ));
            match files.iter_mut().find(|(path, _)| *path == source.path) {
                Some((_, edits)) => edits.push(one),
                None => files.push((source.path.clone(), vec![one])),
            }
        }
        let change = |(path, edits): (PathBuf, _)| {
            let text_document =
                OptionalVersionedTextDocumentIdentifier { uri: uri_of(&path)?, version: None };
            Some(TextDocumentEdit { text_document, edits })
        };
        let changes: Option<Vec<_>> = files.into_iter().map(change).collect();
        Some(WorkspaceEdit {
            document_changes: Some(DocumentChanges::Edits(changes?)),
            ..WorkspaceEdit::default()
        })
    }

    /// What the rule of a finding at this position says.
    pub(super) fn hover(&self, params: &HoverParams) -> Option<Hover> {
        let at = &params.text_document_position_params;
        let path = path_of(&at.text_document.uri)?;
        let point = Range::new(at.position, at.position);
        let shown = self.shown.iter().find(|shown| shown.path == path && meet(shown.range, point))?;
        let page = registry().iter().find(|page| page.code == shown.finding.code)?;
        let value = format!(
            "**[{} {}]({})**\n\n{}\n\n{}",
            page.code,
            page.name,
            page.url(),
            page.summary,
            page.why()
        );
        let contents = HoverContents::Markup(MarkupContent { kind: MarkupKind::Markdown, value });
        Some(Hover { contents, range: Some(shown.range) })
    }
}

/// Do the ranges touch?
fn meet(a: Range, b: Range) -> bool {
    let order = |p: Position| (p.line, p.character);
    order(a.start) <= order(b.end) && order(b.start) <= order(a.end)
}
