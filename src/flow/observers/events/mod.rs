//! From an observation to an event: the machines on which it happens, and what it depends on.

pub(crate) mod emit;
pub(crate) mod path;
pub(crate) mod reveal;
