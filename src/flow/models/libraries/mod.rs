//! Models of libraries besides PyTorch, and of files.

pub(crate) mod accelerate;
pub(crate) mod checkpoint_devices;
pub(crate) mod checkpoints;
pub(crate) mod data_loaders;
pub(crate) mod external_calls;
pub(crate) mod gathered;
pub(crate) mod pytest_fixtures;
pub(crate) mod samplers;
pub(crate) mod saved_files;
pub(crate) mod tensor_holders;
pub(crate) mod tokenizers;
pub(crate) mod urls;
