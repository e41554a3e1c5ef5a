//! Uses of accelerators, and what guards them: checks and contexts.

use crate::flow::domain::atom::{backend, gpus_at_least};
use crate::flow::domain::diagram::{Cond, Dd, FALSE, TRUE};
use crate::flow::domain::event::{Bite, Kind, UseKind};
use crate::flow::domain::value::{Device, NO_ORIGIN, OriginId, Reason, Role, Value};
use crate::flow::machine::Interp;
use crate::flow::query::path_conditions::conditions;
use crate::flow::summary::loop_rounds::goes_round;
use crate::ir::{Expr, ExprId, Stmt};
use crate::link::Resolved;
use crate::span::Place;
use crate::sym::Sym;
use crate::torch::{self, Accelerator, Without};
use crate::world::Backend;

impl Interp<'_> {
    /// A tensor or module really goes to this device (or a query really asks it).
    pub(crate) fn check_use(&mut self, device: Dd, e: ExprId, how: UseKind, what: &str) {
        if matches!(how, UseKind::Transfer | UseKind::Move | UseKind::Factory) {
            self.device_work(device);
            self.autocast_meets(device, e);
            self.counts_for_group(device, e);
        }
        self.worker_uses(device, how, e);
        if self.check_visible(device, e) {
            return;
        }
        let mut leaves = Vec::new();
        self.d.leaves(device, &mut leaves);
        for leaf in leaves {
            let (d, origin) = *self.t.places.get(leaf);
            let (backend, index) = match d {
                Device::Cuda(i) => (None, i),
                Device::CudaSome => (None, None),
                Device::Other(b) => (Some(b), None),
                _ => continue,
            };
            let here = if self.d.as_leaf(device).is_some() {
                TRUE
            } else {
                self.d.where_leaf(device, &mut |p| p == leaf)
            };
            let how = match (d, how) {
                (Device::CudaSome, UseKind::Transfer | UseKind::Move) => UseKind::Indexed,
                _ => how,
            };
            self.d.support(here, &mut self.tests.deciders);
            self.check_leaf_use(here, origin, backend, index, e, how, what);
            self.tests.deciders.clear();
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one use with all its parts")]
    pub(crate) fn check_leaf_use(
        &mut self,
        here: Cond,
        origin: OriginId,
        backend: Option<Backend>,
        index: Option<u32>,
        e: ExprId,
        how: UseKind,
        what: &str,
    ) {
        // What failed here does not go on: after it, the accelerator was there.
        let needed = match (backend, index) {
            (None, Some(i)) if i > 0 => self.d.atom(gpus_at_least(i + 1)),
            (b, _) => self.available(b),
        };
        if backend.is_none() && how != UseKind::DeviceList {
            let place = self.place(e);
            self.initialises(here, place);
        }
        if self.caught_around() {
            self.survive(here, needed);
            return;
        }
        let there = self.available(backend);
        let absent = self.d.not(there);
        let bad = self.d.and(here, absent);
        let bite = self.bite(bad, true).or_else(|| {
            let i = index.filter(|&i| i > 0 && backend.is_none())?;
            let enough = self.d.atom(gpus_at_least(i + 1));
            let missing = self.d.not(enough);
            let bad = self.d.and(here, missing);
            self.bite(bad, false)
        });
        let fewer = index.filter(|&i| i > 0 && backend.is_none());
        let bite = match (bite, fewer) {
            // `cuda:1` bites with one GPU as with none.
            (Some(b), Some(i)) => Some(Bite { world: crate::world::World::FewerGpus(i + 1), ..b }),
            (b, _) => b,
        };
        let Some(bite) = bite else {
            if let Some(first) = self.shadow(bad, true) {
                let place = self.place(e);
                let origin = self.literal_of(origin).filter(|&p| p != place);
                let bite = Bite::in_world(crate::world::World::NoCuda);
                self.emit(Kind::Shadowed { first, origin }, place, bite, Vec::new());
                return;
            }
            // What a use before it explains, on whichever way, is not told again for machines that have CUDA.
            if !self.only_in_shadows(bad) {
                self.check_pinned(here, origin, backend, index, e, how, what);
            }
            return;
        };
        let place = self.place(e);
        let reached = self.d.and(self.path, here);
        let inverted = backend.is_none()
            && how != UseKind::Query
            && self.is_decided_here(origin)
            && (self.d.implies(reached, absent) || self.only_another(reached, absent))
            && self.is_asked_around(origin, e, absent)
            && !self.asks_where_it_is(e);
        let origin = self.literal_of(origin).filter(|&p| p != place);
        self.emit(
            Kind::Use { what: what.to_owned(), origin, index, backend, how, inverted },
            place,
            bite,
            Vec::new(),
        );
        let rules = self.rules_of_use(backend, index, how, inverted);
        if how != UseKind::DeviceList && !self.is_silenced(rules, place, origin) {
            self.cast_shadow(place, here, there);
        }
    }

    /// `if not x.is_cuda: x = x.cuda()` brings there what is elsewhere, and asks nothing of the machine.
    fn asks_where_it_is(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        let at = ir.span(e);
        let place = |n: usize| matches!(ir.exprs[n], Expr::Attr { name, .. } if matches!(name.as_str(), "is_cuda" | "is_cpu" | "device"));
        ir.stmts.iter().zip(&ir.stmt_spans).any(|(stmt, span)| {
            matches!(*stmt, Stmt::If { test, .. } if span.contains(at) && ir.exprs_in(test).any(place))
        })
    }

    /// What follows a use that raises is not reached, but in the shadow of that use. (Each index that is written down
    /// is a cause of its own.)
    pub(crate) fn cast_shadow(&mut self, place: Place, here: Cond, needed: Cond) {
        let reported = self.events.last().is_some_and(|p| !p.event.is_guess());
        if !reported {
            return;
        }
        let atom = self.atoms.add(crate::flow::domain::atom::Atom::Shadow { place });
        self.d.keep_longest(atom);
        let (shadow, elsewhere) = (self.d.atom(atom), self.d.not(here));
        let fine = self.d.or(elsewhere, needed);
        let fine = self.d.or(fine, shadow);
        self.path = self.d.and(self.path, fine);
    }

    /// Was the device written down in the function that is interpreted? What another one has decided stands in no branch here.
    fn is_decided_here(&self, origin: OriginId) -> bool {
        let ir = &self.linked().ir;
        let whole = self.here().func.0 == 0;
        let function = ir.function(self.here().func).span;
        self.literal_of(origin).is_none_or(|p| p.file == ir.file && (whole || function.contains(p.span)))
    }

    /// Do the branches around ask about the machine, here or where this was called? What a helper has asked before it returned says
    /// what it has made, and nothing of what is done with that.
    fn is_asked_around(&mut self, origin: OriginId, e: ExprId, absent: Cond) -> bool {
        let outermost = self.frames.iter().rev().find(|f| f.site.is_none()).map(|f| f.entry);
        if self.here().func.0 == 0 || outermost.is_some_and(|entry| self.d.implies(entry, absent)) {
            return true;
        }
        let at = self.literal_of(origin).map_or(self.place(e).span, |p| p.span);
        let before = self.path;
        self.run.muted += 1;
        let tests = conditions(&self.linked().ir, at);
        let asked = tests.into_iter().any(|(test, _)| {
            let cond = self.test(test);
            let mut atoms = Vec::new();
            self.d.support(cond, &mut atoms);
            atoms.iter().any(|a| a.is_hardware())
        });
        self.run.muted -= 1;
        self.path = before;
        asked || self.is_called_in_branch()
    }

    /// Is a function on the way here called in a branch?
    fn is_called_in_branch(&self) -> bool {
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            if let (Some(site), Some(caller)) = (frame.site, frame.caller) {
                let caller = &self.frames[caller.0 as usize];
                if caller.func.0 == 0
                    || !conditions(&self.program.get(caller.module).ir, site.span).is_empty()
                {
                    return true;
                }
            }
            at = frame.caller;
        }
        false
    }

    /// Is it certain, where CUDA is absent, that another back end is there? Then that was what was asked for.
    pub(crate) fn only_another(&mut self, reached: Cond, absent: Cond) -> bool {
        let without = self.d.and(reached, absent);
        without != FALSE
            && [Backend::Mps, Backend::Xpu, Backend::Npu, Backend::Hpu].into_iter().any(|b| {
                let there = self.d.atom(backend(b));
                self.d.implies(without, there)
            })
    }

    /// `if torch.cuda.is_available(): x = x.cuda()` in a method of a module: on a machine with two GPUs the module may be
    /// on the other one. In a constructor the whole module is still to be moved.
    #[expect(clippy::too_many_arguments, reason = "one use with all its parts")]
    pub(crate) fn check_pinned(
        &mut self,
        here: Cond,
        origin: OriginId,
        backend: Option<Backend>,
        index: Option<u32>,
        e: ExprId,
        how: UseKind,
        what: &str,
    ) {
        if backend.is_some()
            || here != TRUE
            || !matches!(how, UseKind::Transfer | UseKind::Factory)
            || !self.in_module()
            || self.constructing()
            // A script has put the module somewhere: what does not fit there is a mismatch.
            || !self.run.symbolic
            // What else the method puts there has shown before whether the module is somewhere else.
            || self.is_module_on(Device::Cuda(index))
        {
            return;
        }
        let place = self.place(e);
        let function = self.program.get(self.here().module).ir.function(self.here().func).span;
        let written_here =
            self.literal_of(origin).is_some_and(|p| p.file == place.file && function.contains(p.span));
        if !written_here {
            return;
        }
        let two = self.at_least(2);
        if let Some(bite) = self.bite(two, true) {
            let bite = Bite { world: crate::world::World::Cuda, ..bite };
            let origin = self.literal_of(origin).filter(|&p| p != place);
            let kind = Kind::Use {
                what: what.to_owned(),
                origin,
                index,
                backend,
                how: UseKind::Pinned,
                inverted: false,
            };
            self.emit(kind, place, bite, Vec::new());
        }
    }

    /// Where the device was written down.
    pub(crate) fn literal_of(&self, origin: OriginId) -> Option<Place> {
        let mut at = origin;
        let mut found = None;
        while at != NO_ORIGIN {
            let o = self.t.origins.get(at.0);
            if o.reason == Reason::Literal {
                found = Some(o.place);
            }
            at = o.from;
        }
        found
    }

    /// `if torch.cuda.is_available:`. Gives what was meant, so that what it was to guard is not reported besides.
    pub(crate) fn check_uncalled(&mut self, e: ExprId, v: Value) -> Option<Cond> {
        let Value::External(path) = v else { return None };
        let fact = torch::call(path).and_then(|f| f.accelerator)?;
        if fact.without != Without::Availability {
            return None;
        }
        let backend = match fact.accelerator {
            Accelerator::Cuda => None,
            Accelerator::Backend(b) => Some(b),
            Accelerator::Any => return None,
        };
        let there = self.available(backend);
        let absent = self.d.not(there);
        if let Some(bite) = self.bite(absent, false) {
            let place = self.place(e);
            self.emit(Kind::UncalledCheck { function: path.to_string() }, place, bite, Vec::new());
        }
        Some(there)
    }

    /// `x.to(device)` as a statement.
    pub(crate) fn check_discarded(&mut self, e: ExprId, v: Value) {
        if !matches!(v, Value::Tensor(_) | Value::Choice(_)) {
            return;
        }
        let ir = &self.linked().ir;
        let Expr::Call(call) = ir.expr(e) else { return };
        if ir.shown.contains(&ir.span(e)) {
            return;
        }
        let Some((base, name)) = self.method_called(ir.call(call).func) else { return };
        if !matches!(
            name.as_str(),
            "to" | "cuda" | "cpu" | "type_as" | "xpu" | "npu" | "half" | "float" | "double" | "bfloat16"
        ) {
            return;
        }
        if matches!(name.as_str(), "half" | "float" | "double" | "bfloat16") {
            return;
        }
        if name.as_str() == "to" && !self.names_target(ir.call(call)) {
            return;
        }
        // `torch.zeros(1).cuda()`, `step(x).cpu()`: nobody else has what was copied. That is a way to ask whether it works,
        // or to wait until it is done.
        if let Expr::Call(made_by) = ir.expr(base) {
            let callee = ir.call(made_by).func;
            let external =
                matches!(self.program.resolve_expr(self.here().module, callee), Some(Resolved::External(_)));
            let made = external || matches!(ir.expr(callee), Expr::Var(_));
            if made && self.attribute_asked_for(ir.call(made_by)).is_none() {
                return;
            }
        }
        let receiver = ir.span(base);
        if self.has_own_fields(base) || goes_round(ir, e, base) {
            return;
        }
        if self.comes_of_no_tensor(base) {
            return;
        }
        // Only where the receiver itself is shown to be a tensor: modules and batches do move.
        let Some(needs) = (if self.certain(v) { Some(Vec::new()) } else { self.discarded_proof(base) })
        else {
            return;
        };
        let bite = Bite::in_world(crate::world::World::Always);
        if self.run.muted > 0 || self.run.exhausted {
            return;
        }
        let place = self.place(e);
        let drawn = self.drawn_in(base);
        let parameter = self.holds_parameter(base);
        self.emit(Kind::Discarded { receiver, method: name.to_string(), parameter }, place, bite, needs);
        if let Some(event) = self.events.last_mut() {
            event.about.extend(drawn);
        }
    }

    /// Is it a module's parameter, whichever it is?
    fn holds_parameter(&mut self, base: ExprId) -> bool {
        self.run.muted += 1;
        let v = self.eval(base);
        self.run.muted -= 1;
        self.values_of(v).into_iter().all(|v| match v {
            Value::Tensor(t) => self.get_tensor(t).role == Role::Parameter,
            _ => false,
        })
    }

    /// Has it been given attributes, like a batch that is an object of its own?
    fn has_own_fields(&mut self, base: ExprId) -> bool {
        if self.modules.with_fields.is_empty() {
            return false;
        }
        self.run.muted += 1;
        let v = self.eval(base);
        self.run.muted -= 1;
        self.values_of(v).into_iter().any(|v| self.modules.with_fields.contains(&v))
    }

    /// `batch.detach()`, where `batch` has a `source`, too: it may have made that of itself, or in place.
    fn comes_of_no_tensor(&mut self, base: ExprId) -> bool {
        self.run.muted += 1;
        let v = self.eval(base);
        self.run.muted -= 1;
        self.values_of(v).into_iter().any(|v| match v {
            Value::Outer(o) => self.has_what_no_tensor_has(o),
            Value::Tensor(t) => self
                .made_by_own_method(self.get_tensor(t).device)
                .is_some_and(|o| self.has_what_no_tensor_has(o)),
            _ => false,
        })
    }

    /// What loops draw that the expression may be: a batch, which may have fields and a way of its own to move.
    fn drawn_in(&mut self, base: ExprId) -> Vec<crate::flow::domain::value::OuterId> {
        self.run.muted += 1;
        let v = self.eval(base);
        self.run.muted -= 1;
        let drawn = |v| match v {
            Value::Outer(o) if self.is_of_batch_outside(o) => Some(o),
            _ => None,
        };
        self.values_of(v).into_iter().filter_map(drawn).collect()
    }

    /// Does `.to(…)` name a device (and not only a dtype)?
    pub(crate) fn names_target(&mut self, call: crate::ir::Call<'_>) -> bool {
        self.run.muted += 1;
        let args = self.arguments(call);
        let e = call.func;
        let target = self.target_of_to(&args, e);
        self.run.muted -= 1;
        target.is_some()
    }

    /// What must turn out to be tensors for the receiver to be one, whichever it is; `None` if it may be another thing.
    fn discarded_proof(&mut self, base: ExprId) -> Option<Vec<crate::flow::domain::value::OuterId>> {
        self.run.muted += 1;
        let v = self.eval(base);
        self.run.muted -= 1;
        let mut needs = Vec::new();
        for v in self.values_but_none(v) {
            match v {
                Value::Outer(o) if self.is_asked_otherwise(o) => return None,
                Value::Outer(o) if self.is_of_batch_outside(o) && self.batches_may_move() => return None,
                Value::Outer(o) if self.is_of_batch_outside(o) => {}
                Value::Outer(o) => needs.push(o),
                v if self.certain(v) => {}
                _ => return None,
            }
        }
        Some(needs)
    }

    /// What the value may be where it has the attribute that is asked for: not `None`, whether that is written or what an outside
    /// thing is there.
    fn values_but_none(&mut self, v: Value) -> Vec<Value> {
        let Value::Choice(d) = v else { return vec![v] };
        let mut leaves = Vec::new();
        self.d.leaves(d, &mut leaves);
        let mut values = Vec::new();
        for leaf in leaves {
            let v = *self.t.values.get(leaf);
            let asked = match v {
                Value::Outer(_) => {
                    self.tests.atoms.get(&crate::flow::machine::Test::Compare(0, v, Value::None)).copied()
                }
                _ => None,
            };
            let missing = asked.is_some_and(|none| {
                let there = self.d.where_leaf(d, &mut |p| p == leaf);
                let none = self.d.atom(none);
                let other = self.d.not(none);
                let there = self.d.and(there, self.path);
                self.d.and(there, other) == crate::flow::domain::diagram::FALSE
            });
            if v != Value::None && !missing {
                values.push(v);
            }
        }
        values
    }

    /// Batches of PyTorch Geometric are objects, which `.to()` moves in place (torch_geometric/data/data.py, `apply`).
    pub(crate) fn batches_may_move(&self) -> bool {
        let of = |module: Sym| module.as_str().split('.').next() == Some("torch_geometric");
        self.linked().ir.imports.iter().any(|import| of(import.module))
    }

    /// Entering a context manager; true when it sets the default device until the block ends.
    pub(crate) fn enter(&mut self, manager: Value, e: ExprId) -> bool {
        match manager {
            Value::Device(d) => {
                let cell = self.tensors.default_device;
                let d = self.because(d, e, Reason::Made);
                self.store.set(cell, Value::Device(d));
                true
            }
            Value::Choice(_) => {
                if let Some(d) = self.as_device(manager, e) {
                    let cell = self.tensors.default_device;
                    self.store.set(cell, Value::Device(d));
                    return true;
                }
                false
            }
            _ => {
                self.enter_call(e);
                let places = matches!(manager, Value::Object(_) | Value::Outer(_) | Value::Unknown);
                if places && self.is_given_a_device(e) {
                    let (cell, unknown) = (self.tensors.default_device, self.unknown_device());
                    self.store.set(cell, Value::Device(unknown));
                    return true;
                }
                false
            }
        }
    }

    /// `with Init(device=device):` may decide where things are made in the block. PyTorch's own managers are known.
    fn is_given_a_device(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        let crate::ir::Expr::Call(id) = ir.expr(e) else { return false };
        let call = ir.call(id);
        let torch = matches!(self.program.resolve_expr(self.here().module, call.func),
            Some(Resolved::External(path)) if path.as_str().starts_with("torch."));
        !torch
            && call
                .args
                .iter()
                .any(|a| matches!(a.kind, crate::ir::ArgKind::Keyword(k) if k.as_str() == "device"))
    }

    /// `with torch.cuda.device(1):` asks for the device when it is entered.
    pub(crate) fn enter_call(&mut self, e: ExprId) {
        let linked = self.linked();
        let ir = &linked.ir;
        let Expr::Call(id) = ir.expr(e) else { return };
        let call = ir.call(id);
        let Some(Resolved::External(path)) = self.program.resolve_expr(self.here().module, call.func) else {
            return;
        };
        let Some(fact) = torch::call(path).and_then(|f| f.accelerator) else { return };
        if !fact.context || fact.without != Without::Raises || fact.accelerator != Accelerator::Cuda {
            return;
        }
        self.run.muted += 1;
        let device = call.args.first().map(|a| (self.eval(a.value), a.value));
        self.run.muted -= 1;
        if matches!(device, Some((Value::None | Value::Device(_), _))) && fact.none_is_harmless {
            if let Some((Value::Device(d), _)) = device {
                let what = format!("`with {path}`");
                self.check_use(d, e, UseKind::Query, &what);
                self.check_refused_cpu(d, e, UseKind::Query, &what);
            }
            return;
        }
        self.use_of_device(device, None, e, UseKind::Query, &format!("`with {path}`"));
    }

    /// A test by its key, as [`Interp::truth`] makes them.
    pub(crate) fn keyed_test(&mut self, test: crate::flow::machine::Test, at: ExprId) -> Cond {
        let atom = match self.tests.atoms.get(&test) {
            Some(&a) => a,
            None => {
                let place = self.place(at);
                let a = self.atoms.add(crate::flow::domain::atom::Atom::Opaque { place });
                self.note_test(test, a);
                a
            }
        };
        self.d.atom(atom)
    }
}
