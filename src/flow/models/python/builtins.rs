//! Calls of Python's builtins.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use super::builtin_functions::{
    any_or_all, callable, ends, first, length, map, next, opened, power, range, reveal_world, sequence,
    text_of, type_of, whole_number, zip,
};
use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::models::registry::{Called, Intrinsic, Intrinsics};
use crate::ir::{Expr, ExprId};
use crate::sym::Sym;

/// Python's own exceptions that programs construct for messages.
const EXCEPTIONS: &[&str] = &[
    "AssertionError",
    "EnvironmentError",
    "Exception",
    "ImportError",
    "ModuleNotFoundError",
    "NotImplementedError",
    "OSError",
    "RuntimeError",
    "TypeError",
    "ValueError",
];

/// Intrinsics by name. If one returns `None`, the call is one of an unknown function.
const BUILTINS: Intrinsics = &[
    ("reveal_device", |i, c| {
        first(c)?;
        Some(i.call_external(c.path, c.args, c.at))
    }),
    ("reveal_world", |i, c| Some(reveal_world(i, c))),
    ("exit", |i, _| Some(ends(i))),
    ("quit", |i, _| Some(ends(i))),
    ("str", |i, c| text_of(i, c)),
    ("repr", |i, c| text_of(i, c)),
    ("int", |i, c| whole_number(i, c)),
    ("bool", |i, c| first(c).map(|(v, at)| Value::Bool(i.truth(v, at)))),
    ("len", length),
    ("float", |_, _| Some(Interp::NUMBER)),
    ("round", |_, _| Some(Interp::NUMBER)),
    ("hash", |_, _| Some(Interp::NUMBER)),
    ("id", |_, _| Some(Interp::NUMBER)),
    ("ord", |_, _| Some(Interp::NUMBER)),
    ("type", |i, c| Some(type_of(i, c))),
    ("open", |i, c| Some(opened(i, c))),
    ("slice", |_, c| first(c).map(|_| Value::Slice)),
    ("isinstance", |i, c| {
        Some(match first(c) {
            Some((v, at)) => i.is_instance(v, at, c.args, c.at),
            None => i.result_of(c.at),
        })
    }),
    ("hasattr", |i, c| first(c).map(|(v, _)| i.has_attr(v, c.args, c.at))),
    ("getattr", |i, c| first(c).map(|(v, _)| i.get_attr(v, c.args, c.at))),
    ("setattr", |i, c| {
        first(c)?;
        i.set_attr_by_name(c.args);
        Some(Value::None)
    }),
    ("object.__setattr__", |i, c| {
        first(c)?;
        if let &[(object, _), (name, _), (value, _)] = c.args.positional.as_slice() {
            i.set_unseen(object, name, value);
        }
        Some(Value::None)
    }),
    ("list", sequence),
    ("tuple", sequence),
    ("set", sequence),
    ("sorted", sequence),
    ("reversed", sequence),
    ("iter", sequence),
    ("frozenset", sequence),
    ("dict", |i, c| Some(i.make_dict(c.args))),
    ("next", next),
    ("enumerate", |i, c| first(c).map(|(v, at)| i.pairs(&[(Interp::NUMBER, None), (v, Some(at))]))),
    ("zip", |i, c| Some(zip(i, c))),
    ("map", map),
    ("filter", |i, c| match *c.args.positional.as_slice() {
        [(f, _), (v, at)] => Some(i.filtered(f, v, at, c.at)),
        _ => None,
    }),
    ("range", |i, c| Some(range(i, c))),
    ("any", any_or_all),
    ("all", any_or_all),
    ("min", |i, c| first(c).map(|_| i.extreme(c.args, c.at))),
    ("max", |i, c| first(c).map(|_| i.extreme(c.args, c.at))),
    ("sum", |i, c| first(c).map(|(v, at)| i.sum(v, at, c.at))),
    ("abs", |i, c| match first(c)? {
        (v @ Value::Tensor(_), at) => Some(i.call_method(v, Sym::new("abs"), &Args::default(), c.at, at)),
        _ => None,
    }),
    ("pow", power),
    ("divmod", power),
    ("vars", |i, c| {
        Some(match first(c) {
            Some((Value::Object(id), _)) => i.fields_as_dict(id).unwrap_or_else(|| i.result_of(c.at)),
            _ => i.result_of(c.at),
        })
    }),
    ("callable", |i, c| Some(callable(i, c))),
    ("print", |i, c| Some(i.result_of(c.at))),
    ("issubclass", |i, c| Some(i.result_of(c.at))),
    ("dir", |i, c| Some(i.result_of(c.at))),
    ("help", |i, c| Some(i.result_of(c.at))),
    ("property", |_, c| first(c).map(|(v, _)| v)),
    // Like a partial function, it takes no receiver.
    ("staticmethod", |i, c| Some(i.partial(c.args, c.at))),
    ("classmethod", |_, c| first(c).map(|(v, _)| v)),
    ("super", |i, c| {
        let receiver = c.args.positional.get(1).map_or(Value::Unknown, |&(v, _)| v);
        Some(i.bound(receiver, None, Sym::new("super")))
    }),
    ("input", |_, _| Some(Interp::TEXT)),
    ("format", |_, _| Some(Interp::TEXT)),
    ("chr", |_, _| Some(Interp::TEXT)),
    ("hex", |_, _| Some(Interp::TEXT)),
    ("bin", |_, _| Some(Interp::TEXT)),
];

static BY_NAME: LazyLock<FxHashMap<Sym, Intrinsic>> =
    LazyLock::new(|| BUILTINS.iter().map(|&(name, intrinsic)| (Sym::new(name), intrinsic)).collect());

impl Interp<'_> {
    /// The result of a call of one of Python's builtins.
    pub(crate) fn builtin(&mut self, name: Sym, args: &Args, e: ExprId) -> Value {
        let intrinsic = BY_NAME.get(&name).copied();
        intrinsic
            .and_then(|intrinsic| intrinsic(self, Called { path: name, args, at: e }))
            .unwrap_or_else(|| self.foreign_builtin(name, args, e))
    }

    /// `int(1e6)`: the integer part of a literal.
    pub(crate) fn whole_part(&self, at: ExprId) -> Value {
        match self.linked().ir.expr(at) {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "what has no place in an i64 is not asked for"
            )]
            Expr::Float(f) if { f.0 }.abs() < 9e15 => Value::Int(f.0 as i64),
            _ => Self::NUMBER,
        }
    }

    fn foreign_builtin(&mut self, name: Sym, args: &Args, e: ExprId) -> Value {
        // An exception object is true and not `None`. Its class represents it.
        if EXCEPTIONS.contains(&name.as_str()) {
            return Value::External(Sym::new(&format!("builtins.{name}")));
        }
        // Other exceptions, and names from star imports.
        if name.as_str().ends_with("Error") || name.as_str().ends_with("Exception") {
            return self.result_of(e);
        }
        self.unknown_call(Value::Unknown, args, e)
    }
}
