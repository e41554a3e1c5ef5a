//! Links one file: finds out what its imports name, and how its module-level names are bound.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

use super::bindings::Binder;
use super::{Binding, Linked, ModIdx, Target, UNREAD, imports, local, shadowed};
use crate::ir::{ClassId, Import, Module, Slot};
use crate::reads::Shared;
use crate::span::FileId;
use crate::sym::Sym;

/// The file with its own names bound, and the submodules that its imports name in packages. The meanings of its names in other files are
/// looked up after all files are linked.
pub(super) fn link_module(
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
    // A name that only a function binds, through `global`, has no binding here. Such names are rare.
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
        sites: Shared::default(),
        written: OnceLock::new(),
        registering: Shared::default(),
        noted: OnceLock::new(),
        unread,
        ir,
    };
    (linked, submodules)
}

/// What an import names. Sets `any_unread` if that is a file of the project that has not been read.
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
    // A file that has not been read is no library, whatever its name.
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
            // A name that the package's own file binds may take precedence over the submodule; see `shadowed`.
            let sub = import.whole();
            match (holder, module(sub)) {
                (None | Some(_), Some(m)) => Target::Module(m),
                (Some(h), None) => Target::Member(h, name),
                (None, None) => outside(sub, unread),
            }
        }
    }
}
