//! Observers: they watch what the machine does and emit events for the rules.

pub(crate) mod availability_guards;
pub(crate) mod conventions;
pub(crate) mod costs;
pub(crate) mod device_spelling;
pub(crate) mod empty_moves;
pub(crate) mod events;
pub(crate) mod host_creation;
pub(crate) mod inference;
pub(crate) mod misplaced_devices;
pub(crate) mod mixed_devices;
pub(crate) mod needless_transfers;
pub(crate) mod no_grad_modules;
pub(crate) mod optimizer_arguments;
pub(crate) mod repeated_moves;
pub(crate) mod reveal;
pub(crate) mod silenced_uses;
pub(crate) mod timing;
pub(crate) mod unregistered_tensors;
pub(crate) mod watch;
