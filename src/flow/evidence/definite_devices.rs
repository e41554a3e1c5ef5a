//! Values on a definite device. Only they can certainly clash with a value on another device.

use crate::flow::domain::diagram::FALSE;
use crate::flow::domain::value::{ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::frame::ObjKind;
use crate::link::ClassKey;
use crate::sym::Sym;
use crate::world::Backend;
use rustc_hash::FxHashSet;

impl Interp<'_> {
    /// Whether the value, or a value in it, is on a definite device.
    pub(crate) fn is_settled(&self, v: Value, depth: u32) -> bool {
        match v {
            Value::Tensor(id) => self.is_definite(self.get_tensor(id).device),
            Value::Device(d) => self.is_definite(d),
            Value::Str(_, origin) => origin != crate::flow::domain::value::NO_ORIGIN,
            Value::Seq(id) => {
                depth > 3 || self.t.seqs.get(id.0).iter().any(|&v| self.is_settled(v, depth + 1))
            }
            Value::Many(id) => self.is_settled(*self.t.values.get(id), depth),
            Value::Choice(d) => {
                let mut leaves = Vec::new();
                self.d.leaves(d, &mut leaves);
                leaves.into_iter().any(|v| self.is_settled(*self.t.values.get(v), depth + 1))
            }
            Value::Object(id) => {
                let o = self.obj(id);
                match o.kind {
                    ObjKind::Loader | ObjKind::Items | ObjKind::Generator | ObjKind::Distribution(_) => true,
                    _ => {
                        depth > 3
                            || self.is_settled(self.own(id), depth + 1)
                            || o.attrs.iter().any(|&(_, c)| match self.store.get(c) {
                                // The object's attributes are not searched here.
                                Value::Object(_) => false,
                                v => self.is_settled(v, depth + 1),
                            })
                    }
                }
            }
            _ => false,
        }
    }

    fn is_definite(&self, d: crate::flow::domain::diagram::Dd) -> bool {
        use crate::flow::domain::value::Device::{Cpu, Cuda, CudaSome, Other};
        let mut leaves = Vec::new();
        self.d.leaves(d, &mut leaves);
        leaves.into_iter().any(|p| matches!(self.t.places.get(p).0, Cpu | Cuda(_) | CudaSome | Other(_)))
    }

    /// The attributes of the object that hold, at any depth, a value on a definite device.
    pub(crate) fn settled_attributes(&self, id: ObjId) -> FxHashSet<Sym> {
        let attrs = self.obj(id).attrs.iter();
        attrs
            .filter(|(_, cell)| self.is_kept_settled(self.store.get(*cell), 0))
            .map(|&(name, _)| name)
            .collect()
    }

    fn is_kept_settled(&self, v: Value, depth: u32) -> bool {
        if depth > 3 {
            return true;
        }
        match v {
            Value::Object(id) => match (self.calls.unbuilt.contains_key(&id), self.obj(id).class) {
                (true, Some(key)) => self.decides_in(key, self.known.init),
                _ => {
                    self.is_settled(v, depth)
                        || self.is_kept_settled(self.own(id), depth + 1)
                        || self.keeps_settled_within(id, depth + 1)
                }
            },
            // A 64-bit floating-point tensor cannot be on MPS.
            Value::Tensor(id) if self.get_tensor(id).double != FALSE => true,
            // `torch.cuda`
            Value::External(path) => {
                let package = path.as_str().strip_prefix("torch.");
                package.is_some_and(|kind| kind == "cuda" || Backend::from_name(kind).is_some())
            }
            // A closure may use any variable of the function around it.
            Value::Closure(id) => self.t.closures.get(id.0).frame.is_some(),
            // A caller may choose another device than the default, but need not. A loaded value may be used as weights.
            Value::Outer(o) => {
                matches!(self.t.get_outer(o).default, Some(Value::Str(..)))
                    || self.libraries.loads.contains_key(&o)
            }
            Value::Seq(id) => self.t.seqs.get(id.0).iter().any(|&item| self.is_kept_settled(item, depth + 1)),
            Value::Many(id) => self.is_kept_settled(*self.t.values.get(id), depth + 1),
            Value::Choice(d) => {
                let mut leaves = Vec::new();
                self.d.leaves(d, &mut leaves);
                leaves.into_iter().any(|v| self.is_kept_settled(*self.t.values.get(v), depth + 1))
            }
            _ => self.is_settled(v, depth),
        }
    }

    fn keeps_settled_within(&self, id: ObjId, depth: u32) -> bool {
        self.obj(id).attrs.iter().any(|&(_, cell)| self.is_kept_settled(self.store.get(cell), depth))
    }

    /// Whether this method of the class, or of one of its bases, decides a device.
    pub(crate) fn decides_in(&self, key: ClassKey, method: Sym) -> bool {
        self.program.class(key).mro.iter().any(|&k| {
            let own = self.program.own_method(k, method);
            own.is_some_and(|f| self.relevance.decides(k.module, f))
        })
    }
}
