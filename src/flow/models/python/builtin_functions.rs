//! The results of Python's builtins, one function each. `builtins.rs` has the table of their names.

use crate::flow::domain::diagram::{FALSE, TRUE};
use crate::flow::domain::event::{Bite, Kind};
use crate::flow::domain::value::{Host, NO_ORIGIN, Role, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::classes::iterators::short_range;
use crate::flow::machine::frame::ObjKind;
use crate::flow::machine::statements::loops::Iteration;
use crate::flow::models::registry::Called;
use crate::ir::{Expr, ExprId};
use crate::sym::Sym;
use crate::world::World;

/// The first positional argument.
pub(crate) fn first(c: Called<'_>) -> Option<(Value, ExprId)> {
    c.args.positional.first().copied()
}

pub(crate) fn reveal_world(i: &mut Interp<'_>, c: Called<'_>) -> Value {
    let text = i.describe_world();
    let place = i.place(c.at);
    if i.run.muted == 0 {
        i.emit(Kind::Reveal(text), place, Bite::in_world(World::Always), Vec::new());
    }
    Value::None
}

/// The call never returns, so the path ends here.
pub(crate) fn ends(i: &mut Interp<'_>) -> Value {
    i.path = FALSE;
    Value::None
}

/// `str(x)`
pub(crate) fn text_of(i: &mut Interp<'_>, c: Called<'_>) -> Option<Value> {
    Some(match first(c)?.0 {
        Value::Device(d) => i.as_text(d, c.at),
        v @ (Value::Str(..)
        | Value::Choice(_)
        | Value::Host(Host::Rank | Host::PhysicalGpu | Host::CurrentGpu)) => v,
        Value::Int(n) => Value::Str(Sym::new(&n.to_string()), NO_ORIGIN),
        Value::None => Value::Str(Sym::new("None"), NO_ORIGIN),
        v @ Value::Outer(o) if i.t.get_outer(o).device => {
            i.as_device(v, c.at).map_or(Interp::TEXT, Value::Device)
        }
        _ => Interp::TEXT,
    })
}

/// `int(x)`
pub(crate) fn whole_number(i: &mut Interp<'_>, c: Called<'_>) -> Option<Value> {
    let (v, at) = first(c)?;
    Some(match v {
        Value::Int(_) | Value::Bool(_) | Value::Host(Host::Rank | Host::PhysicalGpu | Host::CurrentGpu) => v,
        Value::Outer(o) if o == i.known.device_count => v,
        Value::Outer(o) => i.number_from_environment(o),
        Value::Str(s, _) => s.as_str().parse().map_or(Interp::NUMBER, Value::Int),
        _ => i.whole_part(at),
    })
}

pub(crate) fn length(i: &mut Interp<'_>, c: Called<'_>) -> Option<Value> {
    Some(match first(c)?.0 {
        // Empty until CUDA is initialised, which needs a GPU.
        Value::External(p) if p.as_str() == "torch.cuda.default_generators" => {
            Value::Outer(i.known.device_count)
        }
        v => i.count_of(v),
    })
}

/// `type(x)`: the class of a value.
pub(crate) fn type_of(i: &mut Interp<'_>, c: Called<'_>) -> Value {
    let name = match first(c).map(|(v, _)| v) {
        Some(Value::Tensor(t)) if i.get_tensor(t).certain => match i.get_tensor(t).role {
            Role::Parameter => "torch.nn.Parameter",
            _ => "torch.Tensor",
        },
        // `type(batch)(move(x) for x in batch)`
        Some(Value::Seq(_)) => "builtins.tuple",
        Some(Value::Object(id))
            if i.obj(id).kind == (ObjKind::List { module: false }) && i.obj(id).class.is_none() =>
        {
            "builtins.list"
        }
        _ => return i.result_of(c.at),
    };
    Value::External(Sym::new(name))
}

pub(crate) fn opened(i: &mut Interp<'_>, c: Called<'_>) -> Value {
    if first(c).is_none() {
        return Interp::TEXT;
    }
    i.remember_download("open", c.args);
    i.result_of(c.at)
}

/// `list(x)`, `tuple(x)`, `sorted(x)` and similar functions.
pub(crate) fn sequence(i: &mut Interp<'_>, c: Called<'_>) -> Option<Value> {
    let name = c.path.as_str();
    let Some((v, at)) = first(c) else {
        return match name {
            "list" | "set" => Some(i.list(&[])),
            "tuple" => Some(i.seq(&[])),
            _ => None,
        };
    };
    if let Value::Choice(_) = v {
        return Some(i.each(v, &mut |i, v| {
            let args = Args { positional: vec![(v, at)], ..Args::default() };
            i.builtin(c.path, &args, c.at)
        }));
    }
    let content = match i.iteration(v, at) {
        Iteration::Exact(mut items) => {
            if name == "reversed" {
                items.reverse();
            }
            if name == "sorted" { i.many_of(&items) } else { i.seq(&items) }
        }
        Iteration::Any(v) => i.many(v),
    };
    // A stored collection is made once, so its elements are those of one round.
    let content = if matches!(name, "iter" | "reversed") { content } else { i.next_round(content) };
    Some(match name {
        "list" | "sorted" => i.true_list(content),
        "set" => Value::Object(i.object(ObjKind::List { module: false }, None, content)),
        _ => content,
    })
}

pub(crate) fn next(i: &mut Interp<'_>, c: Called<'_>) -> Option<Value> {
    let (v, at) = first(c)?;
    if let Value::Object(id) = v
        && i.own_method(id, "__next__").is_some()
    {
        return Some(i.own_next(id, c.at));
    }
    let v = match i.iteration(v, at) {
        // `next(it)`: earlier calls may have taken some elements.
        Iteration::Exact(items) if !items.is_empty() && matches!(i.linked().ir.expr(at), Expr::Var(_)) => {
            items.into_iter().fold(Value::Absent, |all, item| i.blend(all, item))
        }
        Iteration::Exact(items) => items.first().copied().unwrap_or(Value::Unknown),
        Iteration::Any(v) => v,
    };
    let v = i.next_round(v);
    let v = i.drawn_apart(v);
    Some(if v == Value::Unknown { i.result_of(c.at) } else { v })
}

pub(crate) fn zip(i: &mut Interp<'_>, c: Called<'_>) -> Value {
    if first(c).is_some() {
        let columns: Vec<(Value, Option<ExprId>)> =
            c.args.positional.iter().map(|&(v, at)| (v, Some(at))).collect();
        return i.pairs(&columns);
    }
    // `zip(*rows)` gives columns.
    match c.args.spread.and_then(|(row, _)| i.row_elements(row)) {
        Some(row) => {
            let columns: Vec<Value> = row.into_iter().map(|v| i.many(v)).collect();
            i.seq(&columns)
        }
        // An unknown number of tuples.
        None => {
            let column = i.many(Value::Unknown);
            i.many(column)
        }
    }
}

pub(crate) fn map(i: &mut Interp<'_>, c: Called<'_>) -> Option<Value> {
    let [(f, _), (v, at)] = *c.args.positional.as_slice() else { return None };
    let called = |i: &mut Interp<'_>, item| {
        let args = Args { positional: vec![(item, at)], ..Args::default() };
        i.call_value(f, &args, c.at)
    };
    Some(match i.iteration(v, at) {
        Iteration::Exact(items) => {
            let mapped: Vec<Value> = items.into_iter().map(|item| called(i, item)).collect();
            i.seq(&mapped)
        }
        Iteration::Any(item) => {
            let v = called(i, item);
            i.many(v)
        }
    })
}

