//! What one entry point may take: interpreted steps, and what these cause in diagrams and containers.
//!
//! Every entry point begins with a budget of its own, and every call in it has a share of what is left. Past it nothing more is said
//! of the entry point, which is told to be one that ran out; a call that runs out of its share gives something unknown.

use crate::work::spend;

/// Nodes of diagrams and elements of containers that a step may take on average.
const PARTS_A_STEP: u64 = 256;

/// What has been spent, and what may be.
#[derive(Clone, Copy)]
pub(crate) struct Budget {
    /// Expressions and statements interpreted.
    pub(crate) steps: u32,
    /// The number of steps at which what is running now is given up.
    pub(crate) limit: u32,
    /// Nodes of diagrams that were asked or made, and elements of containers that were joined.
    parts: u64,
}

impl Budget {
    /// Nothing is spent yet of so many steps.
    pub(crate) fn of(limit: u32) -> Self {
        Self { steps: 0, limit, parts: 0 }
    }

    /// The next entry point has as much again.
    pub(crate) fn renew(&mut self) {
        (self.steps, self.parts) = (0, 0);
    }

    /// One more expression or statement.
    pub(crate) fn step(&mut self) {
        spend(1);
        self.steps = self.steps.saturating_add(1);
    }

    /// So many nodes or elements more.
    pub(crate) fn take(&mut self, parts: usize) {
        spend(parts);
        self.parts = self.parts.saturating_add(parts as u64);
    }

    /// Is there nothing left?
    pub(crate) fn is_spent(&self) -> bool {
        self.is_past(self.limit)
    }

    /// Is more spent than with that limit?
    pub(crate) fn is_past(&self, limit: u32) -> bool {
        self.steps > limit || self.parts > u64::from(limit) * PARTS_A_STEP
    }
}
