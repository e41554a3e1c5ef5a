//! What files import of the project.

use super::{ModIdx, Program, Target};

impl Program {
    /// The files of the project that the file imports, names of them included; one may come more than once.
    pub fn imports(&self, module: ModIdx) -> impl Iterator<Item = ModIdx> {
        self.get(module).targets.values().filter_map(|target| match *target {
            Target::Module(m) | Target::Member(m, _) => Some(m),
            Target::External(_) => None,
        })
    }
}
