//! Finds the root of the project that a file belongs to.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::source::read;

const MARKERS: [&str; 5] = ["pyproject.toml", "samedevice.toml", ".samedevice.toml", "setup.cfg", ".git"];

/// Files at the root of most projects. They identify the root of a project without any of the usual marks, such as a repository that was
/// downloaded without its history.
const HINTS: [&str; 9] = [
    "LICENSE",
    "LICENSE.md",
    "LICENSE.txt",
    "LICENCE",
    "COPYING",
    "requirements.txt",
    "environment.yml",
    "environment.yaml",
    "Pipfile",
];

/// How many folders without `__init__.py` may be between an outer and an inner package (PEP 420).
const MAX_PLAIN: usize = 3;

/// How many files of a folder are searched for imports; and next, how many bytes at the beginning of each.
const MAX_READ: usize = 64;
const HEAD: u64 = 1 << 14;

/// Finds the roots of projects and caches what it has found.
#[derive(Debug, Default)]
pub struct Roots {
    /// The roots that are certain, by folder.
    known: FxHashMap<PathBuf, Arc<Path>>,
    /// The nearest marked ancestor, by folder.
    marked: Nearest,
    /// The nearest ancestor that looks like the root of a project, by folder.
    hinted: Nearest,
    /// The folder that contains the outermost package, by folder.
    unpackaged: FxHashMap<PathBuf, Arc<Path>>,
    /// The roots of folders that are linted as a whole. Folders below them without a root of their own belong to them.
    tops: Vec<Arc<Path>>,
}

impl Roots {
    /// The project's root for the files in this absolute folder. It is the first of these that exists: the nearest ancestor with one of the
    /// usual marks; the nearest ancestor that is not a package and contains the project's licence or requirements; the nearest folder from
    /// [`Roots::add_top`]; the folder that contains the outermost package; the folder from which files import the contents of this folder;
    /// the folder itself.
    pub fn of(&mut self, folder: &Path) -> Arc<Path> {
        if let Some(root) = self.known.get(folder) {
            return Arc::clone(root);
        }
        let root = self.find(folder);
        self.known.insert(folder.to_owned(), Arc::clone(&root));
        root
    }

    /// Sets the root for the files in this absolute folder, so that it is not searched for again.
    pub fn learn(&mut self, folder: &Path, root: &Arc<Path>) {
        self.known.entry(folder.to_owned()).or_insert_with(|| Arc::clone(root));
        self.note_top(root);
    }

    /// Notes that this absolute folder is linted as a whole. Its root becomes the root of all folders below it without a mark: they are
    /// parts of one project, and import from each other.
    pub fn add_top(&mut self, folder: &Path) {
        let root = self.of(folder);
        self.note_top(&root);
    }

    fn note_top(&mut self, root: &Arc<Path>) {
        if !self.tops.iter().any(|top| Arc::ptr_eq(top, root) || top == root) {
            self.tops.push(Arc::clone(root));
        }
    }

    fn find(&mut self, folder: &Path) -> Arc<Path> {
        if let Some(root) = nearest(&mut self.marked, folder, &is_marked) {
            return root;
        }
        let outside = self.unpackaged(folder);
        if let Some(root) = nearest(&mut self.hinted, &outside, &is_hinted) {
            return root;
        }
        let above = self.tops.iter().filter(|top| outside.starts_with(top));
        above.max_by_key(|top| top.as_os_str().len()).map_or(outside, Arc::clone)
    }

    fn unpackaged(&mut self, folder: &Path) -> Arc<Path> {
        if let Some(known) = self.unpackaged.get(folder) {
            return Arc::clone(known);
        }
        // Folders without `__init__.py` may be between packages. Files in them are also imported by their full names.
        let package = folder.ancestors().take(MAX_PLAIN + 1).find(|f| f.join("__init__.py").exists());
        let above = package.and_then(Path::parent);
        let root = match above {
            Some(parent) => self.above_packages(parent),
            None => imported_from(folder).unwrap_or(folder).into(),
        };
        self.unpackaged.insert(folder.to_owned(), Arc::clone(&root));
        root
    }

    /// The folder that contains the outermost package, starting from a folder that contains a package.
    fn above_packages(&mut self, holder: &Path) -> Arc<Path> {
        let inside = holder.ancestors().take(MAX_PLAIN + 1).any(|f| f.join("__init__.py").exists());
        if inside { self.unpackaged(holder) } else { holder.into() }
    }
}

/// The folder from which files import the contents of this folder by their full names, through folders without `__init__.py` (PEP 420). If
/// several folders contain such a file, the outermost one.
fn imported_from(folder: &Path) -> Option<&Path> {
    let mut from = None;
    let mut inside = folder;
    for holder in folder.ancestors().skip(1).take(MAX_PLAIN) {
        let name = inside.file_name()?.to_str()?;
        if imports(holder, name) {
            from = Some(holder);
        }
        inside = holder;
    }
    from
}

