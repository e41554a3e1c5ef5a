//! The tables that give values identity.

use std::hash::Hash;

use rustc_hash::{FxBuildHasher, FxHashMap};

use super::{Bound, Closure, Device, Origin, OriginId, Outer, OuterId, OuterKey, SeqId, Tensor, Value};

/// An append-only table that gives equal items equal numbers.
pub struct Interner<T> {
    items: Vec<T>,
    ids: FxHashMap<T, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        // Enough for most files.
        const USUAL: usize = 56;
        Self {
            items: Vec::with_capacity(USUAL),
            ids: FxHashMap::with_capacity_and_hasher(USUAL, FxBuildHasher),
        }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    /// The number of the item. Adds the item if it is new.
    pub fn add(&mut self, item: T) -> u32 {
        if let Some(&id) = self.ids.get(&item) {
            return id;
        }
        let id = u32::try_from(self.items.len()).unwrap_or(u32::MAX);
        self.items.push(item.clone());
        self.ids.insert(item, id);
        id
    }

    /// The item with this number.
    pub fn get(&self, id: u32) -> &T {
        &self.items[id as usize]
    }
}

/// All tables of one interpreter run.
#[derive(Default)]
pub struct Tables {
    /// Tensors.
    pub tensors: Interner<Tensor>,
    /// Sequences.
    pub seqs: Interner<Box<[Value]>>,
    /// Values in the leaves of diagrams and in [`Value::Many`].
    pub values: Interner<Value>,
    /// Devices in the leaves of diagrams, with their origins.
    pub places: Interner<(Device, OriginId)>,
    /// Closures.
    pub closures: Interner<Closure>,
    /// Bound methods.
    pub bounds: Interner<Bound>,
    /// Origins. Number 0 is "no reason known".
    pub origins: Interner<Origin>,
    /// Outside values.
    pub outers: Vec<Outer>,
    /// The numbers of outside values, by key.
    pub outer_ids: FxHashMap<OuterKey, OuterId>,
}

impl Tables {
    /// The outside value with this key. `new` creates it on the first call.
    pub fn outer(&mut self, key: OuterKey, new: impl FnOnce() -> Outer) -> OuterId {
        if let Some(&id) = self.outer_ids.get(&key) {
            return id;
        }
        let id = OuterId(u32::try_from(self.outers.len()).unwrap_or(u32::MAX));
        self.outers.push(new());
        self.outer_ids.insert(key, id);
        id
    }

    /// The outside value with this key, if there is one.
    pub fn known_outer(&self, key: &OuterKey) -> Option<OuterId> {
        self.outer_ids.get(key).copied()
    }

    /// The known facts about an outside value.
    pub fn get_outer(&self, id: OuterId) -> &Outer {
        &self.outers[id.0 as usize]
    }

    /// An interned sequence.
    pub fn seq(&mut self, items: &[Value]) -> SeqId {
        SeqId(self.seqs.add(items.into()))
    }
}
