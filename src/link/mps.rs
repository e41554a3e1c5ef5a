//! Files that are also for Apple's devices: they mention these devices, or import a file that does.

use rustc_hash::FxHashSet;

use super::{Linked, ModIdx, Program};
use crate::reads;
use crate::sym::Answers;

impl Program {
    /// Does the file, or a file that it imports directly or indirectly, mention Apple's devices?
    pub fn mentions_mps(&self, module: ModIdx) -> bool {
        let own = self.about_mps.get_or_init(|| self.modules.iter().map(speaks).collect());
        let (mut seen, mut open) = (FxHashSet::default(), vec![module]);
        while let Some(m) = open.pop() {
            reads::note(m.0);
            if own[m.0 as usize] {
                return true;
            }
            if seen.insert(m) {
                open.extend(self.imports(m));
            }
        }
        false
    }
}

thread_local! {
    static TEXTS: Answers = const { Answers::new() };
    static NAMES: Answers = const { Answers::new() };
}

fn speaks(linked: &Linked) -> bool {
    let text = |text: &str| text == "mps" || text.starts_with("mps:");
    let name = |name: &str| name.split('_').any(|word| word == "mps");
    // Files that have not been read belong to a large project. Some file of a large project probably mentions them.
    linked.unread
        || linked.ir.strings.iter().any(|&s| TEXTS.with(|known| known.ask(s, text)))
        || linked.ir.attributes.iter().any(|&n| NAMES.with(|known| known.ask(n, name)))
}
