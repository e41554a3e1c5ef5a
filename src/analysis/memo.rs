//! What is kept from one analysis to the next: lowered files and findings, until something that they were made from changes.
//!
//! A lowered file is kept as long as its text is the same. The findings in a file are kept as long as every file that was read to find them
//! is the same, together with what linking and [`Relevance`] found out about it. Everything else is computed again.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use super::fingerprints::{Fingerprint, Fingerprints};
use super::judged::Judged;
use crate::config::Settings;
use crate::discover::Input;
use crate::finding::Code;
use crate::ir::Module;
use crate::lower::{Comment, LeftOut, Lowered, SyntaxError};
use crate::reads::recorded;
use crate::source::Sources;
use crate::span::FileId;

/// What is kept from one analysis to the next, in one process. Use one for inputs of one working directory.
#[derive(Default)]
pub struct Memo {
    files: Mutex<FxHashMap<PathBuf, KeptFile>>,
    findings: Mutex<FxHashMap<PathBuf, KeptFindings>>,
    lowered: AtomicUsize,
    interpreted: AtomicUsize,
    /// How many analyses have ended.
    analyses: usize,
    /// A part of the dependencies that is ignored on purpose.
    #[cfg(test)]
    pub(super) ignored: Option<Part>,
}

/// A part of the dependencies. A test ignores it, to show that it is needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// The texts of the files that were read.
    Text,
    /// The files that were read, apart from the file itself.
    Others,
    /// What linking found out about them.
    Links,
    /// What is known about their functions.
    Functions,
    /// The names that others import from them.
    ImportedNames,
    /// That every file of the program was read.
    All,
}

/// How much work analyses have done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Work {
    /// How many files were lowered.
    pub lowered: usize,
    /// How many files were interpreted.
    pub interpreted: usize,
}

/// A lowered file.
struct KeptFile {
    text: u128,
    /// `None` while an analysis uses it. Its file id is that of the last analysis.
    module: Option<Module>,
    errors: Vec<SyntaxError>,
    left_out: Vec<LeftOut>,
    comments: Vec<Comment>,
    /// The last analysis that used it.
    used: usize,
}

/// The findings in a file, and what they were made from.
struct KeptFindings {
    root: Arc<Path>,
    settings: Arc<Settings>,
    /// The files that were read, each with its fingerprint.
    files: Box<[(u32, Fingerprint)]>,
    /// The fingerprint of the whole program, if every file was read.
    all: Option<Fingerprint>,
    judged: Judged,
    /// The last analysis that used them.
    used: usize,
}

/// What no analysis has used for this many analyses is dropped.
const MAX_UNUSED: usize = 16;

impl Memo {
    /// How much work analyses with this memo have done so far.
    pub fn work(&self) -> Work {
        let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        Work { lowered: count(&self.lowered), interpreted: count(&self.interpreted) }
    }

    /// Is this part of the dependencies ignored on purpose?
    #[cfg(test)]
    pub(super) fn ignores(&self, part: Part) -> bool {
        self.ignored == Some(part)
    }

    /// Is this part of the dependencies ignored on purpose?
    #[cfg(not(test))]
    #[expect(clippy::unused_self, reason = "only tests ignore any")]
    pub(super) const fn ignores(&self, _: Part) -> bool {
        false
    }

    /// The lowered file, if a file with this path and text has been lowered before. The caller returns the module with
    /// [`Memo::finish`].
    pub(super) fn lowered(
        &self,
        path: &Path,
        text: u128,
        file: FileId,
        lower: impl FnOnce() -> Result<Lowered, String>,
    ) -> Result<Lowered, String> {
        if let Some(kept) = lock(&self.files).get_mut(path).filter(|kept| kept.text == text)
            && let Some(mut module) = kept.module.take()
        {
            kept.used = self.analyses;
            module.file = file;
            let KeptFile { errors, left_out, comments, .. } = kept;
            let (errors, left_out, comments) = (errors.clone(), left_out.clone(), comments.clone());
            return Ok(Lowered { module, errors, left_out, comments });
        }
        self.lowered.fetch_add(1, Ordering::Relaxed);
        let made = lower()?;
        let kept = KeptFile {
            text,
            module: None,
            errors: made.errors.clone(),
            left_out: made.left_out.clone(),
            comments: made.comments.clone(),
            used: self.analyses,
        };
        lock(&self.files).insert(path.to_owned(), kept);
        Ok(made)
    }

    /// The findings in a file. `judge` finds them if they are not known.
    pub(super) fn judged(
        &self,
        input: &Input,
        file: (FileId, &Path),
        prints: &Fingerprints<'_>,
        judge: impl FnOnce() -> Judged,
    ) -> Judged {
        if let Some(kept) = lock(&self.findings).get_mut(file.1)
            && kept.is_valid(input, prints)
        {
            kept.used = self.analyses;
            return kept.judged.clone();
        }
        self.interpreted.fetch_add(1, Ordering::Relaxed);
        let (judged, reads) = recorded(judge);
        // After a panic, it is not known what has been read.
        if !judged.findings.iter().any(|f| f.code == Code(1)) {
            let kept = KeptFindings {
                root: Arc::clone(&input.root),
                settings: Arc::clone(&input.settings),
                files: prints.of(&reads, file.0),
                all: if reads.is_all() { prints.all() } else { None },
                judged: judged.clone(),
                used: self.analyses,
            };
            lock(&self.findings).insert(file.1.to_owned(), kept);
        }
        judged
    }

    /// Takes back the files that an analysis has used, and drops what has not been used for long.
    pub(super) fn finish(&mut self, modules: Vec<Module>, sources: &Sources) {
        self.analyses += 1;
        let now = self.analyses;
        let files = self.files.get_mut().unwrap_or_else(PoisonError::into_inner);
        for module in modules {
            if let Some(kept) = files.get_mut(&sources.get(module.file).path) {
                kept.module = Some(module);
            }
        }
        files.retain(|_, kept| kept.module.is_some() && kept.used + MAX_UNUSED > now);
        let findings = self.findings.get_mut().unwrap_or_else(PoisonError::into_inner);
        findings.retain(|_, kept| kept.used + MAX_UNUSED > now);
    }
}

impl KeptFindings {
    /// Is everything that they were made from the same?
    fn is_valid(&self, input: &Input, prints: &Fingerprints<'_>) -> bool {
        // The settings stay alive as long as the findings, so their address is theirs alone.
        Arc::ptr_eq(&self.settings, &input.settings)
            && self.root == input.root
            && self.all.is_none_or(|all| prints.all() == Some(all))
            && self.files.iter().all(|&(file, print)| prints.get(file) == Some(print))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
