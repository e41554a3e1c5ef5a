//! `samedevice`: a static linter for PyTorch device-placement bugs.
//!
//! The way of the data: `discover` → `source` → `lower` → `link` → `flow` → `rules` → `refine` → `fix` → `report`. Each
//! station is a folder or file of that name and imports only from stations before it and from the shared
//! vocabulary: [`span`], [`sym`], [`world`], [`finding`], [`remedy`], [`silence`], [`notebook`], [`ir`]. Apart from them, [`verify`] asks the real machine.

pub mod analysis;
pub mod assumption;
pub mod baseline;
pub mod cli;
pub mod commands;
pub mod config;
pub mod discover;
pub mod finding;
pub mod fix;
pub mod flow;
pub mod ir;
pub mod link;
pub mod lower;
pub mod notebook;
pub mod reads;
pub mod refine;
pub mod remedy;
pub mod report;
pub mod rules;
pub mod shield;
pub mod silence;
pub mod source;
pub mod span;
pub mod suggest;
pub mod suppress;
pub mod sym;
pub mod torch;
pub mod verify;
pub mod words;
pub mod work;
pub mod world;
