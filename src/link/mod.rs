//! Link: resolves imports, classes and module-level names throughout the project.
//!
//! Takes the lowered files and returns a [`Program`], which is then read-only and shared by all threads.

mod bindings;
mod bound;
mod classes;
mod finder;
mod fingerprint;
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
use crate::reads::{self, Shared};
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

/// The id of every file of the project that has not been read, because nothing in this run needs it.
pub const UNREAD: FileId = FileId(u32::MAX);

/// What an import names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    /// A file of the project.
    Module(ModIdx),
    /// A name in a file of the project.
    Member(ModIdx, Sym),
    /// A dotted name outside the project.
    External(Sym),
}

/// How a module-level variable gets its value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Binding {
    /// Never: it is deleted, or only declared.
    Nothing,
    /// By one import.
    Import(Target),
    /// By one `def`.
    Def(FuncId),
    /// By one `class`.
    Class(ClassId),
    /// By one plain assignment outside all branches.
    Value(ExprId),
    /// In several ways, or in a branch.
    Complex,
}

/// The meaning of a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
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
    /// The file's intermediate representation.
    pub ir: Module,
    /// The binding of each module-level slot.
    pub bindings: Vec<Binding>,
    /// The meaning of each module-level slot's name, filled in after all files are linked. A cache: a meaning is needed more often than
    /// there are names.
    meanings: Box<[Option<Resolved>]>,
    /// The slots of module-level names.
    pub names: FxHashMap<Sym, Slot>,
    /// What imports inside functions name, by variable.
    local_imports: local::LocalImports,
    /// What the file's imports name.
    pub targets: FxHashMap<(u32, Sym, Option<Sym>), Target>,
    /// Whether it imports anything from its own package: `from . import name`.
    siblings: bool,
    /// Submodules that the file's imports make attributes of their packages.
    below: imports::Below,
    /// The targets of its star imports, in order.
    pub stars: Vec<Target>,
    /// The classes' resolved bases.
    pub classes: Vec<ClassInfo>,
    /// The functions directly in the body of each class, by name. The last one wins.
    methods: FxHashMap<(ClassId, Sym), FuncId>,
    /// The calls of its own functions. Computed when first needed.
    sites: Shared<Sites>,
    /// The module-level variables that its functions write. Computed when first needed.
    written: OnceLock<FxHashMap<FuncId, Vec<Slot>>>,
    /// Classes that register state of their own. Computed when first needed.
    registering: Shared<FxHashSet<ClassId>>,
    /// The meanings of its expressions, if they have been noted.
    noted: OnceLock<resolved::Meanings>,
    /// Whether it imports a file of the project that has not been read.
    unread: bool,
}

/// All files of a run.
#[derive(Default)]
pub struct Program {
    /// The files.
    modules: Vec<Linked>,
    by_file: FxHashMap<FileId, ModIdx>,
    /// The name `builtins`: the owner of every name that nothing binds.
    builtins: Sym,
    /// The `conftest.py` files with the fixtures of each test, the nearest first.
    pub conftests: FxHashMap<FileId, Vec<FileId>>,
    /// The extension modules that a file's project builds for CUDA alone, by file.
    pub extensions: FxHashMap<FileId, Arc<[Sym]>>,
    /// The dotted names of files whose projects build such extension modules.
    pub dotted: FxHashMap<FileId, Sym>,
    /// What comments and settings suppress.
    pub silence: Arc<Silence>,
    /// Whether each file mentions Apple's devices. Computed when first needed.
    about_mps: OnceLock<Vec<bool>>,
    /// The names of all methods: a quick check, because most attributes have another name.
    method_names: NameSet,
}

/// How many assignments of names to names are followed: they may form a cycle.
const MAX_ALIASES: usize = 12;

impl Program {
    /// Links the files. `find` returns the file that an import of another file names, if the project has it.
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

    /// Does the import name an extension module that the file's project builds for CUDA alone, or a name in one?
    pub fn is_extension(&self, module: ModIdx, import: &Import) -> bool {
        let file = self.get(module).ir.file;
        let Some(names) = self.extensions.get(&file) else { return false };
        if import.level == 0 {
            return [import.module, import.whole()].iter().any(|name| names.contains(name));
        }
        // `from ._ext import pool` in `ops/pool.py` names `ops._ext`, or `_ext` if the `setup.py` is in `ops`.
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

    /// The file's index in the program.
    pub fn module_of(&self, file: FileId) -> Option<ModIdx> {
        self.by_file.get(&file).copied()
    }

    /// How many files there are.
    pub fn len(&self) -> usize {
        self.modules.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.modules.is_empty()
    }

    /// All files, in the order of their indices.
    pub fn all(&self) -> &[Linked] {
        reads::note_all();
        &self.modules
    }

    /// The file.
    pub fn get(&self, module: ModIdx) -> &Linked {
        reads::note(module.0);
        &self.modules[module.0 as usize]
    }

    /// The class.
    pub fn class(&self, key: ClassKey) -> &ClassInfo {
        &self.get(key.module).classes[key.class.0 as usize]
    }

    /// The module-level variables that a function writes: `global rank`.
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
