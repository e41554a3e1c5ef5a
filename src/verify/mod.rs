//! The real machine: what its driver, its devices and its PyTorch can do, and what findings mean there.
//!
//! `examine` gives a [`machine::Machine`]: the driver is asked in a process of its own (`probe`, started by `child`; `facts` are what it prints),
//! `nvidia-smi` (`smi`), the system's files (`system`, with `pci`, `kernel`, `amd` and `surroundings`) and those of PyTorch (`python`,
//! `torch_install`, `records`, `archs`) are read, what `import torch` loads is traced (`imports`, by `preloads`, `loader` and `elf`), and
//! `verdict` says what is wrong. `text` and `markdown` show it to people, `judge` marks findings. Linting alone uses
//! nothing of this.

mod about;
mod amd;
mod archs;
mod child;
pub mod code;
mod conclusion;
pub mod contradictions;
mod driver;
mod elf;
pub mod examine;
mod exercise;
mod facts;
mod family;
mod gpu;
mod hardware;
mod imported;
mod imports;
pub mod install;
pub mod judge;
mod kernel;
mod loader;
pub mod machine;
pub mod markdown;
mod modules;
mod pci;
mod preloads;
pub mod probe;
mod process;
mod python;
mod records;
mod saved;
#[cfg(test)]
mod schema;
mod shorten;
mod smi;
mod software;
mod surroundings;
mod system;
pub mod text;
mod torch_install;
mod verdict;
pub mod visibility;

pub use child::COMMAND;
pub use saved::{load, parse};
pub use verdict::CAUSES;
