//! The places of a finding.

use crate::span::Place;

/// How a place belongs to a finding.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Role {
    /// The finding is about this place, or this place leads there. A comment here suppresses the finding.
    #[default]
    Flow,
    /// Another place of the same cause. A comment here, or at a place that leads here, suppresses this place only. If the other places are
    /// suppressed, the finding is reported here.
    Repeated {
        /// What leads there: the calls, and where the device was decided.
        through: Vec<Place>,
    },
    /// A later place that fails because of it. A comment here suppresses this place only.
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
