//! Submodules that a package has given their own name to something in them: `from .mean import mean`.
//!
//! Who then imports `mean` from the package gets the function, and not the file. The package's names are known only
//! when its file has been linked, so this is a second look.

use super::{Binder, Binding, ModIdx, Program, Resolved, Target};
use crate::sym::Sym;

/// An import by its key among a file's targets.
pub(super) type ImportKey = (u32, Sym, Option<Sym>);

/// Imports of one file that name a submodule of a package whose own file the project has, too.
pub(super) type Submodules = Vec<(ImportKey, ModIdx)>;

/// Lets such imports name what the package does, where that is a function or a class.
pub(super) fn resolve(program: &mut Program, found: &[Submodules]) {
    let shadowed: Vec<Submodules> = found
        .iter()
        .map(|imports| {
            imports.iter().filter(|(key, package)| gives(program, key, *package)).copied().collect()
        })
        .collect();
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
fn gives(program: &Program, key: &ImportKey, package: ModIdx) -> bool {
    let named = key.2.and_then(|name| program.lookup(package, name));
    matches!(named, Some(Resolved::Function(..) | Resolved::Class(_)))
}
