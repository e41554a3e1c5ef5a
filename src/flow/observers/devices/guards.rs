//! Uses of accelerators, and their guards: checks and context managers.

use crate::flow::domain::atom::{backend, gpus_at_least};
use crate::flow::domain::diagram::{Cond, Dd, FALSE, TRUE};
use crate::flow::domain::event::{Bite, Kind, UseKind};
use crate::flow::domain::value::{Device, NO_ORIGIN, OriginId, Reason, Value};
use crate::flow::machine::Interp;
use crate::flow::query::path_conditions::conditions;
use crate::ir::{Expr, ExprId, Stmt};
use crate::link::Resolved;
use crate::span::Place;
use crate::torch::{self, Accelerator, Without};
use crate::words::Words;
use crate::world::Backend;

/// Attributes that say where a tensor is.
static PLACE: Words = Words::of("place of a tensor");

impl Interp<'_> {
    /// A tensor or module moves to this device, or a query asks it for something.
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
        // A failure here ends the path. So after this use, the accelerator was there.
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
            // `cuda:1` fails with one GPU just as with none.
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
            // Where an earlier use already raises on every path, do not report this one for machines with CUDA either.
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

    /// `if not x.is_cuda: x = x.cuda()` tests where the tensor is, and not what the machine has.
    fn asks_where_it_is(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        let at = ir.span(e);
        let place = |n: usize| matches!(ir.exprs[n], Expr::Attr { name, .. } if PLACE.has(name.as_str()));
        ir.stmts.iter().zip(&ir.stmt_spans).any(|(stmt, span)| {
            matches!(*stmt, Stmt::If { test, .. } if span.contains(at) && ir.exprs_in(test).any(place))
        })
    }

    /// Code after a use that raises is reached only under the `Shadow` atom of that use. (Each device index in the source
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

    /// Does the current function contain the literal of the device? A device from another function depends on no branch here.
    fn is_decided_here(&self, origin: OriginId) -> bool {
        let ir = &self.linked().ir;
        let whole = self.here().func.0 == 0;
        let function = ir.function(self.here().func).span;
        self.literal_of(origin).is_none_or(|p| p.file == ir.file && (whole || function.contains(p.span)))
    }

    /// Do the branches around the use, here or at its callers, test the machine? A test that a helper made before it returned
    /// explains the helper's result, and not this use of it.
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
        asked
    }

    /// Where CUDA is absent, does the path imply another back end? Then the program tested for that back end.
    pub(crate) fn only_another(&mut self, reached: Cond, absent: Cond) -> bool {
        let without = self.d.and(reached, absent);
        without != FALSE
            && [Backend::Mps, Backend::Xpu, Backend::Npu, Backend::Hpu].into_iter().any(|b| {
                let there = self.d.atom(backend(b));
                self.d.implies(without, there)
            })
    }

    /// `if torch.cuda.is_available(): x = x.cuda()` in a method of a module: on a machine with two GPUs, the module may be
    /// on the other GPU. In a constructor, the caller has yet to move the whole module.
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
            // A script has already put the module on a device. A tensor on another device is a mismatch there.
            || !self.run.symbolic
            // Another tensor on this device shows that the module is there, too.
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

    /// The place of the oldest literal among the device's origins.
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

    /// The program enters a context manager. True if that sets the default device until the block ends.
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

    /// `with Init(device=device):` may set the device of what the block makes. The engine knows PyTorch's own context managers.
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

    /// `with torch.cuda.device(1):` uses the device when the block begins.
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

    /// The condition of a test, with the key that [`Interp::truth`] would give it.
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
