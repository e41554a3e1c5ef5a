//! Submodules whose package binds their name to something else: `from .mean import mean`.
//!
//! Code that then imports `mean` from the package gets the function, not the submodule. The package's names are known only after its file
//! has been linked, so this is a second pass.

use rustc_hash::FxHashMap;

use super::bindings::Binder;
use super::{Binding, ModIdx, Program, Resolved, Target};
use crate::sym::Sym;

/// The key of an import among a file's targets.
pub(super) type ImportKey = (u32, Sym, Option<Sym>);

/// The imports of one file that name a submodule of a package whose `__init__.py` is also in the project.
pub(super) type Submodules = Vec<(ImportKey, ModIdx)>;

/// Changes such imports to name what the package binds, if that is a function or a class.
pub(super) fn resolve(program: &mut Program, found: &[Submodules]) {
    // Many files import the same few names, and a package that re-exports everything takes long to search.
    let mut known: FxHashMap<(ModIdx, Sym), bool> = FxHashMap::default();
    let mut gives = |&(key, package): &(ImportKey, ModIdx)| {
        key.2.is_some_and(|name| {
            *known.entry((package, name)).or_insert_with(|| gives(program, name, package))
        })
    };
    let shadowed: Vec<Submodules> =
        found.iter().map(|imports| imports.iter().filter(|i| gives(i)).copied().collect()).collect();
    for (n, imports) in shadowed.into_iter().enumerate().filter(|(_, imports)| !imports.is_empty()) {
        let linked = &mut program.modules[n];
        for (key, package) in imports {
            if let Some(name) = key.2 {
                linked.targets.insert(key, Target::Member(package, name));
            }
        }
        if let Some(body) = linked.ir.functions.first() {
            let mut bindings = vec![Binding::Nothing; body.slots.len()];
            Binder { ir: &linked.ir, targets: &linked.targets, bindings: &mut bindings }
                .block(body.body, false);
            linked.bindings = bindings;
        }
    }
}

/// Does the package's own file bind the name to a function or a class?
fn gives(program: &Program, name: Sym, package: ModIdx) -> bool {
    matches!(program.lookup(package, name), Some(Resolved::Function(..) | Resolved::Class(_)))
}
