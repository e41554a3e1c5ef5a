//! Strings with placeholders: `f"cuda:{i}"`, `"cuda:{}".format(i)`, `"cuda:%d" % i`.

use crate::flow::domain::value::{Device, NO_ORIGIN, OriginId, Reason, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::models::devices::from_values::parse_device;
use crate::ir::{Expr, ExprId, ExprList};
use crate::sym::Sym;

/// The maximum length of a constant string, in bytes.
const LONGEST: usize = 200;

/// A part from which a string is built.
#[derive(Clone, Copy)]
struct Part {
    value: Value,
    /// Whether the part is literal text, not a filled-in value.
    written: bool,
}

/// A placeholder, by the argument that fills it.
enum Gap<'a> {
    /// The next argument.
    Next,
    /// The argument at this position.
    At(usize),
    /// The argument of this name.
    Named(&'a str),
}

/// A piece of a template: text or a placeholder.
enum Piece<'a> {
    /// Literal text.
    Text(&'a str),
    /// A placeholder.
    Gap(Gap<'a>),
}

/// The pieces of a template for `str.format`. `None` if it has more than plain names and numbers (widths, attributes).
fn braced(template: &str) -> Option<Vec<Piece<'_>>> {
    let (mut pieces, mut rest) = (Vec::new(), template);
    while let Some(at) = rest.find(['{', '}']) {
        let (before, after) = rest.split_at(at);
        pieces.push(Piece::Text(before));
        if let Some(tail) = after.strip_prefix("{{").or_else(|| after.strip_prefix("}}")) {
            pieces.push(Piece::Text(&after[..1]));
            rest = tail;
            continue;
        }
        let (field, tail) = after.strip_prefix('{')?.split_once('}')?;
        let (name, spec) = field.split_once(':').unwrap_or((field, ""));
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !plain || !(spec.is_empty() || matches!(spec, "d" | "s")) {
            return None;
        }
        pieces.push(Piece::Gap(match name.parse() {
            Ok(position) => Gap::At(position),
            Err(_) if name.is_empty() => Gap::Next,
            Err(_) => Gap::Named(name),
        }));
        rest = tail;
    }
    pieces.push(Piece::Text(rest));
    Some(pieces)
}

/// The pieces of a template for `%`. `None` if it has more than `%d`, `%i` and `%s`.
fn percented(template: &str) -> Option<Vec<Piece<'_>>> {
    let (mut pieces, mut rest) = (Vec::new(), template);
    while let Some((before, after)) = rest.split_once('%') {
        pieces.push(Piece::Text(before));
        pieces.push(match after.as_bytes().first()? {
            b'%' => Piece::Text("%"),
            b'd' | b'i' | b's' => Piece::Gap(Gap::Next),
            _ => return None,
        });
        rest = &after[1..];
    }
    pieces.push(Piece::Text(rest));
    Some(pieces)
}

