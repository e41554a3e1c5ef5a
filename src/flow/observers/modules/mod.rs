//! Observers of modules: what they fail to register or move, and in which mode the program runs them.

pub(crate) mod empty_moves;
pub(crate) mod inference;
pub(crate) mod no_grad;
pub(crate) mod optimizer_arguments;
pub(crate) mod result_use;
pub(crate) mod unregistered;
