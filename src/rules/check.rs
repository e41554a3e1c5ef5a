//! What a rule is, and what it may look at.

use std::path::Path;

use crate::finding::Finding;
use crate::flow::event::Event;
use crate::link::Program;
use crate::source::Sources;
use crate::span::FileId;

/// A rule. Each file has its own instance, so a rule can store state between events.
///
/// Its findings have the code of the rule. [`Finding::assumptions`] lists what else must be true for a finding.
pub trait Check {
    /// The finding for an event of the flow engine, or nothing. Events come in the order in which the engine emits them.
    fn on_event(&mut self, _event: &Event, _cx: &Context<'_>) -> Option<Finding> {
        None
    }

    /// Findings about how the file is written. It is called once, after all events. It reads the intermediate representation, and
    /// starts from `shared::file::File`.
    fn on_file(&mut self, _cx: &Context<'_>) -> Vec<Finding> {
        Vec::new()
    }
}

/// What rules may look at besides the event.
pub struct Context<'a> {
    /// The file whose functions were the entry points: findings are placed in it.
    pub file: FileId,
    /// The root of the project that it belongs to, absolute.
    pub root: &'a Path,
    /// All files.
    pub sources: &'a Sources,
    /// All files, linked.
    pub program: &'a Program,
    /// The file is plainly written for CUDA alone.
    pub cuda_only: bool,
    /// A function of the file refuses to go on without CUDA: the others may count on it.
    pub refuses: bool,
    /// Sizes that memory rules speak of.
    pub limits: Limits,
}

/// Sizes that memory rules speak of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Allocations of at least this many bytes want a handler (SD501).
    pub oom_threshold: u64,
    /// No accelerator has more than this many bytes (SD507).
    pub max_accelerator_memory: u64,
}
