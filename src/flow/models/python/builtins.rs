//! Python's builtins.

use crate::flow::domain::diagram::{FALSE, TRUE};
use crate::flow::domain::value::{Host, NO_ORIGIN, Role, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::classes::iterators::short_range;
use crate::flow::machine::frame::ObjKind;
use crate::flow::machine::statements::loops::Iteration;
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
}
