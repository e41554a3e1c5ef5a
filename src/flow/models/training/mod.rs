//! Models of training: optimizers, wrappers for several GPUs, evaluation mode, tracing.

pub(crate) mod external_evaluation;
pub(crate) mod intrinsics;
pub(crate) mod mode;
pub(crate) mod optimizer_state;
pub(crate) mod optimizers;
pub(crate) mod parallel;
pub(crate) mod param_groups;
pub(crate) mod tracing;
