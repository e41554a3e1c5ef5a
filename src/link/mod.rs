//! Link: imports, classes and module-level names resolved through the project.
//!
//! Takes the lowered files, gives a [`Program`]: read-only from here on and shared by all threads.

mod bound;
mod classes;
mod finder;
mod imports;
mod local;
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

use crate::ir::{Block, ClassId, Expr, ExprId, FuncId, Import, Module, Slot, Stmt, StmtId, Var};
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

/// How many re-exports are followed before giving up.
const MAX_REEXPORTS: usize = 12;
/// How many names for names are followed: they may go in a circle.
const MAX_ALIASES: usize = 12;

impl Program {
    /// Links the files. `find` gives the file that an import of another file names, if the project has it.
    pub fn link(modules: Vec<Module>, find: &mut dyn FnMut(FileId, u32, Sym) -> Option<FileId>) -> Self {
        let by_file: FxHashMap<FileId, ModIdx> =
            modules.iter().enumerate().map(|(i, m)| (m.file, index(i))).collect();
        let (modules, submodules): (Vec<_>, Vec<_>) =
            modules.into_iter().map(|ir| link_module(ir, &by_file, find)).unzip();
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

    /// The module-level name of a file, followed through imports and re-exports.
    pub fn lookup(&self, module: ModIdx, name: Sym) -> Option<Resolved> {
        let linked = self.get(module);
        match linked.names.get(&name).map(|&slot| linked.meanings.get(usize::from(slot))) {
            Some(Some(&known)) => known,
            Some(None) => self.lookup_within(module, name, MAX_REEXPORTS),
            None => self.lookup_unbound(linked, name, MAX_REEXPORTS - 1),
        }
    }

    /// What the name of each module-level slot of a file means.
    fn meanings(&self, module: ModIdx) -> Box<[Option<Resolved>]> {
        let body = self.get(module).ir.functions.first();
        let names = body.into_iter().flat_map(|f| &f.slots);
        names.map(|&name| self.lookup_within(module, name, MAX_REEXPORTS)).collect()
    }

    /// What the name of a module-level slot of a file means.
    pub fn meaning(&self, module: ModIdx, slot: Slot) -> Option<Resolved> {
        self.get(module).meanings.get(usize::from(slot)).copied().flatten()
    }

    fn lookup_within(&self, module: ModIdx, name: Sym, depth: usize) -> Option<Resolved> {
        let depth = depth.checked_sub(1)?;
        let linked = self.get(module);
        if let Some(&slot) = linked.names.get(&name) {
            return match linked.bindings[slot as usize] {
                Binding::Nothing => None,
                Binding::Import(target) => self.follow(target, depth),
                Binding::Def(f) => Some(Resolved::Function(module, f)),
                Binding::Class(class) => Some(Resolved::Class(ClassKey { module, class })),
                Binding::Value(_) | Binding::Complex => Some(Resolved::Variable(module, slot)),
            };
        }
        self.lookup_unbound(linked, name, depth)
    }

    /// What a name means that the file itself does not bind.
    fn lookup_unbound(&self, linked: &Linked, name: Sym, depth: usize) -> Option<Resolved> {
        if linked.siblings
            && let Some(&target) = linked.targets.get(&(1, Sym::EMPTY, Some(name)))
        {
            return self.follow(target, depth);
        }
        linked.stars.iter().rev().find_map(|&star| match star {
            Target::Module(m) => self.lookup_within(m, name, depth),
            Target::Member(..) | Target::External(_) => None,
        })
    }

    /// What an import's target means.
    pub fn resolve(&self, target: Target) -> Option<Resolved> {
        self.follow(target, MAX_REEXPORTS)
    }

    fn follow(&self, target: Target, depth: usize) -> Option<Resolved> {
        match target {
            Target::Module(m) => Some(Resolved::Module(m)),
            Target::External(path) => Some(Resolved::External(path)),
            Target::Member(m, name) => self.lookup_within(m, name, depth),
        }
    }

    /// What a name or dotted name at module level means, without evaluating anything.
    pub fn resolve_expr(&self, module: ModIdx, expr: ExprId) -> Option<Resolved> {
        match self.get(module).noted.get() {
            Some(noted) => noted.get(expr),
            None => self.resolve_through(module, expr, MAX_ALIASES),
        }
    }

    /// What an attribute of something means.
    fn resolve_attribute(&self, module: ModIdx, base: Resolved, name: Sym) -> Option<Resolved> {
        match base {
            Resolved::Module(m) => self.attribute(module, m, name),
            Resolved::External(path) => Some(match self.in_folder(module, path, name) {
                Some(m) => Resolved::Module(m),
                None => Resolved::External(path.dotted(name)),
            }),
            Resolved::Class(_) | Resolved::Function(..) | Resolved::Variable(..) => None,
        }
    }

    /// The same through so many names for names.
    fn resolve_through(&self, module: ModIdx, expr: ExprId, aliases: usize) -> Option<Resolved> {
        let linked = self.get(module);
        let ir = &linked.ir;
        match ir.expr(expr) {
            // Of the names of functions only those say something here that are imported.
            Expr::Var(var @ (Var::Local(_) | Var::Enclosing { .. })) if ir.function_around(expr).0 != 0 => {
                self.imported_by_function(linked, expr, var)
            }
            Expr::Var(Var::Local(slot) | Var::Global(slot)) => {
                match self.meaning(module, slot)? {
                    Resolved::Variable(m, s) => match self.get(m).bindings[s as usize] {
                        // `Base = nn.Module`
                        Binding::Value(e) if aliases > 0 && is_dotted(&self.get(m).ir, e) => {
                            self.resolve_through(m, e, aliases - 1)
                        }
                        _ => Some(Resolved::Variable(m, s)),
                    },
                    r => Some(r),
                }
            }
            Expr::Var(Var::Unbound(name)) => {
                self.lookup(module, name).or_else(|| Some(Resolved::External(self.builtins.dotted(name))))
            }
            Expr::Attr { base, name } => {
                let base = self.resolve_through(module, base, aliases)?;
                self.resolve_attribute(module, base, name)
            }
            // `Generic[T]`
            Expr::Index { base, .. } => self.resolve_through(module, base, aliases),
            _ => None,
        }
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

    /// `Camera.from_pose(…)`: the static method or class method of a class of the project.
    pub fn method_of_class(&self, module: ModIdx, func: ExprId) -> Option<(ModIdx, FuncId)> {
        let Expr::Attr { base, name } = self.get(module).ir.expr(func) else { return None };
        let Resolved::Class(key) = self.resolve_expr(module, base)? else { return None };
        let (m, f) = self.find_method(key, name)?;
        let ir = &self.get(m).ir;
        let of_class = |&d: &ExprId| {
            matches!(self.resolve_expr(m, d), Some(Resolved::External(path))
                if matches!(path.as_str(), "builtins.staticmethod" | "builtins.classmethod"))
        };
        ir.list(ir.function(f).decorators).iter().any(of_class).then_some((m, f))
    }

    /// The method of a class or of one of its bases in the project, in method resolution order.
    pub fn find_method(&self, class: ClassKey, name: Sym) -> Option<(ModIdx, FuncId)> {
        if !self.names_method(name) {
            return None;
        }
        self.class(class).mro.iter().find_map(|&key| self.own_method(key, name).map(|f| (key.module, f)))
    }

    /// Has any class a method of this name?
    pub fn names_method(&self, name: Sym) -> bool {
        self.method_names.contains(name)
    }

    /// The method of the class itself.
    pub fn own_method(&self, class: ClassKey, name: Sym) -> Option<FuncId> {
        self.get(class.module).methods.get(&(class.class, name)).copied()
    }
}

fn is_dotted(ir: &Module, expr: ExprId) -> bool {
    match ir.expr(expr) {
        Expr::Var(_) => true,
        Expr::Attr { base, .. } => is_dotted(ir, base),
        _ => false,
    }
}

fn index(i: usize) -> ModIdx {
    ModIdx(u32::try_from(i).unwrap_or(u32::MAX))
}

fn link_module(
    ir: Module,
    by_file: &FxHashMap<FileId, ModIdx>,
    find: &mut dyn FnMut(FileId, u32, Sym) -> Option<FileId>,
) -> (Linked, shadowed::Submodules) {
    let mut targets = FxHashMap::default();
    let mut stars = Vec::new();
    let mut submodules = Vec::new();
    let mut unread = false;
    for import in &ir.imports {
        let target = import_target(ir.file, import, by_file, find, &mut unread);
        let key = (import.level, import.module, import.name);
        if import.name.is_some()
            && matches!(target, Target::Module(_))
            && let Some(package) = find(ir.file, import.level, import.module).filter(|&f| f != ir.file)
            && let Some(&package) = by_file.get(&package)
        {
            submodules.push((key, package));
        }
        if import.name.is_some_and(|n| n.as_str() == "*") {
            stars.push(target);
        }
        targets.insert(key, target);
    }
    let below =
        imports::below(&ir, &mut |name| find(ir.file, 0, name).and_then(|f| by_file.get(&f).copied()));
    let body = ir.functions.first();
    let slots: &[Sym] = body.map_or(&[], |f| &f.slots);
    let names: FxHashMap<Sym, Slot> =
        slots.iter().enumerate().rev().map(|(i, &n)| (n, Slot::try_from(i).unwrap_or(Slot::MAX))).collect();
    let mut bindings = vec![Binding::Nothing; slots.len()];
    if let Some(body) = body {
        Binder { ir: &ir, targets: &targets, bindings: &mut bindings }.block(body.body, false);
    }
    let mut methods = FxHashMap::default();
    for (n, class) in ir.classes.iter().enumerate() {
        let id = ClassId(u32::try_from(n).unwrap_or(u32::MAX));
        methods.extend(class.methods.iter().map(|&(name, f)| ((id, name), f)));
    }
    // A function that declares a name `global` and writes it is rare: such names have no other binding.
    let linked = Linked {
        local_imports: local::of(&ir, &targets),
        bindings,
        meanings: Box::default(),
        names,
        targets,
        below,
        stars,
        siblings: ir.imports.iter().any(|i| i.level == 1 && i.module == Sym::EMPTY && i.name.is_some()),
        methods,
        classes: Vec::new(),
        sites: OnceLock::new(),
        written: OnceLock::new(),
        registering: OnceLock::new(),
        noted: OnceLock::new(),
        unread,
        ir,
    };
    (linked, submodules)
}

fn import_target(
    file: FileId,
    import: &Import,
    by_file: &FxHashMap<FileId, ModIdx>,
    find: &mut dyn FnMut(FileId, u32, Sym) -> Option<FileId>,
    any_unread: &mut bool,
) -> Target {
    let mut unread = false;
    let mut module = |name: Sym| {
        let found = find(file, import.level, name)?;
        unread |= found == UNREAD;
        *any_unread |= unread;
        by_file.get(&found).copied()
    };
    // What is not read is no library, whatever its name.
    let outside = |path: Sym, unread: bool| match import.level.max(u32::from(unread)) {
        0 => Target::External(path),
        level => Target::External(Sym::new(&format!("{}{path}", ".".repeat(level as usize)))),
    };
    match import.name {
        None => {
            let top = || import.module.as_str().split('.').next().map_or(import.module, Sym::new);
            let wanted = if import.top { top() } else { import.module };
            let found = module(wanted);
            found.map_or_else(|| outside(wanted, unread), Target::Module)
        }
        Some(name) => {
            let holder = module(import.module);
            if name.as_str() == "*" {
                let path =
                    if unread { outside(import.module, unread) } else { Target::External(import.module) };
                return holder.map_or(path, Target::Module);
            }
            // A name in the package's file may win over a submodule; see `shadowed`.
            let sub = import.whole();
            match (holder, module(sub)) {
                (None | Some(_), Some(m)) => Target::Module(m),
                (Some(h), None) => Target::Member(h, name),
                (None, None) => outside(sub, unread),
            }
        }
    }
}

/// Collects how module-level names are bound.
struct Binder<'a> {
    ir: &'a Module,
    targets: &'a FxHashMap<(u32, Sym, Option<Sym>), Target>,
    bindings: &'a mut Vec<Binding>,
}

impl Binder<'_> {
    fn block(&mut self, block: Block, branch: bool) {
        for &stmt in self.ir.block(block) {
            self.stmt(stmt, branch);
        }
    }

