//! Checkpoints: which code writes the files that `torch.load` reads, and where the tensors in them are.

pub(crate) mod saved_calls;
pub(crate) mod saved_devices;
pub(crate) mod writers;
