//! Models of devices, and of processes that choose among them.

pub(crate) mod accelerator;
pub(crate) mod current_gpu;
pub(crate) mod device_texts;
pub(crate) mod device_types;
pub(crate) mod from_values;
pub(crate) mod process_groups;
pub(crate) mod processes;
pub(crate) mod ranks;
pub(crate) mod workers;
