//! Calls of functions and classes of the project, of methods, and of other values.

use crate::flow::domain::diagram::{FALSE, TRUE};
use crate::flow::domain::value::{Bound, BoundId, Closure, ClosureId, FrameId, ObjId, Value};
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::flow::machine::{Interp, MAX_DEPTH};
use crate::ir::{Call, CallId, Expr, ExprId, FuncId, Var};
use crate::link::{ClassKey, ModIdx};
use crate::sym::Sym;

/// The maximum number of recursive activations of a function.
pub(crate) const MAX_RECURSION: u32 = 1;

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

    /// Calls `base.name(…)`.
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
        // For `model = model.cuda()` with nothing else known: `load_state_dict` shows that the moved value has weights.
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
            _ => self.unknown_call(f, args, e),
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

    /// The same, without its decorators.
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

    /// Records that the engine gave up the constructor of the object, or of one of its bases. Its attributes are
    /// unknown.
    fn is_half_made(&mut self, method: Sym, receiver: Option<Value>) {
        if method == self.known.init
            && let Some(Value::Object(id)) = receiver
        {
            self.calls.half_made.insert(id);
        }
    }

    /// Whether an earlier call took more steps than a call may take, or than were left here.
    pub(crate) fn is_heavy(&self, module: ModIdx, func: FuncId) -> bool {
        self.calls.heavy.contains(&(module, func)) || self.calls.heavy_here.contains(&(module, func))
    }

    /// Whether the call should not be interpreted. In a symbolic function, calls without effect on devices are skipped.
    fn skipped(&self, module: ModIdx, func: FuncId, receiver: Option<Value>, args: &Args) -> bool {
        if !self.run.symbolic {
            return self.is_heavy(module, func);
        }
        let calls = self.relevance.calls(module, func);
        if calls > crate::flow::machine::MANY_CALLS || self.is_heavy(module, func) {
            return true;
        }
        // A callee that decides no device and gets no value on a definite device only passes values on.
        let asked_for = matches!(receiver, Some(Value::Object(id)) if self.calls.unbuilt.contains_key(&id));
        // A short callee that gets a tensor may combine it with another tensor of the caller's.
        let short =
            || calls <= crate::flow::machine::SHORT_CALLS && args.values().any(|(v, _)| self.holds_tensor(v));
        calls > crate::flow::machine::FEW_CALLS
            && !asked_for
            && !short()
            && !self.relevance.is_telling(module, func)
            && !args.values().map(|(v, _)| v).chain(receiver).any(|v| self.is_settled(v, 0))
    }

    /// Reads a method or attribute from the class of an object.
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

    /// `Net.forward = function`: the value that the program has assigned over a method.
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
            // The definition here hides those of classes further up.
            if Some(k) == home {
                return None;
            }
        }
        None
    }

    /// Calls the object: its `__call__`, or `forward` for modules.
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
