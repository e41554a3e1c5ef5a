//! The real machine: what its driver, its devices and its PyTorch can do, and what findings mean there.
//!
//! `examine` gives a [`machine::Machine`]: the driver is asked in a process of its own (`probe`, started by `child`; `facts` are what it prints),
//! `nvidia-smi` (`smi`), the system's files (`system`) and those of PyTorch (`python`, `torch_install`, `archs`) are
//! read, and `verdict` says what is wrong. `text` shows it to people, `judge` marks findings. Linting alone uses
//! nothing of this.

mod about;
mod archs;
mod child;
pub mod code;
mod conclusion;
pub mod contradictions;
mod driver;
pub mod examine;
mod exercise;
mod facts;
pub mod install;
pub mod judge;
pub mod machine;
pub mod markdown;
pub mod probe;
mod process;
mod python;
mod saved;
#[cfg(test)]
mod schema;
mod shorten;
mod smi;
mod system;
pub mod text;
mod torch_install;
mod verdict;
pub mod visibility;

pub use child::COMMAND;
pub use saved::{load, parse};
pub use verdict::CAUSES;
