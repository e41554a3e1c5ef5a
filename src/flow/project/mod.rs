//! Queries about a whole project: what holds on every path from its entry points to a function?
//!
//! [`call_graph`] finds the mentions of functions and classes, [`context`] solves facts, [`facts`] defines facts at one place, and
//! [`questions`] combines them, with one function per query.

pub(crate) mod call_arguments;
pub(crate) mod call_graph;
pub(crate) mod checkpoints;
pub(crate) mod context;
pub(crate) mod cuda_required;
pub(crate) mod data_loading;
pub(crate) mod default_device;
pub(crate) mod device_choice;
pub(crate) mod facts;
pub(crate) mod first_process;
pub(crate) mod machine_questions;
pub(crate) mod method_calls;
pub(crate) mod mps_checks;
pub(crate) mod placeholders;
pub(crate) mod process_groups;
pub(crate) mod questions;
pub(crate) mod reader;
pub(crate) mod self_moving_classes;
pub(crate) mod unmoved_modules;

pub use call_graph::CallGraph;
pub use questions::Paths;
pub(super) use questions::is_implicit;
pub(super) use reader::entries;