impl Interp<'_> {
    /// The value of an f-string: `f"cuda:{i}"`.
    pub(crate) fn format(&mut self, list: ExprList, e: ExprId) -> Value {
        let linked = self.linked();
        let ir = &linked.ir;
        let part =
            |i: &mut Self, x: ExprId| Part { value: i.eval(x), written: matches!(ir.expr(x), Expr::Str(_)) };
        let parts: Vec<Part> = ir.list(list).iter().map(|&x| part(self, x)).collect();
        self.put_together(&parts, e)
    }

    /// The value of `"cuda:{}".format(i)`.
    pub(crate) fn filled(&mut self, template: Sym, args: &Args, e: ExprId) -> Value {
        let Some(pieces) = braced(template.as_str()) else { return Self::TEXT };
        if args.open {
            return Self::TEXT;
        }
        let mut next = 0;
        let mut parts = Vec::new();
        for piece in pieces {
            let given = match piece {
                Piece::Text(text) => {
                    parts.push(Part { value: Value::Str(Sym::new(text), NO_ORIGIN), written: true });
                    continue;
                }
                Piece::Gap(Gap::Next) => {
                    next += 1;
                    args.positional.get(next - 1).copied()
                }
                Piece::Gap(Gap::At(position)) => args.positional.get(position).copied(),
                Piece::Gap(Gap::Named(name)) => args.keyword(name),
            };
            let Some((value, _)) = given else { return Self::TEXT };
            parts.push(Part { value, written: false });
        }
        self.put_together(&parts, e)
    }

    /// The value of `"cuda:%d" % i` or `"%s:%d" % (kind, i)`.
    pub(crate) fn percent(&mut self, template: Sym, given: Value, e: ExprId) -> Value {
        let Some(pieces) = percented(template.as_str()) else { return Self::TEXT };
        let values = match given {
            Value::Seq(s) => self.seq_items(s).to_vec(),
            v => vec![v],
        };
        if pieces.iter().filter(|p| matches!(p, Piece::Gap(_))).count() != values.len() {
            return Self::TEXT;
        }
        let mut values = values.into_iter();
        let mut part = |piece: Piece<'_>| match piece {
            Piece::Text(text) => Some(Part { value: Value::Str(Sym::new(text), NO_ORIGIN), written: true }),
            Piece::Gap(_) => values.next().map(|value| Part { value, written: false }),
        };
        let parts: Vec<Part> = pieces.into_iter().filter_map(&mut part).collect();
        self.put_together(&parts, e)
    }

    /// The concatenation of the parts. `cuda:` followed by an unknown value is some CUDA device.
    fn put_together(&mut self, parts: &[Part], e: ExprId) -> Value {
        let mut text = String::new();
        let mut known = true;
        // The text before the first unknown part.
        let mut prefix = String::new();
        let mut unknown = parts.len();
        for (n, part) in parts.iter().enumerate() {
            match part.value {
                // `f"cuda:{device}"`, where the variable holds a device name.
                v @ Value::Str(..)
                    if text == "cuda:" && !part.written && self.check_device_in_string(v, e) =>
                {
                    return self.result_of(e);
                }
                Value::Str(s, _) => text.push_str(s.as_str()),
                Value::Int(i) => text.push_str(&i.to_string()),
                _ => {
                    if known {
                        prefix.clone_from(&text);
                        unknown = n;
                    }
                    known = false;
                }
            }
        }
        if known {
            return self.joined_text(&text, e);
        }
        let filled = || parts.iter().filter(|p| p.value != Value::Str(Sym::new(""), NO_ORIGIN));
        match (filled().next(), filled().count()) {
            (Some(Part { value: Value::Device(d), .. }), 1) => return self.as_text(*d, e),
            (Some(Part { value: v @ Value::Choice(_), .. }), 1) => return *v,
            _ => {}
        }
        if prefix == "cuda:" && text == prefix {
            self.of_some_index(&parts[unknown..], e)
        } else {
            Self::TEXT
        }
    }

    /// A constant string. If it names a device, its origin is this expression.
    pub(crate) fn joined_text(&mut self, text: &str, e: ExprId) -> Value {
        if text.len() > LONGEST {
            return Self::TEXT;
        }
        let origin = if parse_device(text).is_some() { self.template_origin(e) } else { NO_ORIGIN };
        Value::Str(Sym::new(text), origin)
    }

    /// A string of `cuda:` and an unknown index, built from these parts.
    fn of_some_index(&mut self, parts: &[Part], e: ExprId) -> Value {
        for part in parts {
            self.check_index_meaning(part.value, e, None);
            if self.check_device_in_string(part.value, e) {
                return Self::TEXT;
            }
            // `f"cuda:{x.get_device()}"`
            if let Value::Device(d) = part.value
                && self.is_device_number(d)
            {
                let there = self.without_text(d);
                return self.as_text(there, e);
            }
        }
        self.some_cuda(e)
    }

    /// The name of some CUDA device, built here.
    pub(crate) fn some_cuda(&mut self, e: ExprId) -> Value {
        let origin = self.template_origin(e);
        let d = self.at(Device::CudaSome, origin);
        self.as_text(d, e)
    }

    fn template_origin(&mut self, e: ExprId) -> OriginId {
        let place = self.place(e);
        self.origin(place, Reason::Literal, NO_ORIGIN)
    }
}
