//! Arguments: evaluated at the call, bound to parameters, or taken from visible calls.

pub(crate) mod annotations;
pub(crate) mod args;
pub(crate) mod bind;
pub(crate) mod callers;
pub(crate) mod decided;
pub(crate) mod defaults;
pub(crate) mod forwarded;
pub(crate) mod missing;
