//! Dicts with a default value for every key, `get()` for a missing key, and dicts whose keys depend on conditions:
//! `if wanted: losses["edges"] = …`.

use crate::flow::domain::value::{ObjId, SeqId, Value};
use crate::flow::heap::containers::{is_plain_key, plain_key};
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::flow::machine::{Interp, MAX_ELEMENTS};
use crate::ir::ExprId;
use crate::sym::Sym;
use crate::words::Words;

static LISTS: Words = Words::of("classes like lists");

/// The field of a `defaultdict` that holds whether its values are dicts or lists, or the function that makes them.
const DEFAULT: &str = " default";

/// The maximum number of different key sets for which a dict's items are kept separately.
const MAX_CONTENTS: usize = 16;

const LIST: ObjKind = ObjKind::List { module: false };

impl Interp<'_> {
    /// Makes `defaultdict(list)`. A dict whose values start as a number is not followed.
    pub(crate) fn default_dict(&mut self, args: &Args, e: ExprId) -> Value {
        let dict = match args.positional.as_slice() {
            [(Value::External(path), _)] if args.keywords.is_empty() && !args.open => match path.as_str() {
                "builtins.dict" => Value::Bool(crate::flow::domain::diagram::TRUE),
                class if LISTS.has(class) => Value::Bool(crate::flow::domain::diagram::FALSE),
                _ => return self.unknown_call(Value::Unknown, args, e),
            },
            // `defaultdict(lambda: torch.zeros(3))`
            [(factory @ Value::Closure(_), _)] if args.keywords.is_empty() && !args.open => *factory,
            _ => return self.unknown_call(Value::Unknown, args, e),
        };
        let content = self.seq(&[]);
        let id = self.object(ObjKind::Dict { module: false }, None, content);
        self.set_field(id, Sym::new(DEFAULT), dict);
        Value::Object(id)
    }

    /// The result of `d.get(key, default)` for a script's dict without that key.
    pub(crate) fn missing(
        &mut self,
        id: ObjId,
        key: Value,
        default: Option<Value>,
        e: ExprId,
    ) -> Option<Value> {
        let default =
            default.filter(|_| !self.run.symbolic && matches!(key, Value::Str(..) | Value::Int(_)))?;
        let pairs = self.dict_items(Value::Object(id))?;
        pairs
            .chunks(2)
            .all(|pair| self.equal(pair[0], key, e) == crate::flow::domain::diagram::FALSE)
            .then_some(default)
    }

    /// Reads `d[key]` of a dict.
    pub(crate) fn dict_item(&mut self, id: ObjId, key: Value, e: ExprId) -> Value {
        match self.get_field(id, Sym::new(DEFAULT)) {
            Value::Absent => self.dict_get(id, key, e),
            factory @ Value::Closure(_) => {
                let default = self.call_value(factory, &Args::default(), e);
                self.set_default(id, key, default, e)
            }
            dict => {
                // The key may have been there before, with content from elsewhere.
                let content = self.many(Value::Absent);
                let kind = if dict == Value::Bool(crate::flow::domain::diagram::TRUE) {
                    ObjKind::Dict { module: false }
                } else {
                    LIST
                };
                let default = self.object(kind, None, content);
                self.set_default(id, key, Value::Object(default), e)
            }
        }
    }

    /// `d.setdefault(key, default)`: the existing value, or the default, which is stored.
    pub(crate) fn set_default(&mut self, id: ObjId, key: Value, default: Value, e: ExprId) -> Value {
        let pairs = self.dict_items(Value::Object(id));
        let equal: Vec<crate::flow::domain::diagram::Cond> = match &pairs {
            Some(pairs) => pairs.chunks(2).map(|pair| self.equal(pair[0], key, e)).collect(),
            None => Vec::new(),
        };
        if !equal.contains(&crate::flow::domain::diagram::TRUE) {
            let held = self.own(id);
            self.set_object_item(id, key, default);
            // The key may exist already. Then its value stays.
            if pairs.is_none() || equal.iter().any(|&c| c != crate::flow::domain::diagram::FALSE) {
                let mut values = match (&pairs, held) {
                    (Some(pairs), _) => pairs.iter().skip(1).step_by(2).copied().collect(),
                    (None, Value::Many(m)) => vec![*self.t.values.get(m)],
                    _ => vec![Value::Unknown],
                };
                values.push(default);
                let content = self.many_of(&values);
                self.set_own(id, content);
            }
        }
        self.dict_get(id, key, e)
    }

    /// The item of a dict whose keys depend on conditions, and `missing` where the key is absent.
    pub(crate) fn item_of_either(&mut self, id: ObjId, key: Value, missing: Value) -> Value {
        let content = self.own(id);
        self.each(content, &mut |i, content| {
            let Value::Seq(s) = content else { return Value::Unknown };
            let pairs = i.seq_items(s);
            let keys = || pairs.iter().step_by(2);
            if !is_plain_key(key) || !keys().all(|&k| is_plain_key(k)) {
                return Value::Unknown;
            }
            let wanted = plain_key(key);
            pairs.chunks(2).find(|p| plain_key(p[0]) == wanted).map_or(missing, |p| p[1])
        })
    }

    /// The same for a store: `losses["edges"] = value`.
    pub(crate) fn set_item_of_either(&mut self, id: ObjId, key: Value, value: Value) {
        let content = self.own(id);
        let new = if self.values_of(content).len() > MAX_CONTENTS {
            self.many(Value::Unknown)
        } else {
            self.each(content, &mut |i, content| match content {
                Value::Seq(s) if is_plain_key(key) => i.with_pair(s, key, value),
                _ => Value::Unknown,
            })
        };
        self.set_own(id, new);
    }

    /// A dict's content with one more item, or with a new value for an existing key.
    pub(crate) fn with_pair(&mut self, content: SeqId, key: Value, value: Value) -> Value {
        let mut items = self.seq_items(content).to_vec();
        let wanted = plain_key(key);
        match items.chunks_mut(2).find(|p| plain_key(p[0]) == wanted) {
            Some(pair) => pair[1] = value,
            None => items.extend([key, value]),
        }
        if items.len() > 2 * MAX_ELEMENTS { self.many(Value::Unknown) } else { self.seq(&items) }
    }
}
