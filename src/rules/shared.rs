//! Code that several rules share, by topic.

pub mod accelerators;
pub mod assumptions;
pub mod callers;
pub mod calls;
pub mod code;
pub mod device_words;
pub mod events;
pub mod file;
pub mod float64;
pub mod functions;
pub mod meeting_words;
pub mod meetings;
pub mod module_device;
pub mod naming;
pub mod offloading;
pub mod one_device;
pub mod own_methods;
pub mod test_code;
pub mod transfers;
pub mod unchecked_use;
