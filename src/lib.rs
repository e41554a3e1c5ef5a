//! `samedevice`: a static linter for PyTorch device-placement bugs.
//!
//! The way of the data: `discover` → `source` → `lower` → `link` → `flow` → `rules` → `report`. Each
//! station is a folder or file of that name and imports only from stations before it and from the shared
//! vocabulary: [`span`], [`sym`], [`world`], [`finding`], [`ir`].

pub mod finding;
pub mod ir;
pub mod report;
pub mod rules;
pub mod source;
pub mod span;
pub mod sym;
pub mod world;
