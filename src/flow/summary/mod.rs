//! Summaries: what functions return, what objects hold between calls, how often code runs.

pub(crate) mod composed_tables;
pub(crate) mod conditional_creation;
pub(crate) mod frequency;
pub(crate) mod loop_rounds;
pub(crate) mod object_state;
pub(crate) mod returns;
pub(crate) mod weight_initialization;
