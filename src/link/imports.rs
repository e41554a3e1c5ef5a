//! The project's files that files import.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHashMap;

use super::fingerprint::unordered;
use super::{ModIdx, Program, Resolved, Target};
use crate::ir::Module;
use crate::sym::Sym;

/// The attributes of packages that a file's `import a.b` creates.
#[derive(Default)]
pub(super) struct Below {
    /// The submodule, by the package and the attribute's name.
    of_packages: FxHashMap<(ModIdx, Sym), ModIdx>,
    /// Submodules in folders without a file of their own, by the whole dotted name.
    of_folders: FxHashMap<Sym, ModIdx>,
}

impl Below {
    /// Adds all of it to a fingerprint.
    pub(super) fn fingerprint(&self, into: &mut impl Hasher) {
        unordered(self.of_packages.iter()).hash(into);
        unordered(self.of_folders.iter()).hash(into);
    }
}

/// The submodules that the file's `import a.b` makes attributes of their packages (Python's reference, "Submodules" in "The import
/// system"). `find` returns the file of a dotted name.
pub(super) fn below(ir: &Module, find: &mut dyn FnMut(Sym) -> Option<ModIdx>) -> Below {
    let mut below = Below::default();
    for import in ir.imports.iter().filter(|i| i.name.is_none() && i.module.as_str().contains('.')) {
        let whole = import.module.as_str();
        let mut package = None;
        let ends = whole.match_indices('.').map(|(at, _)| at).chain([whole.len()]);
        for path in ends.filter_map(|end| whole.get(..end)) {
            let module = find(Sym::new(path));
            match (package, module) {
                (Some(package), Some(module)) => {
                    let name = path.rsplit_once('.').map_or(path, |(_, name)| name);
                    below.of_packages.insert((package, Sym::new(name)), module);
                }
                (None, Some(module)) if path.contains('.') => {
                    below.of_folders.insert(Sym::new(path), module);
                }
                _ => {}
            }
            package = module;
        }
    }
    below
}

impl Program {
    /// The project's files that the file imports, including the files of imported names. A file may occur more than once.
    pub fn imports(&self, module: ModIdx) -> impl Iterator<Item = ModIdx> {
        let linked = self.get(module);
        let targets = linked.targets.values().filter_map(|target| match *target {
            Target::Module(m) | Target::Member(m, _) => Some(m),
            Target::External(_) => None,
        });
        targets.chain(linked.below.of_packages.values().chain(linked.below.of_folders.values()).copied())
    }

    /// The meaning of `package.name` in a file: a name that the package binds, or a submodule that the file imports.
    pub fn attribute(&self, module: ModIdx, package: ModIdx, name: Sym) -> Option<Resolved> {
        let submodule =
            || self.get(module).below.of_packages.get(&(package, name)).map(|&m| Resolved::Module(m));
        self.lookup(package, name).or_else(submodule)
    }

    /// The project's file that a dotted name means in a file: `work` in a folder `lib`, after `import lib.work`.
    pub fn in_folder(&self, module: ModIdx, folder: Sym, name: Sym) -> Option<ModIdx> {
        let folders = &self.get(module).below.of_folders;
        // Most files have no such import.
        if folders.is_empty() { None } else { folders.get(&folder.dotted(name)).copied() }
    }
}
