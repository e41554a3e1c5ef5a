//! Models of Python's builtins and standard library.

pub(crate) mod builtin_attributes;
pub(crate) mod builtin_collections;
pub(crate) mod builtin_functions;
pub(crate) mod builtins;
pub(crate) mod driver_programs;
pub(crate) mod operating_system;
pub(crate) mod standard_library;
