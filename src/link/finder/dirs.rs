//! Directories with their listings. Each is read once.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use rustc_hash::{FxHashMap, FxHashSet};

use super::Finder;

/// The number of a directory in the cache.
pub(super) type DirId = u32;

/// A directory in the cache.
pub(super) struct Dir {
    pub(super) path: PathBuf,
    /// The listing; read when the first name is searched.
    names: Option<Names>,
    /// The parent directory; looked up when first needed.
    parent: Option<DirId>,
    below: FxHashMap<Box<str>, DirId>,
}

/// The names in a directory.
#[derive(Default)]
struct Names {
    all: FxHashSet<OsString>,
    /// The names, without extension, that can be modules or packages: a quick check, because most searches fail.
    modules: FxHashSet<Box<str>>,
}

impl Names {
    fn read(path: &Path) -> Self {
        let mut names = Self::default();
        for entry in std::fs::read_dir(path).into_iter().flatten().filter_map(Result::ok) {
            let name = entry.file_name();
            if let Some(text) = name.to_str() {
                let stem = text.strip_suffix(".py").or_else(|| text.strip_suffix(".pyi"));
                names.modules.insert(stem.unwrap_or(text).into());
            }
            names.all.insert(name);
        }
        names
    }
}

impl Finder {
    /// The `__init__` file of a directory that is a package.
    pub(super) fn package(&mut self, dir: DirId) -> Option<PathBuf> {
        [".py", ".pyi"].iter().find_map(|ext| self.file(dir, "__init__", ext))
    }

    pub(super) fn file(&mut self, dir: DirId, name: &str, extension: &str) -> Option<PathBuf> {
        let mut file = String::with_capacity(name.len() + extension.len());
        file.push_str(name);
        file.push_str(extension);
        self.holds(dir, &file).then(|| self.dirs[dir as usize].path.join(file))
    }

    pub(super) fn holds(&mut self, dir: DirId, name: &str) -> bool {
        self.names(dir).all.contains(OsStr::new(name))
    }

    /// Can a module or package with this name be in the directory?
    pub(super) fn may_hold(&mut self, dir: DirId, module: &str) -> bool {
        self.names(dir).modules.contains(module)
    }

    fn names(&mut self, dir: DirId) -> &Names {
        let dir = &mut self.dirs[dir as usize];
        dir.names.get_or_insert_with(|| Names::read(&dir.path))
    }

    pub(super) fn parent(&mut self, dir: DirId) -> Option<DirId> {
        if let known @ Some(_) = self.dirs[dir as usize].parent {
            return known;
        }
        let path = self.dirs[dir as usize].path.parent()?.to_path_buf();
        let parent = Some(self.dir(&path));
        self.dirs[dir as usize].parent = parent;
        parent
    }

    pub(super) fn sub(&mut self, dir: DirId, name: &str) -> DirId {
        if let Some(&sub) = self.dirs[dir as usize].below.get(name) {
            return sub;
        }
        let path = self.dirs[dir as usize].path.join(name);
        let sub = self.dir(&path);
        self.dirs[dir as usize].below.insert(name.into(), sub);
        sub
    }

    pub(super) fn dir(&mut self, path: &Path) -> DirId {
        if let Some(&known) = self.by_path.get(path) {
            return known;
        }
        let id = DirId::try_from(self.dirs.len()).unwrap_or(DirId::MAX);
        self.dirs.push(Dir {
            path: path.to_path_buf(),
            names: None,
            parent: None,
            below: FxHashMap::default(),
        });
        self.by_path.insert(path.to_path_buf(), id);
        id
    }
}
