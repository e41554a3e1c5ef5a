//! The operating system: what tests of its name say about the machine.

use crate::flow::domain::atom::Atom;
use crate::flow::domain::diagram::{Cond, FALSE};
use crate::flow::domain::value::{NO_ORIGIN, Value};
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::{Interp, Test};
use crate::sym::Sym;
use crate::world::Backend;

/// The path that represents the system's name, whichever way the program reads it.
const PLATFORM: &str = "sys.platform";

/// Does the path represent the name of the system?
pub(crate) fn is_platform(path: Sym) -> bool {
    matches!(path.as_str(), PLATFORM | "os.name")
}

impl Interp<'_> {
    /// `platform.system()`, and methods of such a name. `None` for other calls.
    pub(crate) fn platform_call(&mut self, text: &str, args: &Args) -> Option<Value> {
        match text {
            "platform.system" | "sys.platform.lower" => Some(Value::External(Sym::new(PLATFORM))),
            "sys.platform.startswith" => match args.get(0, "prefix")?.0 {
                Value::Str(s, _) => Some(Value::Bool(self.on_platform(s.as_str()))),
                _ => None,
            },
            _ => None,
        }
    }

    /// The condition that the system has this name. About accelerators it says only that there is no CUDA on a Mac, and no
    /// MPS on other systems.
    pub(crate) fn on_platform(&mut self, name: &str) -> Cond {
        let name = name.to_ascii_lowercase();
        let test =
            Test::Compare(0, Value::External(Sym::new(PLATFORM)), Value::Str(Sym::new(&name), NO_ORIGIN));
        let atom = match self.tests.atoms.get(&test) {
            Some(&atom) => atom,
            None => {
                let atom = self.atoms.add(Atom::Platform { text: format!("{PLATFORM} is {name}") });
                self.note_test(test, atom);
                atom
            }
        };
        let named = self.d.atom(atom);
        let (cuda, mps) = (self.available(None), self.available(Some(Backend::Mps)));
        let without = |i: &mut Self, c| {
            let not = i.d.not(c);
            i.d.and(named, not)
        };
        match name.as_str() {
            "darwin" => {
                let mac = self.d.or(named, mps);
                let not = self.d.not(cuda);
                self.d.and(mac, not)
            }
            "linux" | "linux2" | "win32" | "windows" | "cygwin" | "nt" => without(self, mps),
            "" => FALSE,
            _ => named,
        }
    }
}
