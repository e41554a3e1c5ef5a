//! Which files a run reads in addition to the inputs.
//!
//! Following every import would read nearly all of a large project, because packages import what they offer. So a file is read only if a
//! name from it is mentioned: in an input, or in a function, class or variable that is mentioned there, and so on for up to [`MAX_HOPS`]
//! steps. The bases of classes are always followed to the end.
//!
//! A file that is not read is unknown, like a library: see [`crate::link::UNREAD`].

mod mentions;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::intake::{Analysis, Intake, Loaded, file_id, load_import};
use super::outline::Outline;
use crate::ir::{Import, Module};
use crate::link::PathId;
use crate::span::FileId;
use crate::sym::Sym;

/// How many steps from mention to mention are followed: how many functions, classes and variables that mention one another are searched for
/// names.
const MAX_HOPS: u32 = 1;

/// A file with more star imports than this is not searched for a name that it does not bind: the name could come from any of them.
const MAX_STARS: usize = 8;

/// The attribute names that a part of a file mentions. They limit which names are needed of a file that the part imports.
type Attributes = Arc<[Sym]>;

/// A file, and what is needed of it.
struct Want {
    file: PathId,
    what: What,
}

enum What {
    /// The meaning of this top-level name.
    Name(Sym, Attributes),
    /// The meaning of this name if the file itself binds it. If not, the name is a submodule.
    Own(Sym, Attributes),
    /// The meaning of those of its names that are in this list.
    Names(Attributes),
    /// Only the bases of the class of this name.
    Bases(Sym),
}

/// What is still needed, and what has been searched.
#[derive(Default)]
pub(super) struct Needed {
    /// What is still needed, by the number of hops from the inputs.
    open: BTreeMap<u32, Vec<Want>>,
    /// The parts that have been searched, each with its number of hops.
    parts: FxHashMap<(FileId, Sym), u32>,
    bases: FxHashSet<(FileId, Sym)>,
    /// The names that have been passed on for a part that mentions these attributes. The number is the address of the attribute list.
    passed: FxHashSet<(FileId, Option<Sym>, usize)>,
    /// Keeps the attribute lists alive, so that the addresses in `passed` stay unique.
    kept: Vec<Attributes>,
    /// Files that are needed as a whole.
    whole: FxHashSet<FileId>,
    /// Packages in `whole` that import files only for others to use; those files may not be needed.
    offering: FxHashSet<FileId>,
    outlines: FxHashMap<FileId, Arc<Outline>>,
}

impl Intake {
    /// Loads these files, each with its root, and what is needed of the files that they import.
    pub(super) fn follow(&mut self, wanted: Vec<(PathBuf, Arc<Path>)>, analysis: &mut Analysis) {
        let loaded = self.load_all(&wanted, analysis);
        self.needs(loaded, analysis);
    }

    /// Loads what these files need. All of each file counts, not only a name.
    pub(super) fn needs(&mut self, mut asked: Vec<FileId>, analysis: &mut Analysis) {
        loop {
            let conftests = self.conftests_of(&asked, analysis);
            self.needed.whole.extend(&asked);
            self.find_offering(&asked);
            for &file in &asked {
                self.need_whole(file);
            }
            asked = self.load_all(&conftests, analysis);
            if asked.is_empty() {
                break;
            }
        }
        while let Some(level) = self.needed.open.first_entry() {
            let (hops, mut open) = level.remove_entry();
            let mut missing: Vec<Want> = Vec::new();
            while let Some(want) = open.pop() {
                match self.by_path.get(&want.file).copied() {
                    Some(file) => self.look_at(file, want, hops),
                    None => missing.push(want),
                }
                open.extend(self.needed.open.remove(&hops).into_iter().flatten());
            }
            if missing.is_empty() {
                continue;
            }
            let mut seen = FxHashSet::default();
            let paths = missing.iter().map(|want| want.file).filter(|&path| seen.insert(path));
            let files = paths.filter_map(|path| {
                Some((self.finder.path(path).to_path_buf(), self.wanted_roots.get(&path)?.clone()))
            });
            let files: Vec<(PathBuf, Arc<Path>)> = files.collect();
            self.load_all(&files, analysis);
            // Files that could not be loaded now exist as empty files.
            self.needed.open.entry(hops).or_default().extend(missing);
        }
    }

    fn load_all(&mut self, files: &[(PathBuf, Arc<Path>)], analysis: &mut Analysis) -> Vec<FileId> {
        let base = analysis.sources.len();
        let memo = self.memo.as_deref();
        let loaded: Vec<Loaded> = files
            .par_iter()
            .enumerate()
            .map(|(i, (path, root))| load_import(path, root, file_id(base + i), memo))
            .collect();
        self.take(loaded, analysis)
    }

    fn module(&self, file: FileId) -> Option<&Module> {
        self.modules.get(*self.module_at.get(&file)?)
    }

