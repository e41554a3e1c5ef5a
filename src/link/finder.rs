//! From an import statement to a file of the project.
//!
//! Absolute names are searched where Python finds them if the project is run from its usual places: next to the importing file, in the
//! directory that contains its outermost package, in every ancestor up to the project's root, in the folders that the file adds to
//! `sys.path`, and in the root's `src`. Nothing outside the root is searched.

mod dirs;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;

use self::dirs::{Dir, DirId};
use super::search_path;
use crate::ir::Module;
use crate::source::read;
use crate::sym::Sym;

/// Finds files. Caches the listings of directories and every answer, because the files of a directory have many imports in common.
#[derive(Default)]
pub struct Finder {
    dirs: Vec<Dir>,
    by_path: FxHashMap<PathBuf, DirId>,
    files: Vec<PathBuf>,
    file_ids: FxHashMap<PathBuf, PathId>,
    answers: FxHashMap<(Importer, u32, Sym), Option<PathId>>,
    /// The folders that files add to `sys.path`. The first entry is for files that add none.
    added: Vec<Vec<DirId>>,
    /// Whether a directory contains a module `torch` that is not PyTorch.
    own_torch: FxHashMap<DirId, bool>,
}

/// The number of a file's path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct PathId(u32);

/// Where an import is: a directory, the root of its project, and the folders that the file adds to `sys.path`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Importer {
    dir: DirId,
    root: DirId,
    /// Whether the directory is in the project.
    inside: bool,
    /// Index into [`Finder::added`].
    added: usize,
}

const TORCH: &str = "torch";

/// Entries in PyTorch's own package: its C++ sources in the repository, and the built extension where it is installed.
const OF_PYTORCH: [&str; 2] = ["csrc", "_C"];

/// Folders in which a project keeps modules for its scripts, in addition to the scripts' own folder. They are installed, or the scripts add
/// them to `sys.path`.
const SOURCES: [&str; 2] = ["src", "lib"];

impl Finder {
    /// The importer for all files in the directory of `file`, in the project at `root`, that add the same folders to `sys.path`.
    pub fn importer(&mut self, file: &Path, root: &Path, ir: Option<&Module>) -> Option<Importer> {
        let dir = file.parent()?;
        let folders = ir.map_or_else(Vec::new, |ir| search_path::folders(ir, file, root));
        let folders: Vec<DirId> = folders.iter().map(|folder| self.dir(folder)).collect();
        if self.added.is_empty() {
            self.added.push(Vec::new());
        }
        let added = self.added.iter().position(|known| *known == folders).unwrap_or_else(|| {
            self.added.push(folders);
            self.added.len() - 1
        });
        Some(Importer { dir: self.dir(dir), root: self.dir(root), inside: dir.starts_with(root), added })
    }

    /// The file of the module with `level` dots and a dotted name; `None` if the project does not have it. Does not search outside the
    /// root.
    pub fn find(&mut self, importer: Importer, level: u32, module: Sym) -> Option<PathId> {
        let parts = module.as_str().split('.').filter(|p| !p.is_empty());
        if level == 0 {
            let first = parts.clone().next()?;
            if is_loaded_first(first) && !(first == TORCH && self.has_own_torch(importer)) {
                return None;
            }
        }
        if let Some(&known) = self.answers.get(&(importer, level, module)) {
            return known;
        }
        let parts: Vec<&str> = parts.collect();
        let found = if level > 0 {
            self.relative(importer.dir, level, &parts)
        } else {
            // If the project's own package `torch` lacks a name, the name is not PyTorch's either.
            self.absolute(importer, &parts).or_else(|| match parts.first() {
                Some(&TORCH) => self.absolute(importer, &[TORCH]),
                _ => None,
            })
        };
        let found = found.map(|path| self.path_id(&path));
        self.answers.insert((importer, level, module), found);
        found
    }

    /// The `conftest.py` files from which pytest takes fixtures for a test of this importer: in its folder and in the folders above, up to
    /// the project's root; the nearest first.
    pub fn conftests(&mut self, importer: Importer) -> Vec<PathId> {
        let (mut found, mut dir) = (Vec::new(), Some(importer.dir));
        while let Some(d) = dir {
            if let Some(file) = self.file(d, "conftest", ".py") {
                found.push(self.path_id(&file));
            }
            let last = d == importer.root || !importer.inside;
            dir = if last { None } else { self.parent(d) };
        }
        found
    }

    /// The number of a path.
    pub fn path_id(&mut self, path: &Path) -> PathId {
        if let Some(&known) = self.file_ids.get(path) {
            return known;
        }
        let id = PathId(u32::try_from(self.files.len()).unwrap_or(u32::MAX));
        self.files.push(path.to_path_buf());
        self.file_ids.insert(path.to_path_buf(), id);
        id
    }

    /// The path with this number.
    pub fn path(&self, id: PathId) -> &Path {
        &self.files[id.0 as usize]
    }

    /// Is there a module `torch`, next to the importing file or at its project's root, that is not PyTorch and that Python would find
    /// first? PyTorch's own repository does not count. A package `torch` without code does not count either: it is a folder of examples,
    /// which mean PyTorch by `torch`.
    fn has_own_torch(&mut self, importer: Importer) -> bool {
        let mut bases = vec![importer.dir];
        if importer.inside {
            bases.push(importer.root);
        }
        bases.into_iter().any(|base| {
            if let Some(&known) = self.own_torch.get(&base) {
                return known;
            }
            let own = self.is_own_torch(base);
            self.own_torch.insert(base, own);
            own
        })
    }

