//! Observers of modules: what they do not register or move, and how they are run.

pub(crate) mod empty_moves;
pub(crate) mod inference;
pub(crate) mod no_grad;
pub(crate) mod optimizer_arguments;
pub(crate) mod result_use;
pub(crate) mod unregistered;
