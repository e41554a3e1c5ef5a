//! Questions about a whole project: who calls a function, and what holds wherever that happens.

pub(crate) mod call_arguments;
pub(crate) mod calls_by_name;
pub(crate) mod checkpoint_writers;
pub(crate) mod cuda_required;
pub(crate) mod data_loading;
pub(crate) mod default_device;
pub(crate) mod device_choice;
pub(crate) mod machine_questions;
pub(crate) mod method_calls;
pub(crate) mod mps_checks;
pub(crate) mod placeholders;
pub(crate) mod process_groups;
pub(crate) mod runs_once;
pub(crate) mod saved_calls;
pub(crate) mod saved_devices;
pub(crate) mod self_moving_classes;
pub(crate) mod unmoved_modules;