pub(crate) fn range(i: &mut Interp<'_>, c: Called<'_>) -> Value {
    match first(c).map(|(v, _)| v) {
        Some(Value::Int(_)) => match short_range(c.args) {
            Some(items) => i.seq(&items),
            None => i.many(Interp::NUMBER),
        },
        // Empty on a machine without a GPU.
        Some(Value::Outer(o)) if o == i.known.device_count && c.args.positional.len() == 1 => {
            let (some, none, there) = (i.many(Interp::NUMBER), i.seq(&[]), i.at_least(1));
            i.ite(there, some, none)
        }
        _ => {
            for &(v, _) in &c.args.positional {
                if let Value::Outer(o) = v {
                    i.evidence.size_proofs.insert(o);
                }
            }
            i.many(Interp::NUMBER)
        }
    }
}

pub(crate) fn any_or_all(i: &mut Interp<'_>, c: Called<'_>) -> Option<Value> {
    let (v, at) = first(c)?;
    let Some(items) = i.exact_elements(v) else { return Some(i.any_of_many(c.path, v, at, c.at)) };
    let all = c.path.as_str() == "all";
    let mut cond = if all { TRUE } else { FALSE };
    for v in items {
        let truth = i.truth(v, at);
        cond = if all { i.d.and(cond, truth) } else { i.d.or(cond, truth) };
    }
    Some(Value::Bool(cond))
}

pub(crate) fn power(i: &mut Interp<'_>, c: Called<'_>) -> Option<Value> {
    let (v @ Value::Tensor(_), at) = first(c)? else { return None };
    let rest = Args { positional: c.args.positional[1..].to_vec(), ..Args::default() };
    Some(i.call_method(v, Sym::new("pow"), &rest, c.at, at))
}

pub(crate) fn callable(i: &mut Interp<'_>, c: Called<'_>) -> Value {
    let Some((v, _)) = first(c) else { return i.result_of(c.at) };
    i.each(v, &mut |i, v| match v {
        Value::Closure(_) | Value::Class(_) | Value::Bound(_) => Value::Bool(TRUE),
        Value::None => Value::Bool(FALSE),
        _ => i.result_of(c.at),
    })
}

impl Interp<'_> {
    /// `setattr(x, name, value)`
    pub(crate) fn set_attr_by_name(&mut self, args: &Args) {
        let &[(v, at), (name, _), (value, _), ..] = args.positional.as_slice() else { return };
        let written = matches!(name, Value::Str(..));
        let name = match (v, name) {
            (_, Value::Str(name, _)) => Some(name),
            (Value::Object(id), name) => Some(self.field_name(id, name)),
            _ => None,
        };
        if let Value::Object(id) = v
            && !written
        {
            match self.obj(id).kind {
                // `setattr(self, key, function(value))`: any attribute may change.
                ObjKind::Instance => self.forget_plain(id),
                // `setattr(layer, name, nn.Parameter(…))`: a weight with an unknown name. There may be other weights.
                ObjKind::ForeignModule(_) => self.escape(v, 0),
                _ => {}
            }
        }
        match (v, name) {
            // `setattr(layers, "0", layer)`
            (Value::Object(id), Some(n)) if self.is_numbered(id, n) => {
                self.set_object_item(id, Value::Int(n.as_str().parse().unwrap_or(0)), value);
            }
            (_, Some(n)) => self.set_attr(v, n, value, at),
            _ => {}
        }
    }
}
