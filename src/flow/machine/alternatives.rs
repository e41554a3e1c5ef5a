//! The alternatives of values and devices, over all worlds.

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::value::{Device, OriginId, Value};
use crate::flow::machine::Interp;

impl Interp<'_> {
    /// The values that a value may have.
    pub(crate) fn values_of(&self, v: Value) -> Vec<Value> {
        match v {
            Value::Choice(d) => match self.d.as_leaf(d) {
                Some(only) => vec![*self.t.values.get(only)],
                None => {
                    let mut leaves = Vec::new();
                    self.d.leaves(d, &mut leaves);
                    leaves.into_iter().map(|leaf| *self.t.values.get(leaf)).collect()
                }
            },
            v => vec![v],
        }
    }

    /// The devices of a device diagram, with leaf and origin.
    pub(crate) fn device_leaves(&self, d: Dd) -> Vec<(u32, Device, OriginId)> {
        let place = |leaf| {
            let (device, origin) = *self.t.places.get(leaf);
            (leaf, device, origin)
        };
        // Most devices are the same in every world.
        if let Some(only) = self.d.as_leaf(d) {
            return vec![place(only)];
        }
        let mut leaves = Vec::new();
        self.d.leaves(d, &mut leaves);
        leaves.into_iter().map(place).collect()
    }
}
