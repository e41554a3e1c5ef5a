//! Helpers of other files that run during an import without side effects: `is_torch_available()`.
//!
//! The engine interprets such a call once for all files, in a separate interpreter that knows nothing of the caller. It
//! caches the result if the result has no device and does not depend on earlier calls. To check the latter, a second
//! trial treats all module-level variables as unknown.

use crate::flow::domain::atom::Atom;
use crate::flow::domain::diagram::{FALSE, TRUE};
use crate::flow::domain::value::{FrameId, NO_ORIGIN, ObjId, OuterId, OuterKey, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::flow::query::relevance::import_helpers::{Gives, Known};
use crate::ir::{Expr, ExprId, FuncId, FuncKind, Function};
use crate::link::{Binding, ModIdx};
use crate::sym::Sym;
use crate::words::Words;

/// Libraries without effects on devices or on process state that the engine models.
static HARMLESS: Words = Words::of("libraries without effects");
/// Builtins with arbitrary effects.
static OPEN: Words = Words::of("builtins with any effect");
static BY_NAME: Words = Words::of("look up by name");
/// The maximum call depth at which a helper is tried.
const MAX_DEPTH: u32 = 4;
/// The maximum number of arguments of a helper.
const MOST_ARGUMENTS: usize = 3;
/// The maximum number of steps of a helper.
const MAX_STEPS: u32 = 1_500;

/// The state of a trial.
#[derive(Default)]
pub(crate) struct Trial {
    /// Whether module-level variables count as unknown.
    blurred: bool,
    /// The module-level lists and dicts, with their content at creation.
    kept: Vec<(ObjId, Value)>,
    /// Whether the call had a visible side effect.
    seen: bool,
}

impl Interp<'_> {
    /// The cached result of a helper of another file, if it is the same for all callers.
    pub(crate) fn recalled(
        &mut self,
        module: ModIdx,
        func: FuncId,
        receiver: Option<Value>,
        args: &Args,
        e: ExprId,
    ) -> Option<Value> {
        let asked = module != self.entry
            && !self.run.symbolic
            && self.run.trial.is_none()
            && self.here().func == FuncId(0)
            && receiver.is_none()
            && self.run.depth <= MAX_DEPTH
            && self.libraries.loads.is_empty()
            && [self.devices.environment, self.devices.visible]
                .iter()
                .all(|&cell| self.store.get(cell) == Value::Absent)
            && self.live();
        if !asked || !is_helper(self.program.get(module).ir.function(func)) {
            return None;
        }
        let args = any_like(args)?;
        let positional = args.positional.iter().map(|&(v, _)| (Sym::EMPTY, v));
        let given = positional.chain(args.keywords.iter().map(|&(name, v, _)| (name, v))).collect();
        let helpers = &self.relevance.helpers;
        let known = helpers.ask((module, func, given), || {
            let known = self.tried_out(false, module, func, &args, e)?;
            let whatever = self.tried_out(true, module, func, &args, e)?;
            (known.gives == whatever.gives).then_some(known)
        })?;
        // The engine must record functions of this file that the helper runs, so it interprets the call instead.
        if known.files.contains(&self.entry) {
            return None;
        }
        Some(match known.gives {
            Gives::This(v) => v,
            Gives::Either => {
                let test = crate::flow::machine::Test::Expr(self.here().module, e, self.frame, self.run.pass);
                Value::Bool(self.named_test(test, e))
            }
            Gives::Outside(module, func, expr) => self.given_outside(module, func, expr),
        })
    }

    /// The symbol for the result of an unknown function at this expression, in an activation of its own.
    fn given_outside(&mut self, module: ModIdx, func: FuncId, expr: ExprId) -> Value {
        let (saved, base) = (self.frame, self.store.alloc(0));
        self.push_activation(module, func, base, None);
        let v = self.result_of(expr);
        self.frame = saved;
        v
    }

    /// The result of the call without earlier effects. `None` if the call has side effects, or if its result has a
    /// meaning only in its interpreter.
    fn tried_out(
        &self,
        blurred: bool,
        module: ModIdx,
        func: FuncId,
        args: &Args,
        e: ExprId,
    ) -> Option<Known> {
        let many = self.relevance.calls(module, func) > crate::flow::machine::MANY_CALLS;
        if many || self.relevance.is_telling(module, func) {
            return None;
        }
        let here = self.here().module;
        let mut i = Interp::new(self.program, self.relevance, self.entry);
        i.run.trial = Some(Trial { blurred, ..Trial::default() });
        i.budget.limit = MAX_STEPS;
        let (start, cells) = (i.store.mark(), i.store.len());
        let base = i.global_cell(here, 0);
        i.push_frame(here, FuncId(0), base, None);
        let v = i.call_function(module, func, None, None, args, e);
        let process = i.store.changes(start).iter().any(|&(cell, _)| (cell.0 as usize) < cells);
        let gives = if !process && i.left_nothing() { i.for_all_files(v)? } else { return None };
        // The result may depend on the exact string or number.
        let vague = matches!(gives, Gives::Either | Gives::This(Value::Unknown | Value::Host(_)));
        if vague && args.values().any(|(v, _)| is_any(v)) {
            return None;
        }
        let mut files: Vec<ModIdx> =
            i.frames.iter().filter(|f| f.func != FuncId(0)).map(|f| f.module).collect();
        files.sort_unstable();
        files.dedup();
        Some(Known { gives, files: files.into() })
    }

    /// Whether the trial left all state unchanged, as far as other code can see.
    fn left_nothing(&self) -> bool {
        let Some(trial) = &self.run.trial else { return false };
        let ended = !self.run.exhausted && !self.calls.gave_up && !self.run.ends_early;
        let as_before =
            self.path == TRUE && self.calls.suspended.is_empty() && self.names.class_cells.is_empty();
        let told = self.events.len()
            + self.libraries.loads.len()
            + self.libraries.saved.len()
            + self.calls.handed.len();
        let shown = self.evidence.tensor_proofs.len()
            + self.evidence.sized.len()
            + self.evidence.size_proofs.len()
            + self.evidence.no_tensors.len()
            + self.evidence.numbers.len()
            + self.evidence.other_kinds.len()
            + self.evidence.outer_moves.len()
            + self.modules.hooked.len();
        let process = self.devices.imported.is_some()
            || self.devices.group.is_some()
            || !self.tests.kernels_imported.is_empty()
            || !self.devices.pools.is_empty()
            || !self.observed.texts.is_empty();
        ended
            && as_before
            && told + shown == 0
            && !process
            && !trial.seen
            && trial.kept.iter().all(|&(id, v)| self.own(id) == v)
            && self.evidence.outer_writes.keys().all(|&part| self.is_of_call(part))
            && self.frames.iter().all(|f| self.writes_nothing(f.module, f.func))
    }

    /// Whether the value is a part of a value that an interpreted function made.
    fn is_of_call(&self, mut part: OuterId) -> bool {
        loop {
            match self.t.get_outer(part).key {
                OuterKey::Attr { base, .. } | OuterKey::Item { base, .. } => part = base,
                OuterKey::Result { frame: FrameId(n), .. } => {
                    return self.frames.get(n as usize).is_some_and(|f| f.func != FuncId(0));
                }
                _ => return false,
            }
        }
    }

    /// Whether the function writes only those module-level variables that are initially `None`. Their values are
    /// unknown to the engine in any case.
    fn writes_nothing(&self, module: ModIdx, func: FuncId) -> bool {
        let linked = self.program.get(module);
        let lacking = |b: &Binding| matches!(*b, Binding::Value(e) if linked.ir.expr(e) == Expr::None);
        let written = self.program.written_globals(module, func);
        written.iter().all(|&slot| linked.bindings.get(usize::from(slot)).is_some_and(lacking))
    }

    /// The result in terms that are valid in all files. `None` if there are none.
    fn for_all_files(&self, v: Value) -> Option<Gives> {
        match v {
            Value::Outer(o) => {
                let outer = self.t.get_outer(o);
                let OuterKey::Result { module, expr, frame, pass: 0 } = outer.key else { return None };
                let frame = self.frames.get(frame.0 as usize).filter(|f| f.func != FuncId(0))?;
                let plain = frame.module == module
                    && !matches!(outer.text.as_str(), "" | "get()")
                    && !crate::flow::query::flag_words::speaks_of_devices(&outer.text)
                    && !self.has_fields(o);
                plain.then_some(Gives::Outside(module, frame.func, expr))
            }
            Value::Choice(d) => {
                let mut leaves = Vec::new();
                self.d.leaves(d, &mut leaves);
                let answer = |&leaf: &u32| {
                    matches!(
                        *self.t.values.get(leaf),
                        Value::Bool(_) | Value::None | Value::Unknown | Value::Outer(_) | Value::Host(_)
                    )
                };
                let truth = |leaf: &u32| match *self.t.values.get(*leaf) {
                    Value::Bool(c) => self.is_chance(c),
                    Value::Outer(o) => {
                        !crate::flow::query::flag_words::speaks_of_devices(&self.t.get_outer(o).text)
                    }
                    _ => true,
                };
                let open = leaves.iter().all(answer) && leaves.iter().all(truth) && self.is_chance(d);
                open.then_some(Gives::Either)
            }
            Value::Bool(c) if c != TRUE && c != FALSE => self.is_chance(c).then_some(Gives::Either),
            v => is_same_everywhere(v).then_some(Gives::This(v)),
        }
    }

    /// Whether no atom about the machine or about devices decides the value.
    fn is_chance(&self, d: crate::flow::domain::diagram::Dd) -> bool {
        let mut atoms = Vec::new();
        self.d.support(d, &mut atoms);
        atoms.iter().all(|&atom| match self.atoms.get(atom) {
            Atom::Flag { about_devices, .. } => !about_devices,
            Atom::Opaque { .. } | Atom::Raised | Atom::Partly | Atom::Caught => true,
            _ => false,
        })
    }

    /// Whether module-level variables count as unknown.
    pub(crate) fn is_blurred(&self) -> bool {
        self.run.trial.as_ref().is_some_and(|t| t.blurred)
    }

    /// Records the objects that the evaluation of a module-level variable has made.
    pub(crate) fn note_kept(&mut self, since: usize) {
        if self.run.trial.is_none() {
            return;
        }
        for n in since..self.objects.len() {
            let id = ObjId(u32::try_from(n).unwrap_or(u32::MAX));
            let plain = matches!(
                self.obj(id).kind,
                ObjKind::List { module: false } | ObjKind::Dict { module: false }
            );
            let own = self.own(id);
            if let Some(trial) = &mut self.run.trial {
                trial.seen |= !plain;
                trial.kept.push((id, own));
            }
        }
    }

    /// Records a call of a function outside the project.
    pub(crate) fn note_called(&mut self, path: Sym, args: &Args) {
        let Some(trial) = &mut self.run.trial else { return };
        let text = path.as_str();
        let root = text.split('.').next().unwrap_or(text);
        let harmless = HARMLESS.has(root) && !OPEN.has(text) || text.starts_with("os.path.");
        // These are harmless only if the variable's or module's name is a literal.
        let by_name = BY_NAME.has(text);
        let named = || !args.values().take(1).any(|(v, _)| is_any(v) || v == Value::Unknown);
        trial.seen |= if by_name { !named() } else { !harmless };
    }

    /// Records a visible side effect.
    pub(crate) fn note_seen(&mut self) {
        if let Some(trial) = &mut self.run.trial {
            trial.seen = true;
        }
    }
}

