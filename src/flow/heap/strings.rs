//! Methods of strings, and of devices that are used as strings.

use crate::flow::domain::diagram::{FALSE, TRUE};
use crate::flow::domain::value::{Device, Host, NO_ORIGIN, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::flow::models::devices::from_values::parse_device;
use crate::ir::ExprId;
use crate::sym::Sym;
use crate::words::Words;

static ASK_FOR_DIGITS: Words = Words::of("ask for digits");
static TAKE_APART: Words = Words::of("take a string apart");

/// The result of the method on a constant string, if the result can be computed.
fn known_text(s: &str, method: &str, args: &[Option<&str>]) -> Option<String> {
    Some(match (method, args) {
        ("lower" | "casefold", []) => s.to_lowercase(),
        ("upper", []) => s.to_uppercase(),
        ("strip", []) => s.trim().to_owned(),
        ("lstrip", []) => s.trim_start().to_owned(),
        // A part of a name may be a name that the program's own checks exclude here. The result is constant only if
        // `replace` changes nothing, or if the result has only digits or is empty.
        ("replace", [Some(old), Some(new)]) => {
            Some(s.replace(old, new)).filter(|r| r == s || r.bytes().all(|b| b.is_ascii_digit()))?
        }
        ("rstrip", []) => s.trim_end().to_owned(),
        _ => return None,
    })
}

/// The same for methods with a Boolean result.
fn known_answer(s: &str, method: &str, args: &[Option<&str>]) -> Option<bool> {
    match (method, args) {
        ("startswith", [Some(p)]) => Some(s.starts_with(p)),
        ("endswith", [Some(p)]) => Some(s.ends_with(p)),
        (method, []) if ASK_FOR_DIGITS.has(method) => {
            Some(!s.is_empty() && s.bytes().all(|b| b.is_ascii_digit()))
        }
        _ => None,
    }
}

impl Interp<'_> {
    /// Calls a method of a string, or of a device that is used as a string.
    pub(crate) fn host_method(&mut self, receiver: Value, name: Sym, args: &Args, e: ExprId) -> Value {
        let first = args.positional.first().map(|&(v, _)| v);
        match (receiver, name.as_str(), first) {
            (Value::Device(d), "startswith", Some(Value::Str(s, _))) => match parse_device(s.as_str()) {
                Some(wanted) => Value::Bool(self.is_device(d, wanted, e)),
                None => Value::Unknown,
            },
            // An explicit call for `"cuda" in str(device)`.
            (Value::Device(_) | Value::Outer(_), "__contains__", Some(item)) => {
                Value::Bool(self.contains(receiver, item, e))
            }
            (Value::Outer(o), "startswith", Some(Value::Str(s, _))) => {
                let place = self.place(e);
                let origin = self.origin(place, crate::flow::domain::value::Reason::Given, NO_ORIGIN);
                let d = self.at(Device::Named(o), origin);
                match parse_device(s.as_str()) {
                    Some(wanted) => Value::Bool(self.is_device(d, wanted, e)),
                    None => Value::Bool(self.unknown_test(e)),
                }
            }
            (Value::Str(template, _), "format", _) => self.filled(template, args, e),
            (Value::Str(..), method, _) if TAKE_APART.has(method) => self.taken_apart(receiver, name, first),
            (Value::Str(s, origin), method, _) => {
                let texts: Vec<Option<&str>> = args
                    .positional
                    .iter()
                    .map(|(v, _)| match v {
                        Value::Str(s, _) => Some(s.as_str()),
                        _ => None,
                    })
                    .collect();
                let answer = known_answer(s.as_str(), method, &texts);
                let text = || known_text(s.as_str(), method, &texts);
                match answer {
                    Some(yes) => Value::Bool(if yes { TRUE } else { FALSE }),
                    None => text().map_or(Self::TEXT, |t| Value::Str(Sym::new(&t), origin)),
                }
            }
            (Value::Host(Host::Array | Host::Doubles | Host::Numbers), ..) => {
                self.array_method(receiver, name, args)
            }
            (Value::Host(Host::Text), "split" | "splitlines", _) => self.texts(),
            (Value::Host(Host::Text), "partition" | "rpartition", _) => self.seq(&[Self::TEXT; 3]),
            (Value::Host(Host::Text), ..) => Self::TEXT,
            (Value::Host(h), ..) => Value::Host(h),
            _ => self.result_of(e),
        }
    }

    /// The parts of a split string: `"a,b".split(",")`, `"cuda:1".partition(":")`.
    fn taken_apart(&mut self, receiver: Value, name: Sym, first: Option<Value>) -> Value {
        let Value::Str(s, _) = receiver else { return Self::TEXT };
        match (name.as_str(), first) {
            ("split", Some(Value::Str(sep, _))) if !sep.as_str().is_empty() => {
                let parts: Vec<Value> =
                    s.as_str().split(sep.as_str()).map(|p| Value::Str(Sym::new(p), NO_ORIGIN)).collect();
                self.list(&parts)
            }
            ("partition" | "rpartition", Some(Value::Str(sep, _))) if !sep.as_str().is_empty() => {
                let (text, sep) = (s.as_str(), sep.as_str());
                let first = name.as_str() == "partition";
                let parts = match if first { text.split_once(sep) } else { text.rsplit_once(sep) } {
                    Some((before, after)) => [before, sep, after],
                    None if first => [text, "", ""],
                    None => ["", "", text],
                };
                self.seq(&parts.map(|part| Value::Str(Sym::new(part), NO_ORIGIN)))
            }
            ("partition" | "rpartition", _) => self.seq(&[Self::TEXT; 3]),
            _ => self.texts(),
        }
    }

    /// A list of unknown strings.
    fn texts(&mut self) -> Value {
        let content = self.many(Self::TEXT);
        Value::Object(self.object(ObjKind::List { module: false }, None, content))
    }
}
