//! Entry points: a file's body, then each of its functions on its own.

use crate::flow::domain::atom::Atom;
use crate::flow::domain::diagram::{FALSE, TRUE};
use crate::flow::domain::event::{Compared, Event, Kind, Later};
use crate::flow::domain::store::Cell;
use crate::flow::domain::value::{OuterKey, Value};
use crate::flow::evidence::file_facts::Files;
use crate::flow::machine::Interp;
use crate::flow::query::relevance::functions::Relevance;
use crate::ir::FuncId;
use crate::link::{ModIdx, Program};
use crate::span::Place;
use crate::sym::Sym;
use crate::words::Words;

/// The methods of a Lightning module whose batch argument Lightning moves first
/// (lightning/pytorch/strategies/strategy.py).
pub(crate) static STEPS: Words = Words::of("steps of Lightning");
/// The method that moves the batch.
pub(crate) const BRINGS: &str = "transfer_batch_to_device";

/// The result of interpreting a file.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Possible findings, in the order in which they were found.
    pub events: Vec<Event>,
    /// Whether the file is clearly written for CUDA only.
    pub cuda_only: bool,
    /// Whether a function of the file raises without CUDA.
    pub refuses: bool,
    /// Entry points that exceeded the budget, each once, in source order.
    pub exhausted: Vec<Exhausted>,
}

/// A function, file body or constructor that exceeds its budget. The engine reports no events for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exhausted {
    /// The name of the function; `<module>` for the body of a file, the class's name for a constructor from another
    /// file.
    pub name: Sym,
    /// The place of the name after `def` or `class`; the start of the file for its body.
    pub place: Place,
}

/// The results so far: events, each with its symbolic function.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) events:
        Vec<(Event, Option<FuncId>, Option<crate::flow::machine::arguments::callers::Parameter>)>,
    pub(crate) exhausted: Vec<Exhausted>,
}

/// Interprets a file of the program.
pub fn run_module(program: &Program, relevance: &Relevance, module: ModIdx) -> Outcome {
    let files = Files(program);
    let (cuda_only, refuses) = (files.cuda_only_file(relevance, module), files.refuses_without_cuda(module));
    if relevance.is_idle(module) {
        return Outcome { cuda_only, refuses, ..Outcome::default() };
    }
    let mut i = Interp::new(program, relevance, module);
    let mut out = Found::default();
    i.run_body(&mut out);
    // Functions that are only passed as arguments come last: by then it is known where, and under which guards.
    let last = i.only_handed(module);
    if !i.run.ends_early {
        i.run_functions(&mut out, &last, false);
        i.run_classes(&mut out);
        i.run_functions(&mut out, &last, true);
    }
    let (texts, needed) = (&i.observed.texts, &i.observed.needed);
    out.events.retain(|(e, ..)| match e.kind {
        Kind::DeviceCompared { how: Compared::Text, .. } => !texts.contains(&e.place),
        Kind::AlreadyThere => !needed.contains(&e.place),
        _ => true,
    });
    let events = i.mark_decided(out.events);
    // An entry point that was interpreted several times is reported once.
    out.exhausted.sort_by_key(|e| e.place.span.start);
    out.exhausted.dedup();
    Outcome {
        events: with_shadows(crate::flow::observers::events::reveal::joined(events)),
        cuda_only,
        refuses,
        exhausted: out.exhausted,
    }
}

/// Turns each use that an earlier use precedes into a later place of the earlier event.
fn with_shadows(events: Vec<Event>) -> Vec<Event> {
    let (shadows, mut events): (Vec<_>, Vec<_>) =
        events.into_iter().partition(|e| matches!(e.kind, Kind::Shadowed { .. }));
    for shadow in shadows {
        let Kind::Shadowed { first, origin } = shadow.kind else { continue };
        let later =
            || Later { place: shadow.place, through: shadow.stack.iter().copied().chain(origin).collect() };
        let first_kind = |kind: &Kind| {
            matches!(kind, Kind::Use { .. } | Kind::GlobalRank | Kind::Nccl | Kind::DoubleOnMps { .. })
        };
        let of_first = events.iter_mut().filter(|e| e.place == first && first_kind(&e.kind));
        for e in of_first {
            if e.place != shadow.place && !e.also.iter().any(|known| known.place == shadow.place) {
                e.also.push(later());
            }
        }
    }
    events
}

