//! What several rules have in common, by topic.

pub mod accelerators;
pub mod assumptions;
pub mod callers;
pub mod code;
pub mod device_words;
pub mod events;
pub mod file;
pub mod float64;
pub mod functions;
pub mod meetings;
pub mod naming;
pub mod offloading;
pub mod one_device;
pub mod own_methods;
pub mod rewriting;
pub mod test_code;
pub mod transfers;
pub mod unchecked_use;
pub mod written;
