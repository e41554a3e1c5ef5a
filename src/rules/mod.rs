//! The rules: facts from the flow engine become findings.

pub mod page;
