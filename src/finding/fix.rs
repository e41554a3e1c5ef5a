//! Fixes: edits that remove a finding.

use crate::span::Place;

/// May a fix be applied without a look at it?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Applicability {
    /// Keeps what the program means.
    Safe,
    /// May change what the program means.
    Unsafe,
    /// Only for showing.
    Display,
}

impl Applicability {
    /// The word for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Unsafe => "unsafe",
            Self::Display => "display-only",
        }
    }

    /// Is it applied, where unsafe fixes are wanted or not?
    pub fn is_wanted(self, unsafe_fixes: bool) -> bool {
        self == Self::Safe || unsafe_fixes && self == Self::Unsafe
    }
}

/// Text to be put in place of a range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Edit {
    /// What to replace (an empty range inserts).
    pub place: Place,
    /// The new text.
    pub content: String,
}

/// A correction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fix {
    /// What the fix does, in the imperative ("Pass `device=x.device`").
    pub message: String,
    /// May it be applied without a look?
    pub applicability: Applicability,
    /// Non-overlapping edits.
    pub edits: Vec<Edit>,
}