/// Does a Python file in the folder import a package with this name?
fn imports(holder: &Path, name: &str) -> bool {
    let Ok(entries) = std::fs::read_dir(holder) else { return false };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|e| e == "py")).collect();
    files.sort_unstable();
    let is_import = |line: &str| {
        let mut words =
            line.split(|c: char| c.is_whitespace() || matches!(c, '.' | ',' | ';')).filter(|w| !w.is_empty());
        matches!(words.next(), Some("from" | "import")) && words.next() == Some(name)
    };
    let mut heads = files.iter().take(MAX_READ).filter_map(|path| read::head(path, HEAD).ok());
    heads.any(|head| String::from_utf8_lossy(&head).lines().any(is_import))
}

/// For each folder, the nearest ancestor that was found, or the folder itself.
type Nearest = FxHashMap<PathBuf, Option<Arc<Path>>>;

fn nearest(known: &mut Nearest, folder: &Path, is_top: &dyn Fn(&Path) -> bool) -> Option<Arc<Path>> {
    if let Some(known) = known.get(folder) {
        return known.clone();
    }
    let root = if is_top(folder) {
        Some(folder.into())
    } else {
        folder.parent().and_then(|parent| nearest(known, parent, is_top))
    };
    known.insert(folder.to_owned(), root.clone());
    root
}

fn is_marked(folder: &Path) -> bool {
    let has = |name: &str| folder.join(name).exists();
    // A `setup.py` in a package is one of its modules.
    let built = || has("setup.py") && !has("__init__.py");
    MARKERS.into_iter().any(has) || built()
}

fn is_hinted(folder: &Path) -> bool {
    HINTS.into_iter().any(|name| folder.join(name).is_file())
}

/// The project's root for the absolute path of a file or folder; see [`Roots::of`].
pub fn project_root(path: &Path) -> PathBuf {
    let folder = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
    Roots::default().of(folder).to_path_buf()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Roots, project_root};

    #[test]
    fn marks_go_before_packages() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let inner = dir.path().join("a/b/c");
        fs::create_dir_all(&inner).expect("folders");
        for file in ["a/b/__init__.py", "a/b/c/__init__.py", "a/b/c/x.py"] {
            fs::write(dir.path().join(file), "").expect("a file");
        }
        assert_eq!(project_root(&inner.join("x.py")), dir.path().join("a"));
        fs::create_dir_all(inner.join("d/e")).expect("folders");
        assert_eq!(project_root(&inner.join("d/e/y.py")), dir.path().join("a"), "plain folders in a package");
        assert_eq!(project_root(&dir.path().join("a/z.py")), dir.path().join("a"), "beside a package");
        fs::write(dir.path().join("LICENSE"), "").expect("a file");
        assert_eq!(project_root(&inner.join("x.py")), dir.path(), "a download");
        fs::write(dir.path().join("a/requirements.txt"), "").expect("a file");
        assert_eq!(project_root(&inner.join("x.py")), dir.path().join("a"), "the nearest");
        fs::write(inner.join("requirements.txt"), "").expect("a file");
        assert_eq!(project_root(&inner.join("x.py")), dir.path().join("a"), "not within a package");
        fs::write(inner.join("setup.py"), "").expect("a file");
        assert_eq!(project_root(&inner), dir.path().join("a"), "a module of the package");
        fs::write(dir.path().join("setup.py"), "").expect("a file");
        assert_eq!(project_root(&inner), dir.path());
        fs::remove_file(dir.path().join("setup.py")).expect("a file");
        fs::write(dir.path().join("setup.cfg"), "").expect("a file");
        assert_eq!(project_root(&inner), dir.path());
    }

    #[test]
    fn a_folder_that_is_asked_for_is_one_project() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let inner = dir.path().join("a/b");
        fs::create_dir_all(&inner).expect("folders");
        fs::create_dir_all(dir.path().join("c/d")).expect("folders");
        fs::write(dir.path().join("c/setup.cfg"), "").expect("a file");
        assert_eq!(*Roots::default().of(&inner), *inner, "nobody asks for more");
        let mut roots = Roots::default();
        roots.add_top(dir.path());
        assert_eq!(*roots.of(&inner), *dir.path());
        assert_eq!(*roots.of(&dir.path().join("c/d")), *dir.path().join("c"), "a project of its own");
        fs::write(inner.join("__init__.py"), "").expect("a file");
        let mut roots = Roots::default();
        roots.add_top(&inner);
        assert_eq!(*roots.of(&inner), *dir.path().join("a"), "a package is imported by its name");
    }

    #[test]
    fn what_is_known_is_not_looked_for() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let folder = dir.path().join("a");
        fs::create_dir_all(&folder).expect("folders");
        fs::write(folder.join("setup.cfg"), "").expect("a file");
        let mut roots = Roots::default();
        assert_eq!(*roots.of(&folder), *folder);
        fs::remove_file(folder.join("setup.cfg")).expect("a file");
        fs::write(dir.path().join("setup.cfg"), "").expect("a file");
        assert_eq!(*roots.of(&folder), *folder, "found before");
        let mut roots = Roots::default();
        roots.learn(&folder, &folder.as_path().into());
        assert_eq!(*roots.of(&folder), *folder, "told");
        assert_eq!(*Roots::default().of(&folder), *dir.path());
    }
}
