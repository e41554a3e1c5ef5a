//! Python's builtins.

use crate::flow::domain::diagram::{FALSE, TRUE};
use crate::flow::domain::value::{Host, NO_ORIGIN, Role, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::calls::args::Args;
use crate::flow::machine::calls::iterators::short_range;
use crate::flow::machine::frame::ObjKind;
use crate::flow::machine::loops::Iteration;
use crate::ir::{Expr, ExprId};
use crate::sym::Sym;

/// Those of Python's own exceptions that programs make to say what is missing.
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

impl Interp<'_> {
    /// `filter(lambda x: x is not None, items)`: those of which the answer is known, or else some of them.
    fn filtered(&mut self, keeps: Value, items: Value, at: ExprId, e: ExprId) -> Value {
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

    pub(crate) fn builtin(&mut self, name: Sym, args: &Args, e: ExprId) -> Value {
        let first = args.positional.first().copied();
        match (name.as_str(), first) {
            ("reveal_device", Some(_)) => self.call_external(Sym::new("reveal_device"), args, e),
            ("reveal_world", _) => {
                let text = self.describe_world();
                let place = self.place(e);
                let bite = crate::flow::domain::event::Bite::in_world(crate::world::World::Always);
                if self.run.muted == 0 {
                    self.emit(crate::flow::domain::event::Kind::Reveal(text), place, bite, Vec::new());
                }
                Value::None
            }
            ("exit" | "quit", _) => {
                self.path = FALSE;
                Value::None
            }
            ("str" | "repr", Some((v, _))) => match v {
                Value::Device(d) => self.as_text(d, e),
                Value::Str(..) | Value::Choice(_) => v,
                Value::Host(Host::Rank | Host::PhysicalGpu | Host::CurrentGpu) => v,
                Value::Int(i) => Value::Str(Sym::new(&i.to_string()), NO_ORIGIN),
                Value::None => Value::Str(Sym::new("None"), NO_ORIGIN),
                Value::Outer(o) if self.t.get_outer(o).device => {
                    self.as_device(v, e).map_or(Self::TEXT, Value::Device)
                }
                _ => Self::TEXT,
            },
            ("int", Some((v, at))) => match v {
                Value::Int(_) | Value::Bool(_) => v,
                Value::Outer(o) if o == self.known.device_count => v,
                Value::Outer(o) => self.number_from_environment(o),
                Value::Host(Host::Rank | Host::PhysicalGpu | Host::CurrentGpu) => v,
                Value::Str(s, _) => s.as_str().parse().map_or(Self::NUMBER, Value::Int),
                _ => self.whole_part(at),
            },
            ("bool", Some((v, at))) => Value::Bool(self.truth(v, at)),
            // Empty until CUDA has been initialised, which needs a device.
            ("len", Some((Value::External(p), _))) if p.as_str() == "torch.cuda.default_generators" => {
                Value::Outer(self.known.device_count)
            }
            ("len", Some((v, _))) => self.count_of(v),
            ("float" | "round" | "hash" | "id" | "ord", _) => Self::NUMBER,
            ("type", Some((Value::Tensor(t), _))) if self.get_tensor(t).certain => {
                let parameter = self.get_tensor(t).role == Role::Parameter;
                Value::External(Sym::new(if parameter { "torch.nn.Parameter" } else { "torch.Tensor" }))
            }
            // `type(batch)(move(x) for x in batch)`
            ("type", Some((Value::Seq(_), _))) => Value::External(Sym::new("builtins.tuple")),
            ("type", Some((Value::Object(id), _)))
                if self.obj(id).kind == (ObjKind::List { module: false }) && self.obj(id).class.is_none() =>
            {
                Value::External(Sym::new("builtins.list"))
            }
            ("open", Some(_)) => {
                self.remember_download("open", args);
                self.result_of(e)
            }
            ("slice", Some(_)) => Value::Slice,
            ("isinstance", Some((v, at))) => self.is_instance(v, at, args, e),
            ("hasattr", Some((v, _))) => self.has_attr(v, args, e),
            ("getattr", Some((v, _))) => self.get_attr(v, args, e),
            ("setattr", Some((v, at))) => {
                if let (Some(&(n, _)), Some(&(value, _))) = (args.positional.get(1), args.positional.get(2)) {
                    let n = match (v, n) {
                        (_, Value::Str(n, _)) => Some(n),
                        (Value::Object(id), n) => Some(self.field_name(id, n)),
                        _ => None,
                    };
                    // `setattr(self, key, function(value))`: any of its fields may be that.
                    if let Value::Object(id) = v
                        && self.obj(id).kind == ObjKind::Instance
                        && !matches!(args.positional[1].0, Value::Str(..))
                    {
                        self.forget_plain(id);
                    }
                    // `setattr(layer, name, nn.Parameter(…))`: weights, of which nobody knows whether these are all.
                    if let Value::Object(id) = v
                        && matches!(self.obj(id).kind, ObjKind::ForeignModule(_))
                        && !matches!(args.positional[1].0, Value::Str(..))
                    {
                        self.escape(v, 0);
                    }
                    match (v, n) {
                        // `setattr(layers, "0", layer)`
                        (Value::Object(id), Some(n)) if self.is_numbered(id, n) => {
                            self.set_object_item(id, Value::Int(n.as_str().parse().unwrap_or(0)), value);
                        }
                        (_, Some(n)) => self.set_attr(v, n, value, at),
                        _ => {}
                    }
                }
                Value::None
            }
            ("object.__setattr__", Some((object, _))) => {
                if let &[_, (name, _), (value, _)] = args.positional.as_slice() {
                    self.set_unseen(object, name, value);
                }
                Value::None
            }
            (
                "list" | "tuple" | "set" | "sorted" | "reversed" | "iter" | "frozenset",
                Some((v @ Value::Choice(_), at)),
            ) => self.each(v, &mut |i, v| {
                let args = Args { positional: vec![(v, at)], ..Args::default() };
                i.builtin(name, &args, e)
            }),
            ("list" | "tuple" | "set" | "sorted" | "reversed" | "iter" | "frozenset", Some((v, at))) => {
                let content = match self.iteration(v, at) {
                    Iteration::Exact(mut items) => {
                        if name.as_str() == "reversed" {
                            items.reverse();
                        }
                        if name.as_str() == "sorted" { self.many_of(&items) } else { self.seq(&items) }
                    }
                    Iteration::Any(v) => self.many(v),
                };
                // What is kept is made once.
                let content = if matches!(name.as_str(), "iter" | "reversed") {
                    content
                } else {
                    self.next_round(content)
                };
                match name.as_str() {
                    "list" | "sorted" => self.true_list(content),
                    "set" => Value::Object(self.object(ObjKind::List { module: false }, None, content)),
                    _ => content,
                }
            }
            ("list" | "set", None) => self.list(&[]),
            ("tuple", None) => self.seq(&[]),
            ("dict", _) => self.make_dict(args),
            ("next", Some((Value::Object(id), _))) if self.own_method(id, "__next__").is_some() => {
                self.own_next(id, e)
            }
            ("next", Some((v, at))) => {
                let v = match self.iteration(v, at) {
                    // `next(it)`: some have been taken before, as far as anybody knows.
                    Iteration::Exact(items)
                        if !items.is_empty() && matches!(self.linked().ir.expr(at), Expr::Var(_)) =>
                    {
                        items.into_iter().fold(Value::Absent, |all, item| self.blend(all, item))
                    }
                    Iteration::Exact(items) => items.first().copied().unwrap_or(Value::Unknown),
                    Iteration::Any(v) => v,
                };
                let v = self.next_round(v);
                let v = self.drawn_apart(v);
                if v == Value::Unknown { self.result_of(e) } else { v }
            }
            ("enumerate", Some((v, at))) => self.pairs(&[(Self::NUMBER, None), (v, Some(at))]),
            ("zip", Some(_)) => {
                let columns: Vec<(Value, Option<ExprId>)> =
                    args.positional.iter().map(|&(v, at)| (v, Some(at))).collect();
                self.pairs(&columns)
            }
            // `zip(*rows)` gives columns.
            ("zip", None) => match args.spread.and_then(|(row, _)| self.row_elements(row)) {
                Some(row) => {
                    let columns: Vec<Value> = row.into_iter().map(|v| self.many(v)).collect();
                    self.seq(&columns)
                }
                // However many there are, each is a tuple.
                None => {
                    let column = self.many(Value::Unknown);
                    self.many(column)
                }
            },
            ("map", Some((f, _))) if args.positional.len() == 2 => {
                let (v, at) = args.positional[1];
                match self.iteration(v, at) {
                    Iteration::Exact(items) => {
                        let mapped: Vec<Value> = items
                            .into_iter()
                            .map(|item| {
                                let args = Args { positional: vec![(item, at)], ..Args::default() };
                                self.call_value(f, &args, e)
                            })
                            .collect();
                        self.seq(&mapped)
                    }
                    Iteration::Any(item) => {
                        let args = Args { positional: vec![(item, at)], ..Args::default() };
                        let v = self.call_value(f, &args, e);
                        self.many(v)
                    }
                }
            }
            ("filter", Some((f, _))) if args.positional.len() == 2 => {
                let (v, at) = args.positional[1];
                self.filtered(f, v, at, e)
            }
            ("range", Some((Value::Int(_), _))) => match short_range(args) {
                Some(items) => self.seq(&items),
                None => self.many(Self::NUMBER),
            },
            // Empty without a GPU.
            ("range", Some((Value::Outer(o), _)))
                if o == self.known.device_count && args.positional.len() == 1 =>
            {
                let (some, none, there) = (self.many(Self::NUMBER), self.seq(&[]), self.at_least(1));
                self.ite(there, some, none)
            }
            ("range", _) => {
                for &(v, _) in &args.positional {
                    if let Value::Outer(o) = v {
                        self.evidence.size_proofs.insert(o);
                    }
                }
                self.many(Self::NUMBER)
            }
            ("any" | "all", Some((v, at))) => match self.exact_elements(v) {
                Some(items) => {
                    let all = name.as_str() == "all";
                    let mut cond = if all { TRUE } else { FALSE };
                    for v in items {
                        let c = self.truth(v, at);
                        cond = if all { self.d.and(cond, c) } else { self.d.or(cond, c) };
                    }
                    Value::Bool(cond)
                }
                None => self.any_of_many(name, v, at, e),
            },
            ("min" | "max", Some(_)) => self.extreme(args, e),
            ("sum", Some((v, at))) => self.sum(v, at, e),
            ("abs", Some((v @ Value::Tensor(_), at))) => {
                self.call_method(v, Sym::new("abs"), &Args::default(), e, at)
            }
            ("pow" | "divmod", Some((v @ Value::Tensor(_), at))) => {
                let rest = Args { positional: args.positional[1..].to_vec(), ..Args::default() };
                self.call_method(v, Sym::new("pow"), &rest, e, at)
            }
            ("vars", Some((Value::Object(id), _))) => {
                self.fields_as_dict(id).unwrap_or_else(|| self.result_of(e))
            }
            ("callable", Some((v, _))) => self.each(v, &mut |i, v| match v {
                Value::Closure(_) | Value::Class(_) | Value::Bound(_) => Value::Bool(TRUE),
                Value::None => Value::Bool(crate::flow::domain::diagram::FALSE),
                _ => i.result_of(e),
            }),
            ("print" | "isinstance" | "type" | "issubclass" | "callable" | "vars" | "dir" | "help", _) => {
                self.result_of(e)
            }
            ("property" | "staticmethod" | "classmethod", Some((v, _))) => v,
            ("super", _) => {
                let receiver = args.positional.get(1).map_or(Value::Unknown, |&(v, _)| v);
                self.bound(receiver, None, Sym::new("super"))
            }
            ("open" | "input" | "format" | "chr" | "hex" | "bin", _) => Self::TEXT,
            _ => self.foreign_builtin(name, args, e),
        }
    }

    /// `int(1e6)`: what is left of a number that is written there.
    fn whole_part(&self, at: ExprId) -> Value {
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
        // An exception is true and not `None`: its class stands for it.
        if EXCEPTIONS.contains(&name.as_str()) {
            return Value::External(Sym::new(&format!("builtins.{name}")));
        }
        // Those and others from star imports.
        if name.as_str().ends_with("Error") || name.as_str().ends_with("Exception") {
            return self.result_of(e);
        }
        self.unknown_call(Value::Unknown, args, e)
    }

    fn make_dict(&mut self, args: &Args) -> Value {
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

    /// Alternating keys and values, from pairs with known keys.
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

    /// `zip` and `enumerate`.
    fn pairs(&mut self, columns: &[(Value, Option<ExprId>)]) -> Value {
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

    /// `max(pairs, key=…)` and `min(2, n)`: one of them.
    fn extreme(&mut self, args: &Args, e: ExprId) -> Value {
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
            // One of them, by whatever `key` says.
            Some(items) if !items.is_empty() && items.iter().all(|v| matches!(v, Value::Tensor(_))) => {
                items.into_iter().reduce(|a, b| self.blend(a, b)).unwrap_or(Value::Unknown)
            }
            _ => self.result_of(e),
        }
    }

    /// `any(…)` and `all(…)` of nobody knows how many: what one of them needs of the machine is there if it holds, and where each
    /// holds whatever it is, so does the whole. (Of none at all nothing is used either.)
    fn any_of_many(&mut self, name: Sym, v: Value, at: ExprId, e: ExprId) -> Value {
        let Value::Many(item) = v else { return self.result_of(e) };
        let item = *self.t.values.get(item);
        let one = self.truth(item, at);
        let other = self.d.not(one);
        let (possible, missing) = (self.d.machine(one), self.d.machine(other));
        let certain = self.d.not(missing);
        // What says nothing of the machine is the same on each.
        if certain == TRUE || name.as_str() == "all" && possible == TRUE && certain == FALSE {
            return self.result_of(e);
        }
        let some = self.unknown_test(e);
        let may = self.d.and(possible, some);
        Value::Bool(self.d.or(may, certain))
    }

    /// `sum(tensors)` starts from 0 and adds.
    fn sum(&mut self, v: Value, at: ExprId, e: ExprId) -> Value {
        match self.iteration(v, at) {
            Iteration::Exact(items) => {
                let mut total = Value::Int(0);
                for item in items {
                    total = self.binary(crate::ir::BinOp::Add, total, item, e, at, at);
                }
                total
            }
            Iteration::Any(item) => match *self.members(item) {
                // Of several that are each there, all are added.
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

    /// The elements of a tuple, named or not.
    fn row_elements(&self, row: Value) -> Option<Vec<Value>> {
        match row {
            Value::Object(id) if self.obj(id).kind == ObjKind::Instance => self.exact_elements(self.own(id)),
            row => self.exact_elements(row),
        }
    }

    /// What `len` gives: a number for each machine, where how many there are depends on that.
    fn count_of(&mut self, v: Value) -> Value {
        if let Value::Outer(o) = v {
            self.evidence.sized.insert(o);
        }
        let mut one = |i: &mut Self, v: Value| match i.exact_elements(v) {
            Some(items) => Value::Int(i64::try_from(items.len()).unwrap_or(i64::MAX)),
            None => {
                i.dims(v).length().map_or(Self::NUMBER, |n| Value::Int(i64::try_from(n).unwrap_or(i64::MAX)))
            }
        };
        match v {
            Value::Choice(d) if self.hangs_on_machine(d) => self.each(v, &mut one),
            _ => one(self, v),
        }
    }

    fn has_attr(&mut self, v: Value, args: &Args, e: ExprId) -> Value {
        match (v, args.positional.get(1)) {
            (Value::External(path), Some(&(Value::Str(n, _), _)))
                if path.as_str() == "torch" && n.as_str() == "cuda" =>
            {
                Value::Bool(TRUE)
            }
            // `hasattr(torch, "xpu")`: by itself it says nothing about the machine.
            (Value::External(path), Some(&(Value::Str(n, _), _))) if path.as_str() == "torch" => {
                let Some(backend) = crate::world::Backend::from_name(n.as_str()) else {
                    return Value::Bool(self.keyed_test(crate::flow::machine::compare::has_test(v, n), e));
                };
                let atom = match self.tests.plugin_atoms.get(&backend) {
                    Some(&atom) => atom,
                    None => {
                        let place = self.place(e);
                        let atom = self.atoms.add(crate::flow::domain::atom::Atom::Opaque { place });
                        self.tests.plugin_atoms.insert(backend, atom);
                        atom
                    }
                };
                // Without the attribute the back end is not there either.
                let (there, asked) = (self.available(Some(backend)), self.d.atom(atom));
                Value::Bool(self.d.or(there, asked))
            }
            // A version has it or not, wherever that is asked.
            (Value::External(_), Some(&(Value::Str(n, _), _))) => {
                Value::Bool(self.keyed_test(crate::flow::machine::compare::has_test(v, n), e))
            }
            (Value::External(_), _) => Value::Bool(self.unknown_test(e)),
            (Value::Object(id), Some(&(Value::Str(n, _), _))) => {
                if self.get_field(id, n) != Value::Absent {
                    return Value::Bool(TRUE);
                }
                // Lists and dicts do not move.
                let held = match self.obj(id).kind {
                    ObjKind::List { module } | ObjKind::Dict { module } => !module,
                    _ => false,
                };
                if held && self.obj(id).class.is_none() && matches!(n.as_str(), "to" | "cuda" | "cpu") {
                    return Value::Bool(crate::flow::domain::diagram::FALSE);
                }
                Value::Bool(self.unknown_test(e))
            }
            (Value::Outer(_), Some(&(Value::Str(n, _), _))) => {
                Value::Bool(self.keyed_test(crate::flow::machine::compare::has_test(v, n), e))
            }
            _ => Value::Bool(self.unknown_test(e)),
        }
    }

    /// Is it a name under which a layer of PyTorch's has nothing, and nobody has given it something: `getattr(layer, "weights", None)`?
    fn is_unset_on_layer(&self, v: Value, name: Sym) -> bool {
        let Value::Object(id) = v else { return false };
        let ObjKind::ForeignModule(Some(op)) = self.obj(id).kind else { return false };
        let own = ["weight", "bias", "in_proj", "running", "num_", "training", "device", "module"];
        op.name.as_str().starts_with("torch.nn.")
            && self.get_field(id, name) == Value::Absent
            && !op.constructor.iter().any(|p| p.name == name)
            && !own.iter().any(|prefix| name.as_str().starts_with(prefix))
            && !name.as_str().starts_with('_')
    }

    /// Has the value the method for certain, as all tensors have?
    fn is_method_of_tensors(&self, v: Value, name: Sym) -> bool {
        matches!(v, Value::Tensor(t) if self.get_tensor(t).certain) && crate::torch::method(name).is_some()
    }

    fn get_attr(&mut self, v: Value, args: &Args, e: ExprId) -> Value {
        match args.positional.get(1) {
            Some(&(Value::Str(n, _), _)) => {
                let found = self.attr(v, n, e);
                match args.positional.get(2) {
                    Some(&(Value::None, _)) if self.is_unset_on_layer(v, n) => Value::None,
                    // `getattr(x, "to", None)` of a tensor
                    Some(_) if self.is_method_of_tensors(v, n) => found,
                    Some(&(default, _)) => {
                        let c = match v {
                            Value::External(_) => {
                                let has = self.has_attr(v, args, e);
                                self.as_cond(has, e)
                            }
                            _ => self.unknown_test(e),
                        };
                        self.ite(c, found, default)
                    }
                    None => found,
                }
            }
            // `getattr(torch.optim.lr_scheduler, config.name)`: whichever it is.
            _ if v == Value::External(Sym::new("torch.optim.lr_scheduler")) => {
                Value::External(Sym::new("torch.optim.lr_scheduler.LRScheduler"))
            }
            _ => self.result_of(e),
        }
    }
}
