//! Flow: an abstract interpreter over the intermediate representation.
//!
//! The input is the linked program; the output is a list of [`self::domain::event::Event`]s. `docs/design.md` describes the approach:
//! worlds as conditions, devices as guarded alternatives, objects with identity, calls by interpretation.

mod domain;
mod evidence;
mod heap;
mod machine;
mod models;
mod observers;
mod project;
mod query;
mod summary;

pub use self::domain::{atom, diagram, dims, event, value};
pub use self::machine::{Exhausted, Outcome, run_module};
pub use self::project::call_arguments::Calls;
pub use self::project::checkpoints::writers::{Load, Writers};
pub use self::project::cuda_required::{Behind, GPUS, MOVE, Passed, QUESTION, Uses};
pub use self::project::data_loading::{HostSide, is_data_set};
pub use self::project::default_device::{SETTERS, SetBefore};
pub use self::project::device_choice::leave_choice;
pub use self::project::placeholders::StandIns;
pub use self::project::process_groups::{Grouped, all_nccl, nccl_where_cuda_is};
pub use self::project::unmoved_modules::{class_of, stays};
pub use self::query::call_sites::argument;
pub use self::query::cuda_imports::CudaOnly;
pub use self::query::nodes::{Target, function_at};
pub use self::query::path_conditions::conditions;
pub use self::query::reaching_values::blocks;
pub use self::query::relevance::file_scan::is_module_class;
pub use self::query::relevance::functions::Relevance;
pub use self::query::relevance::moved_by_others::parts_moved_by_others;
pub use self::query::scripts::{is_in_demo, is_program};
pub use project::{CallGraph, Paths};

/// The maximum number of functions that a call may choose among and still be followed. More functions rarely agree on a result.
const MAX_CHOSEN: usize = 4;
