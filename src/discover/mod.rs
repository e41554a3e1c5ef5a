//! From paths to the Python files and notebooks to lint, in a stable order, each with its settings.
//!
//! Links to files are followed. Links to folders are not followed, so there are no cycles, unless the command line names them.

mod ignored;
mod project;
mod root;

use std::fmt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use walkdir::{DirEntry, WalkDir};

use self::ignored::Rules;
use crate::config::{ConfigError, Resolver, Settings};
use crate::notebook::is_notebook;
use crate::source::{display_name, read};

pub use self::project::{MAX_FILES, project_files, project_texts};
pub use self::root::{Roots, project_root};

/// A file to lint.
#[derive(Clone, Debug)]
pub struct Input {
    /// Absolute.
    pub path: PathBuf,
    /// The name in messages: the path relative to the working directory, with `/`.
    pub name: String,
    /// The root of the project that it belongs to, absolute.
    pub root: Arc<Path>,
    /// The settings for this file.
    pub settings: Arc<Settings>,
    /// Its bytes, if they do not come from the disk.
    pub bytes: Option<Vec<u8>>,
    /// Whether the command line names it. If not, it was found in a folder.
    pub named: bool,
}

/// A file that discovery found and that is not linted.
#[derive(Clone, Debug)]
pub struct Skipped {
    /// The name in messages.
    pub name: String,
    /// Whether its settings are strict: they ask for everything to be checked.
    pub strict: bool,
}

/// The options of a search.
#[derive(Debug)]
pub struct Options {
    /// The absolute working directory.
    pub cwd: PathBuf,
}

/// The result of a search.
#[derive(Debug, Default)]
pub struct Discovery {
    /// The files, sorted by path, each once.
    pub files: Vec<Input>,
    /// A Python file that is excluded or ignored, if folders were searched and all of their Python files are.
    pub excluded: Option<Skipped>,
    /// What went wrong. The other files were found.
    pub errors: Vec<DiscoverError>,
}

/// A path that could not be searched.
#[derive(Debug)]
pub enum DiscoverError {
    /// A path of the command line that does not exist.
    Missing(PathBuf),
    /// A file or folder that the operating system does not let us read, with its message.
    Unreadable(PathBuf, String),
    /// An error in the configuration of a folder.
    Config(ConfigError),
}

impl fmt::Display for DiscoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(f, "`{}`: no such file or directory", path.display()),
            Self::Unreadable(path, reason) => write!(f, "cannot read `{}`: {reason}", path.display()),
            Self::Config(error) => error.fmt(f),
        }
    }
}

/// Finds the Python files for these paths. Relative paths are relative to `options.cwd`. A named file is linted even if its name is unusual
/// or it is ignored, unless the settings have `force-exclude`.
pub fn discover(paths: &[PathBuf], options: &Options, resolver: &mut Resolver) -> Discovery {
    let mut walk = Walk {
        options,
        resolver,
        rules: Rules::new(&options.cwd),
        roots: Roots::default(),
        links: FxHashMap::default(),
        left_out: Vec::new(),
        found: Discovery::default(),
    };
    let mut seen = FxHashSet::default();
    for path in paths {
        let path_as_given = path;
        let path = absolute(path, &options.cwd);
        if !seen.insert(path.clone()) {
            continue;
        }
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => walk.folder(&path),
            Ok(_) => walk.named(&path),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                walk.found.errors.push(DiscoverError::Missing(path_as_given.clone()));
            }
            Err(error) => {
                let reason = read::io_reason(&error);
                walk.found.errors.push(DiscoverError::Unreadable(path_as_given.clone(), reason));
            }
        }
    }
    walk.finish()
}

/// The input for a text that does not come from the disk, treated as the file `name`. `None`: that file is excluded and the settings have
/// `force-exclude`.
///
/// # Errors
/// If the configuration for that name is wrong.
pub fn virtual_file(
    name: &Path,
    bytes: Vec<u8>,
    options: &Options,
    resolver: &mut Resolver,
) -> Result<Option<Input>, ConfigError> {
    let path = absolute(name, &options.cwd);
    let settings = resolver.settings(path.parent().unwrap_or(&path))?;
    let root = project_root(&path);
    if settings.force_exclude && excluded(&path, &settings, &root) {
        return Ok(None);
    }
    let name = display_name(&path, &options.cwd);
    Ok(Some(Input { path, name, root: root.into(), settings, bytes: Some(bytes), named: true }))
}

struct Walk<'a> {
    options: &'a Options,
    resolver: &'a mut Resolver,
    rules: Rules,
    roots: Roots,
    /// Links to files that the walk found, with their targets.
    links: FxHashMap<PathBuf, PathBuf>,
    /// Folders and Python files that the walk found and that are excluded or ignored; and whether their settings are strict.
    left_out: Vec<(PathBuf, bool)>,
    found: Discovery,
}

