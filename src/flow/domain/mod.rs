//! The abstract domain: conditions as decision diagrams, devices, dimensions, values, the store, and the events for rules.

pub mod atom;
pub mod diagram;
pub mod dims;
pub mod event;
mod event_kinds;
pub mod store;
pub mod value;
