//! Buffers: PyTorch registers nothing but tensors under a buffer's name, and moves them with the module, whoever has made them.

use crate::flow::domain::dims::Dims;
use crate::flow::domain::value::{ObjId, OuterKey, Role, Value};
use crate::flow::machine::Interp;
use crate::sym::Sym;

impl Interp<'_> {
    /// Is it made by code that nobody sees? PyTorch registers nothing but tensors, and `None` where the class asks for that.
    pub(crate) fn is_buffer_of_unknown(&self, id: ObjId, field: Sym, v: Value) -> bool {
        let made = match v {
            Value::Unknown => true,
            Value::Outer(o) => matches!(self.t.get_outer(o).key, OuterKey::Result { .. }),
            _ => false,
        };
        made && self.obj(id).class.is_some_and(|key| !self.may_be_none(key, field))
    }

    /// Such a buffer, wherever it is until its module moves.
    pub(crate) fn buffer_of_unknown(&mut self) -> Value {
        let device = self.unknown_device();
        let tensor = self.plain_tensor(device, Dims::ANY);
        self.with_role(tensor, Role::Buffer)
    }
}
