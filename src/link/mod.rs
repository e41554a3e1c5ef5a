//! Link: imports, classes and module-level names resolved through the project.
//!
//! Takes the lowered files, gives a [`Program`]: read-only from here on and shared by all threads.

mod bindings;
mod bound;
mod classes;
mod finder;
mod imports;
mod link_module;
mod local;
mod lookup;
mod methods;
mod mps;
mod registers;
mod resolved;
mod search_path;
mod shadowed;
mod sites;

use std::sync::{Arc, OnceLock};

use rustc_hash::{FxHashMap, FxHashSet};

pub use classes::{Base, ClassInfo};
pub use finder::{Finder, Importer, PathId};
pub use sites::Sites;

use crate::ir::{ClassId, Expr, ExprId, FuncId, Import, Module, Slot, Stmt, Var};
use crate::silence::Silence;
use crate::span::FileId;
use crate::sym::{NameSet, Sym};

/// A file of the program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ModIdx(pub u32);

/// A class of the project by file and number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ClassKey {
    /// The file.
    pub module: ModIdx,
    /// The class.
    pub class: ClassId,
}

/// Stands for a file of the project that has not been read: nothing that this run asks for needs it.
pub const UNREAD: FileId = FileId(u32::MAX);

/// What an import names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// A file of the project.
    Module(ModIdx),
    /// A name in a file of the project.
    Member(ModIdx, Sym),
    /// A dotted name outside the project.
    External(Sym),
}

/// How a module-level variable gets its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binding {
    /// Not at all (deleted, or only declared).
    Nothing,
    /// One import.
    Import(Target),
    /// One `def`.
    Def(FuncId),
    /// One `class`.
    Class(ClassId),
    /// One plain assignment outside any branch.
    Value(ExprId),
    /// In more than one way, or in a branch.
    Complex,
}

/// What a name means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resolved {
    /// A file.
    Module(ModIdx),
    /// A function.
    Function(ModIdx, FuncId),
    /// A class.
    Class(ClassKey),
    /// A variable, to be evaluated.
    Variable(ModIdx, Slot),
    /// A dotted name outside the project.
    External(Sym),
}

/// A file with its names resolved.
pub struct Linked {
    /// The file's representation.
    pub ir: Module,
    /// What each module-level slot is bound to.
    pub bindings: Vec<Binding>,
    /// What the name of each module-level slot means, once all files are linked: it is asked for more often than there are
    /// names.
    meanings: Box<[Option<Resolved>]>,
    /// Module-level names.
    pub names: FxHashMap<Sym, Slot>,
    /// What the functions' own imports name, by variable.
    local_imports: local::LocalImports,
    /// What the file's imports name.
    pub targets: FxHashMap<(u32, Sym, Option<Sym>), Target>,
    /// Does it import anything from its own package: `from . import name`?
    siblings: bool,
    /// Submodules that the file's imports make attributes of their packages.
    below: imports::Below,
    /// Star imports, in order.
    pub stars: Vec<Target>,
    /// The classes' resolved bases.
    pub classes: Vec<ClassInfo>,
    /// The functions that stand directly in a class's body, by name; the last one wins.
    methods: FxHashMap<(ClassId, Sym), FuncId>,
    /// The calls of its own functions, once somebody has asked.
    sites: OnceLock<Sites>,
    /// The module-level variables that its functions write, once somebody has asked.
    written: OnceLock<FxHashMap<FuncId, Vec<Slot>>>,
    /// Classes that register state of their own, found when it is first asked for.
    registering: OnceLock<FxHashSet<ClassId>>,
    /// What its expressions mean, once that has been noted.
    noted: OnceLock<resolved::Meanings>,
    /// Does it import a file of the project that has not been read?
    unread: bool,
}

/// All files of a run.
#[derive(Default)]
pub struct Program {
    /// The files.
    pub modules: Vec<Linked>,
    by_file: FxHashMap<FileId, ModIdx>,
    /// What every name belongs to that nothing binds.
    builtins: Sym,
    /// The `conftest.py` files that give a test its fixtures, by the test, the nearest first.
    pub conftests: FxHashMap<FileId, Vec<FileId>>,
    /// The modules that a file's project builds for CUDA alone, by file.
    pub extensions: FxHashMap<FileId, Arc<[Sym]>>,
    /// The dotted names of files whose projects have such modules.
    pub dotted: FxHashMap<FileId, Sym>,
    /// What comments and settings silence.
    pub silence: Arc<Silence>,
    /// Which files speak of Apple's devices, once somebody has asked.
    about_mps: OnceLock<Vec<bool>>,
    /// The names that methods have: most attributes have none of them.
    method_names: NameSet,
}

