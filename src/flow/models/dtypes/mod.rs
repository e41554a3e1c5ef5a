//! Models of number types: half precision and autocast, 64-bit numbers, and `.type()`.

pub(crate) mod autocast;
pub(crate) mod float64;
pub(crate) mod float64_on_mps;
pub(crate) mod half_precision;
pub(crate) mod type_method;
