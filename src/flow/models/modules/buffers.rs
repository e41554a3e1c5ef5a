//! Buffers with an unknown value. PyTorch registers only tensors as buffers, and moves them with the module.

use crate::flow::domain::dims::Dims;
use crate::flow::domain::value::{ObjId, OuterKey, Role, Value};
use crate::flow::machine::Interp;
use crate::sym::Sym;

impl Interp<'_> {
    /// Does unknown code make the buffer's value? It must be a tensor then, unless the class lets this buffer be `None`.
    pub(crate) fn is_buffer_of_unknown(&self, id: ObjId, field: Sym, v: Value) -> bool {
        let made = match v {
            Value::Unknown => true,
            Value::Outer(o) => matches!(self.t.get_outer(o).key, OuterKey::Result { .. }),
            _ => false,
        };
        made && self.obj(id).class.is_some_and(|key| !self.may_be_none(key, field))
    }

    /// A buffer that unknown code made. Its device is unknown until its module moves.
    pub(crate) fn buffer_of_unknown(&mut self) -> Value {
        let device = self.unknown_device();
        let tensor = self.plain_tensor(device, Dims::ANY);
        self.with_role(tensor, Role::Buffer)
    }
}