/// Whether the function is a plain module-level function.
fn is_helper(function: &Function) -> bool {
    function.kind == FuncKind::Function
        && function.class.is_none()
        && function.parent == Some(FuncId(0))
        && !function.is_generator
        && !function.is_async
}

/// The arguments with each string and number replaced by an unknown one. This keeps the number of trials small. `None`
/// if an argument has no meaning common to all files.
fn any_like(args: &Args) -> Option<Args> {
    let spread = args.open || args.open_names || args.spread.is_some() || args.either.is_some();
    if spread || args.positional.len() + args.keywords.len() > MOST_ARGUMENTS {
        return None;
    }
    let any = |v: Value| match v {
        Value::Str(_, NO_ORIGIN) => Some(Interp::TEXT),
        Value::Int(_) => Some(Interp::NUMBER),
        v => is_same_everywhere(v).then_some(v),
    };
    let positional = args.positional.iter().map(|&(v, at)| Some((any(v)?, at)));
    let keywords = args.keywords.iter().map(|&(name, v, at)| Some((name, any(v)?, at)));
    Some(Args {
        positional: positional.collect::<Option<_>>()?,
        keywords: keywords.collect::<Option<_>>()?,
        ..Args::default()
    })
}

/// Whether the value is an unknown string or number.
fn is_any(v: Value) -> bool {
    matches!(v, Interp::TEXT | Interp::NUMBER)
}

/// Whether the value has the same meaning in every interpreter.
fn is_same_everywhere(v: Value) -> bool {
    match v {
        Value::Unknown | Value::None | Value::Int(_) | Value::Host(_) => true,
        Value::Bool(c) => c == TRUE || c == FALSE,
        Value::Str(_, origin) => origin == NO_ORIGIN,
        _ => false,
    }
}