    fn is_own_torch(&mut self, base: DirId) -> bool {
        // The directory of a package is not on Python's path.
        if !self.may_hold(base, TORCH) || self.package(base).is_some() {
            return false;
        }
        if !self.holds(base, TORCH) {
            return self.file(base, TORCH, ".py").is_some();
        }
        let folder = self.sub(base, TORCH);
        let Some(init) = self.package(folder) else { return false };
        let is_code = |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with('#');
        !OF_PYTORCH.iter().any(|name| self.holds(folder, name))
            && read::read(&init).is_ok_and(|text| text.lines().any(is_code))
    }

    fn relative(&mut self, dir: DirId, level: u32, parts: &[&str]) -> Option<PathBuf> {
        let mut base = dir;
        for _ in 1..level {
            base = self.parent(base)?;
        }
        if parts.is_empty() {
            return self.package(base);
        }
        self.below(base, parts).and_then(Found::file)
    }

    fn absolute(&mut self, importer: Importer, parts: &[&str]) -> Option<PathBuf> {
        let first = *parts.first()?;
        let (strict, library) = (is_well_known(first), crate::torch::is_library(first));
        let mut base = Some(importer.dir);
        while let Some(b) = base {
            // A package's own directory is only on the path if the file is run as a script. A package is assumed not to run scripts for
            // names of libraries.
            let inside = library && self.package(b).is_some();
            let looks = !inside && (!strict || self.is_of_project(b, first));
            if looks && let Some(Found::File(f)) = self.below(b, parts) {
                return Some(f);
            }
            if b == importer.root || !importer.inside {
                break;
            }
            base = self.parent(b);
        }
        let added = self.added.get(importer.added).cloned().unwrap_or_default();
        for folder in added {
            let looks = !strict || self.is_of_project(folder, first);
            if looks && let Some(Found::File(f)) = self.below(folder, parts) {
                return Some(f);
            }
        }
        if strict {
            return None;
        }
        let in_sources = SOURCES.iter().find_map(|name| {
            let folder = self.sub(importer.root, name);
            self.below(folder, parts).and_then(Found::file)
        });
        in_sources.or_else(|| self.named_after_root(importer, parts).filter(|_| !library))
    }

    /// `lib.masks`, imported in a project whose root is a folder `lib` without `__init__.py`. This is a namespace package (PEP 420) that is
    /// run from the folder above.
    fn named_after_root(&mut self, importer: Importer, parts: &[&str]) -> Option<PathBuf> {
        let (first, rest) = parts.split_first()?;
        let named = self.dirs[importer.root as usize].path.file_name() == Some(OsStr::new(first));
        if !named || !importer.inside {
            return None;
        }
        self.below(importer.root, rest).and_then(Found::file)
    }

    /// The file of a module: `name.py`, `name.pyi` or `name/__init__.py` below `base`. A directory without `__init__` is a namespace
    /// package and has no file.
    fn below(&mut self, base: DirId, parts: &[&str]) -> Option<Found> {
        let (last, packages) = parts.split_last()?;
        if !parts.first().is_some_and(|first| self.may_hold(base, first)) {
            return None;
        }
        let mut dir = base;
        for p in packages {
            if !self.holds(dir, p) {
                return None;
            }
            dir = self.sub(dir, p);
        }
        if self.holds(dir, last) {
            let package = self.sub(dir, last);
            if let Some(file) = self.package(package) {
                return Some(Found::File(file));
            }
            return Some(self.file(dir, last, ".py").map_or(Found::Namespace, Found::File));
        }
        [".py", ".pyi"].iter().find_map(|ext| self.file(dir, last, ext)).map(Found::File)
    }

    /// Is there a module or package with this name? A folder without `__init__.py` does not count, because an installed package takes
    /// precedence.
    fn is_of_project(&mut self, dir: DirId, name: &str) -> bool {
        if self.file(dir, name, ".py").is_some() {
            return true;
        }
        self.holds(dir, name) && {
            let folder = self.sub(dir, name);
            self.package(folder).is_some()
        }
    }
}

enum Found {
    File(PathBuf),
    Namespace,
}

impl Found {
    fn file(self) -> Option<PathBuf> {
        match self {
            Self::File(f) => Some(f),
            Self::Namespace => None,
        }
    }
}

/// Is it a package with a common folder name that projects do not mean to shadow, or a module that Python has loaded before it searches?
/// `torch` is one of the former, unless the project's own `torch` is known not to be PyTorch.
fn is_loaded_first(package: &str) -> bool {
    matches!(package, "torch" | "numpy" | "os" | "sys" | "typing" | "math")
}

/// Is it a package after which projects name folders, although few projects have a package of their own with this name?
fn is_well_known(package: &str) -> bool {
    matches!(package, "torchvision" | "torchaudio")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Finder;
    use crate::sym::Sym;

    #[test]
    fn a_namespace_package_is_imported_from_inside() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let root = dir.path().join("parts");
        fs::create_dir_all(root.join("inner")).expect("folders");
        for file in ["step.py", "masks.py", "inner/deep.py"] {
            fs::write(root.join(file), "").expect("a file");
        }
        fs::write(dir.path().join("beside.py"), "").expect("a file");
        let mut finder = Finder::default();
        let importer = finder.importer(&root.join("step.py"), &root, None).expect("an importer");
        let mut found =
            |name: &str| finder.find(importer, 0, Sym::new(name)).map(|id| finder.path(id).to_path_buf());
        assert_eq!(found("parts.masks"), Some(root.join("masks.py")));
        assert_eq!(found("parts.inner.deep"), Some(root.join("inner/deep.py")));
        assert_eq!(found("parts"), None, "a folder has no file");
        assert_eq!(found("other.masks"), None);
        assert_eq!(found("beside"), None, "nothing outside the root");
    }
}
