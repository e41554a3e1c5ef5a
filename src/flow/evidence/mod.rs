//! What shows an unknown value to be a tensor, a module, a number or something else.

pub(crate) mod array_or_tensor;
pub(crate) mod boolean_masks;
pub(crate) mod checkpoint_parts;
pub(crate) mod definite_devices;
pub(crate) mod exclusive_tests;
pub(crate) mod external_modules;
pub(crate) mod external_values;
pub(crate) mod file_facts;
pub(crate) mod isinstance;
pub(crate) mod loop_items;
pub(crate) mod numpy_arrays;
pub(crate) mod tensor_containers;
pub(crate) mod tensor_evidence;
