//! Flow: an abstract interpreter over the intermediate representation.
//!
//! Takes the linked program, gives [`event::Event`]s. See `docs/design.md` for how it thinks: worlds as
//! conditions, devices as guarded alternatives, objects with identity, calls by interpretation.

mod assigned;
pub mod atom;
mod behind;
mod called_once;
mod choices;
mod conditions;
mod cuda_only;
mod default_device;
mod device_asked;
mod device_words;
pub mod diagram;
pub mod dims;
pub mod event;
mod found;
mod given;
mod grouped;
mod held;
mod helpers;
mod host_side;
mod import_time;
mod interp;
mod mention;
mod methods;
mod moved_base;
mod moved_parts;
mod named_calls;
mod nodes;
mod questions;
mod relevance;
mod scan;
mod scripts;
mod set_up;
mod site;
mod spelled;
mod stand_ins;
mod statements;
mod store;
mod stored;
mod unmoved;
pub mod value;
mod writers;

pub use behind::{Behind, GPUS, MOVE, Mentions, QUESTION, Uses};
pub use called_once::CalledOnce;
pub use choices::leave_choice;
pub use conditions::conditions;
pub use cuda_only::CudaOnly;
pub use default_device::{Elsewhere, SETTERS, SetBefore, is_offered};
pub use given::Calls;
pub use grouped::{all_nccl, is_grouped, is_spot_grouped, nccl_where_cuda_is};
pub use host_side::{HostSide, is_data_set};
pub use interp::{Exhausted, Outcome, run_module};
pub use moved_parts::parts_moved_by_others;
pub use named_calls::{NamedCalls, function_at};
pub use nodes::Target;
pub use relevance::Relevance;
pub use scan::is_module_class;
pub use scripts::{is_in_demo, is_program};
pub use site::argument;
pub use stand_ins::StandIns;
pub use unmoved::{class_of, stays};
pub use writers::{Load, Writers};

/// Functions that a call may choose among and be followed. What more of them give together is hardly ever one thing.
const MAX_CHOSEN: usize = 4;
