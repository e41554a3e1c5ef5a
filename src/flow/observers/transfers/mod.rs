//! Observers of transfers that cost more than they are worth.

pub(crate) mod costs;
pub(crate) mod host_creation;
pub(crate) mod host_values;
pub(crate) mod needless;
pub(crate) mod repeated;
pub(crate) mod timing;
pub(crate) mod unwaited;
