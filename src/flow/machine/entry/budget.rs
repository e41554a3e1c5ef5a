//! The budget of an entry point: interpreted steps, and the work in diagrams and containers that they cause.
//!
//! Each entry point starts with its own budget, and each call gets a share of the rest. An entry point that exceeds its
//! budget produces no further events and is reported as exhausted. A call that exceeds its share gives an unknown
//! value.

use crate::work::spend;

/// The average number of diagram nodes and container elements that a step may take.
const PARTS_A_STEP: u64 = 256;

/// The spent budget and its limit.
#[derive(Clone, Copy)]
pub(crate) struct Budget {
    /// Expressions and statements interpreted.
    pub(crate) steps: u32,
    /// The number of steps at which the current function is given up.
    pub(crate) limit: u32,
    /// Diagram nodes that were read or made, and container elements that were joined.
    parts: u64,
}

impl Budget {
    /// A budget of `limit` steps, with nothing spent.
    pub(crate) fn of(limit: u32) -> Self {
        Self { steps: 0, limit, parts: 0 }
    }

    /// Resets the budget for the next entry point.
    pub(crate) fn renew(&mut self) {
        (self.steps, self.parts) = (0, 0);
    }

    /// Counts an expression or statement.
    pub(crate) fn step(&mut self) {
        spend(1);
        self.steps = self.steps.saturating_add(1);
    }

    /// Counts diagram nodes or container elements.
    pub(crate) fn take(&mut self, parts: usize) {
        spend(parts);
        self.parts = self.parts.saturating_add(parts as u64);
    }

    /// Whether the budget is spent.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_past(self.limit)
    }

    /// Whether more than this limit is spent.
    pub(crate) fn is_past(&self, limit: u32) -> bool {
        self.steps > limit || self.parts > u64::from(limit) * PARTS_A_STEP
    }
}
