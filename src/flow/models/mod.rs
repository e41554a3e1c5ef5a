//! Models of what libraries do: PyTorch, Python's own functions, and others.

pub(crate) mod devices;
pub(crate) mod dtypes;
pub(crate) mod libraries;
pub(crate) mod modules;
pub(crate) mod python;
pub(crate) mod registry;
pub(crate) mod tensors;
pub(crate) mod training;
