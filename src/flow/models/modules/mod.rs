//! Models of `nn.Module`, its layers, and optimizers.

pub(crate) mod attribute_assignment;
pub(crate) mod buffers;
pub(crate) mod calls;
pub(crate) mod external_evaluation;
pub(crate) mod hooks;
pub(crate) mod late_layers;
pub(crate) mod late_tensors;
pub(crate) mod layers;
pub(crate) mod moved_later;
pub(crate) mod moves;
pub(crate) mod nn_module;
pub(crate) mod optimizer_state;
pub(crate) mod param_groups;
pub(crate) mod replaced_parameters;
pub(crate) mod submodules;
pub(crate) mod tracing;
pub(crate) mod training;
pub(crate) mod training_mode;
pub(crate) mod weightless;