    /// Finds the packages among `asked` that import files which are not loaded, or other packages of this kind.
    fn find_offering(&mut self, asked: &[FileId]) {
        let packages: Vec<FileId> =
            asked.iter().copied().filter(|file| self.packages.contains(file)).collect();
        let from: Vec<(FileId, Vec<Option<FileId>>)> = packages
            .into_iter()
            .map(|file| {
                let imports = self.module(file).map_or_else(Vec::new, |ir| ir.imports.clone());
                let paths = imports.iter().flat_map(|import| self.found(file, import));
                let paths: Vec<PathId> = paths.collect();
                (file, paths.into_iter().map(|path| self.by_path.get(&path).copied()).collect())
            })
            .collect();
        loop {
            let before = self.needed.offering.len();
            for (file, paths) in &from {
                let open = |path: &Option<FileId>| path.is_none_or(|f| self.needed.offering.contains(&f));
                if paths.iter().any(open) {
                    self.needed.offering.insert(*file);
                }
            }
            if self.needed.offering.len() == before {
                break;
            }
        }
    }

    /// The project's files that an import names: the packages on the dotted path, and the module itself.
    fn found(&mut self, file: FileId, import: &Import) -> Vec<PathId> {
        let Some(importer) = self.importers[file.0 as usize] else { return Vec::new() };
        let whole = import.module.as_str();
        // `import a.b` also runs `a`.
        let ends = whole.match_indices('.').map(|(at, _)| at).filter(|_| import.name.is_none());
        let around = ends.filter_map(|end| whole.get(..end)).map(Sym::new);
        let named = [import.module, import.whole()];
        let named = if import.name.is_none() { &named[..1] } else { &named[..] };
        let names: Vec<Sym> = around.chain(named.iter().copied()).collect();
        let found = names.into_iter().filter_map(|name| self.finder.find(importer, import.level, name));
        found.collect()
    }

    /// The import with index `n`.
    fn import(&self, file: FileId, n: usize) -> Option<Import> {
        self.module(file)?.imports.get(n).cloned()
    }

    /// Is the file already needed as a whole, including all that it imports?
    fn is_known(&self, file: FileId) -> bool {
        self.needed.whole.contains(&file) && !self.needed.offering.contains(&file)
    }

    /// Requests all imports of the file, except those that a package only has for others.
    fn need_whole(&mut self, file: FileId) {
        let Some(ir) = self.module(file) else { return };
        let imports: Vec<Import> = ir.imports.clone();
        let offers = self.needed.offering.contains(&file);
        let offered = if offers { self.outline(file).offered() } else { FxHashSet::default() };
        let mut attributes = None;
        for (n, import) in imports.iter().enumerate() {
            if offered.contains(&n) {
                continue;
            }
            let paths = self.found(file, import);
            let known =
                |path: &PathId| self.by_path.get(path).is_some_and(|&f| f == file || self.is_known(f));
            if paths.iter().all(known) {
                continue;
            }
            let all =
                || self.module(file).map_or_else(|| Arc::from([]), |ir| Arc::from(ir.attributes.as_ref()));
            let attributes: &Attributes = attributes.get_or_insert_with(all);
            self.need_import(file, import, attributes, 1);
        }
    }

    fn want(&mut self, hops: u32, want: Want) {
        self.needed.open.entry(hops).or_default().push(want);
    }

    /// Requests what an import of the file gives, if it comes from a file of the project.
    fn need_import(&mut self, file: FileId, import: &Import, attributes: &Attributes, hops: u32) {
        let root = self.roots[file.0 as usize].clone();
        let part = import.name.filter(|name| name.as_str() != "*");
        let within = match (part, self.importers[file.0 as usize]) {
            (Some(_), Some(importer)) => self.finder.find(importer, import.level, import.whole()),
            _ => None,
        };
        for path in self.found(file, import) {
            let known = self.by_path.get(&path).copied();
            if known.is_some_and(|f| f == file || self.is_known(f)) {
                continue;
            }
            self.wanted_roots.entry(path).or_insert_with(|| root.clone());
            let attributes = attributes.clone();
            let what = match part {
                Some(name) if within.is_none() => What::Name(name, attributes),
                // The name may be a submodule or a name that the package itself binds.
                Some(name) if within != Some(path) => What::Own(name, attributes),
                _ => What::Names(attributes),
            };
            self.want(hops, Want { file: path, what });
        }
    }

    /// Marks this name as passed on. Returns whether it was already.
    fn passed(&mut self, file: FileId, name: Option<Sym>, attributes: &Attributes) -> bool {
        if !self.needed.passed.insert((file, name, attributes.as_ptr().addr())) {
            return true;
        }
        self.needed.kept.push(attributes.clone());
        false
    }

    fn path_of(&mut self, file: FileId) -> Option<PathId> {
        self.path_ids.get(file.0 as usize).copied()
    }

    fn outline(&mut self, file: FileId) -> Arc<Outline> {
        if let Some(known) = self.needed.outlines.get(&file) {
            return Arc::clone(known);
        }
        let outline = Arc::new(self.module(file).map(Outline::of).unwrap_or_default());
        self.needed.outlines.insert(file, Arc::clone(&outline));
        outline
    }
}
