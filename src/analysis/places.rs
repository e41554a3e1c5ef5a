//! The files of each project, and the project of each file. Both are looked up once in a run and then cached.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::config::Settings;
use crate::discover::{Input, MAX_FILES, Roots, project_files, project_texts};

/// The files of a project, sorted.
type Listing = Option<Arc<[PathBuf]>>;

/// What has been looked up so far.
#[derive(Default)]
pub(super) struct Places {
    /// The Python files of each project, by its root and by the settings of the search. `None`: there are too many.
    files: FxHashMap<Arc<Path>, Vec<(Arc<Settings>, Listing)>>,
    roots: Roots,
}

impl Places {
    /// A cache that knows the roots of these inputs.
    pub(super) fn of(inputs: &[Input]) -> Self {
        let mut places = Self::default();
        for input in inputs {
            if let Some(folder) = input.path.parent() {
                places.roots.learn(folder, &input.root);
            }
        }
        places
    }

    /// The root of the project of an absolute folder.
    pub(super) fn root_of(&mut self, folder: &Path) -> Arc<Path> {
        self.roots.of(folder)
    }

    /// The root of the project of an absolute path of a file.
    pub(super) fn root_of_file(&mut self, file: &Path) -> Arc<Path> {
        self.roots.of(file.parent().unwrap_or(file))
    }

    /// The Python files of an input's project. `None`: the project has too many, or too many inputs are in it.
    pub(super) fn files_of(&mut self, input: &Input, inputs: &[Input]) -> Option<Arc<[PathBuf]>> {
        let root = |other: &Input| Arc::ptr_eq(&other.root, &input.root) || other.root == input.root;
        let together = |other: &&Input| Arc::ptr_eq(&other.settings, &input.settings) && root(other);
        let few = inputs.iter().filter(together).count() <= MAX_FILES;
        if few { self.files(&input.root, &input.settings) } else { None }
    }

    /// The project's other text files, which may name its functions and classes.
    pub(super) fn texts(&mut self, root: &Arc<Path>, settings: &Settings) -> Vec<PathBuf> {
        project_texts(root, settings, &mut self.roots).unwrap_or_default()
    }

    /// The Python files of the project with this root. `None`: there are too many.
    pub(super) fn files(&mut self, root: &Arc<Path>, settings: &Arc<Settings>) -> Option<Arc<[PathBuf]>> {
        let known = self.files.entry(Arc::clone(root)).or_default();
        if let Some((_, files)) = known.iter().find(|(of, _)| Arc::ptr_eq(of, settings)) {
            return files.clone();
        }
        let files: Listing = project_files(root, settings, &mut self.roots).map(Arc::from);
        known.push((Arc::clone(settings), files.clone()));
        files
    }
}
