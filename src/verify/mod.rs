//! The real machine: what its driver, its devices and its PyTorch can do, and what findings mean there.
//!
//! `examine` gives a [`machine::Machine`]: the driver is asked in a process of its own (`probe`, started by `child`; `facts` are what it prints),
//! `nvidia-smi` (`smi`), the system's files (`system`, with `pci`, `kernel`, `amd` and `surroundings`) and those of PyTorch (`python`, `torch_install`, `archs`) are
//! read, and `verdict` says what is wrong. `text` shows it to people, `judge` marks findings. Linting alone uses
//! nothing of this.

mod amd;
mod archs;
mod child;
pub mod code;
mod driver;
pub mod examine;
mod exercise;
mod facts;
mod family;
mod hardware;
pub mod judge;
mod kernel;
pub mod machine;
mod pci;
pub mod probe;
mod process;
mod python;
mod smi;
mod surroundings;
mod system;
pub mod text;
mod torch_install;
mod verdict;
pub mod visibility;

use std::path::Path;

use machine::{Machine, SCHEMA};

pub use child::COMMAND;
pub use verdict::CAUSES;

/// Reads a saved report.
///
/// # Errors
/// In words, if there is none or it is none.
pub fn load(path: &Path) -> Result<Machine, String> {
    let shown = path.display();
    let text =
        crate::source::read::text(path).map_err(|reason| format!("cannot read `{shown}`: {reason}"))?;
    let how = "write one with `samedevice verify --output-format json > FILE` on that machine";
    parse(&text).map_err(|reason| format!("`{shown}` is {reason}; {how}"))
}

/// The report that this text is.
///
/// # Errors
/// What it is instead, such as "no report of a machine: …".
pub fn parse(text: &str) -> Result<Machine, String> {
    let none = |reason: &dyn std::fmt::Display| format!("no report of a machine: {reason}");
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| none(&error))?;
    match value.get("schema").and_then(serde_json::Value::as_u64) {
        None => return Err(none(&"it has no `schema`")),
        Some(schema) if schema != u64::from(SCHEMA) => {
            return Err(format!("a report of schema {schema}, and this program reads {SCHEMA}"));
        }
        Some(_) => {}
    }
    serde_json::from_value(value).map_err(|error| none(&error))
}
