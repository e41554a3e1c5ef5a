//! Models of tensors: their operators, functions and moves.

pub(crate) mod autocast;
pub(crate) mod dims;
pub(crate) mod distributions;
pub(crate) mod effects;
pub(crate) mod factory_parameters;
pub(crate) mod fake_mode;
pub(crate) mod float64;
pub(crate) mod functions;
pub(crate) mod gradients;
pub(crate) mod half_precision;
pub(crate) mod methods;
pub(crate) mod moves;
pub(crate) mod operators;
pub(crate) mod sizes;
