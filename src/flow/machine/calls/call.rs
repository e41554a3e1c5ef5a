//! Calls: of functions and classes of the project, of methods, of everything else.

use super::args::Args;
use crate::flow::MAX_CHOSEN;
use crate::flow::domain::diagram::{Dd, FALSE, TRUE};
use crate::flow::domain::store::Cell;
use crate::flow::domain::value::{Bound, BoundId, Closure, ClosureId, FrameId, ObjId, Value};
use crate::flow::machine::frame::{Frame, LoopFrame, ObjKind};
use crate::flow::machine::{Interp, MAX_DEPTH};
use crate::flow::query::flag_words::speaks_of_devices;
use crate::ir::{Call, CallId, Expr, ExprId, FuncId, FuncKind, Var};
use crate::link::{ClassKey, ModIdx};
use crate::span::Place;
use crate::sym::Sym;

/// Activations of a function within one of its own.
const MAX_RECURSION: u32 = 1;
/// The same over a tree of objects.
const MAX_DESCENT: u32 = 4;

impl Interp<'_> {
    pub(crate) fn call(&mut self, id: CallId, e: ExprId) -> Value {
        let linked = self.linked();
        let call = linked.ir.call(id);
        match linked.ir.expr(call.func) {
            Expr::Var(Var::Unbound(name)) if name.as_str() == "super" => {
                let receiver = self.receiver_here();
                self.bound(receiver, None, Sym::new("super"))
            }
            Expr::Attr { base, name } => self.call_attribute(base, name, call, e),
            _ => {
                // `getattr(x, name)()`
                if let Some((base, name)) = self.method_called(call.func) {
                    return self.call_attribute(base, name, call, e);
                }
                let f = self.eval(call.func);
                let args = self.arguments(call);
                if args.either.is_some() {
                    return self.with_either(f, &args, &mut |i, args| i.call_value(f, args, e));
                }
                if !self.libraries.loads.is_empty()
                    && let Some(name) = linked.ir.variable_of(call.func)
                {
                    self.handed_as_weights(name, &args);
                }
                if self.raises_for_lack(f, &args) {
                    return Value::Unknown;
                }
                self.call_value(f, &args, e)
            }
        }
    }

    /// `base.name(…)`
    fn call_attribute(&mut self, base: ExprId, name: Sym, call: Call<'_>, e: ExprId) -> Value {
        let linked = self.linked();
        let mut receiver = self.eval(base);
        let args = self.arguments(call);
        if args.either.is_some() {
            return self.with_either(receiver, &args, &mut |i, args| {
                i.each(receiver, &mut |i, r| i.call_method(r, name, args, e, base))
            });
        }
        self.handed_as_weights(name, &args);
        // `model = model.cuda()`, of which nothing else is known: a part that moves has weights.
        if matches!(receiver, Value::Tensor(_)) && name.as_str() == "load_state_dict" {
            args.positional.iter().take(1).for_each(|&(v, _)| self.loaded_as_weights(v));
        }
        if matches!(linked.ir.expr(base), Expr::Compare { .. }) {
            receiver = self.each(receiver, &mut |i, r| match r {
                Value::Bool(_) => i.compared_tensor(r, base, name, &args),
                r => r,
            });
        }
        if self.method_raises_for_lack(receiver, name, &args) {
            return Value::Unknown;
        }
        self.each(receiver, &mut |i, r| i.call_method(r, name, &args, e, base))
    }

    /// `(x > 0).float()`: what compares so is a tensor, and so is what it is compared from.
    fn compared_tensor(&mut self, test: Value, base: ExprId, name: Sym, args: &Args) -> Value {
        let Expr::Compare { left, right, .. } = self.linked().ir.expr(base) else { return test };
        // What is no module, for what is compared is none, has these only if it is a tensor.
        let casts = matches!(
            name.as_str(),
            "float" | "double" | "half" | "bfloat16" | "bool" | "byte" | "to" | "type"
        );
        let shows = casts
            || crate::flow::evidence::tensor_evidence::only_tensors_do(name)
            || crate::flow::evidence::tensor_evidence::only_tensors_take(name, args);
        self.run.muted += 1;
        let (l, r) = (self.eval(left), self.eval(right));
        self.run.muted -= 1;
        let proven = |v: Value| matches!(v, Value::Outer(o) if self.is_tensorish(o));
        if !shows && !(crate::torch::method(name).is_some() && (proven(l) || proven(r))) {
            return test;
        }
        self.each(l, &mut |i, l| i.shown_by_comparison(l, r, test, base))
    }

    /// Of two things that are compared, the one from outside is a tensor if the other is a number.
    fn shown_by_comparison(&mut self, l: Value, r: Value, test: Value, base: ExprId) -> Value {
        let host = |v| matches!(v, Value::Int(_) | Value::Host(_) | Value::Bool(_));
        match (l, r) {
            (Value::Outer(o), v) | (v, Value::Outer(o)) if host(v) || v == Value::Unknown => {
                self.evidence.tensor_proofs.insert(o);
                self.tensor_of_outer(o, base)
            }
            _ => test,
        }
    }

    fn receiver_here(&self) -> Value {
        let mut frame = self.here();
        loop {
            if frame.class.is_some() {
                return frame.receiver;
            }
            match frame.parent {
                Some(p) => frame = &self.frames[p.0 as usize],
                None => return Value::Unknown,
            }
        }
    }

    pub(crate) fn bound(&mut self, receiver: Value, function: Option<ClosureId>, name: Sym) -> Value {
        Value::Bound(BoundId(self.t.bounds.add(Bound { receiver, function, name })))
    }

    /// Calls a value.
    pub(crate) fn call_value(&mut self, f: Value, args: &Args, e: ExprId) -> Value {
        match f {
            Value::Choice(d) if self.is_of_many_functions(d) => self.unknown_call(Value::Unknown, args, e),
            Value::Choice(_) => self.each(f, &mut |i, f| i.call_value(f, args, e)),
            Value::Closure(id) => {
                let c = *self.t.closures.get(id.0);
                self.call_function(c.module, c.func, c.frame, None, args, e)
            }
            Value::Bound(id) => {
                let b = *self.t.bounds.get(id.0);
                match b.function {
                    Some(f) => {
                        let c = *self.t.closures.get(f.0);
                        self.call_function(c.module, c.func, c.frame, Some(b.receiver), args, e)
                    }
                    None => self.call_method(b.receiver, b.name, args, e, e),
                }
            }
            Value::Class(key) => self.instantiate(key, args, e),
            Value::External(path) => self.call_external(path, args, e),
            Value::Object(id) => self.call_object(id, args, e),
            Value::Outer(o) => match self.call_given_maker(o, args, e) {
                Some(made) => made,
                None => self.unknown_call(f, args, e),
            },
            _ => self.unknown_call(f, args, e),
        }
    }

    /// Is it an entry of a table of functions, of which nobody knows which? What they all give together is hardly ever one thing.
    fn is_of_many_functions(&self, d: Dd) -> bool {
        let mut leaves = Vec::new();
        self.d.leaves(d, &mut leaves);
        let functions = leaves.iter().filter(|&&leaf| matches!(self.t.values.get(leaf), Value::Closure(_)));
        functions.count() > MAX_CHOSEN
    }

    /// A call of which nothing is known: what it was given may have been moved.
    pub(crate) fn unknown_call(&mut self, f: Value, args: &Args, e: ExprId) -> Value {
        if let Value::Outer(callee) = f
            && let Some(tokens) = self.tokens(callee, args, e)
        {
            return tokens;
        }
        if let Value::Outer(_) = f {
            if !self.libraries.loads.is_empty() {
                self.used_as_weights(f);
            }
            self.check_timed_call(args, e);
        }
        if matches!(f, Value::Outer(_) | Value::Tensor(_)) {
            self.check_outer_evaluation(f, args, e);
        }
        for (v, _) in args.values() {
            self.escape(v, 0);
        }
        self.works_for_autocast(f, args, e);
        if let Value::Outer(model) = f
            && let Some(v) = self.call_outside_module(model, args, e)
        {
            return v;
        }
        match f {
            // `model(x)` of a model that came from outside: a tensor, if anything, where that lives.
            Value::Tensor(id) if !self.get_tensor(id).certain => {
                let d = self.call_moved(self.get_tensor(id).device, args, e);
                let t = crate::flow::domain::value::Tensor { certain: false, ..self.get_tensor(id) };
                let (dims, role) =
                    (crate::flow::domain::dims::Dims::ANY, crate::flow::domain::value::Role::Plain);
                self.tensor(crate::flow::domain::value::Tensor { device: d, dims, role, ..t })
            }
            _ => {
                let made = self.result_of(e);
                self.is_made_of(made, args);
                made
            }
        }
    }

    /// Forgets where things are that unknown code got hold of.
    pub(crate) fn escape(&mut self, v: Value, depth: u32) {
        let Value::Object(id) = v else { return };
        if depth > 2 {
            return;
        }
        match self.obj(id).kind {
            ObjKind::Module | ObjKind::ForeignModule(_) => {
                let d = self.unknown_device();
                self.move_module(id, d);
                self.forget_mode(v);
            }
            ObjKind::Inert => self.optimizer_escapes(id),
            ObjKind::List { .. } | ObjKind::Dict { .. } => {
                self.keys_change(id);
                for content in self.values_of(self.own(id)) {
                    for v in self.exact_elements(content).unwrap_or_default() {
                        self.escape(v, depth + 1);
                    }
                }
            }
            _ => {}
        }
    }

    /// Calls a function of the project with these arguments.
    pub(crate) fn call_function(
        &mut self,
        module: ModIdx,
        func: FuncId,
        parent: Option<FrameId>,
        receiver: Option<Value>,
        args: &Args,
        e: ExprId,
    ) -> Value {
        let called = Closure { module, func, frame: parent };
        match self.through_decorators(called, receiver, args, e) {
            Some(given) => given,
            None => self.call_as_written(called, receiver, args, e),
        }
    }

    /// The same, whatever decorators stand around it.
    pub(crate) fn call_as_written(
        &mut self,
        called: Closure,
        receiver: Option<Value>,
        args: &Args,
        e: ExprId,
    ) -> Value {
        let Closure { module, func, frame: parent } = called;
        let linked = self.program.get(module);
        let function = linked.ir.function(func);
        if let Some(v) = self.recalled(module, func, receiver, args, e) {
            return v;
        }
        let recursive = self.active(module, func, args);
        if module == self.entry {
            self.is_given(function, receiver.is_some(), args, e);
        }
        if !self.libraries.loads.is_empty() {
            self.taken_for_weights(function, receiver.is_some(), args);
        }
        let open = self.is_dispatched(module, function.decorators) || self.is_left_open(module, func);
        let skipped = self.run.depth >= MAX_DEPTH
            || recursive
            || open
            || self.skipped(module, func, receiver, args)
            || self.only_hands_on(module, func, receiver, args, e);
        if !self.live() || skipped {
            for (v, _) in args.values() {
                self.escape(v, 0);
            }
            self.may_have_moved(function.name, receiver);
            self.forget_written(module, func, receiver);
            if self.is_heavy(module, func) {
                self.is_half_made(function.name, receiver);
            }
            if self.live()
                && !recursive
                && self.run.depth < MAX_DEPTH
                && !open
                && let Some(v) = self.by_summary(module, func, args, e)
            {
                return v;
            }
            let made = self.result_of(e);
            self.is_made_of(made, args);
            return made;
        }
        if module == self.entry && !self.run.symbolic && self.run.muted == 0 {
            self.run.interpreted.insert(func);
        }
        let guard = if function.decorators.len > 0 {
            let scope = function.parent.unwrap_or(FuncId(0));
            self.decorator_guard(module, scope, function.decorators)
        } else {
            crate::flow::domain::diagram::TRUE
        };
        if guard != crate::flow::domain::diagram::TRUE && !self.d.implies(self.path, guard) {
            return self
                .branch(guard, &mut |i| i.call_as_written(called, receiver, args, e), &mut |_| Value::None);
        }
        let (site, objects) = (self.place(e), self.objects.len());
        let class = function.class.map(|class| ClassKey { module, class });
        let guard = self.wrapper_guard(module, func);
        let reached = self.d.and(self.path, guard);
        let v = if guard == TRUE || reached == FALSE {
            self.run(module, func, parent, receiver, class, Some(args), Some(site), false)
        } else {
            self.branch(
                guard,
                &mut |i| i.run(module, func, parent, receiver, class, Some(args), Some(site), false),
                &mut |i| i.result_of(e),
            )
        };
        if self.calls.gave_up {
            for v in args.values().map(|(v, _)| v).chain(receiver).collect::<Vec<_>>() {
                self.forget_mode(v);
            }
            self.may_have_moved(function.name, receiver);
            self.forget_written(module, func, receiver);
            self.is_half_made(function.name, receiver);
            let made = self.result_of(e);
            self.is_made_of(made, args);
            return made;
        }
        if function.is_generator {
            self.made_anew(v, objects);
            return self.many(v);
        }
        if v == Value::Absent { Value::None } else { v }
    }

    /// The constructor of an object, or of one of its bases, was given up: what it has set is not known.
    fn is_half_made(&mut self, method: Sym, receiver: Option<Value>) {
        if method == self.known.init
            && let Some(Value::Object(id)) = receiver
        {
            self.calls.half_made.insert(id);
        }
    }

    /// A method that is not followed has given its object other tensors, perhaps on other devices.
    fn forget_written(&mut self, module: ModIdx, func: FuncId, receiver: Option<Value>) {
        let Some(Value::Object(id)) = receiver else { return };
        for &name in self.relevance.assigned.to_self(module, func) {
            if matches!(self.get_field(id, name), Value::Tensor(_) | Value::Device(_) | Value::Choice(_)) {
                self.set_field(id, name, Value::Unknown);
            }
        }
    }

    /// A method that is not followed, and whose name speaks of devices, has done something to where its object is, and the
    /// modules that it holds.
    pub(crate) fn may_have_moved(&mut self, method: Sym, receiver: Option<Value>) {
        let name = method.as_str();
        let Some(v @ Value::Object(id)) = receiver else { return };
        if !matches!(name, "to" | "_apply") && !speaks_of_devices(name) {
            return;
        }
        self.escape(v, 0);
        if matches!(self.obj(id).kind, ObjKind::Instance) {
            let held: Vec<Value> = self.obj(id).attrs.iter().map(|&(_, cell)| self.store.get(cell)).collect();
            held.into_iter().for_each(|v| self.escape(v, 0));
        }
    }

    /// Has it taken more steps before than a call may, or than there were left for it here?
    pub(crate) fn is_heavy(&self, module: ModIdx, func: FuncId) -> bool {
        self.calls.heavy.contains(&(module, func)) || self.calls.heavy_here.contains(&(module, func))
    }

    /// Is the call not worth interpreting, where parameters are symbols?
    fn skipped(&self, module: ModIdx, func: FuncId, receiver: Option<Value>, args: &Args) -> bool {
        if !self.run.symbolic {
            return self.is_heavy(module, func);
        }
        let calls = self.relevance.calls(module, func);
        if calls > crate::flow::machine::MANY_CALLS || self.is_heavy(module, func) {
            return true;
        }
        // What decides nothing and is given nothing that is somewhere for certain only passes on.
        let asked_for = matches!(receiver, Some(Value::Object(id)) if self.calls.unbuilt.contains_key(&id));
        // What is short and is given a tensor may bring it together with another one of the caller's.
        let short =
            || calls <= crate::flow::machine::SHORT_CALLS && args.values().any(|(v, _)| self.holds_tensor(v));
        calls > crate::flow::machine::FEW_CALLS
            && !asked_for
            && !short()
            && !self.relevance.is_telling(module, func)
            && !args.values().map(|(v, _)| v).chain(receiver).any(|v| self.is_settled(v, 0))
    }

    /// Is it being interpreted as often as it may be? Recursion over nested containers goes one level deep, and over a
    /// tree of objects that a script has made as far as there is another one to go to.
    fn active(&self, module: ModIdx, func: FuncId, args: &Args) -> bool {
        let most = if self.descends(module, func, args) { MAX_DESCENT } else { MAX_RECURSION };
        let mut times = 0;
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            if frame.module == module && frame.func == func && func != FuncId(0) {
                times += 1;
                if times > most {
                    return true;
                }
            }
            at = frame.caller;
        }
        false
    }

    /// Is it given an object, or a list or dict, that none of its activations has been given? Or, in the middle of one,
    /// a tensor, which has nothing in it?
    fn descends(&self, module: ModIdx, func: FuncId, args: &Args) -> bool {
        let held = |kind| matches!(kind, ObjKind::List { module: false } | ObjKind::Dict { module: false });
        let own = |v: Value| match v {
            Value::Object(id) => self.obj(id).kind == ObjKind::Instance || held(self.obj(id).kind),
            _ => false,
        };
        let leaf = |v: Value| matches!(v, Value::Tensor(t) if self.get_tensor(t).certain);
        if self.run.symbolic || !args.values().any(|(v, _)| own(v) || leaf(v)) {
            return false;
        }
        let params = &self.program.get(module).ir.function(func).params;
        let mut given = Vec::new();
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            if frame.module == module && frame.func == func {
                given.extend(params.iter().map(|p| self.store.get(Cell(frame.base.0 + u32::from(p.slot)))));
            }
            at = frame.caller;
        }
        args.values().any(|(v, _)| own(v) && !given.contains(&v))
            || args.values().any(|(v, _)| leaf(v)) && !given.iter().any(|&v| leaf(v))
    }

    /// A new activation, which becomes the one that is interpreted.
    pub(crate) fn push_frame(&mut self, module: ModIdx, func: FuncId, base: Cell, parent: Option<FrameId>) {
        if module != self.entry {
            self.keep_globals(module, func);
        }
        self.push_activation(module, func, base, parent);
    }

    /// The same where nothing of the function is interpreted before.
    pub(crate) fn push_activation(
        &mut self,
        module: ModIdx,
        func: FuncId,
        base: Cell,
        parent: Option<FrameId>,
    ) {
        let caller = (!self.frames.is_empty()).then_some(self.frame);
        self.frames.push(Frame {
            module,
            func,
            base,
            parent,
            caller,
            class: None,
            receiver: Value::Unknown,
            result: Value::None,
            returned: FALSE,
            entry: self.path,
            exits: Vec::new(),
            start: self.store.mark(),
            branches: 0,
            loops: Vec::<LoopFrame>::new(),
            yields: Value::Absent,
            site: None,
            module_call: false,
            tries: Vec::new(),
            manager: false,
            rest: None,
        });
        self.frame = FrameId(u32::try_from(self.frames.len() - 1).unwrap_or(u32::MAX));
    }

    /// Interprets a function's body and gives what it returns.
    #[expect(clippy::too_many_arguments, reason = "an activation has that many parts")]
    pub(crate) fn run(
        &mut self,
        module: ModIdx,
        func: FuncId,
        parent: Option<FrameId>,
        receiver: Option<Value>,
        class: Option<ClassKey>,
        args: Option<&Args>,
        site: Option<Place>,
        module_call: bool,
    ) -> Value {
        let function = self.program.get(module).ir.function(func);
        let base = self.store.alloc(function.slots.len());
        if let Some(args) = args {
            self.bind(module, func, base, receiver, args, site);
        }
        let (saved, before) = (self.frame, self.path);
        self.push_frame(module, func, base, parent);
        let manager = site.is_some() && self.is_manager(module, func);
        let (own, open) = (self.frame, self.calls.suspended.len());
        let frame = self.here_mut();
        frame.manager = manager;
        frame.class = class;
        frame.receiver = receiver.unwrap_or(Value::Unknown);
        frame.site = site;
        frame.module_call = module_call;
        if args.is_none() {
            self.bind_symbols(module, func, base, receiver);
        }
        let (limit, start) = (self.budget.limit, self.here().start);
        let mut curtailed = false;
        // A script's `main()` may take all there is.
        if site.is_some() && (self.run.symbolic || self.run.depth > 0) {
            // No more than half of what is left, so that it is the callee at fault that is given up.
            let most = match self.run.symbolic {
                true => crate::flow::machine::CALL_STEPS,
                // What the script itself is made of.
                false if module == self.entry => crate::flow::machine::MAX_STEPS,
                false => crate::flow::machine::SCRIPT_CALL_STEPS,
            };
            let share = most.min(limit.saturating_sub(self.budget.steps) / 2);
            curtailed = share < most;
            self.budget.limit = limit.min(self.budget.steps.saturating_add(share));
        }
        self.run.depth += 1;
        let casts = self.tensors.autocasts.len();
        for &d in self.program.get(module).ir.list(function.decorators) {
            self.enter_decorated(module, d);
        }
        self.block(function.body);
        self.tensors.autocasts.truncate(casts);
        let v = self.finish(before);
        self.run.depth -= 1;
        self.frame = saved;
        let given_up = self.run.exhausted && !self.budget.is_past(limit);
        self.budget.limit = limit;
        self.calls.gave_up = given_up;
        if given_up {
            // Only this call was too much: it is as if nobody knew what it does.
            self.run.exhausted = false;
            // From another entry point, with more to spend, it may get through.
            let heavy = if curtailed { &mut self.calls.heavy_here } else { &mut self.calls.heavy };
            heavy.insert((module, func));
            self.store.undo(start);
            self.path = before;
            self.calls.suspended.truncate(open);
            return Value::Unknown;
        }
        if manager {
            self.suspend(own);
        }
        v
    }

    /// Joins the states at the function's returns; gives its result.
    fn finish(&mut self, before: crate::flow::domain::diagram::Cond) -> Value {
        let entry = self.here().entry;
        let fell_through = self.d.given(self.path, entry);
        let frame = self.here_mut();
        let exits = std::mem::take(&mut frame.exits);
        let (start, mut result, returned) = (frame.start, frame.result, frame.returned);
        let (generator, yields) = (frame.yields != Value::Absent, frame.yields);
        let straight = exits.is_empty();
        if returned == FALSE {
            result = Value::None;
        } else if fell_through != FALSE {
            let not = self.d.not(returned);
            let through = self.d.and(fell_through, not);
            result = self.ite(through, Value::None, result);
        }
        if !straight {
            // The last `return`, outside of branches, left the state as it is there.
            if self.path == FALSE {
                let mut rest = returned;
                for (p, _) in &exits {
                    let not = self.d.not(*p);
                    rest = self.d.and(rest, not);
                }
                self.path = rest;
            }
            self.join_exits(start, exits);
        }
        // After a call that may have ended in an exception, what holds is that it did not.
        let after = self.d.or(returned, fell_through);
        self.path = self.d.and(before, after);
        if generator { yields } else { result }
    }

    /// Reads a method or attribute that the class of an object gives.
    pub(crate) fn class_attr(&mut self, key: ClassKey, name: Sym) -> Option<Value> {
        if let Some(replaced) = self.replaced_in_class(key, name) {
            return Some(replaced);
        }
        if let Some((m, f)) = self.program.find_method(key, name) {
            return Some(self.module_function(m, f));
        }
        let mro = &self.program.class(key).mro;
        mro.iter().find_map(|&k| self.class_variable(k, name))
    }

    /// `Net.forward = function`: what the program has put in the place of a method.
    pub(crate) fn replaced_in_class(&self, key: ClassKey, name: Sym) -> Option<Value> {
        if self.names.class_cells.is_empty() {
            return None;
        }
        let (m, f) = self.program.find_method(key, name)?;
        let home = self.program.get(m).ir.function(f).class.map(|class| ClassKey { module: m, class });
        for &k in &self.program.class(key).mro {
            let put = self.names.class_cells.get(&(k, name)).map(|&cell| self.store.get(cell));
            if let Some(v) = put.filter(|&v| v != Value::Absent) {
                return Some(v);
            }
            // Those further up are hidden by it.
            if Some(k) == home {
                return None;
            }
        }
        None
    }

    /// A function that is not nested in another: needs no frame.
    pub(crate) fn module_function(&mut self, module: ModIdx, func: FuncId) -> Value {
        self.closure(module, func, None)
    }

    /// `def` reached: the function, and from here on it may be called.
    pub(crate) fn define(&mut self, func: FuncId) -> Value {
        let module = self.here().module;
        self.names.def_paths.insert((module, func), self.path);
        self.check_tests_of_defaults(func);
        self.runs_at_definition(module, func);
        self.captures_defaults(func);
        let nested = self.program.get(module).ir.function(self.here().func).kind == FuncKind::Function;
        let frame = nested.then_some(self.frame);
        self.closure(module, func, frame)
    }

    /// The object's `__call__`, or `forward` for modules.
    fn call_object(&mut self, id: ObjId, args: &Args, e: ExprId) -> Value {
        match self.obj(id).kind {
            ObjKind::Module | ObjKind::ForeignModule(_) => self.call_module(id, args, e),
            ObjKind::List { module: true } => self.call_module(id, args, e),
            ObjKind::Partial => self.call_partial(id, args, e),
            ObjKind::TupleClass => self.make_tuple(id, args, e),
            ObjKind::Instance => {
                let call = self.obj(id).class.and_then(|k| self.program.find_method(k, Sym::new("__call__")));
                match call {
                    Some((m, f)) => self.call_function(m, f, None, Some(Value::Object(id)), args, e),
                    None => self.unknown_call(Value::Object(id), args, e),
                }
            }
            _ => self.unknown_call(Value::Object(id), args, e),
        }
    }
}
