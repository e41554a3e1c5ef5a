//! Batches of data loaders: the items of a data set, and how the loader collates them.
//!
//! `DataLoader` stacks tensors on their device, and makes tensors from numbers and arrays on the default device
//! (torch/utils/data/_utils/collate.py). Unknown data comes from files, so it is on the CPU, unless the source of the
//! data set mentions devices.

use crate::flow::domain::diagram::FALSE;
use crate::flow::domain::diagram::TRUE;
use crate::flow::domain::dims::Dims;
use crate::flow::domain::value::{Device, NO_ORIGIN, ObjId, Reason, Role, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::flow::models::libraries::collation::is_default_collate;
use crate::ir::{ArgKind, Expr, ExprId};
use crate::sym::Sym;

/// How deep to look into containers in items.
pub(crate) const MAX_NESTING: u32 = 4;

/// How a loader makes a batch from the items of a data set.
#[derive(Clone, Copy)]
pub(crate) struct Collation {
    /// The call that makes the loader.
    pub(crate) at: ExprId,
    /// Whether it stacks the items, so that a batch has one more dimension.
    pub(crate) stacked: bool,
    /// Whether unknown parts of an item come from files, so that they are on the CPU.
    pub(crate) from_files: bool,
}

impl Interp<'_> {
    /// A call in `torch.utils.data`: a data set that is made from tensors or other data sets, or a loader.
    pub(crate) fn data_utility(&mut self, text: &str, args: &Args, e: ExprId) -> Option<Value> {
        let (_, name) = text.rsplit_once('.')?;
        Some(match name {
            "DataLoader" => self.make_loader(args, e),
            "TensorDataset" => {
                let items: Vec<Value> = args.positional.iter().map(|&(v, _)| self.row_of(v)).collect();
                let item = if args.open { Value::Unknown } else { self.seq(&items) };
                Value::Object(self.object(ObjKind::Items, None, item))
            }
            "random_split" => {
                if let Some(op) = crate::torch::function(Sym::new(text)) {
                    self.check_cpu_only(op, "`random_split`", e, None, args);
                }
                if !args.open && args.get(2, "generator").is_none() {
                    self.draws_by_default(e, "random_split");
                }
                let part = args.get(0, "dataset").map_or(Value::Unknown, |(v, _)| v);
                let n = args.get(1, "lengths").and_then(|(v, _)| self.exact_elements(v)).map(|v| v.len());
                match n {
                    Some(n) => self.seq(&vec![part; n]),
                    None => self.many(part),
                }
            }
            "Subset" => args.get(0, "dataset").map_or(Value::Unknown, |(v, _)| v),
            "ConcatDataset" => match args.get(0, "datasets").and_then(|(v, at)| self.item_of_any(v, at)) {
                Some(item) => Value::Object(self.object(ObjKind::Items, None, item)),
                None => self.result_of(e),
            },
            _ => return None,
        })
    }

    /// An item of one of several data sets.
    fn item_of_any(&mut self, parts: Value, at: ExprId) -> Option<Value> {
        let parts = match self.exact_elements(parts) {
            Some(parts) => parts,
            None => vec![self.some_element(parts, at)],
        };
        let mut item = Value::Absent;
        for part in parts {
            let more = self.item_of(part, at)?;
            item = self.blend(item, more);
        }
        (item != Value::Absent).then_some(item)
    }

    /// `DataLoader(…)`
    fn make_loader(&mut self, args: &Args, e: ExprId) -> Value {
        let data = args.get(0, "dataset");
        let before = self.objects.len();
        self.check_workers(data.map(|(v, _)| v), args, e);
        self.check_shuffling(args, e);
        let collate = args.get(6, "collate_fn").filter(|&(f, _)| f != Value::None && !is_default_collate(f));
        let pins = args.get(7, "pin_memory").map(|(v, _)| v);
        let item = match (data, collate) {
            (Some((data, _)), Some((f @ (Value::Closure(_) | Value::Bound(_)), at))) => {
                self.collated_by(data, f, at, e)
            }
            // With any `collate_fn`: PyTorch cannot pin a tensor on a device (aten/src/ATen/native/Memory.cpp, `pin_memory`).
            (_, Some(_)) if pins == Some(Value::Bool(TRUE)) && !args.open => {
                let batch = self.unseen_batch(e);
                match batch {
                    Value::Tensor(t) => {
                        let t = self.get_tensor(t);
                        self.tensor(Tensor { dims: Dims::ANY, ..t })
                    }
                    v => v,
                }
            }
            (_, Some(_)) => Value::Unknown,
            (Some((data, _)), None) => self.each(data, &mut |i, data| i.batch_of(data, args, e)),
            (None, None) => self.unseen_batch(e),
        };
        if let (Some(Value::Bool(pins)), Some((_, at))) = (pins, data) {
            self.check_pinning(item, pins, at, e);
        }
        let pinned = pins.is_some_and(|v| v != Value::Bool(FALSE)) || args.open;
        let item = if pinned { self.pinned(item, e) } else { item };
        self.made_anew(item, before);
        Value::Object(self.object(ObjKind::Loader, None, item))
    }

    /// A batch of a data set, with the default collation.
    fn batch_of(&mut self, data: Value, args: &Args, e: ExprId) -> Value {
        // The rows of a tensor are on its device.
        if let Value::Tensor(t) = data {
            let device = self.get_tensor(t).device;
            return self.possible_tensor(device);
        }
        let Some(item) = self.item_of(data, e) else {
            let placed = matches!(data, Value::Outer(o) if self.libraries.given_places.contains(&o));
            return if placed { Value::Unknown } else { self.unseen_batch(e) };
        };
        let stacked = args.get(1, "batch_size").is_none_or(|(v, _)| v != Value::None) && !args.open;
        let known = match data {
            // The program put the elements into the list, and may have moved them before.
            Value::Object(id) => {
                matches!(self.obj(id).kind, ObjKind::Items | ObjKind::List { .. })
                    || self.obj(id).class.is_some_and(|class| self.speaks_of_devices(class))
            }
            _ => false,
        };
        let plain = matches!(self.store.get(self.tensors.default_device), Value::Absent | Value::None);
        let from_files = !known && plain;
        self.collated(item, Collation { at: e, stacked, from_files }, 0)
    }

    /// The result of indexing a known data set with a number, or an element of a known iterable data set.
    pub(crate) fn item_of(&mut self, data: Value, e: ExprId) -> Option<Value> {
        let Value::Object(id) = data else { return None };
        match self.obj(id).kind {
            ObjKind::Items => return Some(self.own(id)),
            ObjKind::Instance => {}
            ObjKind::List { module: false } => return Some(self.some_element(data, e)),
            _ => return None,
        }
        let own = |i: &Self, name| i.own_method(id, name).is_some();
        let (numbered, gone_over) = (own(self, "__getitem__"), own(self, "__iter__"));
        if !numbered && !gone_over {
            return None;
        }
        Some(self.aside(&mut |i| {
            if numbered { i.index(data, Self::NUMBER, e, e, e) } else { i.some_element(data, e) }
        }))
    }

    /// Calls a function that a loader will call, without reports. The engine also interprets that function on its own.
    pub(crate) fn aside(&mut self, called: &mut dyn FnMut(&mut Self) -> Value) -> Value {
        let before = self.path;
        self.run.muted += 1;
        let v = called(self);
        self.run.muted -= 1;
        self.path = before;
        v
    }

    /// Does the source of the class or of its bases mention devices?
    fn speaks_of_devices(&self, class: crate::link::ClassKey) -> bool {
        self.program.class(class).mro.iter().any(|k| {
            let ir = &self.program.get(k.module).ir;
            let span = ir.class(k.class).span;
            ir.exprs.iter().zip(&ir.expr_spans).any(|(e, &at)| {
                span.contains(at) && match *e {
                    Expr::Attr { name, .. } => matches!(name.as_str(), "to" | "cuda" | "device"),
                    Expr::Str(s) => crate::flow::models::devices::from_values::parse_device(s.as_str()).is_some(),
                    Expr::Call(c) => ir.call(c).args.iter().any(
                        |a| matches!(a.kind, ArgKind::Keyword(k) if crate::flow::machine::arguments::args::names_device(k.as_str())),
                    ),
                    _ => false,
                }
            })
        })
    }

    /// A row of one of a `TensorDataset`'s tensors.
    pub(crate) fn row_of(&mut self, whole: Value) -> Value {
        let Value::Tensor(t) = whole else { return whole };
        let t = self.get_tensor(t);
        let dims = t.dims.minus(1);
        self.tensor(Tensor { dims, certain: true, role: Role::Plain, bytes: None, ..t })
    }

    /// `dataset[0]`: unknown parts of an item come from files, as in batches.
    pub(crate) fn item_from_files(&mut self, id: ObjId, i: Value, item: Value, e: ExprId) -> Value {
        let single = matches!(i, Value::Int(_));
        let Some(class) =
            self.obj(id).class.filter(|_| single && matches!(item, Value::Unknown | Value::Outer(_)))
        else {
            return item;
        };
        let data = self
            .program
            .class(class)
            .externals
            .iter()
            .any(|&p| crate::torch::base_class(p).is_some_and(|b| b.kind == crate::torch::Base::Dataset));
        if data { self.data_from_files(e) } else { item }
    }

    /// A value that is read from files, unless a transform moves it.
    fn data_from_files(&mut self, e: ExprId) -> Value {
        let sent = self.linked().ir.exprs.iter().any(|e| matches!(*e, Expr::Attr { name, .. } | Expr::Var(crate::ir::Var::Unbound(name)) if name.as_str() == "ToDevice"));
        let plain = matches!(self.store.get(self.tensors.default_device), Value::Absent | Value::None);
        if sent || !plain {
            return self.result_of(e);
        }
        self.unseen_batch(e)
    }

    /// `torch_geometric.datasets.Planetoid(…)`: a data set of graphs.
    pub(crate) fn data_set_of_files(&mut self, args: &Args, e: ExprId) -> Value {
        let changed = args.open
            || args
                .values()
                .any(|(v, _)| matches!(v, Value::Closure(_) | Value::Bound(_) | Value::Object(_)));
        let item = if changed { self.result_of(e) } else { self.data_from_files(e) };
        Value::Object(self.object(ObjKind::Items, None, item))
    }

    /// `data.to(device)` as a statement, where `data` may be a graph object: it moves in place, with everything in it.
    pub(crate) fn graph_moves(&mut self, e: ExprId, moved: Value) {
        let ir = &self.linked().ir;
        let Expr::Call(call) = ir.expr(e) else { return };
        let Expr::Attr { base, name } = ir.expr(ir.call(call).func) else { return };
        if !matches!(name.as_str(), "to" | "cuda" | "cpu")
            || !matches!(ir.expr(base), Expr::Var(_) | Expr::Attr { .. })
            || !self.batches_may_move()
        {
            return;
        }
        self.run.muted += 1;
        let v = self.eval(base);
        self.run.muted -= 1;
        let may_be = |v: &Value| match *v {
            Value::Tensor(t) => !self.get_tensor(t).certain && self.is_of_batch(self.get_tensor(t)),
            _ => false,
        };
        if self.values_of(v).iter().any(may_be) {
            self.assign(base, moved);
        }
    }

    /// A batch of an unknown data set.
    pub(crate) fn unseen_batch(&mut self, e: ExprId) -> Value {
        let place = self.place(e);
        let origin = self.origin(place, Reason::Batch, NO_ORIGIN);
        let device = self.at(Device::Cpu, origin);
        let v = self.possible_tensor(device);
        let Value::Tensor(t) = v else { return v };
        let t = self.get_tensor(t);
        self.tensor(Tensor { dims: Dims::SOME, ..t })
    }
}
