//! Models in evaluation mode that the program calls while gradients are recorded.

use crate::flow::domain::diagram::TRUE;
use crate::flow::domain::diagram::{Cond, FALSE};
use crate::flow::domain::event::Kind;
use crate::flow::domain::value::{Device, ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::observers::modules::result_use::{Course, DIFFERENTIATES, trained_again};
use crate::ir::{ArgKind, Expr, ExprId, FuncId, Var};
use crate::link::{ModIdx, Resolved};
use crate::span::{Place, Span};
use crate::sym::Sym;
use crate::words::Words;

/// Names that show that the author considered gradients.
static ABOUT_GRADIENTS: Words = Words::of("names about gradients");

/// `Variable(x, volatile=True)`, with which PyTorch before 0.4 recorded no graph.
const VOLATILE: &str = "volatile";

/// Names with which code keeps a module's weights out of graphs.
static FREEZES: Words = Words::of("freeze weights");

/// Names that show that a function trains. They count only in the function that makes the call, not in its callers.
static ABOUT_TRAINING: Words = Words::of("names about training");

/// Calls that switch the recording of gradients.
static SWITCHES: Words = Words::of("switch gradients");

/// Decides which spans of a function to search.
type Matters<'a> = &'a dyn Fn(Span) -> bool;

impl Interp<'_> {
    /// `module.eval()` and `module.train()`.
    pub(crate) fn module_mode(&mut self, module: Value, name: &str, args: &Args, e: ExprId) {
        self.sets_mode(module, name, args);
        match name {
            "eval" => {
                let place = self.place(e);
                self.observed.evaluated.insert(module, place);
            }
            "train" if args.positional.first().is_some_and(|&(v, _)| v == Value::Bool(FALSE)) => {
                let place = self.place(e);
                self.observed.evaluated.insert(module, place);
            }
            "train" => {
                self.observed.evaluated.remove(&module);
            }
            _ => {}
        }
    }

    /// The program calls a module in evaluation mode. Reports it if the call is repeated or belongs to a training, and nothing on
    /// the call stack mentions gradients.
    pub(crate) fn check_evaluation(&mut self, id: ObjId, e: ExprId) {
        let Some(&since) = self.observed.evaluated.get(&Value::Object(id)) else { return };
        if self.run.muted > 0 || self.in_module() || !self.has_weights(id, 0) {
            return;
        }
        if self.is_gradless() {
            return;
        }
        let looped = self.is_repeated() || self.modules.optimizers.iter().any(|o| o.modules.contains(&id));
        if !looped
            || self.thinks_of_gradients(since, e)
            || self.is_made_without(id)
            || self.records_nothing(id)
        {
            return;
        }
        let device = self.module_device(id, 0);
        let here = self.where_on_cuda(device);
        self.runs_with_graph(here, e);
    }

    /// `torch.set_grad_enabled(mode)` as a statement: the mode stays in force from here on, also in callers.
    pub(crate) fn switch_gradients(&mut self, args: &Args) -> Value {
        let off = match args.get(0, "mode") {
            Some((Value::Bool(on), _)) => Value::Bool(self.d.not(on)),
            _ => Value::Unknown,
        };
        self.store.set(self.observed.gradless, off);
        Value::Unknown
    }

    /// Is it `with torch.set_grad_enabled(mode):` or `with torch.no_grad():`, which restore the mode after the block?
    pub(crate) fn switches_gradients(&self, context: ExprId) -> bool {
        self.switch_of(context).is_some()
    }

    /// The block of `with torch.no_grad():` or similar begins. (`set_grad_enabled` already switches in its call.)
    pub(crate) fn enter_gradients(&mut self, context: ExprId) {
        let off = match self.switch_of(context) {
            Some("no_grad" | "inference_mode") => TRUE,
            Some("enable_grad") => FALSE,
            _ => return,
        };
        self.store.set(self.observed.gradless, Value::Bool(off));
    }

    fn switch_of(&self, context: ExprId) -> Option<&'static str> {
        let ir = &self.linked().ir;
        let Expr::Call(call) = ir.expr(context) else { return None };
        let name = ir.last_name(ir.call(call).func)?.as_str();
        // With an argument, `inference_mode(mode)` may switch either way.
        let plain = name == "set_grad_enabled" || ir.call(call).args.is_empty();
        SWITCHES.all().iter().copied().find(|&switch| plain && switch == name)
    }

    /// May gradients be off here, according to the calls that the engine interpreted?
    pub(crate) fn is_gradless(&self) -> bool {
        !matches!(self.store.get(self.observed.gradless), Value::Absent | Value::Bool(FALSE))
    }

    /// Does the constructor of its class, or of a class that it wraps, deal with gradients: `self.requires_grad_(False)`?
    fn is_made_without(&self, id: ObjId) -> bool {
        let wrapped = self.obj(id).attrs.iter().filter_map(|&(_, cell)| match self.store.get(cell) {
            Value::Object(part) => Some(part),
            _ => None,
        });
        let classes = std::iter::once(id).chain(wrapped).filter_map(|part| self.obj(part).class);
        classes.into_iter().any(|class| {
            let method = |name| self.program.find_method(class, name);
            let freezes = method(self.known.init)
                .is_some_and(|(m, f)| self.speaks_of(FREEZES.all(), (m, f), &|_| true));
            // `@torch.no_grad()` on its `forward`: no caller gets a graph.
            freezes
                || method(self.known.forward).is_some_and(|(m, f)| {
                    let ir = &self.program.get(m).ir;
                    let decorators = ir.list(ir.function(f).decorators);
                    let around = |at: Span| decorators.iter().any(|&d| ir.span(d).contains(at));
                    self.speaks_of(ABOUT_GRADIENTS.all(), (m, f), &around)
                })
        })
    }

    fn where_on_cuda(&mut self, device: crate::flow::domain::diagram::Dd) -> Cond {
        let accelerators: Vec<u32> = self
            .device_leaves(device)
            .into_iter()
            .filter(|(_, d, _)| matches!(d, Device::Cuda(_) | Device::CudaSome))
            .map(|(leaf, ..)| leaf)
            .collect();
        if accelerators.is_empty() {
            return FALSE;
        }
        self.d.where_leaf(device, &mut |p| accelerators.contains(&p))
    }

    pub(crate) fn runs_with_graph(&mut self, here: Cond, e: ExprId) {
        let there = self.available(None);
        let bad = self.d.and(here, there);
        if let Some(bite) = self.bite(bad, false) {
            let place = self.place(e);
            self.emit(Kind::EvaluatedWithGraph, place, bite, Vec::new());
        }
    }

    /// Is this point in a loop, in this function or in a caller?
    pub(crate) fn is_repeated(&self) -> bool {
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            if !frame.loops.is_empty() {
                return true;
            }
            at = frame.caller;
        }
        false
    }

    /// Does a function on the call stack deal with gradients? In the function that called `eval()`, only the code after that call
    /// and the blocks around the call count.
    pub(crate) fn thinks_of_gradients(&self, since: Place, e: ExprId) -> bool {
        let call = self.place(e).span;
        let (mut at, mut words) = (Some(self.frame), [ABOUT_GRADIENTS.all(), ABOUT_TRAINING.all()].concat());
        let (mut site, mut escapes) = (call, false);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            let ir = &self.program.get(frame.module).ir;
            let function = ir.function(frame.func);
            let local = frame.func.0 != 0
                && since.file == ir.file
                && function.span.contains(since.span)
                && since.span.start < call.start
                && f == self.frame;
            let thinks = if local {
                let until = trained_again(ir, function.span, call);
                let after = |span: Span| span.start >= since.span.start && span.end <= until;
                self.speaks_of(&words, (frame.module, frame.func), &after)
                    // A function that freezes weights anywhere keeps them out of graphs.
                    || self.speaks_of(FREEZES.all(), (frame.module, frame.func), &|_| true)
            } else {
                self.speaks_of(&words, (frame.module, frame.func), &|_| true)
            };
            // A caller's `backward()` counts only if it differentiates the result of the call.
            let course = Course::of(ir, frame.func, site);
            let differentiates = f != self.frame
                && self.speaks_of(DIFFERENTIATES, (frame.module, frame.func), &|_| true)
                && (escapes || course.is_differentiated());
            if thinks || differentiates {
                return true;
            }
            escapes |= course.escapes;
            words = ABOUT_GRADIENTS.all().iter().copied().filter(|w| !DIFFERENTIATES.contains(w)).collect();
            match frame.site {
                Some(called) => site = called.span,
                None => escapes = true,
            }
            at = frame.caller;
        }
        false
    }

    /// Does the function or one of its decorators contain one of these names, in a span that `matters` accepts? Or does one of
    /// the project's own decorators around it?
    pub(crate) fn speaks_of(
        &self,
        words: &[&str],
        (module, func): (ModIdx, FuncId),
        matters: Matters<'_>,
    ) -> bool {
        let ir = &self.program.get(module).ir;
        self.has_word(words, (module, func), matters)
            || ir.list(ir.function(func).decorators).iter().any(|&d| {
                let target = if let Expr::Call(c) = ir.expr(d) { ir.call(c).func } else { d };
                matches!(self.program.resolve_expr(module, target),
                    Some(Resolved::Function(m, f)) if self.has_word(words, (m, f), &|_| true))
            })
    }

    /// Does the function or one of its decorators contain one of these names, in a span that `matters` accepts? For a file's body, the
    /// code inside of functions does not count.
    pub(crate) fn has_word(
        &self,
        words: &[&str],
        (module, func): (ModIdx, FuncId),
        matters: Matters<'_>,
    ) -> bool {
        let ir = &self.program.get(module).ir;
        let function = ir.function(func);
        let about = |name: Sym| words.contains(&name.as_str());
        // A test function is small. If the program itself calls a function `test…`, that is its evaluation.
        if function.name.as_str().starts_with("test")
            && !self.program.sites(module).by_name.contains_key(&func)
            && !self.program.is_imported(module, function.name)
        {
            return true;
        }
        let decorated = |at: Span| ir.list(function.decorators).iter().any(|&d| ir.span(d).contains(at));
        ir.exprs.iter().zip(&ir.expr_spans).any(|(e, &at)| {
            let inside = if func.0 == 0 {
                !ir.functions.iter().any(|f| f.parent.is_some() && f.span.contains(at))
            } else {
                function.span.contains(at)
            };
            (inside && matters(at) || func.0 != 0 && decorated(at))
                && match *e {
                    Expr::Attr { name, .. } => about(name),
                    Expr::Var(Var::Unbound(name)) => about(name),
                    Expr::Var(Var::Global(slot)) => ir
                        .functions
                        .first()
                        .and_then(|f| f.slots.get(usize::from(slot)))
                        .is_some_and(|&name| about(name)),
                    Expr::Call(call) if words.contains(&VOLATILE) => ir
                        .call(call)
                        .args
                        .iter()
                        .any(|a| matches!(a.kind, ArgKind::Keyword(k) if k.as_str() == VOLATILE)),
                    _ => false,
                }
        })
    }
}
