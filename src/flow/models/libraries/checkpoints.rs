//! Checkpoints: the results of `torch.load`.

use crate::flow::domain::event::{Kind, UseKind};
use crate::flow::domain::value::{OuterKey, Reason, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::ir::{ArgKind, Expr, ExprId, Function, Module, Stmt, Var};
use crate::span::Span;
use crate::sym::Sym;

/// Words in the names of files with weights, of variables that hold weights and of functions that read them.
const WEIGHTS: &[&str] = &[
    "checkpoint",
    "ckpt",
    "weight",
    "state_dict",
    "statedict",
    "pretrained",
    "snapshot",
    "pytorch_model",
    "model_state",
    "optim",
];
/// Parts of a training state that load their own state and hold no tensors on a GPU.
const OWN_STATE: &[&str] = &["sched", "scaler", "rng", "sampler"];
/// Parts of a training state that hold no tensors, or only CPU tensors.
const NO_WEIGHTS: &[&str] =
    &["rng", "random", "sched", "scaler", "meta", "sampler", "dataset", "tokenizer", "vocab", "stats"];

impl Interp<'_> {
    /// `torch.load`, or a function that reads files in the same way. `position` is the position of `map_location`. `program` is true
    /// for `torch.jit.load`, whose result always has weights.
    pub(crate) fn torch_load(&mut self, position: usize, program: bool, args: &Args, e: ExprId) -> Value {
        let location = args.get(position, "map_location");
        self.check_location(location);
        // For a wrapper that passes its own optional parameter on, the cause is the call that leaves it out.
        let written = |at: ExprId| self.linked().ir.expr(at) == Expr::None;
        let explicit_none =
            matches!(location, Some((Value::None, at)) if written(at) || self.is_left_out(at));
        if ((location.is_none() && !args.open) || explicit_none)
            && !self.located_elsewhere(e)
            && !self.is_published(args)
            && !(program && self.runs_the_original())
        {
            // A file that this run has written was saved on this machine.
            let own = self.saved_before(args);
            let foreign = self.d.not(own);
            let available = self.available(None);
            let absent = self.d.not(available);
            let bad = self.d.and(foreign, absent);
            let bite = self.bite(bad, true).or_else(|| {
                // An earlier use needs CUDA without a check. So CUDA is there, and the tensors return to the GPU they came from.
                self.shadow(bad, true)?;
                // A program that uses only the first GPU has also saved the file from there.
                if !self.devices.beyond_first {
                    return None;
                }
                let there = self.d.and(foreign, available);
                self.bite(there, false)
            });
            if let Some(bite) = bite {
                let place = self.place(e);
                self.emit(
                    Kind::Load {
                        program,
                        explicit_none,
                        several: self.devices.beyond_first,
                        met: Vec::new(),
                    },
                    place,
                    bite,
                    Vec::new(),
                );
                let result = self.result_of(e);
                self.remember_read(result, place);
                // Programs save data sets with `torch.save`, too. Wait until the program uses the result as weights.
                let names = self.names_around(e);
                if !program
                    && !named_as_weights(&names)
                    && let (Value::Outer(o), Some(event)) = (result, self.events.pop())
                    && !speak_of(&names, OWN_STATE)
                {
                    self.libraries.loads.insert(o, event);
                }
                return result;
            }
        }
        match location {
            Some((v, at)) if v != Value::None && !program => {
                let Some(d) = self.as_device(v, at).filter(|_| !matches!(v, Value::Closure(_))) else {
                    return self.result_of(e);
                };
                self.check_use(d, e, UseKind::Transfer, "`torch.load()`");
                let device = self.because(d, e, Reason::Loaded);
                self.possible_tensor(device)
            }
            _ => self.result_of(e),
        }
    }

    /// Does the function also call a model that is a parameter, in addition to the program that it loads? Then it compares the exported
    /// program with its original.
    fn runs_the_original(&self) -> bool {
        let ir = &self.linked().ir;
        let function = ir.function(self.here().func);
        let given = |e: ExprId| {
            matches!(ir.expr(e), Expr::Var(Var::Local(slot)) if function.params.iter().any(|p| {
                p.slot == slot && !matches!(p.name.as_str(), "self" | "cls")
            }))
        };
        ir.exprs[ir.exprs_of(function)].iter().any(|e| match *e {
            Expr::Call(id) => {
                let called = ir.call(id).func;
                given(called)
                    || matches!(ir.expr(called), Expr::Attr { base, name } if name.as_str() == "forward" && given(base))
            }
            _ => false,
        })
    }

    /// Is it a parameter with the default `None`, in a call that leaves it out?
    fn is_left_out(&self, at: ExprId) -> bool {
        let ir = &self.linked().ir;
        let Expr::Var(Var::Local(slot)) = ir.expr(at) else { return false };
        let params = &ir.function(self.here().func).params;
        let optional = |p: &&crate::ir::Param| p.default.is_some_and(|d| ir.expr(d) == Expr::None);
        let param = params.iter().find(|p| p.slot == slot).filter(optional);
        self.here().site.is_some() && param.is_some()
    }

    /// The program uses the value as weights. If the value comes from `torch.load`, this emits the event of that load.
    pub(crate) fn used_as_weights(&mut self, v: Value) {
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
            if let Some(event) = self.libraries.loads.remove(&o) {
                self.events.push(event);
                return;
            }
            match self.t.get_outer(o).key {
                OuterKey::Attr { base, .. } | OuterKey::Item { base, .. } => o = base,
                _ => return,
            }
        }
    }

    /// The program loads the value into a model, so it is weights. If an unknown function made it from another value, for
    /// example by renaming the entries, that value is weights, too.
    pub(crate) fn loaded_as_weights(&mut self, v: Value) {
        if let Value::Outer(o) = v
            && let Some(&read) = self.libraries.made_of_loaded.get(&o)
        {
            self.used_as_weights(Value::Outer(read));
        }
        self.used_as_weights(v);
    }

    /// An unknown function has made a value from the contents of a file.
    pub(crate) fn made_of_what_was_read(&mut self, made: Value, args: &Args) {
        if self.libraries.loads.is_empty() {
            return;
        }
        if let (Value::Outer(o), Some(&(Value::Outer(read), _))) = (made, args.positional.first())
            && self.libraries.loads.contains_key(&read)
        {
            self.libraries.made_of_loaded.insert(o, read);
        }
    }

    /// `load_pretrained(model, torch.load(path))`: the name of the callee shows that the argument is weights. So does
    /// `parameter.copy_(loaded[name])`.
    pub(crate) fn handed_as_weights(&mut self, callee: Sym, args: &Args) {
        // `load_state_dict` does not show that, because schedulers have it, too.
        let shows = |text: &str| text == "copy_" || text != "load_state_dict" && named_as_weights(&[callee]);
        if self.libraries.loads.is_empty() || !shows(callee.as_str()) {
            return;
        }
        let given: Vec<Value> = args.values().map(|(v, _)| v).collect();
        given.into_iter().for_each(|v| self.used_as_weights(v));
    }

    /// `def restore(self, state_dict)`: the name of the parameter shows that the argument is weights.
    pub(crate) fn taken_for_weights(&mut self, function: &Function, bound: bool, args: &Args) {
        for (n, param) in function.params.iter().enumerate() {
            if !named_as_weights(&[param.name]) {
                continue;
            }
            let at = n.checked_sub(usize::from(bound)).and_then(|n| args.positional.get(n));
            let given = at.map(|&(v, _)| v).or_else(|| args.keyword(param.name.as_str()).map(|(v, _)| v));
            if let Some(v) = given {
                self.used_as_weights(v);
            }
        }
    }

    /// Does the function also read the same file with a `map_location`? Then the author has handled both cases.
    fn located_elsewhere(&self, e: ExprId) -> bool {
        let ir = &self.linked().ir;
        let Expr::Call(call) = ir.expr(e) else { return false };
        let Some(file) = ir.call(call).args.first().map(|a| a.value) else { return false };
        let location = |call: crate::ir::Call<'_>| {
            let says = |k: ArgKind| matches!(k, ArgKind::Keyword(k) if k.as_str() == "map_location");
            call.args.iter().find(|a| says(a.kind)).map(|a| a.value)
        };
        // Two calls with the same expression for `map_location` do not differ.
        let own = location(ir.call(call));
        let within = ir.function(self.here().func).span;
        let whole = self.here().func.0 == 0;
        ir.exprs.iter().zip(&ir.expr_spans).any(|(&other, &at)| {
            let Expr::Call(other) = other else { return false };
            if other == call {
                return false;
            }
            let other = ir.call(other);
            let elsewhere = |e: ExprId| {
                ir.expr(e) != Expr::None
                    && !own.is_some_and(|own| crate::flow::machine::statements::try_blocks::same(ir, own, e))
            };
            (whole || within.contains(at))
                && location(other).is_some_and(elsewhere)
                && other
                    .args
                    .first()
                    .is_some_and(|a| crate::flow::machine::statements::try_blocks::same(ir, a.value, file))
        })
    }

    /// The names around a `torch.load`: in its file argument, of its result, and of its function if that returns the result.
    fn names_around(&self, e: ExprId) -> Vec<Sym> {
        let ir = &self.linked().ir;
        let mut names = Vec::new();
        let Expr::Call(call) = ir.expr(e) else { return names };
        let (at, function) = (ir.span(e), ir.function(self.here().func));
        if let Some(file) = ir.call(call).args.first() {
            self.words_of(ir.span(file.value), &mut names);
        }
        for (stmt, &span) in ir.stmts.iter().zip(&ir.stmt_spans) {
            if !span.contains(at) {
                continue;
            }
            match *stmt {
                Stmt::Assign { targets, value } if is_each(ir, entry_of(ir, value), at) => {
                    // `state = torch.load(file)["model_state"]`
                    self.words_of(ir.span(value), &mut names);
                    for &target in ir.list(targets) {
                        self.words_of(ir.span(target), &mut names);
                    }
                }
                Stmt::Return(Some(value)) if ir.span(value) == at => names.push(function.name),
                _ => {}
            }
        }
        names
    }

    /// The names and strings in a span of the source.
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
}

/// The value that is indexed: `loaded` of `loaded["model"]`.
fn entry_of(ir: &Module, mut e: ExprId) -> ExprId {
    while let Expr::Index { base, .. } = ir.expr(e) {
        e = base;
    }
    e
}

/// Is it the expression at this place, or a list comprehension over it?
fn is_each(ir: &Module, e: ExprId, at: Span) -> bool {
    match ir.expr(e) {
        Expr::Comp(id) => {
            let comp = ir.comp(id);
            comp.value.is_none() && ir.span(comp.element) == at
        }
        _ => ir.span(e) == at,
    }
}

/// Do the names around a `torch.load` show that it reads weights?
fn named_as_weights(names: &[Sym]) -> bool {
    speak_of(names, WEIGHTS) && !speak_of(names, NO_WEIGHTS)
}

fn speak_of(names: &[Sym], words: &[&str]) -> bool {
    names.iter().any(|name| {
        let name = name.as_str().to_ascii_lowercase();
        words.iter().any(|word| name.contains(word))
    })
}