    fn stmt(&mut self, id: StmtId, branch: bool) {
        match self.ir.stmt(id) {
            Stmt::Def(f, Var::Local(slot)) => self.bind(*slot, Binding::Def(*f), branch),
            Stmt::Class(c, Var::Local(slot)) => self.bind(*slot, Binding::Class(*c), branch),
            Stmt::Import(imports) => {
                for import in self.ir.imported(*imports) {
                    let Some(Var::Local(slot)) = import.target else { continue };
                    if let Some(&t) = self.targets.get(&(import.level, import.module, import.name)) {
                        self.bind(slot, Binding::Import(t), branch);
                    }
                }
            }
            Stmt::Assign { targets, value } => {
                for &target in self.ir.list(*targets) {
                    self.target(target, Some(*value), branch);
                }
            }
            Stmt::AnnAssign { target, value: Some(value), .. } => self.target(*target, Some(*value), branch),
            Stmt::AugAssign { target, .. } => self.target(*target, None, true),
            Stmt::If { then, orelse, .. } => {
                self.block(*then, true);
                self.block(*orelse, true);
            }
            Stmt::For { target, body, orelse, .. } => {
                self.target(*target, None, true);
                self.block(*body, true);
                self.block(*orelse, true);
            }
            Stmt::While { body, orelse, .. } => {
                self.block(*body, true);
                self.block(*orelse, true);
            }
            Stmt::With { items, body } => {
                for (_, target) in items {
                    if let Some(t) = target {
                        self.target(*t, None, true);
                    }
                }
                self.block(*body, true);
            }
            Stmt::Try { body, handlers, orelse, finally } => {
                self.block(*body, true);
                for h in self.ir.handlers(*handlers) {
                    self.block(h.body, true);
                }
                self.block(*orelse, true);
                self.block(*finally, branch);
            }
            Stmt::Match { cases, .. } => {
                for case in cases {
                    self.block(case.body, true);
                }
            }
            _ => {}
        }
    }

