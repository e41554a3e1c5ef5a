//! Collections and strings: elements, keys, items that are stored and removed.

pub(crate) mod collection_classes;
pub(crate) mod containers;
pub(crate) mod default_values;
pub(crate) mod dict_rows;
pub(crate) mod indexing;
pub(crate) mod item_assignment;
pub(crate) mod item_stores;
pub(crate) mod key_tests;
pub(crate) mod list_methods;
pub(crate) mod records;
pub(crate) mod removed_items;
pub(crate) mod string_templates;
pub(crate) mod strings;
pub(crate) mod unknown_elements;

use crate::flow::domain::diagram::Cond;
use crate::flow::domain::value::{ObjId, TensorId, Value};
use rustc_hash::{FxHashMap, FxHashSet};

/// What is known of collections besides their elements.
#[derive(Default)]
pub(crate) struct Heap {
    /// Values of which each is in a list, by what stands for all of them.
    pub(crate) side_by_side: FxHashMap<Value, Vec<Value>>,
    /// Those that are kept as lists and are lists for certain, not sets.
    pub(crate) true_lists: FxHashSet<ObjId>,
    /// Lists and dicts that have been asked for a key, with the number of changes since.
    pub(crate) asked_keys: FxHashMap<ObjId, i64>,
    /// When keys have been put into dicts, after so many changes.
    pub(crate) keys_put: FxHashMap<(ObjId, i64, Value), Cond>,
    /// Dicts, and what stands for several of them, each by the other.
    pub(crate) rows: FxHashMap<ObjId, Vec<ObjId>>,
    /// What stands for all tensors of lists that have been added to one, and those tensors.
    pub(crate) put_together: FxHashMap<TensorId, Vec<TensorId>>,
}

impl Heap {
    /// Forgets objects from this number on.
    pub(crate) fn rewind(&mut self, objects: usize) {
        let old = |id: ObjId| (id.0 as usize) < objects;
        self.asked_keys.retain(|&id, _| old(id));
        self.keys_put.retain(|&(id, ..), _| old(id));
        self.rows.retain(|&id, _| old(id));
        self.rows.values_mut().for_each(|others| others.retain(|&id| old(id)));
        self.true_lists.retain(|&id| old(id));
    }
}
