//! Copies, partial functions and named tuples, from the standard library.

use crate::flow::domain::event::Kind;
use crate::flow::domain::value::{NO_ORIGIN, ObjId, Outer, OuterKey, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::ir::ExprId;
use crate::sym::Sym;

impl Interp<'_> {
    pub(crate) fn environment(&mut self, args: &Args) -> Value {
        let Some(&(Value::Str(name, _), _)) = args.positional.first() else { return Self::TEXT };
        let key = OuterKey::External(Sym::new(&format!("os.environ[{name}]")));
        let text = name.to_string();
        let default = args.get(1, "default").map(|(v, _)| v);
        let id = self.t.outer(key.clone(), || Outer { default, ..Outer::new(key, text) });
        Value::Outer(id)
    }

    pub(crate) fn deep_copy(&mut self, v: Value, depth: u32) -> Value {
        let Value::Object(id) = v else { return v };
        if depth > 4 {
            return Value::Unknown;
        }
        let own = self.own(id);
        let own = match own {
            Value::Seq(s) => {
                let items: Vec<Value> =
                    self.seq_items(s).iter().map(|&v| self.deep_copy(v, depth + 1)).collect();
                self.seq(&items)
            }
            v => v,
        };
        let (kind, class, outer) = (self.obj(id).kind, self.obj(id).class, self.obj(id).outer);
        let new = self.object(kind, class, own);
        self.objects[new.0 as usize].outer = outer;
        self.objects[new.0 as usize].reserved = self.obj(id).reserved.clone();
        for (name, cell) in self.obj(id).attrs.clone() {
            let field = self.store.get(cell);
            let copy = self.deep_copy(field, depth + 1);
            self.set_field(new, name, copy);
            if self.modules.unseen.contains(&(id, name)) {
                self.modules.unseen.insert((new, name));
            }
        }
        Value::Object(new)
    }

    /// `functools.partial(f, …)`: an object with the function and its first arguments.
    pub(crate) fn partial(&mut self, args: &Args, e: ExprId) -> Value {
        let Some((&(f, _), rest)) = args.positional.split_first() else { return self.result_of(e) };
        if args.open {
            return self.result_of(e);
        }
        let rest: Vec<Value> = rest.iter().map(|&(v, _)| v).collect();
        let keywords: Vec<Value> =
            args.keywords.iter().flat_map(|&(k, v, _)| [Value::Str(k, NO_ORIGIN), v]).collect();
        if rest.len().max(keywords.len()) > crate::flow::machine::MAX_ELEMENTS {
            return self.result_of(e);
        }
        let (rest, keywords) = (self.seq(&rest), self.seq(&keywords));
        let own = self.seq(&[f, rest, keywords]);
        let made = self.object(ObjKind::Partial, None, own);
        self.note_kept_autocast(made, f, args, e);
        Value::Object(made)
    }

    /// Calls an object that [`Self::partial`] made.
    pub(crate) fn call_partial(&mut self, id: ObjId, args: &Args, e: ExprId) -> Value {
        let parts = self.exact_elements(self.own(id)).unwrap_or_default();
        let &[f, rest, keywords] = parts.as_slice() else {
            return self.unknown_call(Value::Unknown, args, e);
        };
        let mut all = Args { open: args.open, open_names: args.open_names, ..Args::default() };
        all.positional.extend(self.exact_elements(rest).unwrap_or_default().into_iter().map(|v| (v, e)));
        all.positional.extend(&args.positional);
        all.keywords.extend(&args.keywords);
        for pair in self.exact_elements(keywords).unwrap_or_default().chunks(2) {
            if let &[Value::Str(k, _), v] = pair
                && args.keyword(k.as_str()).is_none()
            {
                all.keywords.push((k, v, e));
            }
        }
        let Some(&place) = self.tensors.kept_autocasts.get(&id) else { return self.call_value(f, &all, e) };
        let outer = self.tensors.called_autocast.replace(place);
        let made = self.call_value(f, &all, e);
        self.tensors.called_autocast = outer;
        made
    }

    /// `namedtuple("Pair", ["left", "right"])`, `namedtuple("Pair", "left right")`.
    pub(crate) fn tuple_class(&mut self, args: &Args, e: ExprId) -> Value {
        let fields = match args.get(1, "field_names").map(|(v, _)| v) {
            Some(Value::Str(s, _)) => {
                let names = s.as_str().split([',', ' ']).filter(|n| !n.is_empty());
                Some(names.map(|n| Value::Str(Sym::new(n), NO_ORIGIN)).collect())
            }
            Some(v) => self.exact_elements(v),
            None => None,
        };
        let fields: Option<Vec<Value>> = fields.map(|fields| {
            // `NamedTuple("Pair", [("left", Tensor), …])`
            let name = |v: Value| self.exact_elements(v).and_then(|pair| pair.first().copied()).unwrap_or(v);
            fields.into_iter().map(name).collect()
        });
        match fields {
            Some(f)
                if f.len() <= crate::flow::machine::MAX_ELEMENTS
                    && f.iter().all(|v| matches!(v, Value::Str(..))) =>
            {
                let own = self.seq(&f);
                Value::Object(self.object(ObjKind::TupleClass, None, own))
            }
            _ => self.result_of(e),
        }
    }

    /// An instance of a class that [`Self::tuple_class`] made.
    pub(crate) fn make_tuple(&mut self, class: ObjId, args: &Args, e: ExprId) -> Value {
        let fields = self.exact_elements(self.own(class)).unwrap_or_default();
        if args.open || args.positional.len() > fields.len() {
            return self.result_of(e);
        }
        let mut values = Vec::with_capacity(fields.len());
        for (n, field) in fields.iter().enumerate() {
            let Value::Str(name, _) = field else { continue };
            values.push(args.get(n, name.as_str()).map_or(Value::Unknown, |(v, _)| v));
        }
        let own = self.seq(&values);
        let id = self.object(ObjKind::Instance, None, own);
        for (field, &v) in fields.iter().zip(&values) {
            if let &Value::Str(name, _) = field {
                self.set_field(id, name, v);
            }
        }
        Value::Object(id)
    }

    pub(crate) fn reveal(&mut self, args: &Args, e: ExprId) -> Value {
        if let Some(&(v, at)) = args.positional.first() {
            let text = self.describe(v, at);
            let place = self.place(e);
            let bite = crate::flow::domain::event::Bite::in_world(crate::world::World::Always);
            if self.run.muted == 0 && self.path != crate::flow::domain::diagram::FALSE {
                self.emit(Kind::Reveal(text), place, bite, Vec::new());
            }
            return v;
        }
        Value::None
    }
}
