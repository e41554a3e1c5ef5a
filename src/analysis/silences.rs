//! What comments and settings suppress in the files that have been read.

use std::path::Path;
use std::sync::Arc;

use crate::config::Settings;
use crate::discover::Input;
use crate::finding::Code;
use crate::lower::Comment;
use crate::rules::registry::registry;
use crate::silence::Silence;
use crate::source::Source;
use crate::span::FileId;
use crate::suppress::silencers;

/// The suppressions so far, and what is needed to find those of further files.
#[derive(Default)]
pub(super) struct Silences {
    pub(super) known: Arc<Silence>,
    /// Whether suppression comments count.
    pub(super) honor_comments: bool,
    /// The settings of the inputs, in their order.
    inputs: Vec<Arc<Settings>>,
    /// Those of them with rules that are off in some files.
    partial: Vec<Arc<Settings>>,
}

impl Silences {
    pub(super) fn new(inputs: &[Input], honor_comments: bool) -> Self {
        let inputs: Vec<Arc<Settings>> = inputs.iter().map(|input| Arc::clone(&input.settings)).collect();
        let mut partial: Vec<Arc<Settings>> = Vec::new();
        for settings in inputs.iter().filter(|settings| !settings.per_file_ignores.is_empty()) {
            if !partial.iter().any(|known| Arc::ptr_eq(known, settings)) {
                partial.push(Arc::clone(settings));
            }
        }
        Self { known: Arc::default(), honor_comments, inputs, partial }
    }

    /// Adds a file with the comments that were found in it.
    pub(super) fn add(&mut self, file: FileId, comments: &[Comment], source: &Source) {
        let comments = if self.honor_comments { comments } else { &[] };
        let off = self.off(file, &source.path);
        if !off.is_empty() || !comments.is_empty() {
            let silencers = silencers(comments, source, registry());
            Arc::make_mut(&mut self.known).add(file, off, silencers);
        }
    }

    /// The rules that settings switch off in this file but not everywhere. The result must not depend on which other files are linted. So a
    /// file that is not an input has the settings of the nearest folder above it that has some.
    fn off(&self, file: FileId, path: &Path) -> Vec<Code> {
        if self.partial.is_empty() {
            return Vec::new();
        }
        let around = || {
            let known = self.partial.iter().filter(|settings| path.starts_with(&settings.root));
            known.max_by_key(|settings| settings.root.components().count())
        };
        let settings = self.inputs.get(file.0 as usize).or_else(around);
        settings.map_or_else(Vec::new, |settings| {
            let off = |code: &Code| settings.rules.contains(code) && !settings.is_on(*code, path);
            registry().iter().map(|page| page.code).filter(off).collect()
        })
    }
}
