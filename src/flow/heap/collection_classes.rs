//! Classes of the project that are one of Python's collections: `class Batch(dict)`, `class Parts(list)`, `class Place(Enum)`.

use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::ir::ExprId;
use crate::link::ClassKey;
use crate::sym::Sym;

/// Methods that say otherwise what such an object gives.
const OWN_WAYS: &[&str] = &[
    "items",
    "values",
    "keys",
    "get",
    "pop",
    "popitem",
    "setdefault",
    "update",
    "copy",
    "append",
    "extend",
    "insert",
    "reverse",
    "sort",
];

/// Special methods that say nothing of that.
const HARMLESS: &[&str] = &["__repr__", "__str__", "__call__", "__hash__", "__eq__"];

impl Interp<'_> {
    /// `Batch(x=x)`, where `class Batch(dict)` leaves it as it is how a dict is filled and read: a dict, or a list, with methods of its own.
    pub(crate) fn make_own_collection(&mut self, key: ClassKey, args: &Args, e: ExprId) -> Option<Value> {
        let name = self.kind_of_collection(key)?;
        // `class Options(dict)`, whose `__getattr__` gives its items, sets them by `__setattr__` as well.
        let by_attribute = name == "dict" && self.class_attr(key, Sym::new("__getattr__")).is_some();
        if !by_attribute && !self.is_plain_collection_class(key) {
            return None;
        }
        let made = self.builtin(Sym::new(name), args, e);
        let Value::Object(id) = made else { return None };
        // Its own methods are those of its class.
        self.objects[id.0 as usize].class = Some(key);
        Some(made)
    }

    fn kind_of_collection(&self, key: ClassKey) -> Option<&'static str> {
        self.program.class(key).externals.iter().find_map(|base| match base.as_str() {
            "builtins.dict" | "collections.OrderedDict" => Some("dict"),
            "builtins.list" => Some("list"),
            _ => None,
        })
    }

    /// Does the class leave it to its base how it is made, filled and read? A data class does not.
    fn is_plain_collection_class(&self, key: ClassKey) -> bool {
        let info = self.program.class(key);
        let decorated = |k: &ClassKey| self.program.get(k.module).ir.class(k.class).decorators.len > 0;
        !info.unknown_base
            && info.externals.len() == 1
            && !info.mro.iter().any(decorated)
            && !info.mro.iter().any(|k| {
                let methods = &self.program.get(k.module).ir.class(k.class).methods;
                methods.iter().any(|(name, _)| is_own_way(name.as_str()))
            })
    }

    /// Is it derived from `enum.Enum` or its like?
    pub(crate) fn is_enum(&self, key: ClassKey) -> bool {
        self.program.class(key).externals.iter().any(|base| base.as_str().starts_with("enum."))
    }
}

/// Does a method of this name say how the object is made, filled or read, or what comes of an operator?
fn is_own_way(name: &str) -> bool {
    OWN_WAYS.contains(&name) || name.starts_with("__") && !HARMLESS.contains(&name)
}
