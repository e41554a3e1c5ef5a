//! Layers that come after their module has been moved.

use crate::flow::domain::value::{Device, ObjId, Reason, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::frame::ObjKind;

impl Interp<'_> {
    /// The layers that a constructor has made after it, or that of a base, has moved the module: nobody has to move that again, and
    /// they are where they were made.
    pub(crate) fn added_after_move(&self, id: ObjId) -> Vec<(ObjId, Value)> {
        let Value::Device(own) = self.own(id) else { return Vec::new() };
        let moved = |origin| self.chain(origin).iter().any(|step| step.reason == Reason::Moved);
        let places = self.device_leaves(own);
        // What is told to stay on the host has not been moved: that is left to whoever makes it.
        let stays = places.iter().all(|&(_, device, _)| device == Device::Cpu);
        if stays || !places.into_iter().all(|(_, _, origin)| moved(origin)) {
            return Vec::new();
        }
        let fields = self.obj(id).attrs.iter().map(|&(_, cell)| self.store.get(cell));
        let held = fields.flat_map(|v| self.values_of(v)).filter_map(|v| match v {
            Value::Object(layer) => Some((layer, self.own(layer))),
            _ => None,
        });
        held.filter(|&(layer, place)| match (self.obj(layer).kind, place) {
            (ObjKind::ForeignModule(Some(op)), Value::Device(d)) => {
                self.is_stateful(layer, op) && self.is_as_made(d)
            }
            (ObjKind::Module, Value::Device(d)) => self.has_weights(layer, 0) && self.is_as_made(d),
            _ => false,
        })
        .collect()
    }
}
