//! What shows an unknown value to be a tensor, a module, a number or something else.

pub(crate) mod boolean_masks;
pub(crate) mod checkpoint_parts;
pub(crate) mod definite_devices;
pub(crate) mod exclusive_tests;
pub(crate) mod external_modules;
pub(crate) mod external_values;
pub(crate) mod file_facts;
pub(crate) mod isinstance;
pub(crate) mod known_classes;
pub(crate) mod loop_items;
pub(crate) mod numpy_arrays;
pub(crate) mod tensor_containers;
pub(crate) mod tensor_evidence;

use crate::flow::domain::diagram::{Cond, Dd};
use crate::flow::domain::store::Cell;
use crate::flow::domain::value::{OriginId, OuterId, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// What unknown values have shown themselves to be.
#[derive(Default)]
pub(crate) struct Evidence {
    /// Outside things that are seen to be tensors.
    pub(crate) tensor_proofs: FxHashSet<OuterId>,
    /// Whose own methods gave a result: `x.reshape(-1)` lives where `x` does, and is a tensor if that is one.
    pub(crate) own_results: FxHashMap<OriginId, OuterId>,
    /// Those of them that arithmetic with a number gave.
    pub(crate) own_numbers: FxHashSet<OriginId>,
    /// Outside things that have been asked for their length.
    pub(crate) sized: FxHashSet<OuterId>,
    /// When outside things are known to be no tensors.
    pub(crate) no_tensors: FxHashMap<OuterId, Cond>,
    /// Where these hold the outside things are numbers.
    pub(crate) numbers: FxHashMap<OuterId, Cond>,
    /// When outside things have been asked to be of a class that no tensor has.
    pub(crate) other_kinds: FxHashMap<OuterId, Cond>,
    /// Outside things that are used as sizes.
    pub(crate) size_proofs: FxHashSet<OuterId>,
    /// When values have been asked to be of a class of another library.
    pub(crate) foreign_kinds: FxHashMap<Value, Cond>,
    /// What was assigned to attributes and items of outside things.
    pub(crate) outer_writes: FxHashMap<OuterId, Cell>,
    /// What `.to()` has made of outside things, which moves those in place that are modules.
    pub(crate) outer_moves: FxHashMap<OuterId, Cell>,
    /// What has been taken out of files that were read to a known device, with that.
    pub(crate) out_of_files: FxHashMap<OuterId, Dd>,
    /// The same by the reason why something is there.
    pub(crate) file_parts: FxHashMap<OriginId, OuterId>,
    /// Parts of outside things into which the program has written something, and whether that was always a number.
    pub(crate) numbers_written: FxHashMap<OuterId, bool>,
    /// Outside things whose `.device` the program has read.
    pub(crate) asked_for_device: FxHashSet<OuterId>,
    /// Parts of what loops draw that the program moves, by what is drawn.
    pub(crate) moved_parts: FxHashMap<OuterId, Vec<OuterId>>,
    /// What loops draw that the program moves as a whole.
    pub(crate) moved_wholes: FxHashSet<OuterId>,
    /// What is given to a module that brings its inputs along.
    pub(crate) brought_along: FxHashSet<OuterId>,
    /// Outside things that have shown to be modules.
    pub(crate) shown_modules: FxHashSet<OuterId>,
    /// The same by the moves that they come from.
    pub(crate) moved_modules: FxHashSet<OriginId>,
    /// Outside things in wrappers that bring their inputs along.
    pub(crate) scattering_outside: FxHashSet<OuterId>,
    /// The same by the moves that they come from.
    pub(crate) scattering_moves: FxHashSet<OriginId>,
    /// Outside things that tell PyTorch the type of numbers.
    pub(crate) typed_like: FxHashSet<OuterId>,
}