    fn target(&mut self, target: ExprId, value: Option<ExprId>, branch: bool) {
        match self.ir.expr(target) {
            Expr::Var(Var::Local(slot)) => {
                let binding = value.map_or(Binding::Complex, Binding::Value);
                self.bind(slot, binding, branch);
            }
            Expr::Tuple(list) | Expr::List(list) => {
                for &t in self.ir.list(list) {
                    self.target(t, None, branch);
                }
            }
            Expr::Star(t) => self.target(t, None, branch),
            _ => {}
        }
    }

    /// In branches definitions and imports that name one thing are still told apart from values: the usual
    /// `try: import x except ImportError: x = None` means `x`.
    fn bind(&mut self, slot: Slot, binding: Binding, branch: bool) {
        let Some(old) = self.bindings.get_mut(slot as usize) else { return };
        *old = match (*old, binding) {
            (Binding::Nothing, Binding::Value(_)) if branch => Binding::Complex,
            (Binding::Nothing, b) => b,
            // `import torch` and `import torch.nn`: the same variable, the same thing.
            (Binding::Import(a), Binding::Import(b)) if a == b => *old,
            (Binding::Import(_), b @ Binding::Import(_)) if !branch => b,
            (
                Binding::Import(Target::External(_)),
                b @ Binding::Import(Target::Module(_) | Target::Member(..)),
            ) => b,
            (keep @ Binding::Import(_), Binding::Import(_) | Binding::Def(_) | Binding::Class(_))
                if branch =>
            {
                keep
            }
            (keep @ Binding::Import(_), Binding::Value(v)) if branch && self.ir.expr(v) == Expr::None => keep,
            (Binding::Complex, b @ Binding::Import(_)) if branch => b,
            (_, b @ (Binding::Def(_) | Binding::Class(_))) if !branch => b,
            _ => Binding::Complex,
        };
    }
}
