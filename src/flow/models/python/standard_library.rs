//! Intrinsics of Python's standard library, and of libraries with dicts whose items are also attributes.

use crate::flow::domain::diagram::FALSE;
use crate::flow::domain::value::{NO_ORIGIN, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::flow::models::registry::{Called, Intrinsics};
use crate::sym::Sym;

/// Intrinsics by path.
pub(crate) const INTRINSICS: Intrinsics = &[
    ("argparse.ArgumentParser", |i, c| Some(parser(i, c))),
    ("collections.OrderedDict", |i, c| Some(dict(i, c))),
    ("collections.defaultdict", |i, c| Some(i.default_dict(c.args, c.at))),
    ("collections.deque", |i, c| Some(i.make_deque(c.args, c.at))),
    ("collections.namedtuple", |i, c| Some(i.tuple_class(c.args, c.at))),
    ("typing.NamedTuple", |i, c| Some(i.tuple_class(c.args, c.at))),
    ("contextlib.nullcontext", |i, c| Some(null_context(i, c))),
    ("copy.copy", |i, c| Some(copied(i, c))),
    ("copy.deepcopy", |i, c| Some(copied(i, c))),
    ("dataclasses.replace", |i, c| Some(i.replaced(c.args, c.at))),
    ("dataclasses.fields", |i, c| c.args.positional.first().and_then(|&(v, _)| i.fields_of(v))),
    ("dataclasses.field", field),
    ("functools.partial", |i, c| Some(i.partial(c.args, c.at))),
    ("functools.reduce", |i, c| i.reduced_by(c.args, c.at)),
    ("itertools.product", product),
    ("os.environ.get", |i, c| Some(variable(i, c))),
    ("os.getenv", |i, c| Some(variable(i, c))),
    ("os.environ.pop", |i, c| Some(i.environment(c.args))),
    ("os.environ.setdefault", |i, c| i.set_default_variable(c, false)),
    ("os.putenv", |i, c| i.set_default_variable(c, true)),
    ("os.environ.update", |i, c| i.update_environment(c)),
    ("platform.system", |i, c| i.platform_call(c.path.as_str(), c.args)),
    ("sys.platform.lower", |i, c| i.platform_call(c.path.as_str(), c.args)),
    ("sys.platform.startswith", |i, c| i.platform_call(c.path.as_str(), c.args)),
    ("random.shuffle", |i, c| Some(shuffled(i, c))),
    ("random.sample", |i, c| Some(sampled(i, c))),
    ("random.choices", |i, c| Some(sampled(i, c))),
    ("sys.exit", |i, _| Some(ends(i))),
    ("os._exit", |i, _| Some(ends(i))),
    ("os.abort", |i, _| Some(ends(i))),
    ("exit", |i, _| Some(ends(i))),
    ("quit", |i, _| Some(ends(i))),
    ("pytest.skip", |i, _| Some(ends(i))),
    ("pytest.exit", |i, _| Some(ends(i))),
    ("pytest.fail", |i, _| Some(ends(i))),
    // The items of these dicts are also attributes.
    ("easydict.EasyDict", |i, c| Some(dict(i, c))),
    ("addict.Dict", |i, c| Some(dict(i, c))),
    ("attrdict.AttrDict", |i, c| Some(dict(i, c))),
    ("box.Box", |i, c| Some(dict(i, c))),
    ("dotmap.DotMap", |i, c| Some(dict(i, c))),
    ("munch.Munch", |i, c| Some(dict(i, c))),
    ("ml_collections.ConfigDict", |i, c| Some(dict(i, c))),
];

fn parser(i: &mut Interp<'_>, c: Called<'_>) -> Value {
    let parser = i.object(ObjKind::Parser, None, Value::Absent);
    let place = i.place(c.at);
    i.libraries.parsers.insert(parser, place);
    Value::Object(parser)
}

fn dict(i: &mut Interp<'_>, c: Called<'_>) -> Value {
    i.builtin(Sym::new("dict"), c.args, c.at)
}

/// `contextlib.nullcontext(value)`: `with … as x` binds `x` to the argument, as it would to the only element of a generator.
fn null_context(i: &mut Interp<'_>, c: Called<'_>) -> Value {
    match c.args.get(0, "enter_result") {
        Some((v, _)) => i.many(v),
        None => i.result_of(c.at),
    }
}

fn copied(i: &mut Interp<'_>, c: Called<'_>) -> Value {
    c.args.positional.first().map_or(Value::Unknown, |&(v, _)| i.deep_copy(v, 0))
}

/// `field(default_factory=torch.cuda.is_available)`
fn field(i: &mut Interp<'_>, c: Called<'_>) -> Option<Value> {
    match c.args.keyword("default_factory") {
        Some((factory @ Value::External(path), _)) if path.as_str().starts_with("torch.") => {
            Some(i.call_value(factory, &Args::default(), c.at))
        }
        _ => None,
    }
}

fn product(i: &mut Interp<'_>, c: Called<'_>) -> Option<Value> {
    let args = c.args;
    if !args.keywords.is_empty() || args.open || args.positional.is_empty() {
        return None;
    }
    let row: Vec<Value> = args.positional.iter().map(|&(v, at)| i.some_element(v, at)).collect();
    let row = i.seq(&row);
    Some(i.many(row))
}

fn variable(i: &mut Interp<'_>, c: Called<'_>) -> Value {
    let put = c.args.positional.first().and_then(|&(key, _)| i.put_text(key));
    put.unwrap_or_else(|| i.environment(c.args))
}

/// `random.shuffle(x)` works in place: the order of the elements is unknown afterwards.
fn shuffled(i: &mut Interp<'_>, c: Called<'_>) -> Value {
    if let Some(&(Value::Object(id), _)) = c.args.positional.first()
        && i.obj(id).kind == (ObjKind::List { module: false })
        && let Some(items) = i.exact_elements(i.own(id))
    {
        let content = i.many_of(&items);
        i.set_own(id, content);
    }
    Value::None
}

fn sampled(i: &mut Interp<'_>, c: Called<'_>) -> Value {
    match c.args.get(0, "population") {
        Some((v, at)) => {
            let item = i.some_element(v, at);
            let content = i.many(item);
            Value::Object(i.object(ObjKind::List { module: false }, None, content))
        }
        None => i.result_of(c.at),
    }
}

/// The call never returns, so the path ends here.
fn ends(i: &mut Interp<'_>) -> Value {
    i.path = FALSE;
    Value::None
}

impl Interp<'_> {
    /// `os.environ.setdefault(key, default)`, and `os.putenv(key, value)`, which affects only processes that start later.
    fn set_default_variable(&mut self, c: Called<'_>, puts: bool) -> Option<Value> {
        if let (Some((key, _)), Some((v, _))) = (c.args.get(0, "key"), c.args.get(1, "default")) {
            self.set_environment(key, v, c.at);
            if puts {
                self.check_fixed_visible(key, v, c.at);
            }
        }
        None
    }

    /// `os.environ.update(NAME=…)`, with names or a dict.
    fn update_environment(&mut self, c: Called<'_>) -> Option<Value> {
        for &(name, v, _) in &c.args.keywords {
            let key = Value::Str(name, NO_ORIGIN);
            self.set_environment(key, v, c.at);
            self.check_fixed_visible(key, v, c.at);
        }
        if let Some(items) = c.args.positional.first().and_then(|&(v, _)| self.dict_items(v)) {
            for pair in items.chunks(2) {
                self.set_environment(pair[0], pair[1], c.at);
                self.check_fixed_visible(pair[0], pair[1], c.at);
            }
        }
        None
    }
}
