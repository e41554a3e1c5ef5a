//! What a rule is, and what it may look at.

use std::path::Path;

use crate::finding::Finding;
use crate::flow::event::Event;
use crate::link::Program;
use crate::source::Sources;
use crate::span::FileId;

/// A rule. One is made for each file that is judged, so it may keep what it needs from one event to the next.
///
/// What it finds has its own code, and says by [`Finding::assumptions`] what must hold for it to be true.
pub trait Check {
    /// What the rule says of something that the flow engine has seen happen. Events come in the order in which they are found.
    fn on_event(&mut self, _event: &Event, _cx: &Context<'_>) -> Option<Finding> {
        None
    }

    /// What the rule says of how the file is written: asked once, after all events. It reads the intermediate representation, and
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
