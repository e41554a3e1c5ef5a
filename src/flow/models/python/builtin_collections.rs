//! Builtins that make or traverse collections.

use crate::flow::domain::diagram::{FALSE, TRUE};
use crate::flow::domain::value::{NO_ORIGIN, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::flow::machine::statements::loops::Iteration;
use crate::ir::ExprId;
use crate::sym::Sym;

impl Interp<'_> {
    /// `filter(lambda x: x is not None, items)`: the matching items if all answers are known, otherwise an unknown part of the items.
    pub(crate) fn filtered(&mut self, keeps: Value, items: Value, at: ExprId, e: ExprId) -> Value {
        if let Iteration::Exact(all) = self.iteration(items, at) {
            let mut kept = Vec::new();
            let known = all.into_iter().all(|item| {
                let answer = match keeps {
                    Value::None => item,
                    f => self.call_value(f, &Args { positional: vec![(item, at)], ..Args::default() }, e),
                };
                let keep = self.truth(answer, e);
                kept.extend((keep == TRUE).then_some(item));
                keep == TRUE || keep == FALSE
            });
            if known {
                return self.seq(&kept);
            }
        }
        let item = self.some_element(items, at);
        self.many(item)
    }

    pub(crate) fn make_dict(&mut self, args: &Args) -> Value {
        let mut flat = match args.positional.first() {
            None => Some(Vec::new()),
            Some(&(v, _)) => self.dict_items(v).or_else(|| self.dict_of_pairs(v)),
        };
        if args.open {
            flat = None;
        }
        let content = match flat {
            Some(mut items) => {
                for &(k, v, _) in &args.keywords {
                    items.extend([Value::Str(k, NO_ORIGIN), v]);
                }
                self.seq(&items)
            }
            None => self.many(Value::Unknown),
        };
        Value::Object(self.object(ObjKind::Dict { module: false }, None, content))
    }

    /// Keys and values in alternation, from pairs. `None` if a key is unknown.
    fn dict_of_pairs(&self, v: Value) -> Option<Vec<Value>> {
        let mut flat = Vec::new();
        for pair in self.exact_elements(v)? {
            match self.exact_elements(pair)?.as_slice() {
                &[k @ (Value::Str(..) | Value::Int(_)), v] => flat.extend([k, v]),
                _ => return None,
            }
        }
        Some(flat)
    }

    /// `zip` and `enumerate`: rows from columns. A column without an expression is a counter.
    pub(crate) fn pairs(&mut self, columns: &[(Value, Option<ExprId>)]) -> Value {
        let exact: Option<Vec<Vec<Value>>> =
            columns.iter().filter(|(_, at)| at.is_some()).map(|&(v, _)| self.exact_elements(v)).collect();
        if let Some(exact) = exact {
            let len = exact.iter().map(Vec::len).min().unwrap_or(0);
            if len <= 16 {
                let rows: Vec<Value> = (0..len)
                    .map(|n| {
                        let mut row: Vec<Value> = exact.iter().map(|c| c[n]).collect();
                        if columns.first().is_some_and(|(_, at)| at.is_none()) {
                            row.insert(0, Value::Int(i64::try_from(n).unwrap_or(0)));
                        }
                        self.seq(&row)
                    })
                    .collect();
                return self.seq(&rows);
            }
        }
        let row: Vec<Value> = columns
            .iter()
            .map(|&(v, at)| match at {
                Some(at) => self.some_element(v, at),
                None => v,
            })
            .collect();
        let row = self.seq(&row);
        self.many(row)
    }

    /// `max(pairs, key=…)` and `min(2, n)`: one of the arguments.
    pub(crate) fn extreme(&mut self, args: &Args, e: ExprId) -> Value {
        if let [(a, _), (b, _)] = args.positional[..] {
            self.meets_what_was_read(a, b, e);
        }
        let items = match args.positional.as_slice() {
            [(v, _)] => self.exact_elements(*v),
            many => Some(many.iter().map(|&(v, _)| v).collect()),
        };
        match items {
            Some(items)
                if items.iter().all(|v| matches!(v, Value::Int(_) | Value::Host(_) | Value::Outer(_))) =>
            {
                Self::NUMBER
            }
            // Some item, because `key` may select any.
            Some(items) if !items.is_empty() && items.iter().all(|v| matches!(v, Value::Tensor(_))) => {
                items.into_iter().reduce(|a, b| self.blend(a, b)).unwrap_or(Value::Unknown)
            }
            _ => self.result_of(e),
        }
    }

    /// `any(…)` and `all(…)` over an unknown number of items. If the result is true, the machine has what an item needs. If an item is true
    /// on every path, so is the result. (Without any item, nothing is used either.)
    pub(crate) fn any_of_many(&mut self, name: Sym, v: Value, at: ExprId, e: ExprId) -> Value {
        let Value::Many(item) = v else { return self.result_of(e) };
        let item = *self.t.values.get(item);
        let one = self.truth(item, at);
        let other = self.d.not(one);
        let (possible, missing) = (self.d.machine(one), self.d.machine(other));
        let certain = self.d.not(missing);
        // An item that does not depend on the machine gives no information.
        if certain == TRUE || name.as_str() == "all" && possible == TRUE && certain == FALSE {
            return self.result_of(e);
        }
        let some = self.unknown_test(e);
        let may = self.d.and(possible, some);
        Value::Bool(self.d.or(may, certain))
    }

    /// `sum(tensors)` starts with 0 and adds the items.
    pub(crate) fn sum(&mut self, v: Value, at: ExprId, e: ExprId) -> Value {
        match self.iteration(v, at) {
            Iteration::Exact(items) => {
                let mut total = Value::Int(0);
                for item in items {
                    total = self.binary(crate::ir::BinOp::Add, total, item, e, at, at);
                }
                total
            }
            Iteration::Any(item) => match *self.members(item) {
                // All members of the collection exist, so `sum` adds them all.
                [first, ref rest @ ..] if !rest.is_empty() => {
                    let mut total = first;
                    for &more in rest {
                        total = self.binary(crate::ir::BinOp::Add, total, more, e, at, at);
                    }
                    total
                }
                _ => match item {
                    Value::Tensor(_) => item,
                    Value::Host(_) | Value::Int(_) => Self::NUMBER,
                    _ => self.result_of(e),
                },
            },
        }
    }

    /// The elements of a tuple or named tuple.
    pub(crate) fn row_elements(&self, row: Value) -> Option<Vec<Value>> {
        match row {
            Value::Object(id) if self.obj(id).kind == ObjKind::Instance => self.exact_elements(self.own(id)),
            row => self.exact_elements(row),
        }
    }

    /// The result of `len`: a number for each machine, if the number of elements depends on the machine.
    pub(crate) fn count_of(&mut self, v: Value) -> Value {
        if let Value::Outer(o) = v {
            self.evidence.sized.insert(o);
        }
        let mut one = |i: &mut Self, v: Value| match i.exact_elements(v) {
            Some(items) => Value::Int(i64::try_from(items.len()).unwrap_or(i64::MAX)),
            None => {
                i.dims(v).size(0).map_or(Self::NUMBER, |n| Value::Int(i64::try_from(n).unwrap_or(i64::MAX)))
            }
        };
        match v {
            Value::Choice(d) if self.hangs_on_machine(d) => self.each(v, &mut one),
            _ => one(self, v),
        }
    }
}
