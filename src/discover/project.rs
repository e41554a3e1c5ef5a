//! All files of a project, whichever part of it is linted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use walkdir::WalkDir;

use super::ignored::Rules;
use super::is_python;
use super::root::Roots;
use crate::config::Settings;

/// The largest number of files in a project that is searched.
pub const MAX_FILES: usize = 2_000;
/// The largest number of entries in a project's folders, including data, that are searched.
const MAX_ENTRIES: usize = 20_000;

/// Extensions of other files that may name a project's functions and classes: configuration, scripts and documentation.
const TEXTS: [&str; 10] = ["yaml", "yml", "json", "toml", "cfg", "ini", "sh", "md", "rst", "txt"];
/// The size in bytes above which a text file counts as data.
const LONGEST_TEXT: u64 = 1 << 20;

/// The Python files and notebooks of the project with this root, sorted. Leaves out files that the settings exclude, files that Git
/// ignores, and projects inside this one. `None`: the project is too large.
pub fn project_files(root: &Arc<Path>, settings: &Settings, roots: &mut Roots) -> Option<Vec<PathBuf>> {
    files_of(root, settings, roots, &is_python)
}

/// The other text files of the project, which may name its functions and classes, by the same rules.
pub fn project_texts(root: &Arc<Path>, settings: &Settings, roots: &mut Roots) -> Option<Vec<PathBuf>> {
    let text = |path: &Path| {
        path.extension().is_some_and(|e| TEXTS.iter().any(|text| e == *text))
            && path.metadata().is_ok_and(|m| m.len() <= LONGEST_TEXT)
    };
    files_of(root, settings, roots, &text)
}

fn files_of(
    root: &Arc<Path>,
    settings: &Settings,
    roots: &mut Roots,
    wanted: &dyn Fn(&Path) -> bool,
) -> Option<Vec<PathBuf>> {
    let mut rules = Rules::new(root);
    let mut files = Vec::new();
    let mut entries = WalkDir::new(root).sort_by_file_name().into_iter();
    let mut seen = 0;
    while let Some(entry) = entries.next() {
        let Ok(entry) = entry else { continue };
        let path = entry.path();
        let folder = entry.file_type().is_dir();
        seen += 1;
        if seen > MAX_ENTRIES || files.len() > MAX_FILES {
            return None;
        }
        let file = entry.file_type().is_file() && wanted(path);
        if entry.depth() == 0 || !(folder || file) {
            continue;
        }
        let around = rules.folder(path.parent()?);
        let left_out = settings.excludes(path) || rules.ignores(&around, path, folder);
        if folder && (left_out || roots.of(path) != *root) {
            entries.skip_current_dir();
        } else if !folder && !left_out {
            files.push(path.to_path_buf());
        }
    }
    Some(files)
}
