//! Where a finding is told, and what keeps it from being told.

use crate::span::FileId;

/// How much of a finding comments and settings silence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Silenced {
    /// Nothing.
    #[default]
    Nothing,
    /// Some of its other places.
    Places,
    /// All of it. It is still there, to say what these are for, and takes the place of no other finding.
    Everything,
}

/// Where a finding is told.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Telling {
    /// How much of it is silenced.
    pub silenced: Silenced,
    /// Is it told elsewhere? Then it is only there to say what comments are for.
    pub elsewhere: bool,
    /// The files, besides that of the primary place, whose check alone tells it.
    pub for_files: Vec<FileId>,
}
