//! What the real machine says of a finding.

/// What the real machine says of a finding's world.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The finding bites on this machine.
    Confirmed,
    /// It cannot bite on this machine.
    Refuted,
    /// The machine could not tell.
    Open,
}

/// A verdict and what it rests on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The fact about the machine that decides it, as a clause: "this machine has 1 device: `cuda:1` raises here".
    pub reason: String,
}
