//! Atoms: the facts that a program can ask or depend on.

use crate::span::Place;
use crate::world::Backend;

/// Number of an atom; also its place in the order of diagrams.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct AtomId(pub u32);

/// Atoms 0 to 7: at least 1 to 8 GPUs. "CUDA is available" is the first.
pub const GPU_ATOMS: u32 = 8;

/// Atoms from here on are flags and opaque conditions; below are facts about the machine.
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

/// What an atom asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Atom {
    /// At least this many GPUs.
    Gpus(u32),
    /// The back end is available.
    Backend(Backend),
    /// The truth of something that the user or the caller decides.
    Flag {
        /// As the source has it: `args.cuda`.
        text: String,
        /// Does its name speak of devices? Then it is a guard in itself.
        about_devices: bool,
        /// Can somebody set it one way and the other? What has no name cannot be set, nor what another library's function
        /// answers: that hangs together with what has happened before.
        settable: bool,
        /// What it is unless the user says otherwise.
        default: Option<bool>,
    },
    /// "This outside thing is on that device."
    On {
        /// As a person would say it: `mask is cuda`.
        text: String,
        /// Is that device an accelerator? Then what is not there may be on the CPU, and needs no accelerator.
        accelerator: bool,
    },
    /// "The operating system is this one": it says nothing of what the machine has besides.
    Platform {
        /// As a person would say it: `sys.platform is darwin`.
        text: String,
    },
    /// Any other condition.
    Opaque {
        /// Where it is asked.
        place: Place,
    },
    /// A comparison with an amount of device memory.
    Memory,
    /// "An exception was raised", where nobody can tell; or one of several alternatives.
    Raised,
    /// "The `try` body got that far before it raised."
    Partly,
    /// "The `try` body raised what is caught here": that it did not is no coincidence.
    Caught,
    /// "What has been reported did not raise."
    Past,
    /// "What nothing guards at this place has gone well, though the accelerator is not there." It has not: what is so
    /// is not reported again, but told of the first.
    Shadow {
        /// The first use.
        place: Place,
    },
}

/// All atoms of a run of the interpreter.
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

    /// What the atom asks.
    pub fn get(&self, id: AtomId) -> &Atom {
        &self.0[id.0 as usize]
    }
}

impl AtomId {
    /// Is it a fact about the machine?
    pub const fn is_hardware(self) -> bool {
        self.0 < HARDWARE_ATOMS
    }
}
