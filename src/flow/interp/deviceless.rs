//! Containers of another library that may have no device: `tensordict.device` is `None` unless somebody has named one, wherever
//! the tensors in it are.

use super::super::atom::Atom;
use super::super::diagram::Dd;
use super::super::value::{OuterId, OuterKey, Value};
use super::{Interp, Test};
use crate::link::Resolved;
use crate::torch::{self, Base};

/// How deep containers stand in others.
const MAX_DEPTH: usize = 4;

impl Interp<'_> {
    /// What `x.device` gives: this device, or `None` if `x` is such a container, or comes out of one.
    pub(super) fn device_if_any(&mut self, o: OuterId, device: Dd) -> Value {
        let Some(root) = self.container_around(o) else { return Value::Device(device) };
        let asked = self.outer_attr(root, self.known.device);
        let test = Test::Compare(0, Value::Outer(asked), Value::None);
        let atom = match self.tests.get(&test) {
            Some(&atom) => atom,
            None => {
                let text = format!("{}.device is None", self.t.get_outer(root).text);
                let atom = self.atoms.add(Atom::Flag { text, about_devices: true, settable: true, default: None });
                self.tests.insert(test, atom);
                atom
            }
        };
        let none = self.d.atom(atom);
        self.ite(none, Value::None, Value::Device(device))
    }

    /// The container that a function was given and that an outside thing comes out of, by its annotation.
    fn container_around(&self, o: OuterId) -> Option<OuterId> {
        let mut at = o;
        for _ in 0..MAX_DEPTH {
            match self.t.get_outer(at).key {
                OuterKey::Param { module, func, index } => {
                    let (m, annotation) = self.annotation_of(module, func, index)?;
                    let Some(Resolved::External(path)) = self.program.resolve_expr(m, annotation) else {
                        return None;
                    };
                    return torch::base_class(path).is_some_and(|b| b.kind == Base::Container).then_some(at);
                }
                OuterKey::Item { base, .. } => at = base,
                _ => return None,
            }
        }
        None
    }
}
