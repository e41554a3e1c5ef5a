//! Classes of the project that inherit from one of Python's collections: `class Batch(dict)`, `class Parts(list)`,
//! `class Place(Enum)`.

use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::ir::ExprId;
use crate::link::ClassKey;
use crate::sym::Sym;
use crate::words::Words;

/// Methods that change how such an object is filled or read.
static OWN_WAYS: Words = Words::of("fill and read a collection");

/// Special methods that do not.
static HARMLESS: Words = Words::of("special methods unrelated to elements");

impl Interp<'_> {
    /// Handles `Batch(x=x)`, where `class Batch(dict)` does not change how a dict is filled and read. The result is a
    /// dict, or a list, with additional methods.
    pub(crate) fn make_own_collection(&mut self, key: ClassKey, args: &Args, e: ExprId) -> Option<Value> {
        let name = self.kind_of_collection(key)?;
        // If `__getattr__` of `class Options(dict)` gives its items, its `__setattr__` sets them as well.
        let by_attribute = name == "dict" && self.class_attr(key, Sym::new("__getattr__")).is_some();
        if !by_attribute && !self.is_plain_collection_class(key) {
            return None;
        }
        let made = self.builtin(Sym::new(name), args, e);
        let Value::Object(id) = made else { return None };
        // Its own methods come from its class.
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

    /// Whether the class inherits construction, writes and reads from its base unchanged. A data class does not.
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

    /// Whether the class is a subclass of `enum.Enum` or a similar class.
    pub(crate) fn is_enum(&self, key: ClassKey) -> bool {
        self.program.class(key).externals.iter().any(|base| base.as_str().starts_with("enum."))
    }
}

/// Whether a method of this name defines construction, writes, reads or an operator of the object.
fn is_own_way(name: &str) -> bool {
    OWN_WAYS.has(name) || name.starts_with("__") && !HARMLESS.has(name)
}
