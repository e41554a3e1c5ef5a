//! Atoms: the Boolean facts that a program can test or depend on.

use crate::span::Place;
use crate::world::Backend;

/// The number of an atom. It also determines the atom's position in the variable order of diagrams.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct AtomId(pub u32);

/// Atoms 0 to 7: at least 1 to 8 GPUs. Atom 0 means "CUDA is available".
pub const GPU_ATOMS: u32 = 8;

/// Atoms below this number are facts about the machine. Atoms from this number on are flags and opaque conditions.
pub const HARDWARE_ATOMS: u32 = 16;

/// The atom "at least this many visible GPUs" (1 to 8; more counts as 8).
pub const fn gpus_at_least(n: u32) -> AtomId {
    let n = if n > GPU_ATOMS { GPU_ATOMS } else { n };
    AtomId(n.saturating_sub(1))
}

/// The atom "this back end is available".
pub const fn backend(b: Backend) -> AtomId {
    AtomId(GPU_ATOMS + b as u32)
}

/// The fact that an atom stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Atom {
    /// At least this many GPUs.
    Gpus(u32),
    /// The back end is available.
    Backend(Backend),
    /// A truth value that the user or the caller decides.
    Flag {
        /// The source text: `args.cuda`.
        text: String,
        /// Whether the flag's name refers to devices. Such a flag counts as a guard on its own.
        about_devices: bool,
        /// Whether the user or a caller can choose either value. Unnamed conditions and the results of other libraries' functions are not
        /// settable: earlier code determines them.
        settable: bool,
        /// The value that the flag has unless the user changes it.
        default: Option<bool>,
    },
    /// "This outside value is on that device."
    On {
        /// Wording for messages: `mask is cuda`.
        text: String,
        /// Whether that device is an accelerator. If it is, a value that is not there may be on the CPU, which needs no accelerator.
        accelerator: bool,
    },
    /// "The operating system is this one". It says nothing else about the machine.
    Platform {
        /// Wording for messages: `sys.platform is darwin`.
        text: String,
    },
    /// Any other condition.
    Opaque {
        /// Where the program tests it.
        place: Place,
    },
    /// A comparison with an amount of device memory.
    Memory,
    /// "An exception was raised", where the analysis cannot tell. Also stands for an arbitrary choice among several alternatives.
    Raised,
    /// "The `try` body got this far before it raised."
    Partly,
    /// "The `try` body raised the exception that this handler catches." The negation is the normal case, so it does not lower the
    /// confidence of a finding.
    Caught,
    /// "A reported failure did not raise." Code after the failure stays reachable under this atom.
    Past,
    /// "An unguarded use of a missing accelerator did not raise." In reality it raises. Later failures that need this atom are attached
    /// to the first use and not reported again.
    Shadow {
        /// The first use.
        place: Place,
    },
}

/// All atoms of one interpreter run.
pub struct Atoms(Vec<Atom>);

impl Default for Atoms {
    fn default() -> Self {
        let mut atoms: Vec<Atom> = (1..=GPU_ATOMS).map(Atom::Gpus).collect();
        let backends = [
            Backend::Mps,
            Backend::Xpu,
            Backend::Hpu,
            Backend::Npu,
            Backend::Xla,
            Backend::Mlu,
            Backend::Musa,
            // A spare number, so that the count is even.
            Backend::Musa,
        ];
        atoms.extend(backends.map(Atom::Backend));
        Self(atoms)
    }
}

impl Atoms {
    /// A new atom.
    pub fn add(&mut self, atom: Atom) -> AtomId {
        self.0.push(atom);
        AtomId(u32::try_from(self.0.len() - 1).unwrap_or(u32::MAX))
    }

    /// The fact that the atom stands for.
    pub fn get(&self, id: AtomId) -> &Atom {
        &self.0[id.0 as usize]
    }
}

impl AtomId {
    /// Whether the atom is a fact about the machine.
    pub const fn is_hardware(self) -> bool {
        self.0 < HARDWARE_ATOMS
    }
}