/// How many names for names are followed: they may go in a circle.
const MAX_ALIASES: usize = 12;

impl Program {
    /// Links the files. `find` gives the file that an import of another file names, if the project has it.
    pub fn link(modules: Vec<Module>, find: &mut dyn FnMut(FileId, u32, Sym) -> Option<FileId>) -> Self {
        let by_file: FxHashMap<FileId, ModIdx> =
            modules.iter().enumerate().map(|(i, m)| (m.file, index(i))).collect();
        let (modules, submodules): (Vec<_>, Vec<_>) =
            modules.into_iter().map(|ir| link_module::link_module(ir, &by_file, find)).unzip();
        let builtins = Sym::new("builtins");
        let (extensions, dotted) = (FxHashMap::default(), FxHashMap::default());
        let method_names = modules.iter().flat_map(|m| m.methods.keys().map(|&(_, name)| name)).collect();
        let about_mps = OnceLock::new();
        let (conftests, silence) = (FxHashMap::default(), Arc::default());
        let mut program = Self {
            modules,
            by_file,
            builtins,
            conftests,
            extensions,
            dotted,
            silence,
            about_mps,
            method_names,
        };
        shadowed::resolve(&mut program, &submodules);
        let meanings: Vec<_> = (0..program.modules.len()).map(|m| program.meanings(index(m))).collect();
        for (linked, meanings) in program.modules.iter_mut().zip(meanings) {
            linked.meanings = meanings;
        }
        classes::resolve(&mut program);
        program
    }

    /// The files as they were before they were linked.
    pub fn into_modules(self) -> Vec<Module> {
        self.modules.into_iter().map(|linked| linked.ir).collect()
    }

    /// Does the import name a module which the file's project builds for CUDA alone, or something in one?
    pub fn is_extension(&self, module: ModIdx, import: &Import) -> bool {
        let file = self.get(module).ir.file;
        let Some(names) = self.extensions.get(&file) else { return false };
        if import.level == 0 {
            return [import.module, import.whole()].iter().any(|name| names.contains(name));
        }
        // `from ._ext import pool` in `ops/pool.py` is `ops._ext`, or `_ext` of a `setup.py` that stands there.
        let mut package = self.dotted.get(&file).map_or("", |name| name.as_str());
        for _ in 0..import.level {
            package = package.rsplit_once('.').map_or("", |(package, _)| package);
        }
        [import.module, import.whole()].iter().filter(|name| !name.as_str().is_empty()).any(|name| {
            let whole = format!(".{package}.{name}");
            names
                .iter()
                .any(|known| whole.strip_suffix(known.as_str()).is_some_and(|rest| rest.ends_with('.')))
        })
    }

    /// The file's place in the program.
    pub fn module_of(&self, file: FileId) -> Option<ModIdx> {
        self.by_file.get(&file).copied()
    }

    /// The file.
    pub fn get(&self, module: ModIdx) -> &Linked {
        &self.modules[module.0 as usize]
    }

    /// The class.
    pub fn class(&self, key: ClassKey) -> &ClassInfo {
        &self.get(key.module).classes[key.class.0 as usize]
    }

    /// The variables of its file that a function writes: `global rank`.
    pub fn written_globals(&self, module: ModIdx, func: FuncId) -> &[Slot] {
        let linked = self.get(module);
        let written = linked.written.get_or_init(|| {
            let ir = &linked.ir;
            let mut found: FxHashMap<FuncId, Vec<Slot>> = FxHashMap::default();
            for s in &ir.stmts {
                let Stmt::Assign { targets, .. } = *s else { continue };
                for &t in ir.list(targets) {
                    if let Expr::Var(Var::Global(slot)) = ir.expr(t) {
                        found.entry(ir.function_around(t)).or_default().push(slot);
                    }
                }
            }
            found
        });
        written.get(&func).map_or(&[], |slots| slots)
    }
}

fn index(i: usize) -> ModIdx {
    ModIdx(u32::try_from(i).unwrap_or(u32::MAX))
}