impl Walk<'_> {
    /// Adds a file that the command line names.
    fn named(&mut self, path: &Path) {
        let Some(settings) = self.settings(path.parent().unwrap_or(path)) else { return };
        let root = self.root(path);
        if settings.force_exclude && excluded(path, &settings, &root) {
            return;
        }
        self.add(path, settings, true);
    }

    /// Searches a folder that the command line names.
    fn folder(&mut self, root: &Path) {
        let Some(settings) = self.settings(root) else { return };
        if settings.force_exclude && excluded(root, &settings, &self.root(root)) {
            return;
        }
        self.roots.add_top(root);
        let mut entries = WalkDir::new(root).sort_by_file_name().into_iter();
        while let Some(entry) = entries.next() {
            match entry {
                Ok(entry) if entry.depth() == 0 => {}
                Ok(entry) => {
                    if !self.visit(&entry) && entry.file_type().is_dir() {
                        entries.skip_current_dir();
                    }
                }
                Err(error) => {
                    let path = error.path().unwrap_or(root);
                    let name = display_name(path, &self.options.cwd).into();
                    let reason = error.io_error().map_or_else(|| error.to_string(), read::io_reason);
                    self.found.errors.push(DiscoverError::Unreadable(name, reason));
                }
            }
        }
    }

    /// Handles an entry of the walk; `false`: the walk does not enter it.
    fn visit(&mut self, entry: &DirEntry) -> bool {
        let path = entry.path();
        let kind = entry.file_type();
        if !kind.is_dir() && !is_python(path) {
            return false;
        }
        let Some(folder) = path.parent() else { return false };
        let Some(settings) = self.settings(folder) else { return false };
        let ignored = |rules: &mut Rules| {
            let around = rules.folder(folder);
            rules.ignores(&around, path, kind.is_dir())
        };
        if settings.excludes(path) || ignored(&mut self.rules) {
            self.left_out.push((path.to_owned(), settings.strict));
            return false;
        }
        if kind.is_symlink() {
            // Links to folders, broken links (such as an editor's lock) and pipes are not files.
            let Ok(target) = path.canonicalize() else { return false };
            if !target.is_file() {
                return false;
            }
            self.links.insert(path.to_owned(), target);
        }
        if kind.is_file() || kind.is_symlink() {
            self.add(path, settings, false);
        }
        true
    }

    fn add(&mut self, path: &Path, settings: Arc<Settings>, named: bool) {
        let root = self.root(path);
        let name = display_name(path, &self.options.cwd);
        self.found.files.push(Input { path: path.to_owned(), name, root, settings, bytes: None, named });
    }

    /// The settings of a folder. `None` if they are wrong; then the error has been noted.
    fn settings(&mut self, folder: &Path) -> Option<Arc<Settings>> {
        match self.resolver.settings(folder) {
            Ok(settings) => Some(settings),
            Err(error) => {
                // Every file below this folder has the same error, so it is noted once.
                if !self.found.errors.iter().any(|e| matches!(e, DiscoverError::Config(_))) {
                    self.found.errors.push(DiscoverError::Config(error));
                }
                None
            }
        }
    }

    fn root(&mut self, path: &Path) -> Arc<Path> {
        self.roots.of(path.parent().unwrap_or(path))
    }

    fn finish(self) -> Discovery {
        let excluded = if self.found.files.is_empty() { self.example_left_out() } else { None };
        let Discovery { mut files, errors, .. } = self.found;
        // If a path was both named and found in a folder, the named input wins.
        files.sort_by(|a, b| a.path.cmp(&b.path).then(b.named.cmp(&a.named)));
        files.dedup_by(|a, b| a.path == b.path);
        // A link to a file that is also linted would only repeat all findings.
        let links = self.links;
        let is_link = |input: &Input| links.contains_key(&input.path);
        let mut linted: FxHashSet<PathBuf> =
            files.iter().filter(|input| !is_link(input)).map(|input| input.path.clone()).collect();
        files.retain(|input| links.get(&input.path).is_none_or(|target| linted.insert(target.clone())));
        Discovery { files, excluded, errors }
    }

    /// A Python file that is excluded or ignored, if there is one. Searches only a limited number of entries.
    fn example_left_out(&self) -> Option<Skipped> {
        let below = |(path, strict): &(PathBuf, bool)| {
            let entries = WalkDir::new(path).sort_by_file_name().into_iter().filter_map(Result::ok);
            let strict = *strict;
            entries.take(MAX_LEFT_OUT).map(move |entry| (entry, strict)).collect::<Vec<_>>()
        };
        let mut all = self.left_out.iter().take(MAX_LEFT_OUT).flat_map(below).take(MAX_LEFT_OUT);
        let (file, strict) = all.find(|(entry, _)| entry.file_type().is_file() && is_python(entry.path()))?;
        Some(Skipped { name: display_name(file.path(), &self.options.cwd), strict })
    }
}

/// Is the file, the folder, or a folder above it in the project excluded?
fn excluded(path: &Path, settings: &Settings, project: &Path) -> bool {
    let top = if path.starts_with(&settings.root) { &settings.root } else { project };
    path.ancestors().take_while(|p| *p != top).any(|p| settings.excludes(p))
}

/// How many excluded entries are searched for a Python file.
const MAX_LEFT_OUT: usize = 1000;

/// Is a file with this name linted if it is found in a folder?
fn is_python(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "py" || extension == "pyi") || is_notebook(path)
}

/// The absolute path, without `.` and `..`. Resolves links only if a `..` follows them, because the result would be wrong otherwise.
pub fn absolute(path: &Path, cwd: &Path) -> PathBuf {
    let path = std::path::absolute(cwd.join(path)).unwrap_or_else(|_| cwd.join(path));
    if !path.components().any(|component| component == Component::ParentDir) {
        return path;
    }
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    match (folder, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        // The path ends with `..`.
        _ => path.canonicalize().unwrap_or(path),
    }
}