impl Interp<'_> {
    /// Interprets the module's body as a script.
    fn run_body(&mut self, out: &mut Found) {
        let module = self.entry;
        let base = self.global_cell(module, 0);
        self.push_frame(module, FuncId(0), base, None);
        self.path = self.plugins_at_top(module);
        let body = self.program.get(module).ir.function(FuncId(0)).body;
        self.block(body);
        if self.run.exhausted {
            self.forget_unfinished(base);
        }
        self.collect(out);
        self.body_ended();
        self.open_empty(base);
        // Functions run after the body, so the body's checks hold in them.
        if self.path == FALSE {
            self.path = TRUE;
        }
        self.path = self.settled(self.path);
        let marks = self.module_marks(module);
        self.path = self.d.and(self.path, marks);
        self.run.symbolic = true;
        self.budget.limit = crate::flow::machine::SYMBOLIC_STEPS;
    }

    /// The interpreter gave up in the module's body. The rest of the body may bind every name again and move every module, and the
    /// path may end inside a branch. Functions must not see this half of a state: only functions, classes and imports stay.
    fn forget_unfinished(&mut self, base: Cell) {
        let slots = self.program.get(self.entry).ir.function(FuncId(0)).slots.len();
        for n in 0..u32::try_from(slots).unwrap_or(0) {
            let cell = Cell(base.0 + n);
            let stays = matches!(
                self.store.get(cell),
                Value::Closure(_) | Value::Class(_) | Value::Module(_) | Value::External(_) | Value::Absent
            );
            if !stays {
                self.store.set(cell, Value::Unknown);
            }
        }
        self.path = TRUE;
    }

    /// Makes the content of lists and dicts unknown that are empty after the module's body: functions fill them in any
    /// order.
    fn open_empty(&mut self, base: Cell) {
        let slots = self.program.get(self.entry).ir.function(FuncId(0)).slots.len();
        for n in 0..u32::try_from(slots).unwrap_or(0) {
            let Value::Object(id) = self.store.get(Cell(base.0 + n)) else { continue };
            let container = matches!(
                self.obj(id).kind,
                crate::flow::machine::frame::ObjKind::List { module: false }
                    | crate::flow::machine::frame::ObjKind::Dict { module: false }
            );
            if container && self.exact_elements(Value::Object(id)).is_some_and(|items| items.is_empty()) {
                let content = self.many(Value::Absent);
                self.set_own(id, content);
            }
        }
    }

    /// The part of a condition that is about the machine.
    pub(crate) fn settled(
        &mut self,
        c: crate::flow::domain::diagram::Cond,
    ) -> crate::flow::domain::diagram::Cond {
        let c = self.gone_well(c);
        self.d.forget(c, &crate::flow::domain::atom::AtomId::is_hardware)
    }

    /// The condition under which no earlier use has raised. The shadows of imports in functions are forgotten: like an
    /// import at the top, they restrict nothing.
    pub(crate) fn gone_well(
        &mut self,
        c: crate::flow::domain::diagram::Cond,
    ) -> crate::flow::domain::diagram::Cond {
        let (atoms, imported) = (&self.atoms, &self.tests.kernels_imported);
        let c = self.d.forget(c, &|a| !imported.contains(&a));
        let gone = |a| matches!(atoms.get(a), Atom::Shadow { .. });
        self.d.without(c, &gone)
    }

    /// The condition of `pytestmark = pytest.mark.skipif(…)`, alone or in a list, which applies to all tests of the
    /// file.
    fn module_marks(&mut self, module: ModIdx) -> crate::flow::domain::diagram::Cond {
        let linked = self.program.get(module);
        let Some(&slot) = linked.names.get(&Sym::new("pytestmark")) else { return TRUE };
        let Some(&crate::link::Binding::Value(e)) = linked.bindings.get(usize::from(slot)) else {
            return TRUE;
        };
        match linked.ir.expr(e) {
            crate::ir::Expr::List(list) | crate::ir::Expr::Tuple(list) => {
                self.decorator_guard(module, FuncId(0), list)
            }
            _ => self.one_guard(module, FuncId(0), e),
        }
    }

    pub(crate) fn collect(&mut self, out: &mut Found) {
        if self.run.exhausted {
            out.exhausted.push(self.exhausted_entry());
        }
        self.end_group();
        self.end_transfers();
        for mut pending in std::mem::take(&mut self.events) {
            // An object with fields of its own is a batch or similar. It moves in place.
            if matches!(pending.event.kind, crate::flow::domain::event::Kind::Discarded { .. })
                && pending.needs.iter().chain(&pending.about).any(|&o| self.has_fields(o))
            {
                continue;
            }
            let number = pending.about.iter().any(|o| self.evidence.size_proofs.contains(o));
            if pending.needs.iter().all(|&o| self.is_proven(o))
                && !number
                && !self.any_on_host(&pending.about)
            {
                let parameter = self.parameter_of(&pending.about);
                pending.event.followed = self.any_followed(&pending.about);
                self.with_what_met(&mut pending.event);
                out.events.push((pending.event, pending.function, parameter));
            }
        }
        self.forget_host();
        self.forget_file_parts();
        self.calls.suspended.clear();
        self.libraries.saved.clear();
        self.calls.heavy_here.clear();
        self.devices.ranks_used.clear();
        self.devices.gpus_chosen.clear();
        self.devices.module_met.clear();
        self.budget.renew();
        self.run.exhausted = false;
    }

    /// The name and place of the current entry point, for the report that it exceeded the budget.
    fn exhausted_entry(&self) -> Exhausted {
        let ir = &self.program.get(self.entry).ir;
        let (name, span) = match (self.calls.callers.entry, self.run.constructed) {
            (Some(f), _) => (ir.function(f).name, ir.function(f).name_span),
            (None, Some(class)) => (ir.class(class).name, ir.class(class).name_span),
            (None, None) => (ir.function(FuncId(0)).name, ir.function(FuncId(0)).name_span),
        };
        Exhausted { name, place: Place { file: ir.file, span } }
    }

    /// Discards the events of code that was interpreted only for its effects.
    pub(crate) fn collect_nothing(&mut self) {
        self.collect(&mut Found::default());
    }

    /// Whether the program has read an attribute of the outside value that no tensor has.
    pub(crate) fn has_fields(&self, o: crate::flow::domain::value::OuterId) -> bool {
        self.t.outers.iter().any(|outer| match outer.key {
            OuterKey::Attr { base, name } => {
                base == o && !crate::flow::evidence::tensor_evidence::is_tensor_attribute(name)
            }
            _ => false,
        })
    }

    /// Whether the value is known to be a tensor, or a part of one.
    fn is_proven(&self, o: crate::flow::domain::value::OuterId) -> bool {
        self.is_tensorish(o)
            || match self.t.get_outer(o).key {
                OuterKey::Item { key: Some(Value::Str(..)), .. } => false,
                OuterKey::Item { base, .. } => self.is_proven(base),
                _ => false,
            }
    }

    /// Restores the state from before an entry point.
    pub(crate) fn rewind(&mut self, mark: crate::flow::domain::store::Mark, cells: usize, objects: usize) {
        self.store.reset(mark, cells);
        self.objects.truncate(objects);
        self.calls.rewind(objects);
        self.heap.rewind(objects);
        self.devices.rewind(objects);
        self.modules.rewind(objects);
        self.libraries.rewind(objects);
        self.observed.rewind(objects);
        self.tensors.doubles.clear();
        self.names.bound.retain(|cell, _| (cell.0 as usize) < cells);
        for o in &mut self.objects {
            o.attrs.retain(|(_, c)| (c.0 as usize) < cells);
        }
        self.names.globals.retain(|_, c| (c.0 as usize) < cells);
        self.evidence.outer_writes.retain(|_, c| (c.0 as usize) < cells);
        self.evidence.outer_moves.retain(|_, c| (c.0 as usize) < cells);
        self.names.class_cells.retain(|_, c| (c.0 as usize) < cells);
        self.names.evaluated.clear();
    }
}
