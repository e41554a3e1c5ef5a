//! Evidence that an unknown value is a tensor, a module, a number or something else.

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

/// What the evidence shows about unknown values.
#[derive(Default)]
pub(crate) struct Evidence {
    /// Outside values that are known to be tensors.
    pub(crate) tensor_proofs: FxHashSet<OuterId>,
    /// The outside value whose own method gave a result, by the result's origin. `x.reshape(-1)` is on the device of
    /// `x`, and is a tensor if `x` is one.
    pub(crate) own_results: FxHashMap<OriginId, OuterId>,
    /// Those results that arithmetic with a number gave.
    pub(crate) own_numbers: FxHashSet<OriginId>,
    /// Outside values whose length the program has read.
    pub(crate) sized: FxHashSet<OuterId>,
    /// The condition under which an outside value is no tensor.
    pub(crate) no_tensors: FxHashMap<OuterId, Cond>,
    /// The condition under which an outside value is a number.
    pub(crate) numbers: FxHashMap<OuterId, Cond>,
    /// The condition under which an outside value is of a class that no tensor has.
    pub(crate) other_kinds: FxHashMap<OuterId, Cond>,
    /// Outside values that are used as sizes.
    pub(crate) size_proofs: FxHashSet<OuterId>,
    /// The condition under which a value is of a class of another library.
    pub(crate) foreign_kinds: FxHashMap<Value, Cond>,
    /// Values that the program assigned to attributes and items of outside values.
    pub(crate) outer_writes: FxHashMap<OuterId, Cell>,
    /// The results of `.to()` on outside values. `.to()` moves a module in place.
    pub(crate) outer_moves: FxHashMap<OuterId, Cell>,
    /// Parts of files that were loaded to a known device, with that device.
    pub(crate) out_of_files: FxHashMap<OuterId, Dd>,
    /// The same parts by the origin of the device.
    pub(crate) file_parts: FxHashMap<OriginId, OuterId>,
    /// Parts of outside values into which the program has written, and whether each written value was a number.
    pub(crate) numbers_written: FxHashMap<OuterId, bool>,
    /// Outside values whose `.device` the program has read.
    pub(crate) asked_for_device: FxHashSet<OuterId>,
    /// Parts of loop items that the program moves, by item.
    pub(crate) moved_parts: FxHashMap<OuterId, Vec<OuterId>>,
    /// Loop items that the program moves as a whole.
    pub(crate) moved_wholes: FxHashSet<OuterId>,
    /// Arguments of modules that move their inputs to their own device.
    pub(crate) brought_along: FxHashSet<OuterId>,
    /// Outside values that are known to be modules.
    pub(crate) shown_modules: FxHashSet<OuterId>,
    /// The same by the origin of their move.
    pub(crate) moved_modules: FxHashSet<OriginId>,
    /// Outside values in wrappers that move their inputs.
    pub(crate) scattering_outside: FxHashSet<OuterId>,
    /// The same by the origin of their move.
    pub(crate) scattering_moves: FxHashSet<OriginId>,
    /// Outside values that the program passes to PyTorch as the number type to use.
    pub(crate) typed_like: FxHashSet<OuterId>,
}
