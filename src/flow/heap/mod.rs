//! Collections and strings: elements, keys, stored and removed items.

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

/// What is known of collections, apart from their elements.
#[derive(Default)]
pub(crate) struct Heap {
    /// Values that are all in one list, by the value that stands for them.
    pub(crate) side_by_side: FxHashMap<Value, Vec<Value>>,
    /// Objects of the list kind that are certainly lists, not sets.
    pub(crate) true_lists: FxHashSet<ObjId>,
    /// Lists and dicts that were tested for a key, with the number of changes since then.
    pub(crate) asked_keys: FxHashMap<ObjId, i64>,
    /// The condition under which a key was stored in a dict, by dict, number of changes and key.
    pub(crate) keys_put: FxHashMap<(ObjId, i64, Value), Cond>,
    /// Links between a dict and the dict that stands for several rows, in both directions.
    pub(crate) rows: FxHashMap<ObjId, Vec<ObjId>>,
    /// The tensors of added lists, by the tensor that stands for all of them.
    pub(crate) put_together: FxHashMap<TensorId, Vec<TensorId>>,
}

impl Heap {
    /// Removes the objects from this number on.
    pub(crate) fn rewind(&mut self, objects: usize) {
        let old = |id: ObjId| (id.0 as usize) < objects;
        self.asked_keys.retain(|&id, _| old(id));
        self.keys_put.retain(|&(id, ..), _| old(id));
        self.rows.retain(|&id, _| old(id));
        self.rows.values_mut().for_each(|others| others.retain(|&id| old(id)));
        self.true_lists.retain(|&id| old(id));
    }
}
