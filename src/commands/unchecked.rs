//! What a run did not look at, or not wholly: one line for people, and the details for those who ask.

use std::path::Path;

use crate::discover::{Discovery, MAX_FILES};
use crate::refine::Refined;
use crate::source::{display_name, read::MAX_BYTES};

/// Everything that was left out.
#[derive(Default)]
pub(super) struct Unchecked {
    /// Each kind, counted: "3 files too large".
    kinds: Vec<String>,
    /// A line for each thing that was left out.
    details: Vec<String>,
    /// The configuration of one of them asks for everything to be checked.
    strict: bool,
}

impl Unchecked {
    /// What the run has left out. Paths are shown from `cwd`.
    pub(super) fn of(found: &Discovery, refined: &Refined, cwd: &Path) -> Self {
        let mut all = Self::default();
        let strict =
            |path: &Path| found.files.iter().any(|input| input.path == path && input.settings.strict);
        for function in &refined.exhausted {
            let source = refined.sources.get(function.place.file);
            let start = function.place.span.start;
            let at = source.position(start);
            let place = format!("{}:{}:{}", source.name_at(start), at.row, at.column);
            all.add(format!("`{place}`: function `{}` is too complex", function.name), strict(&source.path));
        }
        all.count(refined.exhausted.len(), "function too complex", "functions too complex");
        for (file, cell, magic) in &refined.unknown_cells {
            let source = refined.sources.get(*file);
            let reason = format!("`{}:cell {cell}`: nothing is known about `%%{magic}`", source.name);
            all.add(reason, strict(&source.path));
        }
        all.count(
            refined.unknown_cells.len(),
            "cell with an unknown cell magic",
            "cells with an unknown cell magic",
        );
        for &file in &refined.too_large {
            let source = refined.sources.get(file);
            let reason = format!("`{}`: it is larger than {} MiB", source.name, MAX_BYTES >> 20);
            all.add(reason, strict(&source.path));
        }
        all.count(refined.too_large.len(), "file too large", "files too large");
        for project in &refined.large_projects {
            let name = display_name(&project.root, cwd);
            let reason = format!("has more than {MAX_FILES} files; calls between files are not followed");
            all.add(format!("`{name}`: the project {reason}"), project.settings.strict);
        }
        all.count(
            refined.large_projects.len(),
            "project too large for calls between files",
            "projects too large for calls between files",
        );
        if let Some(file) = &found.excluded {
            all.add(format!("`{}`: excluded, like every other Python file", file.name), file.strict);
            all.kinds.push("any file, because all Python files are excluded".to_owned());
        }
        all
    }

    fn add(&mut self, detail: String, strict: bool) {
        self.details.push(detail);
        self.strict |= strict;
    }

    fn count(&mut self, n: usize, one: &str, many: &str) {
        if n > 0 {
            self.kinds.push(format!("{n} {}", if n == 1 { one } else { many }));
        }
    }

    /// A line for each.
    pub(super) fn details(&self) -> &[String] {
        &self.details
    }

    /// "Not checked: 3 functions too complex, 1 file too large". `None`: everything was looked at.
    pub(super) fn summary(&self) -> Option<String> {
        (!self.kinds.is_empty()).then(|| format!("Not checked: {}", self.kinds.join(", ")))
    }

    /// Does one of the settings ask for everything to be checked?
    pub(super) fn is_strict(&self) -> bool {
        self.strict
    }
}
