//! Observers of operations on two devices.

pub(crate) mod clash;
pub(crate) mod conventions;
pub(crate) mod meet;
