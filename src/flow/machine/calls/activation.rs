//! Activations of functions: frames, bodies and results.

use crate::flow::domain::diagram::FALSE;
use crate::flow::domain::store::Cell;
use crate::flow::domain::value::{FrameId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::calls::call::MAX_RECURSION;
use crate::flow::machine::frame::{Frame, LoopFrame, ObjKind};
use crate::ir::{FuncId, FuncKind};
use crate::link::{ClassKey, ModIdx};
use crate::span::Place;

/// The maximum number of further activations of a function over a tree of objects.
const MAX_DESCENT: u32 = 4;

impl Interp<'_> {
    /// Whether the function has as many activations as allowed. Recursion over nested containers goes one level deep.
    /// Recursion over a tree of objects of a script goes further, while each activation gets a new object.
    pub(crate) fn active(&self, module: ModIdx, func: FuncId, args: &Args) -> bool {
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

    /// Whether an argument is an object, list or dict that no activation of the function has got so far. A tensor in a
    /// nested activation also counts, because it ends the descent.
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

    /// Pushes a new activation and makes it the current one.
    pub(crate) fn push_frame(&mut self, module: ModIdx, func: FuncId, base: Cell, parent: Option<FrameId>) {
        if module != self.entry {
            self.keep_globals(module, func);
        }
        self.push_activation(module, func, base, parent);
    }

    /// The same, without preparation of the file's variables.
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

    /// Interprets a function's body and gives its return value.
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
        // A script's `main()` may use the whole budget.
        if site.is_some() && (self.run.symbolic || self.run.depth > 0) {
            // At most half of the remaining steps, so that the engine gives up the expensive callee and not its
            // callers.
            let most = match self.run.symbolic {
                true => crate::flow::machine::CALL_STEPS,
                // Functions of the script itself.
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
            // Only this call took too many steps: it counts as an unknown call.
            self.run.exhausted = false;
            // From another entry point, with more steps left, it may succeed.
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

    /// Joins the states at the function's returns, and gives its result.
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
            // The last `return`, outside of branches, has kept its state in the store.
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
        // If the call may have raised, the path after it excludes the cases in which it did.
        let after = self.d.or(returned, fell_through);
        self.path = self.d.and(before, after);
        if generator { yields } else { result }
    }

    /// A function that is not nested in another. It needs no frame.
    pub(crate) fn module_function(&mut self, module: ModIdx, func: FuncId) -> Value {
        self.closure(module, func, None)
    }

    /// Handles `def`: gives the function, and records that it can be called from here on.
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
}
