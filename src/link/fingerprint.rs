//! Fingerprints of what linking found out about a file. They are equal only if a computation that reads the file gets the same answers.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashSet, FxHasher};

use super::{Linked, ModIdx, Program, Target};
use crate::reads;
use crate::sym::Sym;

impl Program {
    /// Does a file of the program import this name from the file?
    pub fn is_imported(&self, module: ModIdx, name: Sym) -> bool {
        reads::note(module.0);
        let imported = Target::Member(module, name);
        self.modules.iter().any(|linked| linked.targets.values().any(|&target| target == imported))
    }

    /// For each file, a fingerprint of the names that other files import from it: see [`Program::is_imported`].
    pub fn imported_names(&self) -> Vec<u64> {
        let targets = self.modules.iter().flat_map(|linked| linked.targets.values());
        let members = targets.filter_map(|target| match *target {
            Target::Member(module, name) => Some((module, name)),
            Target::Module(_) | Target::External(_) => None,
        });
        let each_once: FxHashSet<(ModIdx, Sym)> = members.collect();
        let mut prints = vec![0_u64; self.modules.len()];
        for (module, name) in each_once {
            let print = &mut prints[module.0 as usize];
            *print = print.wrapping_add(print_of(&name));
        }
        prints
    }

    /// Adds what is known about a file, apart from its own text, to a fingerprint.
    pub fn fingerprint(&self, module: ModIdx, into: &mut impl Hasher) {
        let linked = &self.modules[module.0 as usize];
        let file = linked.ir.file;
        file.hash(into);
        linked.fingerprint(into);
        self.conftests.get(&file).hash(into);
        self.extensions.get(&file).hash(into);
        self.dotted.get(&file).hash(into);
        self.silence.fingerprint(file, into);
    }
}

impl Linked {
    /// Adds what depends on other files. Everything else follows from the text.
    fn fingerprint(&self, into: &mut impl Hasher) {
        self.bindings.hash(into);
        self.meanings.hash(into);
        unordered(self.targets.iter()).hash(into);
        self.below.fingerprint(into);
        self.stars.hash(into);
        self.classes.hash(into);
        self.unread.hash(into);
    }
}

fn print_of(value: &impl Hash) -> u64 {
    let mut hasher = FxHasher::default();
    value.hash(&mut hasher);
    hasher.finish()
}

/// A fingerprint of entries in any order.
pub(super) fn unordered<T: Hash>(entries: impl Iterator<Item = T>) -> (u64, u64) {
    entries.fold((0, 0), |(sum, count), entry| (sum.wrapping_add(print_of(&entry)), count + 1))
}
