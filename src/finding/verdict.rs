//! Verdicts: whether a finding occurs on a machine.

/// Whether a finding occurs on a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It occurs on this machine.
    Confirmed,
    /// It cannot occur on this machine.
    Refuted,
    /// The facts about the machine do not decide it.
    Open,
}

/// A verdict and its reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The fact about the machine that decides it, as a clause: "this machine has 1 device: `cuda:1` raises here".
    pub reason: String,
}
