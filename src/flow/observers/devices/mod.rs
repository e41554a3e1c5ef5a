//! Observers of uses of devices: guards, spelling, and values in a place where PyTorch wants another kind of value.

pub(crate) mod device_text;
pub(crate) mod discarded;
pub(crate) mod guards;
pub(crate) mod misplaced;
pub(crate) mod module_device;
pub(crate) mod silenced;
pub(crate) mod spelling;
