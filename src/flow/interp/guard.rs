//! Uses of accelerators, and what guards them: checks, handlers, decorators, contexts.

use super::super::atom::{backend, gpus_at_least};
use super::super::diagram::{Cond, Dd, FALSE, TRUE};
use super::super::event::{Bite, Kind, UseKind};
use super::super::value::{Device, NO_ORIGIN, OriginId, Reason, Value};
use super::Interp;
use super::args::Args;
use crate::ir::{Expr, ExprId, FuncId, Handler, Stmt};
use crate::link::{ModIdx, Resolved};
use crate::span::Place;
use crate::sym::Sym;
use crate::torch::{self, Accelerator, Decorator, TestGuard, Without};
use crate::world::Backend;

/// What decorators of the project are given, to see when they call it.
pub(super) const WRAPPED: &str = "samedevice.wrapped";

impl Interp<'_> {
    /// A tensor or module really goes to this device (or a query really asks it).
    pub(super) fn check_use(&mut self, device: Dd, e: ExprId, how: UseKind, what: &str) {
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
            self.d.support(here, &mut self.deciders);
            self.check_leaf_use(here, origin, backend, index, e, how, what);
            self.deciders.clear();
        }
    }

    #[expect(clippy::too_many_arguments, reason = "one use with all its parts")]
    fn check_leaf_use(
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
                let bite = Bite::in_world(crate::world::World::NoCuda);
                self.emit(Kind::Shadowed { first }, place, bite, Vec::new());
                return;
            }
            self.check_pinned(here, origin, backend, index, e, how, what);
            return;
        };
        let place = self.place(e);
        let reached = self.d.and(self.path, here);
        let inverted = backend.is_none()
            && how != UseKind::Query
            && (self.d.implies(reached, absent) || self.only_another(reached, absent));
        let origin = self.literal_of(origin).filter(|&p| p != place);
        self.emit(
            Kind::Use { what: what.to_owned(), origin, index, backend, how, inverted },
            place,
            bite,
            Vec::new(),
        );
        if how != UseKind::DeviceList {
            self.cast_shadow(place, here, there);
        }
    }

    /// What follows a use that raises is not reached, but in the shadow of that use. (Each index that is written down
    /// is a cause of its own.)
    fn cast_shadow(&mut self, place: Place, here: Cond, needed: Cond) {
        let reported = self.events.last().is_some_and(|p| !p.event.is_guess());
        if !reported {
            return;
        }
        let atom = self.atoms.add(super::super::atom::Atom::Shadow { place });
        let (shadow, elsewhere) = (self.d.atom(atom), self.d.not(here));
        let fine = self.d.or(elsewhere, needed);
        let fine = self.d.or(fine, shadow);
        self.path = self.d.and(self.path, fine);
    }

    /// Is it certain, where CUDA is absent, that another back end is there? Then that was what was asked for.
    fn only_another(&mut self, reached: Cond, absent: Cond) -> bool {
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
    fn check_pinned(
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

    /// Counts work on an accelerator that is known to be there, or on a device that somebody else chooses. An attempt to
    /// use one that may be missing asks whether it is there, and is not counted.
    pub(super) fn device_work(&mut self, device: Dd) {
        let Some(path) =
            self.here().tries.last().map(|t| if t.survived == TRUE { self.path } else { t.start }).or_else(
                || {
                    let mut at = self.here().caller;
                    while let Some(f) = at {
                        let frame = &self.frames[f.0 as usize];
                        if let Some(t) = frame.tries.last() {
                            return Some(if t.survived == TRUE { self.path } else { t.start });
                        }
                        at = frame.caller;
                    }
                    None
                },
            )
        else {
            return;
        };
        let mut leaves = Vec::new();
        self.d.leaves(device, &mut leaves);
        for leaf in leaves {
            let backend = match self.t.places.get(leaf).0 {
                Device::Cuda(_) | Device::CudaSome => None,
                Device::Other(b) => Some(b),
                Device::Named(o) if self.t.get_outer(o).device => {
                    self.work += 1;
                    return;
                }
                _ => continue,
            };
            let here = if self.d.as_leaf(device).is_some() {
                TRUE
            } else {
                self.d.where_leaf(device, &mut |p| p == leaf)
            };
            let (reached, there) = (self.d.and(path, here), self.available(backend));
            if reached != FALSE && self.d.implies(reached, there) {
                self.work += 1;
                return;
            }
        }
    }

    /// The handlers of a `try` whose body has worked on a device: does one drop every error? The first that would get
    /// an out-of-memory error decides.
    pub(super) fn check_swallowed(&mut self, handlers: &[Handler]) {
        for h in handlers {
            let names: Vec<&'static str> = match h.types {
                None => vec!["BaseException"],
                Some(e) => self.names_of(e),
            };
            if names.contains(&"OutOfMemoryError") {
                return;
            }
            if !names.iter().any(|n| matches!(*n, "BaseException" | "Exception" | "RuntimeError")) {
                continue;
            }
            let ir = &self.linked().ir;
            if ir.block(h.body).iter().all(|&s| idle(ir, ir.stmt(s))) {
                let there = self.available(None);
                if let Some(bite) = self.bite(there, false) {
                    let place = Place { file: ir.file, span: h.head };
                    self.emit(Kind::Swallowed, place, bite, Vec::new());
                }
            }
            return;
        }
    }

    fn names_of(&self, types: ExprId) -> Vec<&'static str> {
        let ir = &self.linked().ir;
        match ir.expr(types) {
            Expr::Tuple(list) => ir.list(list).iter().filter_map(|&x| self.last_name(x)).collect(),
            _ => self.last_name(types).into_iter().collect(),
        }
    }

    /// Where the device was written down.
    fn literal_of(&self, origin: OriginId) -> Option<Place> {
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

    /// Is there a handler around that catches the failure of an accelerator that is not there?
    pub(super) fn caught_around(&self) -> bool {
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            if frame.tries.iter().any(|t| t.catches_cuda) {
                return true;
            }
            at = frame.caller;
        }
        false
    }

    /// Is there a handler around that catches an out-of-memory error?
    fn oom_handled(&self) -> bool {
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            if frame.tries.iter().any(|t| t.catches_oom) {
                return true;
            }
            at = frame.caller;
        }
        false
    }

    /// The `try` body goes on only where what it used was there.
    fn survive(&mut self, here: Cond, needed: Cond) {
        let not_here = self.d.not(here);
        let fine = self.d.or(not_here, needed);
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let caller = self.frames[f.0 as usize].caller;
            if let Some(i) = self.frames[f.0 as usize].tries.iter().rposition(|t| t.catches_cuda) {
                let survived = self.frames[f.0 as usize].tries[i].survived;
                let both = self.d.and(survived, fine);
                self.frames[f.0 as usize].tries[i].survived = both;
                self.path = self.d.and(self.path, fine);
                return;
            }
            at = caller;
        }
    }

    /// What handlers catch: a missing accelerator, an out-of-memory error.
    pub(super) fn caught(&self, handlers: &[Handler]) -> (bool, bool, bool) {
        let ir = &self.linked().ir;
        let mut names: Vec<&'static str> = Vec::new();
        let mut bare = false;
        for h in handlers {
            match h.types {
                None => bare = true,
                Some(e) => match ir.expr(e) {
                    Expr::Tuple(list) => {
                        names.extend(ir.list(list).iter().filter_map(|&x| self.last_name(x)))
                    }
                    _ => names.extend(self.last_name(e)),
                },
            }
        }
        let catches = |wanted: &[&str]| bare || names.iter().any(|n| wanted.contains(n));
        let cuda =
            catches(&["Exception", "BaseException", "RuntimeError", "AssertionError", "AcceleratorError"]);
        let oom = catches(&["Exception", "BaseException", "RuntimeError", "OutOfMemoryError"]);
        let missing = catches(&["Exception", "BaseException", "AttributeError"]);
        (cuda, oom, missing)
    }

    fn last_name(&self, e: ExprId) -> Option<&'static str> {
        let linked = self.linked();
        match linked.ir.expr(e) {
            Expr::Attr { name, .. } => Some(name.as_str()),
            Expr::Var(crate::ir::Var::Unbound(n)) => Some(n.as_str()),
            Expr::Var(_) => match self.program.resolve_expr(self.here().module, e) {
                Some(Resolved::External(p)) => Some(super::torch_fn::short(p)),
                Some(Resolved::Class(k)) => {
                    let ir = &self.program.get(k.module).ir;
                    Some(ir.class(k.class).name.as_str())
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// `if torch.cuda.is_available:`. Gives what was meant, so that what it was to guard is not reported besides.
    pub(super) fn check_uncalled(&mut self, e: ExprId, v: Value) -> Option<Cond> {
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
    pub(super) fn check_discarded(&mut self, e: ExprId, v: Value) {
        let Value::Tensor(t) = v else { return };
        let ir = &self.linked().ir;
        let Expr::Call(call) = ir.expr(e) else { return };
        let Expr::Attr { base, name } = ir.expr(ir.call(call).func) else { return };
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
        let t = self.get_tensor(t);
        let receiver = ir.span(base);
        let mut needs = Vec::new();
        if !t.certain {
            // Only where the receiver itself is shown to be a tensor: modules and batches do move.
            match self.discarded_proof(base) {
                Some(o) => needs.push(o),
                None => return,
            }
        }
        let bite = Bite::in_world(crate::world::World::Always);
        if self.muted > 0 || self.exhausted {
            return;
        }
        let place = self.place(e);
        self.emit(Kind::Discarded { receiver, method: name.to_string() }, place, bite, needs);
    }

    /// Does `.to(…)` name a device (and not only a dtype)?
    fn names_target(&mut self, call: &crate::ir::Call) -> bool {
        self.muted += 1;
        let args = self.arguments(call);
        let e = call.func;
        let target = self.target_of_to(&args, e);
        self.muted -= 1;
        target.is_some()
    }

    fn discarded_proof(&mut self, base: ExprId) -> Option<super::OuterId> {
        self.muted += 1;
        let v = self.eval(base);
        self.muted -= 1;
        match v {
            Value::Outer(o) => Some(o),
            _ => None,
        }
    }

    /// Entering a context manager; true when it sets the default device until the block ends.
    pub(super) fn enter(&mut self, manager: Value, e: ExprId) -> bool {
        match manager {
            Value::Device(d) => {
                self.check_scope_use(d);
                let cell = self.default_device;
                let d = self.because(d, e, Reason::Made);
                self.store.set(cell, Value::Device(d));
                true
            }
            Value::Choice(_) => {
                if let Some(d) = self.as_device(manager, e) {
                    let cell = self.default_device;
                    self.store.set(cell, Value::Device(d));
                    return true;
                }
                false
            }
            _ => {
                self.enter_call(e);
                false
            }
        }
    }

    fn check_scope_use(&mut self, _d: Dd) {}

    /// `with torch.cuda.device(1):` asks for the device when it is entered.
    fn enter_call(&mut self, e: ExprId) {
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
        self.muted += 1;
        let device = call.args.first().map(|a| (self.eval(a.value), a.value));
        self.muted -= 1;
        if matches!(device, Some((Value::None | Value::Device(_), _))) && fact.none_is_harmless {
            if let Some((Value::Device(d), _)) = device {
                self.check_use(d, e, UseKind::Query, &format!("`with {path}`"));
            }
            return;
        }
        self.use_of_device(device, None, e, UseKind::Query, &format!("`with {path}`"));
    }

    /// What `with … as name` binds.
    pub(super) fn entered(&mut self, manager: Value, e: ExprId) -> Value {
        match manager {
            Value::Object(id) => {
                let enter =
                    self.obj(id).class.and_then(|k| self.program.find_method(k, Sym::new("__enter__")));
                match enter {
                    Some((m, f)) => {
                        let args = Args::default();
                        self.call_function(m, f, None, Some(manager), &args, e)
                    }
                    None => manager,
                }
            }
            Value::Many(m) => *self.t.values.get(m),
            _ => self.result_of(e),
        }
    }

    /// A function after its decorators.
    pub(super) fn decorated(&mut self, module: ModIdx, func: FuncId, v: Value) -> Value {
        let ir = &self.program.get(module).ir;
        let decorators = ir.function(func).decorators;
        if decorators.len == 0 {
            return v;
        }
        for &d in ir.list(decorators) {
            let target = match ir.expr(d) {
                Expr::Call(c) => ir.call(c).func,
                _ => d,
            };
            let keeps = match self.program.resolve_expr(module, target) {
                Some(Resolved::External(path)) => {
                    torch::call(path).is_some_and(|f| f.decorator.is_some())
                        || torch::test_guard(Sym::new(super::torch_fn::short(path))).is_some()
                        || path.as_str().starts_with("builtins.")
                        || keeps_by_name(super::torch_fn::short(path))
                }
                Some(Resolved::Function(..)) => false,
                _ => match ir.expr(target) {
                    // `@name.setter`, `@registry.register(…)`
                    Expr::Attr { name, .. } => keeps_by_name(name.as_str()),
                    _ => false,
                },
            };
            if !keeps {
                return match self.program.resolve_expr(module, target) {
                    Some(Resolved::Function(..)) if matches!(ir.expr(d), Expr::Call(_)) => v,
                    _ => v,
                };
            }
        }
        v
    }

    /// The condition that a function's or class's decorators put on running it.
    pub(super) fn decorator_guard(
        &mut self,
        module: ModIdx,
        scope: FuncId,
        decorators: crate::ir::ExprList,
    ) -> Cond {
        let ir = &self.program.get(module).ir;
        let mut cond = TRUE;
        for &d in ir.list(decorators) {
            let c = self.one_guard(module, scope, d);
            cond = self.d.and(cond, c);
        }
        cond
    }

    /// What the machine must have for a function to be reached through the project's own decorators, as far as
    /// interpreting what they make of it tells.
    pub(super) fn wrapper_guard(&mut self, module: ModIdx, func: FuncId) -> Cond {
        let ir = &self.program.get(module).ir;
        let decorators = ir.function(func).decorators;
        if decorators.len == 0 || self.depth >= super::MAX_DEPTH {
            return TRUE;
        }
        if let Some(&guard) = self.wrappers.get(&(module, func)) {
            return guard;
        }
        self.wrappers.insert((module, func), TRUE);
        let mut guard = TRUE;
        for &d in ir.list(decorators) {
            let target = match ir.expr(d) {
                Expr::Call(c) => ir.call(c).func,
                _ => d,
            };
            if matches!(self.program.resolve_expr(module, target), Some(Resolved::Function(..))) {
                let reached = self.reached_through(module, d);
                guard = self.d.and(guard, reached);
            }
        }
        self.wrappers.insert((module, func), guard);
        guard
    }

    fn reached_through(&mut self, module: ModIdx, decorator: ExprId) -> Cond {
        let base = self.global_cell(module, 0);
        let saved = (self.frame, self.path, self.probed);
        self.push_frame(module, FuncId(0), base, None);
        self.path = TRUE;
        self.probed = FALSE;
        self.muted += 1;
        self.depth += 1;
        let f = self.eval(decorator);
        let wrapped =
            Args { positional: vec![(Value::External(Sym::new(WRAPPED)), decorator)], ..Args::default() };
        let wrapper = self.call_value(f, &wrapped, decorator);
        self.probed = FALSE;
        if let Value::Closure(_) = wrapper {
            self.path = TRUE;
            self.call_value(wrapper, &Args { open: true, ..Args::default() }, decorator);
        }
        let probed = self.probed;
        self.depth -= 1;
        self.muted -= 1;
        (self.frame, self.path, self.probed) = saved;
        // A function that is handed on elsewhere is called nobody knows when.
        if probed == FALSE { TRUE } else { self.d.forget(probed, &super::super::atom::AtomId::is_hardware) }
    }

    pub(super) fn one_guard(&mut self, module: ModIdx, scope: FuncId, d: ExprId) -> Cond {
        let ir = &self.program.get(module).ir;
        let (target, call) = match ir.expr(d) {
            Expr::Call(c) => (ir.call(c).func, Some(ir.call(c))),
            _ => (d, None),
        };
        let resolved = self.program.resolve_expr(module, target);
        let fact = match resolved {
            Some(Resolved::External(path)) => torch::call(path).and_then(|f| f.decorator),
            _ => None,
        };
        let condition = call.and_then(|c| c.args.first()).map(|a| a.value);
        match (fact, condition) {
            (Some(Decorator::Skip), _) => return FALSE,
            (Some(Decorator::SkipIf), Some(c)) => {
                let c = self.test_in(module, scope, c);
                return self.d.not(c);
            }
            (Some(Decorator::SkipUnless), Some(c)) => return self.test_in(module, scope, c),
            _ => {}
        }
        let name = match ir.expr(target) {
            Expr::Attr { name, .. } => Some(name),
            Expr::Var(crate::ir::Var::Unbound(n)) => Some(n),
            Expr::Var(crate::ir::Var::Global(s) | crate::ir::Var::Local(s)) => {
                // `requires_cuda = pytest.mark.skipif(not torch.cuda.is_available(), …)`
                if let Some(crate::link::Binding::Value(e)) =
                    self.program.get(module).bindings.get(s as usize).copied()
                {
                    let guard = self.one_guard(module, FuncId(0), e);
                    if guard != TRUE {
                        return guard;
                    }
                }
                ir.functions.first().and_then(|f| f.slots.get(s as usize)).copied()
            }
            _ => None,
        };
        if let Some(n) = name {
            let n = n.as_str().to_ascii_lowercase();
            if (n.contains("gpu") || n.contains("cuda")) && torch::test_guard(Sym::new(&n)).is_none() {
                return self.at_least(if n.contains("multi") { 2 } else { 1 });
            }
        }
        match name.and_then(torch::test_guard) {
            Some(TestGuard::Cuda(n)) => self.at_least(n.max(1)),
            Some(TestGuard::Accelerator) => self.at_least(1),
            Some(TestGuard::CudaIfKeyword(k))
                if call.is_some_and(|c| c.args.iter().any(|a| a.kind == crate::ir::ArgKind::Keyword(k))) =>
            {
                self.at_least(1)
            }
            _ => TRUE,
        }
    }

    fn test_in(&mut self, module: ModIdx, scope: FuncId, e: ExprId) -> Cond {
        let v = self.eval_in(module, scope, e);
        match v {
            Value::Bool(c) => c,
            Value::Str(s, _) => self.string_condition(s.as_str()),
            v => {
                let saved = self.frame;
                let base = self.global_cell(module, 0);
                self.push_frame(module, FuncId(0), base, None);
                let c = self.truth(v, e);
                self.frame = saved;
                c
            }
        }
    }

    /// `pytest.mark.skipif("not torch.cuda.is_available()")`
    fn string_condition(&mut self, text: &str) -> Cond {
        match text.replace(' ', "").as_str() {
            "nottorch.cuda.is_available()" => {
                let c = self.at_least(1);
                self.d.not(c)
            }
            "torch.cuda.is_available()" => self.at_least(1),
            _ => self.raised_atom(),
        }
    }

    /// An allocation whose size is known.
    pub(super) fn check_allocation(&mut self, device: Dd, bytes: Option<u64>, e: ExprId) {
        let Some(bytes) = bytes.filter(|&b| b >= 64 << 20) else { return };
        let on_gpu = self.d.map(device, &mut |p| p);
        let mut leaves = Vec::new();
        self.d.leaves(on_gpu, &mut leaves);
        let gpu: Vec<u32> = leaves
            .into_iter()
            .filter(|&p| {
                let (d, _) = *self.t.places.get(p);
                matches!(d, Device::Cuda(_) | Device::CudaSome)
                    || matches!(d, Device::Named(o) if self.t.get_outer(o).device)
            })
            .collect();
        if gpu.is_empty() {
            return;
        }
        let here = self.d.where_leaf(device, &mut |p| gpu.contains(&p));
        let there = self.at_least(1);
        let bad = self.d.and(here, there);
        let handled = self.oom_handled() || self.asked_for_memory();
        let Some(bite) = self.bite(bad, false) else { return };
        let place = self.place(e);
        self.emit(Kind::Allocation { bytes, handled }, place, bite, Vec::new());
    }

    /// Does the way here depend on how much memory there is?
    fn asked_for_memory(&self) -> bool {
        let mut asked = false;
        self.d.cubes(self.path, &mut |literals| {
            asked |=
                literals.iter().any(|&(a, _)| matches!(self.atoms.get(a), super::super::atom::Atom::Memory));
        });
        asked
    }

    /// A test by its key, as [`Interp::truth`] makes them.
    pub(super) fn keyed_test(&mut self, test: super::Test, at: ExprId) -> Cond {
        let atom = match self.tests.get(&test) {
            Some(&a) => a,
            None => {
                let place = self.place(at);
                let a = self.atoms.add(super::super::atom::Atom::Opaque { place });
                self.tests.insert(test, a);
                a
            }
        };
        self.d.atom(atom)
    }

    /// Is the file plainly written for CUDA alone?
    pub(super) fn cuda_only_file(&mut self, module: ModIdx) -> bool {
        let linked = self.program.get(module);
        let ir = &linked.ir;
        let Some(body) = ir.functions.first() else { return false };
        let at_top = |s: &Stmt| match s {
            Stmt::Import(imports) => imports.iter().any(|i| {
                let path = match i.name {
                    Some(n) => Sym::new(&format!("{}.{n}", i.module)),
                    None => i.module,
                };
                i.level == 0 && (torch::cuda_only_import(path) || torch::cuda_only_import(i.module))
            }),
            _ => false,
        };
        ir.block(body.body).iter().any(|&s| at_top(ir.stmt(s)))
    }

    /// Does a function of the file refuse to go on without CUDA? Then the others may count on it.
    pub(super) fn refuses_without_cuda(&mut self, module: ModIdx) -> bool {
        let ir = &self.program.get(module).ir;
        (1..ir.functions.len()).any(|n| {
            let func = FuncId(u32::try_from(n).unwrap_or(u32::MAX));
            ir.block(ir.function(func).body).iter().any(|&s| match ir.stmt(s) {
                Stmt::Assert { test, .. } => self.asks_for_cuda(module, *test),
                Stmt::If { test, then, .. } => {
                    let Expr::Unary { operand, op: crate::ir::UnaryOp::Not } = ir.expr(*test) else {
                        return false;
                    };
                    let leaves =
                        ir.block(*then).last().is_some_and(|&s| matches!(ir.stmt(s), Stmt::Raise { .. }));
                    leaves && self.asks_for_cuda(module, operand)
                }
                _ => false,
            })
        })
    }

    fn asks_for_cuda(&self, module: ModIdx, e: ExprId) -> bool {
        let ir = &self.program.get(module).ir;
        let Expr::Call(call) = ir.expr(e) else { return false };
        let Some(Resolved::External(path)) = self.program.resolve_expr(module, ir.call(call).func) else {
            return false;
        };
        path.as_str() == "torch.cuda.is_available"
    }

    /// What a file's imports outside of branches say of the machine: it cannot do without those plug-ins.
    pub(super) fn plugins_at_top(&mut self, module: ModIdx) -> Cond {
        let ir = &self.program.get(module).ir;
        let mut cond = TRUE;
        let Some(body) = ir.functions.first() else { return cond };
        for &s in ir.block(body.body) {
            let Stmt::Import(imports) = ir.stmt(s) else { continue };
            for i in imports.iter().filter(|i| i.level == 0) {
                if let Some(b) = torch::plugin(i.module) {
                    let there = self.d.atom(backend(b));
                    cond = self.d.and(cond, there);
                }
            }
        }
        cond
    }

    /// `torch.npu.is_available()` where nobody has imported `torch_npu`: the module itself may be missing.
    pub(super) fn check_plugin(&mut self, path: Sym, backend: Backend, e: ExprId) {
        let imported = |m: ModIdx| {
            self.program
                .get(m)
                .ir
                .imports
                .iter()
                .any(|i| i.level == 0 && torch::plugin(i.module) == Some(backend))
        };
        if imported(self.entry) || imported(self.here().module) || self.missing_caught() {
            return;
        }
        let there = self.available(Some(backend));
        let mut missing = self.d.not(there);
        if let Some(&asked) = self.plugin_atoms.get(&backend) {
            let asked = self.d.atom(asked);
            let not_asked = self.d.not(asked);
            missing = self.d.and(missing, not_asked);
        }
        if let Some(bite) = self.bite(missing, true) {
            let bite = Bite { world: crate::world::World::No(backend), ..bite };
            let place = self.place(e);
            self.emit(Kind::Plugin { function: path.to_string(), backend }, place, bite, Vec::new());
        }
    }

    /// Is there a handler around that catches an attribute that is not there?
    fn missing_caught(&self) -> bool {
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            if frame.tries.iter().any(|t| t.catches_missing) {
                return true;
            }
            at = frame.caller;
        }
        false
    }
}

fn keeps_by_name(name: &str) -> bool {
    matches!(
        name,
        "setter"
            | "register"
            | "register_module"
            | "command"
            | "cache"
            | "lru_cache"
            | "wraps"
            | "fixture"
            | "parametrize"
            | "slow"
            | "no_grad"
            | "inference_mode"
            | "jit"
            | "script"
            | "compile"
            | "autocast"
            | "register_model"
            | "REGISTER"
    )
}

/// Size in bytes of what a factory with these arguments makes, if the source says it.
pub(super) fn size_in_bytes(i: &Interp<'_>, name: &str, args: &Args) -> Option<u64> {
    let shaped = matches!(name, "zeros" | "ones" | "empty" | "rand" | "randn" | "full" | "randint");
    if !shaped && name != "eye" {
        return None;
    }
    let dims: Vec<Value> = match args.keyword("size") {
        Some((v, _)) => i.exact_elements(v)?,
        None => {
            let skip = match name {
                "randint" => args.positional.iter().position(|&(v, _)| i.exact_elements(v).is_some())?,
                _ => 0,
            };
            match args.positional.get(skip) {
                Some(&(v, _)) if i.exact_elements(v).is_some() => i.exact_elements(v)?,
                _ if name == "full" => return None,
                _ => args.positional.iter().map(|&(v, _)| v).collect(),
            }
        }
    };
    let mut count: u64 = 1;
    for d in &dims {
        let Value::Int(n) = d else { return None };
        count = count.checked_mul(u64::try_from(*n).ok()?)?;
    }
    if name == "eye" && dims.len() == 1 {
        count = count.checked_mul(count)?;
    }
    let width = match args.keyword("dtype") {
        None if name == "randint" => 8,
        None => 4,
        Some((Value::External(path), _)) => dtype_width(path.as_str())?,
        // One of several: at least the narrowest.
        Some((Value::Choice(d), _)) => {
            let mut leaves = Vec::new();
            i.d.leaves(d, &mut leaves);
            let width = |p: u32| match i.t.values.get(p) {
                Value::External(path) => dtype_width(path.as_str()),
                _ => None,
            };
            leaves.into_iter().map(width).collect::<Option<Vec<u64>>>()?.into_iter().min()?
        }
        Some(_) => return None,
    };
    count.checked_mul(width)
}

/// Size in bytes of a module's weights, if the source says it.
pub(super) fn module_bytes(name: &str, args: &Args) -> Option<u64> {
    let size = |position: usize, keyword: &str| match args.get(position, keyword) {
        Some((Value::Int(n), _)) => u64::try_from(n).ok(),
        _ => None,
    };
    let count = match name {
        "Linear" => size(0, "in_features")?.checked_mul(size(1, "out_features")?)?,
        "Embedding" | "EmbeddingBag" => size(0, "num_embeddings")?.checked_mul(size(1, "embedding_dim")?)?,
        "Bilinear" => size(0, "in1_features")?
            .checked_mul(size(1, "in2_features")?)?
            .checked_mul(size(2, "out_features")?)?,
        _ => return None,
    };
    let width = match args.keyword("dtype") {
        None => 4,
        Some((Value::External(path), _)) => dtype_width(path.as_str())?,
        Some(_) => return None,
    };
    count.checked_mul(width)
}

fn dtype_width(path: &str) -> Option<u64> {
    Some(match path.strip_prefix("torch.")? {
        "float64" | "double" | "int64" | "long" | "complex64" => 8,
        "float32" | "float" | "int32" | "int" => 4,
        "float16" | "half" | "bfloat16" | "int16" | "short" => 2,
        "int8" | "uint8" | "bool" => 1,
        "complex128" => 16,
        _ => return None,
    })
}

/// Does the statement keep nothing of an error? An assignment may be what the code below asks.
fn idle(ir: &crate::ir::Module, s: &Stmt) -> bool {
    match s {
        Stmt::Pass | Stmt::Continue | Stmt::Break => true,
        Stmt::Return(value) => value.is_none_or(|e| nothing(ir, e)),
        Stmt::Expr(e) => match ir.expr(*e) {
            Expr::Str(_) | Expr::Ellipsis => true,
            Expr::Call(c) => {
                let call = ir.call(c);
                match ir.expr(call.func) {
                    // A message that does not say what happened.
                    Expr::Var(crate::ir::Var::Unbound(n)) if n.as_str() == "print" => {
                        call.args.iter().all(|a| matches!(ir.expr(a.value), Expr::Str(_)))
                    }
                    Expr::Attr { name, .. } => {
                        matches!(name.as_str(), "empty_cache" | "collect") && call.args.is_empty()
                    }
                    _ => false,
                }
            }
            _ => false,
        },
        _ => false,
    }
}

/// `None`, `[]`, `{}`: says nothing. `False` may be the answer to a question.
fn nothing(ir: &crate::ir::Module, e: ExprId) -> bool {
    match ir.expr(e) {
        Expr::None => true,
        Expr::List(list) | Expr::Dict(list) | Expr::Tuple(list) => {
            ir.list(list).iter().all(|&x| nothing(ir, x))
        }
        _ => false,
    }
}
