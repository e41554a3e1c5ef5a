//! Iteration over objects of the project: `__iter__` and `__next__`, or `__getitem__` with 0, 1, 2, ….

use crate::flow::domain::diagram::FALSE;
use crate::flow::domain::value::{ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::flow::machine::statements::loops::Iteration;
use crate::ir::ExprId;

/// The maximum length of a `range` whose numbers are kept separately.
const MAX_RANGE: usize = 16;

impl Interp<'_> {
    /// The items of a loop over an instance of a project class that defines iteration.
    pub(crate) fn own_iteration(&mut self, id: ObjId, at: ExprId) -> Option<Iteration> {
        if !matches!(self.obj(id).kind, ObjKind::Instance | ObjKind::Module) {
            return None;
        }
        if self.own_method(id, "__iter__").is_none() {
            self.own_method(id, "__getitem__")?;
            return Some(Iteration::Any(self.one_round(id, "__getitem__", &[Self::NUMBER], at)));
        }
        Some(match self.one_round(id, "__iter__", &[], at) {
            Value::Object(iterator) if self.own_method(iterator, "__next__").is_some() => {
                Iteration::Any(self.own_next(iterator, at))
            }
            Value::Object(o) if self.obj(o).class.is_some() => Iteration::Any(self.result_of(at)),
            iterator => self.iteration(iterator, at),
        })
    }

    /// The result of `functools.reduce(function, items)` if the items are known.
    pub(crate) fn reduced_by(&mut self, args: &Args, e: ExprId) -> Option<Value> {
        let (&(function, _), &(items, at)) = (args.positional.first()?, args.positional.get(1)?);
        let known = match function {
            Value::Closure(_) | Value::Bound(_) => true,
            Value::External(path) => path.as_str().starts_with("torch."),
            _ => false,
        };
        let first = args.positional.get(2).map(|a| a.0);
        let items = self.exact_elements(items).filter(|items| known && items.len() <= MAX_RANGE)?;
        let all: Vec<Value> = first.into_iter().chain(items).collect();
        let (&first, rest) = all.split_first()?;
        Some(rest.iter().fold(first, |so_far, &item| {
            let args = Args { positional: vec![(so_far, at), (item, at)], ..Args::default() };
            self.call_value(function, &args, e)
        }))
    }

    /// The value of `next(iterator)`.
    pub(crate) fn own_next(&mut self, id: ObjId, at: ExprId) -> Value {
        self.one_round(id, "__next__", &[], at)
    }

    /// Calls one of the iteration methods, assuming that it does not end the loop.
    fn one_round(&mut self, id: ObjId, name: &str, given: &[Value], at: ExprId) -> Value {
        let Some((module, func)) = self.own_method(id, name) else { return self.result_of(at) };
        let args = Args { positional: given.iter().map(|&v| (v, at)).collect(), ..Args::default() };
        let (before, objects) = (self.path, self.objects.len());
        let v = self.call_function(module, func, None, Some(Value::Object(id)), &args, at);
        if self.path != FALSE {
            let machine = self.d.what_raises(self.path);
            self.path = self.d.and(before, machine);
        }
        if self.path == FALSE {
            self.path = before;
        }
        self.made_anew(v, objects);
        v
    }
}

/// The numbers of a short `range` with known bounds.
pub(crate) fn short_range(args: &Args) -> Option<Vec<Value>> {
    let bounds = args.positional.iter().map(|&(v, _)| match v {
        Value::Int(n) => Some(n),
        _ => None,
    });
    let (start, stop, step) = match *bounds.collect::<Option<Vec<i64>>>()?.as_slice() {
        [stop] => (0, stop, 1),
        [start, stop] => (start, stop, 1),
        [start, stop, step] if step != 0 => (start, stop, step),
        _ => return None,
    };
    let inside = |n: &i64| if step > 0 { *n < stop } else { *n > stop };
    let items: Vec<Value> = std::iter::successors(Some(start), |n| n.checked_add(step))
        .take_while(inside)
        .take(MAX_RANGE + 1)
        .map(Value::Int)
        .collect();
    (items.len() <= MAX_RANGE).then_some(items)
}
