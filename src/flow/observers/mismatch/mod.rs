//! Observers of operations whose operands are on two devices.

pub(crate) mod clash;
pub(crate) mod conventions;
pub(crate) mod meet;
