//! Fingerprints of the files of a program: equal ones mean that a computation which reads the file gives the same result.

use std::hash::Hash;
use std::sync::OnceLock;

use xxhash_rust::xxh3::Xxh3;

use super::intake::Intake;
use super::memo::{Memo, Part};
use crate::flow::Relevance;
use crate::link::{ModIdx, Program};
use crate::reads::Reads;
use crate::source::Sources;
use crate::span::FileId;

/// A fingerprint of a file and of what is known about it.
pub(super) type Fingerprint = u128;

/// The fingerprints of a linked program. Each is computed when it is first needed.
pub(super) struct Fingerprints<'a> {
    program: &'a Program,
    relevance: &'a Relevance,
    intake: &'a Intake,
    sources: &'a Sources,
    imported_names: Vec<u64>,
    files: Vec<OnceLock<Fingerprint>>,
    all: OnceLock<Fingerprint>,
    memo: &'a Memo,
}

impl<'a> Fingerprints<'a> {
    pub(super) fn new(
        program: &'a Program,
        relevance: &'a Relevance,
        intake: &'a Intake,
        sources: &'a Sources,
        memo: &'a Memo,
    ) -> Self {
        Self {
            program,
            relevance,
            intake,
            sources,
            imported_names: program.imported_names(),
            files: (0..program.len()).map(|_| OnceLock::new()).collect(),
            all: OnceLock::new(),
            memo,
        }
    }

    /// The fingerprint of the file with this index; `None` if there is no such file.
    pub(super) fn get(&self, file: u32) -> Option<Fingerprint> {
        let print = self.files.get(file as usize)?;
        Some(*print.get_or_init(|| self.compute(file)))
    }

    /// The fingerprint of all files.
    pub(super) fn all(&self) -> Option<Fingerprint> {
        let whole = *self.all.get_or_init(|| {
            let mut hasher = Xxh3::new();
            (0..).map_while(|file| self.get(file)).for_each(|print| print.hash(&mut hasher));
            hasher.digest128()
        });
        self.matters(Part::All).then_some(whole)
    }

    fn compute(&self, file: u32) -> Fingerprint {
        let mut hasher = Xxh3::new();
        let module = ModIdx(file);
        let id = self.program.get(module).ir.file;
        self.sources.get(id).path.hash(&mut hasher);
        if self.matters(Part::Text) {
            self.intake.texts.get(&id).hash(&mut hasher);
        }
        if self.matters(Part::Links) {
            self.program.fingerprint(module, &mut hasher);
        }
        if self.matters(Part::Functions) {
            self.relevance.fingerprint(self.program, module, &mut hasher);
        }
        if self.matters(Part::ImportedNames) {
            self.imported_names.get(file as usize).hash(&mut hasher);
        }
        hasher.digest128()
    }

    fn matters(&self, part: Part) -> bool {
        !self.memo.ignores(part)
    }

    /// The files that were read, each with its fingerprint. `own` is the file that was judged.
    pub(super) fn of(&self, reads: &Reads, own: FileId) -> Box<[(u32, Fingerprint)]> {
        let own = self.program.module_of(own).map(|module| module.0);
        let matters = |&file: &u32| Some(file) == own || self.matters(Part::Others);
        let print = |file| self.get(file).map(|print| (file, print));
        reads.files().filter(matters).filter_map(print).collect()
    }
}
