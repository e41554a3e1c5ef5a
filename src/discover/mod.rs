//! Paths → the Python files to lint, in a stable order, each with its settings.
//!
//! Links to files are followed, links to folders are not (so there are no cycles), unless they are named on
//! the command line.

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
use crate::source::{display_name, read};

pub use self::project::{MAX_FILES, project_files, project_texts};
use self::root::Roots;
pub use self::root::project_root;

/// A file to lint.
#[derive(Clone, Debug)]
pub struct Input {
    /// Absolute.
    pub path: PathBuf,
    /// As people see it: relative to the working directory, with `/`.
    pub name: String,
    /// The root of the project that it belongs to, absolute.
    pub root: Arc<Path>,
    /// What holds for this file.
    pub settings: Arc<Settings>,
    /// Its bytes, if they do not come from the disk.
    pub bytes: Option<Vec<u8>>,
}

/// How to look.
#[derive(Debug)]
pub struct Options {
    /// The absolute working directory.
    pub cwd: PathBuf,
}

impl DiscoverError {
    /// Did the tool fail to do what it was told to? Else it is only worth a warning.
    pub fn is_failure(&self) -> bool {
        // Pre-commit hands over every notebook of a project.
        !matches!(self, Self::Notebook(_))
    }
}

/// What was found.
#[derive(Debug, Default)]
pub struct Discovery {
    /// The files, sorted by path, each once.
    pub files: Vec<Input>,
    /// What went wrong. The rest was found.
    pub errors: Vec<DiscoverError>,
}

/// Something that could not be looked at.
#[derive(Debug)]
pub enum DiscoverError {
    /// A path of the command line that is not there.
    Missing(PathBuf),
    /// A file or folder that the operating system does not show, and its words.
    Unreadable(PathBuf, String),
    /// A path of the command line that cannot be linted yet.
    Notebook(PathBuf),
    /// The configuration of a folder is wrong.
    Config(ConfigError),
}

impl fmt::Display for DiscoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(f, "`{}`: no such file or directory", path.display()),
            Self::Unreadable(path, reason) => write!(f, "cannot read `{}`: {reason}", path.display()),
            Self::Notebook(path) => write!(f, "`{}`: notebooks cannot be linted yet", path.display()),
            Self::Config(error) => error.fmt(f),
        }
    }
}

/// Finds the Python files that these paths (relative ones to `options.cwd`) stand for. A file that is named
/// is linted whatever it is called and whoever ignores it, unless the settings have `force-exclude`.
pub fn discover(paths: &[PathBuf], options: &Options, resolver: &mut Resolver) -> Discovery {
    let mut walk = Walk {
        options,
        resolver,
        rules: Rules::new(&options.cwd),
        roots: Roots::default(),
        links: FxHashMap::default(),
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
            Ok(_) => walk.named(&path, path_as_given),
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

/// The input for text that does not come from the disk, as if it were the file `name`. `None`: that file is
/// excluded and the settings have `force-exclude`.
///
/// # Errors
/// If the configuration that holds for that name is wrong.
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
    Ok(Some(Input { path, name, root: root.into(), settings, bytes: Some(bytes) }))
}

struct Walk<'a> {
    options: &'a Options,
    resolver: &'a mut Resolver,
    rules: Rules,
    roots: Roots,
    /// Links to files that the walk met, with what they lead to.
    links: FxHashMap<PathBuf, PathBuf>,
    found: Discovery,
}

impl Walk<'_> {
    /// A file that is named on the command line.
    fn named(&mut self, path: &Path, as_given: &Path) {
        if path.extension().is_some_and(|extension| extension == "ipynb") {
            self.found.errors.push(DiscoverError::Notebook(as_given.to_owned()));
            return;
        }
        let Some(settings) = self.settings(path.parent().unwrap_or(path)) else { return };
        let root = self.root(path);
        if !(settings.force_exclude && excluded(path, &settings, &root)) {
            self.add(path, settings);
        }
    }

    /// A folder that is named on the command line.
    fn folder(&mut self, root: &Path) {
        let Some(settings) = self.settings(root) else { return };
        if settings.force_exclude && excluded(root, &settings, &self.root(root)) {
            return;
        }
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

    /// Looks at what the walk met; `false`: do not go into it.
    fn visit(&mut self, entry: &DirEntry) -> bool {
        let path = entry.path();
        let kind = entry.file_type();
        if !kind.is_dir() && !is_python(path) {
            return false;
        }
        let Some(folder) = path.parent() else { return false };
        let Some(settings) = self.settings(folder) else { return false };
        if settings.excludes(path) {
            return false;
        }
        let rules = self.rules.folder(folder);
        if self.rules.ignores(&rules, path, kind.is_dir()) {
            return false;
        }
        if kind.is_symlink() {
            // Links to folders, links to nowhere (such as an editor's lock) and pipes are no files.
            let Ok(target) = path.canonicalize() else { return false };
            if !target.is_file() {
                return false;
            }
            self.links.insert(path.to_owned(), target);
        }
        if kind.is_file() || kind.is_symlink() {
            self.add(path, settings);
        }
        true
    }

    fn add(&mut self, path: &Path, settings: Arc<Settings>) {
        let root = self.root(path);
        let name = display_name(path, &self.options.cwd);
        self.found.files.push(Input { path: path.to_owned(), name, root, settings, bytes: None });
    }

    /// The settings of a folder; `None`, once the error is noted, if they are wrong.
    fn settings(&mut self, folder: &Path) -> Option<Arc<Settings>> {
        match self.resolver.settings(folder) {
            Ok(settings) => Some(settings),
            Err(error) => {
                // Every file below meets the same mistake again.
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
        let Discovery { mut files, errors } = self.found;
        files.sort_by(|a, b| a.path.cmp(&b.path));
        files.dedup_by(|a, b| a.path == b.path);
        // A link to a file that is linted anyway would only say everything twice.
        let links = self.links;
        let is_link = |input: &Input| links.contains_key(&input.path);
        let mut linted: FxHashSet<PathBuf> =
            files.iter().filter(|input| !is_link(input)).map(|input| input.path.clone()).collect();
        files.retain(|input| links.get(&input.path).is_none_or(|target| linted.insert(target.clone())));
        Discovery { files, errors }
    }
}

/// Is the file or folder, or a folder above it within the project, excluded?
fn excluded(path: &Path, settings: &Settings, project: &Path) -> bool {
    let top = if path.starts_with(&settings.root) { &settings.root } else { project };
    path.ancestors().take_while(|p| *p != top).any(|p| settings.excludes(p))
}

fn is_python(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "py" || extension == "pyi")
}

/// The path from the root, without `.` and `..`. Links are followed only where a `..` would else lead astray.
pub fn absolute(path: &Path, cwd: &Path) -> PathBuf {
    let path = std::path::absolute(cwd.join(path)).unwrap_or_else(|_| cwd.join(path));
    if !path.components().any(|component| component == Component::ParentDir) {
        return path;
    }
    let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
    match (folder, path.file_name()) {
        (Some(folder), Some(name)) => folder.join(name),
        // It ends with `..`.
        _ => path.canonicalize().unwrap_or(path),
    }
}
