//! What is loaded: checkpoints, and batches of data sets.

use super::super::dims::Dims;
use super::super::event::{Kind, Meeting};
use super::super::value::{Device, NO_ORIGIN, OuterKey, Reason, Role, Tensor, Value};
use super::args::Args;
use super::meet::{Party, Rule};
use super::{Interp, ObjKind};
use crate::ir::{ArgKind, Expr, ExprId, Stmt, Var};
use crate::span::Span;
use crate::sym::Sym;

/// What files with weights, the variables that hold them and the functions that read them are called.
const WEIGHTS: &[&str] = &[
    "checkpoint",
    "ckpt",
    "weight",
    "state_dict",
    "statedict",
    "pretrained",
    "snapshot",
    "pytorch_model",
    "optim",
];
/// Parts of a training state that hold no tensors, or tensors of the CPU.
const NO_WEIGHTS: &[&str] =
    &["rng", "random", "sched", "scaler", "meta", "sampler", "dataset", "tokenizer", "vocab", "stats"];

impl Interp<'_> {
    /// `position` is that of `map_location`.
    pub(super) fn torch_load(&mut self, position: usize, args: &Args, e: ExprId) -> Value {
        let location = args.get(position, "map_location");
        // A wrapper that hands on what it was not given is not to blame.
        let written = |at: ExprId| self.linked().ir.expr(at) == Expr::None;
        let explicit_none = matches!(location, Some((Value::None, at)) if written(at));
        if ((location.is_none() && !args.open) || explicit_none)
            && !self.located_elsewhere(e)
            && !is_published(args)
        {
            // What this very run has written comes back to where it was.
            let own = self.saved_before(args);
            let foreign = self.d.not(own);
            let available = self.available(None);
            let absent = self.d.not(available);
            let bad = self.d.and(foreign, absent);
            let bite = self.bite(bad, true).or_else(|| {
                // Something before it needs CUDA and has not asked: there it goes back to the GPU it came from.
                self.shadow(bad, true)?;
                let there = self.d.and(foreign, available);
                self.bite(there, false)
            });
            if let Some(bite) = bite {
                let place = self.place(e);
                self.emit(Kind::Load { explicit_none }, place, bite, Vec::new());
                let result = self.result_of(e);
                // Data sets are saved with `torch.save` too: wait until the result is used as weights.
                if !self.named_as_weights(e)
                    && let (Value::Outer(o), Some(event)) = (result, self.events.pop())
                {
                    self.loads.insert(o, event);
                }
                return result;
            }
        }
        match location {
            Some((v, at)) if v != Value::None => {
                let Some(d) = self.as_device(v, at).filter(|_| !matches!(v, Value::Closure(_))) else {
                    return self.result_of(e);
                };
                let device = self.because(d, e, Reason::Loaded);
                self.possible_tensor(device)
            }
            _ => self.result_of(e),
        }
    }

    /// The value is used as weights: if `torch.load` gave it, that matters.
    pub(super) fn used_as_weights(&mut self, v: Value) {
        if let Value::Choice(d) = v {
            let mut leaves = Vec::new();
            self.d.leaves(d, &mut leaves);
            for leaf in leaves {
                let v = *self.t.values.get(leaf);
                if !matches!(v, Value::Choice(_)) {
                    self.used_as_weights(v);
                }
            }
        }
        let Value::Outer(mut o) = v else { return };
        loop {
            if let Some(event) = self.loads.remove(&o) {
                self.events.push(event);
                return;
            }
            match self.t.get_outer(o).key {
                OuterKey::Attr { base, .. } | OuterKey::Item { base, .. } => o = base,
                _ => return,
            }
        }
    }

    /// Does the function read the same file elsewhere, and say where to? Then it has thought of both.
    fn located_elsewhere(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        let Expr::Call(call) = ir.expr(e) else { return false };
        let Some(file) = ir.call(call).args.first().map(|a| a.value) else { return false };
        let within = ir.function(self.here().func).span;
        let whole = self.here().func.0 == 0;
        ir.exprs.iter().zip(&ir.expr_spans).any(|(&other, &at)| {
            let Expr::Call(other) = other else { return false };
            let other = ir.call(other);
            let says = |k: ArgKind| matches!(k, ArgKind::Keyword(k) if k.as_str() == "map_location");
            (whole || within.contains(at))
                && other.args.iter().any(|a| says(a.kind) && ir.expr(a.value) != Expr::None)
                && other.args.first().is_some_and(|a| super::stmt::same(ir, a.value, file))
        })
    }

    /// Do the names around a `torch.load` say that it reads weights: its file's, its result's, or its function's if
    /// that returns it?
    fn named_as_weights(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        let Expr::Call(call) = ir.expr(e) else { return false };
        let (at, function) = (ir.span(e), ir.function(self.here().func));
        let mut names = Vec::new();
        if let Some(file) = ir.call(call).args.first() {
            self.words_of(ir.span(file.value), &mut names);
        }
        for (stmt, &span) in ir.stmts.iter().zip(&ir.stmt_spans) {
            if !span.contains(at) {
                continue;
            }
            match *stmt {
                Stmt::Assign { targets, value } if ir.span(value) == at => {
                    for &target in ir.list(targets) {
                        self.words_of(ir.span(target), &mut names);
                    }
                }
                Stmt::Return(Some(value)) if ir.span(value) == at => names.push(function.name),
                _ => {}
            }
        }
        let is = |words: &[&str], name: &Sym| {
            let name = name.as_str().to_ascii_lowercase();
            words.iter().any(|w| name.contains(w))
        };
        names.iter().any(|n| is(WEIGHTS, n)) && !names.iter().any(|n| is(NO_WEIGHTS, n))
    }

    /// The names and texts in a piece of the source.
    fn words_of(&self, span: Span, names: &mut Vec<Sym>) {
        let ir = &self.linked().ir;
        let slots = &ir.function(self.here().func).slots;
        let globals = ir.functions.first().map(|f| &f.slots);
        for (e, &at) in ir.exprs.iter().zip(&ir.expr_spans) {
            if !span.contains(at) {
                continue;
            }
            names.extend(match *e {
                Expr::Attr { name, .. } | Expr::Str(name) | Expr::Var(Var::Unbound(name)) => Some(name),
                Expr::Var(Var::Local(slot)) => slots.get(usize::from(slot)).copied(),
                Expr::Var(Var::Global(slot)) => globals.and_then(|g| g.get(usize::from(slot))).copied(),
                _ => None,
            });
        }
    }

    /// Batches are collated on the CPU, whatever unknown code the data set has.
    pub(super) fn make_loader(&mut self, args: &Args, e: ExprId) -> Value {
        let data = args.get(0, "dataset").map(|(v, _)| v);
        self.check_workers(data, args, e);
        self.check_shuffling(args, e);
        let collate = args.get(6, "collate_fn").filter(|(v, _)| *v != Value::None);
        let item = match (data, collate) {
            (Some(data), Some((f @ (Value::Closure(_) | Value::Bound(_)), at))) => {
                self.collated_by(data, f, at, e)
            }
            (Some(Value::Object(id)), None) if self.obj(id).kind == ObjKind::Items => {
                let item = self.own(id);
                self.collated(item, e)
            }
            (_, None) => {
                let place = self.place(e);
                let origin = self.origin(place, Reason::Batch, NO_ORIGIN);
                let device = self.at(Device::Cpu, origin);
                self.tensor(Tensor {
                    device,
                    dims: Dims::SOME,
                    role: Role::Plain,
                    certain: false,
                    bytes: None,
                    double: super::FALSE,
                })
            }
            _ => Value::Unknown,
        };
        let pins =
            args.get(7, "pin_memory").is_some_and(|(v, _)| v != Value::Bool(super::FALSE)) || args.open;
        let item = if pins { self.pinned(item, e) } else { item };
        Value::Object(self.object(ObjKind::Loader, None, item))
    }

    /// The sampler of a loader that shuffles makes a CPU generator of its own, and draws on the default device.
    fn check_shuffling(&mut self, args: &Args, e: ExprId) {
        let shuffles = args.get(2, "shuffle").is_some_and(|(v, _)| v == Value::Bool(super::TRUE));
        let given = |position, name| args.get(position, name).is_some_and(|(v, _)| v != Value::None);
        if shuffles
            && !args.open
            && !given(3, "sampler")
            && !given(4, "batch_sampler")
            && args.keyword("generator").is_none()
        {
            self.draws_by_default(e, "DataLoader(shuffle=True)");
        }
    }

    /// A CPU generator that nobody chose is used for numbers on the default device.
    pub(super) fn draws_by_default(&mut self, e: ExprId, what: &str) {
        let place = self.place(e);
        let origin = self.origin(place, Reason::Default, NO_ORIGIN);
        let generator = self.at(Device::Cpu, origin);
        let device = self.default_device_or(generator);
        let party = |device| Party { expr: e, device, dims: Dims::SOME, rule: Rule::STRICT };
        let parties = [party(generator), party(device)];
        self.meet(Meeting::Generator, &format!("`{what}`"), e, &parties);
    }

    /// What the project's own `collate_fn` makes of the data set's items. It is interpreted for itself too.
    pub(super) fn collated_by(&mut self, data: Value, f: Value, at: ExprId, e: ExprId) -> Value {
        let before = self.path;
        self.muted += 1;
        let item = match data {
            Value::Object(id) if matches!(self.obj(id).kind, ObjKind::Instance | ObjKind::Items) => {
                self.index(data, Self::NUMBER, e, e, e)
            }
            _ => self.result_of(e),
        };
        let items = self.many(item);
        let args = Args { positional: vec![(items, at)], ..Args::default() };
        let batch = self.call_value(f, &args, e);
        self.muted -= 1;
        self.path = before;
        if batch == Value::None { Value::Unknown } else { batch }
    }

    /// What a loader pins, or may pin.
    pub(super) fn pinned(&mut self, item: Value, e: ExprId) -> Value {
        match item {
            Value::Tensor(t) => {
                let t = self.get_tensor(t);
                let device = self.because(t.device, e, Reason::Pinned);
                self.tensor(Tensor { device, ..t })
            }
            Value::Seq(s) => {
                let items: Vec<Value> = self.seq_items(s).iter().map(|&v| self.pinned(v, e)).collect();
                self.seq(&items)
            }
            Value::Object(id) if matches!(self.obj(id).kind, ObjKind::Dict { module: false }) => {
                let content = self.own(id);
                let content = self.pinned(content, e);
                self.set_own(id, content);
                item
            }
            v => v,
        }
    }

    pub(super) fn collated(&mut self, item: Value, e: ExprId) -> Value {
        match item {
            Value::Tensor(t) => {
                let t = self.get_tensor(t);
                let device = self.because(t.device, e, Reason::Batch);
                self.tensor(Tensor {
                    device,
                    dims: Dims::SOME,
                    role: Role::Plain,
                    certain: true,
                    bytes: None,
                    double: super::FALSE,
                })
            }
            Value::Seq(s) => {
                let items: Vec<Value> = self.seq_items(s).iter().map(|&v| self.collated(v, e)).collect();
                // `for x, in loader` and `for x in loader` both come as a list of tensors.
                self.seq(&items)
            }
            v => v,
        }
    }
}

/// A file at an address that is written down: published weights are the same for everyone, and those that were saved on
/// a GPU would have failed for its first user without one.
fn is_published(args: &Args) -> bool {
    let address = args.get(0, "url").or_else(|| args.get(0, "f"));
    matches!(address, Some((Value::Str(s, _), _)) if s.as_str().starts_with("http"))
}
