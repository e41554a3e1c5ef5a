//! From an import statement to a file of the project.
//!
//! Absolute names are looked up where Python would find them when the project is run from its usual
//! places: beside the importing file, in the directory that holds its outermost package, in every ancestor
//! up to the project's root, and in the root's `src`. Nothing outside the root is ever looked at.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use rustc_hash::{FxHashMap, FxHashSet};

/// Looks files up and remembers directories' listings.
#[derive(Default)]
pub struct Finder {
    listings: RefCell<FxHashMap<PathBuf, FxHashSet<OsString>>>,
}

impl Finder {
    /// The file of a module: `name.py`, `name.pyi` or `name/__init__.py` below `base`; a directory without
    /// `__init__` is a namespace package and has no file.
    fn below(&self, base: &Path, parts: &[&str]) -> Option<Found> {
        let (last, packages) = parts.split_last()?;
        let mut dir = base.to_path_buf();
        for p in packages {
            if !self.holds(&dir, p) {
                return None;
            }
            dir.push(p);
        }
        if self.holds(&dir, last) {
            let package = dir.join(last);
            for init in ["__init__.py", "__init__.pyi"] {
                if self.holds(&package, init) {
                    return Some(Found::File(package.join(init)));
                }
            }
            let file = format!("{last}.py");
            if self.holds(&dir, &file) {
                return Some(Found::File(dir.join(file)));
            }
            return Some(Found::Namespace);
        }
        [".py", ".pyi"].iter().find_map(|ext| {
            let file = format!("{last}{ext}");
            self.holds(&dir, &file).then(|| Found::File(dir.join(file)))
        })
    }

    fn holds(&self, dir: &Path, name: &str) -> bool {
        let mut listings = self.listings.borrow_mut();
        if let Some(names) = listings.get(dir) {
            return names.contains(OsStr::new(name));
        }
        let names: FxHashSet<OsString> = std::fs::read_dir(dir)
            .map(|entries| entries.filter_map(Result::ok).map(|e| e.file_name()).collect())
            .unwrap_or_default();
        let found = names.contains(OsStr::new(name));
        listings.insert(dir.to_path_buf(), names);
        found
    }

    /// The file of the module that `importer` means by `level` dots and a dotted name; `None` when the
    /// project does not have it. `root` bounds the search.
    pub fn find(&self, importer: &Path, root: &Path, level: u32, module: &str) -> Option<PathBuf> {
        let parts: Vec<&str> = module.split('.').filter(|p| !p.is_empty()).collect();
        let dir = importer.parent()?;
        if level > 0 {
            let mut base = dir;
            for _ in 1..level {
                base = base.parent()?;
            }
            if parts.is_empty() {
                return ["__init__.py", "__init__.pyi"]
                    .iter()
                    .find(|init| self.holds(base, init))
                    .map(|init| base.join(init));
            }
            return self.below(base, &parts).and_then(Found::file);
        }
        let (head, last) = (parts.first()?, parts.last()?);
        if head == last && is_well_known(head) {
            return None;
        }
        let mut base = Some(dir);
        let src = root.join("src");
        while let Some(b) = base {
            // A package's own directory is not on the path of absolute imports, unless the file is a script.
            if let Some(Found::File(f)) = self.below(b, &parts).filter(|_| !is_well_known(head)) {
                return Some(f);
            }
            if b == root || !b.starts_with(root) {
                break;
            }
            base = b.parent();
        }
        self.below(&src, &parts).filter(|_| !is_well_known(head)).and_then(Found::file)
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

/// Packages that projects have folders named after, without meaning to shadow them.
fn is_well_known(package: &str) -> bool {
    matches!(package, "torch" | "numpy" | "torchvision" | "torchaudio" | "os" | "sys" | "typing" | "math")
}
