//! The places of a finding.

use crate::span::Place;

/// What a place has to do with a finding.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Role {
    /// It is what the finding is about, or on the way there: whoever silences it silences the finding.
    #[default]
    Flow,
    /// Another place of the same cause. Whoever silences it, or what leads there, takes away this place alone; where the others are
    /// silenced, the finding is told here.
    Repeated {
        /// What leads there: the calls, and where the device was decided.
        through: Vec<Place>,
    },
    /// What comes of it later. Whoever silences it takes away this place alone.
    Consequence,
}

/// A place with a few words about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// Where.
    pub place: Place,
    /// What is there, as a clause without a full stop ("made here without `device=`").
    pub text: String,
    /// What it has to do with the finding.
    pub role: Role,
}

/// What is said of a call that leads there.
const THROUGH: &str = "reached through this call";

impl Label {
    /// A place that the finding is about, or that leads there.
    pub fn new(place: Place, text: impl Into<String>) -> Self {
        Self { place, text: text.into(), role: Role::Flow }
    }

    /// A call that leads to what the finding is about.
    pub fn call(place: Place) -> Self {
        Self::new(place, THROUGH)
    }

    /// Is it such a call?
    pub fn is_call(&self) -> bool {
        self.text == THROUGH
    }
}
