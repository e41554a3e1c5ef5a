//! Helpers of other files that are called as a file is imported, and leave nothing behind: `is_torch_available()`.
//!
//! Such a call is tried out once for all files, in an interpreter of its own that knows nothing of the caller. What it gives is
//! remembered if it tells of no device and says the same whatever has happened before: a second trial knows nothing of what
//! files keep in their variables.

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

/// Libraries that know nothing of devices, and do nothing to the process that anybody here asks about.
const HARMLESS: &[&str] = &[
    "builtins",
    "collections",
    "enum",
    "functools",
    "importlib",
    "inspect",
    "itertools",
    "json",
    "logging",
    "operator",
    "packaging",
    "platform",
    "re",
    "string",
    "sys",
    "textwrap",
    "threading",
    "time",
    "types",
    "typing",
    "warnings",
];
/// Builtins that do anything.
const OPEN: &[&str] =
    &["builtins.setattr", "builtins.delattr", "builtins.exec", "builtins.eval", "builtins.globals"];
/// Calls within calls at which one is still asked about.
const MAX_DEPTH: u32 = 4;
/// What is given more is no helper.
const MOST_ARGUMENTS: usize = 3;
/// What takes longer is none, either.
const MAX_STEPS: u32 = 1_500;

/// A call that is tried out.
#[derive(Default)]
pub(crate) struct Trial {
    /// What files keep in their variables may be anything.
    blurred: bool,
    /// What lists and dicts that files keep held when they were made.
    kept: Vec<(ObjId, Value)>,
    /// Something was done that somebody else may see.
    seen: bool,
}

impl Interp<'_> {
    /// What a call of a helper of another file gives, if that is the same whoever calls it.
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
        // That a function of the file itself has run is remembered.
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

    /// What an unknown function gives that is called there, in an activation of its own.
    fn given_outside(&mut self, module: ModIdx, func: FuncId, expr: ExprId) -> Value {
        let (saved, base) = (self.frame, self.store.alloc(0));
        self.push_activation(module, func, base, None);
        let v = self.result_of(expr);
        self.frame = saved;
        v
    }

    /// What the call gives where nothing has happened before; nothing if it leaves anything behind, or gives what only its
    /// interpreter knows.
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
        // What it says may hang on which text it is given, or which number.
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

    /// Is everything as it was before the trial, as far as somebody else can see?
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

    /// Is it part of something that was made in a function that has run?
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

    /// Does the function write no variable of its file but those that are `None` until somebody sets them? What these are is not
    /// known anywhere.
    fn writes_nothing(&self, module: ModIdx, func: FuncId) -> bool {
        let linked = self.program.get(module);
        let lacking = |b: &Binding| matches!(*b, Binding::Value(e) if linked.ir.expr(e) == Expr::None);
        let written = self.program.written_globals(module, func);
        written.iter().all(|&slot| linked.bindings.get(usize::from(slot)).is_some_and(lacking))
    }

    /// What was given, in terms that all files understand.
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

    /// Does nothing of the machine decide it, and nothing that speaks of devices?
    fn is_chance(&self, d: crate::flow::domain::diagram::Dd) -> bool {
        let mut atoms = Vec::new();
        self.d.support(d, &mut atoms);
        atoms.iter().all(|&atom| match self.atoms.get(atom) {
            Atom::Flag { about_devices, .. } => !about_devices,
            Atom::Opaque { .. } | Atom::Raised | Atom::Partly | Atom::Caught => true,
            _ => false,
        })
    }

    /// May the variables of files be anything?
    pub(crate) fn is_blurred(&self) -> bool {
        self.run.trial.as_ref().is_some_and(|t| t.blurred)
    }

    /// A variable of a file has been evaluated, and these objects have been made for it.
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

    /// A function outside the project is called.
    pub(crate) fn note_called(&mut self, path: Sym, args: &Args) {
        let Some(trial) = &mut self.run.trial else { return };
        let text = path.as_str();
        let root = text.split('.').next().unwrap_or(text);
        let harmless = HARMLESS.contains(&root) && !OPEN.contains(&text) || text.starts_with("os.path.");
        // Which variable of the environment, and which module, must be written there.
        let by_name = matches!(text, "os.getenv" | "os.environ.get" | "importlib.import_module");
        let named = || !args.values().take(1).any(|(v, _)| is_any(v) || v == Value::Unknown);
        trial.seen |= if by_name { !named() } else { !harmless };
    }

    /// Something was done that others may see.
    pub(crate) fn note_seen(&mut self) {
        if let Some(trial) = &mut self.run.trial {
            trial.seen = true;
        }
    }
}

/// A function of a file, of which a call runs the body.
fn is_helper(function: &Function) -> bool {
    function.kind == FuncKind::Function
        && function.class.is_none()
        && function.parent == Some(FuncId(0))
        && !function.is_generator
        && !function.is_async
}

/// The arguments, each text and number as any, if all of them mean the same in every file: of these there are few, so that trials
/// are few as well.
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

/// Is it a text or a number, and nobody knows which?
fn is_any(v: Value) -> bool {
    matches!(v, Interp::TEXT | Interp::NUMBER)
}

/// Does the value mean the same in every interpreter?
fn is_same_everywhere(v: Value) -> bool {
    match v {
        Value::Unknown | Value::None | Value::Int(_) | Value::Host(_) => true,
        Value::Bool(c) => c == TRUE || c == FALSE,
        Value::Str(_, origin) => origin == NO_ORIGIN,
        _ => false,
    }
}
