//! The rules: facts from the flow engine become findings.

pub mod example;
pub mod explain;
pub mod page;
pub mod registry;
