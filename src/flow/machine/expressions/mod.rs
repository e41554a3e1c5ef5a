//! Expressions: values, comparisons and truth.

pub(crate) mod compare;
pub(crate) mod compare_devices;
pub(crate) mod evaluate;
pub(crate) mod flags;
pub(crate) mod truth;
pub(crate) mod variables;
