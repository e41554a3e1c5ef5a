//! In which files a finding is reported, and which comments suppress it.

use crate::span::FileId;

/// How much of a finding comments and settings suppress.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Silenced {
    /// Nothing.
    #[default]
    Nothing,
    /// Some of its other places.
    Places,
    /// All of it. The finding stays in the list, so that its comments count as used, and it replaces no other finding.
    Everything,
}

/// In which files a finding is reported.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Telling {
    /// How much of it is suppressed.
    pub silenced: Silenced,
    /// Does another finding report its cause? Then it stays in the list only so that its comments count as used.
    pub elsewhere: bool,
    /// Other files than that of the primary place: a run over one of these alone also reports the finding.
    pub for_files: Vec<FileId>,
}
