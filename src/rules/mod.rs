//! The rules: facts from the flow engine become findings.
//!
//! Each family is a file of functions from one [`Event`] to at most one finding; the first rule that speaks
//! has the event. Those that ask how a file is written, not what it does, start from `file::File` and read the
//! intermediate representation. No rule looks at syntax trees.

mod availability;
mod averages;
mod carried;
mod confidence;
mod copies_left;
mod costs;
pub mod example;
pub mod explain;
mod fallbacks;
mod file;
mod followed;
mod given_modules;
mod graphs;
mod indices;
mod inputs;
mod memory;
mod message;
mod mismatch;
mod modules;
mod naming;
mod one_line;
mod order;
pub mod page;
mod parameters;
mod precision;
pub mod registry;
mod replicas;
mod resolved;
mod retry;
mod spelling;
mod stale;
mod threads;
mod transfers;

use std::path::Path;

use rustc_hash::FxHashMap;

pub use one_line::one_on_a_line;

use crate::finding::{ByDefault, Code, Confidence, Finding, Given, Label, Role, Spot, Way};
use crate::flow::event::{Again, Bite, DeviceName, Event, Kind, Operand};
use crate::flow::value::Reason;
use crate::flow::{Outcome, event};
use crate::ir::FuncId;
use crate::link::Program;
use crate::source::Sources;
use crate::span::{FileId, Place};
use crate::world::World;

/// What rules may look at besides the event.
pub struct Context<'a> {
    /// The file whose functions were the entry points: findings are placed in it.
    pub file: FileId,
    /// The root of the project that it belongs to, absolute.
    pub root: &'a Path,
    /// All files.
    pub sources: &'a Sources,
    /// All files, linked.
    pub program: &'a Program,
    /// The file is plainly written for CUDA alone.
    pub cuda_only: bool,
    /// A function of the file refuses to go on without CUDA: the others may count on it.
    pub refuses: bool,
    /// Sizes that memory rules speak of.
    pub limits: Limits,
}

/// Sizes that memory rules speak of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Allocations of at least this many bytes want a handler (SD501).
    pub oom_threshold: u64,
    /// No accelerator has more than this many bytes (SD507).
    pub max_accelerator_memory: u64,
}

/// Findings by the file that they belong to.
pub type Found = FxHashMap<FileId, Vec<Finding>>;

type Rule = fn(&Event, &Context<'_>) -> Option<Finding>;

/// The rules in the order in which they are asked.
const RULES: &[Rule] = &[
    reveal,
    availability::uncalled_check,
    availability::inverted_check,
    availability::missing_plugin,
    indices::too_late,
    indices::outside_visible,
    indices::fixed_visible,
    indices::global_rank,
    indices::no_set_device,
    indices::in_worker,
    indices::device_list,
    indices::device_index,
    availability::accelerator,
    availability::legacy_type,
    availability::in_module,
    availability::unguarded,
    availability::load,
    modules::submodule,
    modules::non_leaf,
    modules::optimizer_first,
    modules::wrapped,
    modules::nccl,
    modules::autocast,
    spelling::invalid,
    spelling::misplaced,
    spelling::compared,
    spelling::no_device,
    spelling::collective,
    spelling::half,
    precision::double_on_mps,
    precision::double_on_gpu,
    precision::bfloat16,
    costs::emptied,
    costs::sync,
    costs::kept,
    transfers::unwaited,
    transfers::pageable,
    transfers::invariant,
    transfers::created,
    transfers::already_there,
    transfers::timed,
    transfers::there_and_back,
    mismatch::discarded,
    mismatch::moved_empty,
    mismatch::to_numpy,
    mismatch::generator,
    mismatch::cpu_only,
    mismatch::data,
    mismatch::unregistered,
    mismatch::module_input,
    mismatch::default_device,
    mismatch::operation,
    memory::impossible,
    memory::missing_handler,
    memory::swallowed,
    memory::with_graph,
];

/// The findings of one file.
pub fn judge(outcome: &Outcome, cx: &Context<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    let mut seen: FxHashMap<(Code, Place, bool), usize> = FxHashMap::default();
    let found = outcome.events.iter().filter_map(|event| {
        let mut finding = RULES.iter().find_map(|rule| rule(event, cx))?;
        finding.order = order::order(event, &finding, cx);
        finding.entries = depends_on_callers(event, &finding, cx);
        finding.given = depends_on_arguments(event, cx).into_iter().collect();
        finding.by_default = depends_on_default(event);
        finding.on_module = depends_on_moves(event, cx).into_iter().collect();
        confidence::of_event(&mut finding, event, cx);
        Some(in_its_world(finding, event))
    });
    let texts = message::matched_by_message(cx)
        .into_iter()
        .chain(retry::retried(cx))
        .chain(parameters::ignored(cx).into_iter().map(|f| from_callers(f, cx)))
        .chain(stale::remembered(cx))
        .chain(fallbacks::overwritten(cx))
        .chain(graphs::retained(cx))
        .chain(carried::carried(cx))
        .chain(averages::averaged(cx))
        .chain(replicas::kept_methods(cx))
        .chain(threads::started(cx))
        .chain(followed::to_numpy(cx))
        .chain(resolved::resolved(cx))
        .chain(given_modules::kept(cx))
        .chain(copies_left::left(cx));
    let texts = texts.map(|mut finding| {
        confidence::of_text(&mut finding, cx);
        finding
    });
    for finding in found.chain(texts) {
        let mut finding = at_home(finding, cx);
        finding.silenced = cx.program.silence.of(&finding);
        let (code, silenced) = (finding.code, finding.is_silenced());
        let places: Vec<Place> =
            std::iter::once(finding.primary.place).chain(finding.roots.clone()).collect();
        // The same cause met in several ways is one finding with several places. A way that is silenced takes no other with it.
        let known = |&p: &Place| seen.get(&(code, p, silenced)).copied();
        let at = places.iter().find_map(known).unwrap_or(findings.len());
        match findings.get_mut(at) {
            Some(known) => merge(known, finding),
            None => findings.push(finding),
        }
        for place in places {
            seen.entry((code, place, silenced)).or_insert(at);
        }
    }
    one_cause(findings, cx)
}

/// From where it was reached, if what comes before that, or who calls, may have made sure that CUDA is there.
fn depends_on_callers(event: &Event, finding: &Finding, cx: &Context<'_>) -> Vec<Way> {
    let kind = matches!(
        event.kind,
        Kind::Use { backend: None, .. } | Kind::Nccl | Kind::Load { .. } | Kind::CudaAutocast { .. }
    );
    if !kind || finding.world != World::NoCuda {
        return Vec::new();
    }
    let outermost = event.stack.first().copied().unwrap_or(event.place);
    let entry = event.entry.unwrap_or(FuncId(0));
    let spot = Spot { file: cx.file, entry, at: outermost.span.start };
    vec![Way { spot, places: event.stack.iter().copied().chain([event.place]).collect() }]
}

/// A load that does not look at the device which its function is given hangs on the callers like any other.
fn from_callers(mut finding: Finding, cx: &Context<'_>) -> Finding {
    let place = finding.primary.place;
    if finding.code == Code(105)
        && let Some((_, entry)) = crate::flow::function_at(cx.program, place)
    {
        let spot = Spot { file: place.file, entry, at: place.span.start };
        finding.entries.push(Way { spot, places: [place].into() });
    }
    finding
}

/// The parameter that it is about, if it takes for granted that who calls gives a tensor on some device.
fn depends_on_arguments(event: &Event, cx: &Context<'_>) -> Option<Given> {
    let (func, index) = event.parameter?;
    let depends = match &event.kind {
        Kind::Mismatch { stray, other, .. } => {
            [stray, other].iter().any(|side| matches!(side.device, DeviceName::Varies(_)))
        }
        Kind::ToHost { tensor, .. } => matches!(tensor.device, DeviceName::Varies(_)),
        Kind::DoubleOnMps { on: DeviceName::Varies(_) } | Kind::NonLeaf { .. } => true,
        _ => false,
    };
    depends.then_some(Given { file: cx.file, func, index, followed: event.followed })
}

/// From where it was reached, if it takes for granted that the module has been moved.
fn depends_on_moves(event: &Event, cx: &Context<'_>) -> Option<Spot> {
    let on_module = match &event.kind {
        Kind::Mismatch { stray, other, .. } => {
            [stray, other].iter().any(|side| side.device == DeviceName::WithModule)
        }
        Kind::ToHost { tensor, .. } => tensor.device == DeviceName::WithModule,
        _ => return None,
    };
    let entry = event.entry.filter(|_| event.symbolic && on_module)?;
    Some(Spot { file: cx.file, entry, at: event.place.span.start })
}

/// Does it take for granted that a function makes its tensors and modules on the CPU unless it says otherwise?
fn depends_on_default(event: &Event) -> Option<ByDefault> {
    let (stray, other) = match &event.kind {
        Kind::Mismatch { stray, other, .. } => (stray, other),
        // What a module has made where its inputs are is there already.
        Kind::InvariantMove { again: Again::Forward } => {
            return event.symbolic.then_some(ByDefault::Device);
        }
        _ => return None,
    };
    let by_default = |side: &Operand| match side.chain.last()?.reason {
        Reason::Default | Reason::Module => Some(ByDefault::Device),
        Reason::Typed => Some(ByDefault::Type),
        _ => None,
    };
    let sides = [by_default(stray), by_default(other)];
    // One of them elsewhere is enough for them to be in one place.
    let easiest = sides.into_iter().flatten().min_by_key(|&by| by == ByDefault::Type);
    easiest.filter(|_| event.symbolic)
}

/// A rule may know the world better than the path does. What the path says of other machines is then not about
/// this finding.
fn in_its_world(mut finding: Finding, event: &Event) -> Finding {
    if finding.world != event.bite.world {
        finding.also.clear();
        let world = finding.world.premise();
        finding.premises.retain(|premise| world.is_none_or(|world| !premise.excludes(world)));
    }
    finding
}

/// More labels than this say nothing more.
const MAX_RELATED: usize = 6;

fn merge(into: &mut Finding, other: Finding) {
    into.as_sure_as(&other);
    merge_worlds(into, &other);
    // One that is caused here does not hang on another file.
    if other.roots.is_empty() || into.roots.is_empty() {
        into.roots.clear();
    } else {
        into.roots.extend(other.roots);
    }
    // One way there that does not depend on callers is enough.
    if other.entries.is_empty() || into.entries.is_empty() {
        into.entries.clear();
    } else {
        into.entries.extend(other.entries);
    }
    into.in_group &= other.in_group;
    into.shows_with_accelerator &= other.shows_with_accelerator;
    into.behind_cuda &= other.behind_cuda;
    into.silenced = into.silenced.max(other.silenced);
    into.where_cuda_is = into.where_cuda_is.take().or(other.where_cuda_is);
    into.by_default = into.by_default.zip(other.by_default).map(|(a, b)| a.and(b));
    if other.on_module.is_empty() || into.on_module.is_empty() {
        into.on_module.clear();
    } else {
        into.on_module.extend(other.on_module);
    }
    // All that it takes for granted must be wrong for it to be.
    if other.given.is_empty() || into.given.is_empty() {
        into.given.clear();
    } else {
        into.given.extend(other.given.into_iter().filter(|g| !into.given.contains(g)).collect::<Vec<_>>());
    }
    for label in std::iter::once(other.primary).chain(other.related) {
        if into.places().any(|p| p == label.place) {
            continue;
        }
        if into.related.len() < MAX_RELATED {
            into.related.push(label);
        } else {
            into.unshown.push(label);
        }
    }
    into.unshown.extend(other.unshown);
}

/// Adds the machines on which another finding of the same cause bites.
pub(crate) fn merge_worlds(into: &mut Finding, other: &Finding) {
    if into.condition.is_some() && other.condition.is_none() {
        into.condition = None;
        into.world = other.world;
    }
    into.also.extend(other.also.iter().cloned());
    match other.world.premise() {
        Some(world) => {
            into.also.push(std::iter::once(world).chain(other.premises.iter().cloned()).collect());
        }
        // It bites on either path: only what both take for granted must hold.
        None => into.premises.retain(|premise| other.premises.contains(premise)),
    }
}

/// A finding on each cause: what another one explains is told there, or left out.
fn one_cause(findings: Vec<Finding>, cx: &Context<'_>) -> Vec<Finding> {
    let findings = with_consequences(findings, cx);
    let in_modules: Vec<Place> =
        findings.iter().filter(|f| f.code == Code(305)).map(|f| f.primary.place).collect();
    // SD305 says more of the same line.
    let again = |f: &Finding| {
        let at = f.primary.place;
        f.code == Code(101)
            && in_modules
                .iter()
                .any(|p| p.file == at.file && (p.span.contains(at.span) || at.span.contains(p.span)))
    };
    let discarded: Vec<Place> =
        findings.iter().filter(|f| f.code == Code(203)).map(|f| f.primary.place).collect();
    // A copy that nobody keeps costs less than it is worth to make it where it is wanted: nobody has it there.
    let dropped = |f: &Finding| f.code == Code(601) && f.places().any(|p| discarded.contains(&p));
    let findings: Vec<Finding> = findings.into_iter().filter(|f| !again(f) && !dropped(f)).collect();
    told_elsewhere(findings)
}

/// A discarded transfer also causes the mismatch after it in the same function: that is another place of the cause.
fn with_consequences(findings: Vec<Finding>, cx: &Context<'_>) -> Vec<Finding> {
    let (mut causes, mut others): (Vec<_>, Vec<_>) = findings.into_iter().partition(|f| f.code == Code(203));
    others.retain(|f| {
        // What is silenced is not told there, and does not tell of others.
        let mut told = causes.iter_mut().filter(|c| !c.is_silenced() && !f.is_silenced());
        let cause = told.find(|c| causes_mismatch(c, f, cx));
        if let Some(cause) = cause
            && cause.related.len() < MAX_RELATED
            && f.primary.place.file == cause.primary.place.file
        {
            let text = format!("so this fails: {}", f.message);
            cause.related.push(Label { role: Role::Consequence, ..Label::new(f.primary.place, text) });
            return false;
        }
        true
    });
    causes.extend(others);
    causes
}

/// Is what the transfer was to move named at the mismatch, after it and in the same function?
fn causes_mismatch(discarded: &Finding, f: &Finding, cx: &Context<'_>) -> bool {
    let d = discarded.primary.place;
    let text = cx.sources.text(d);
    let method = [".to(", ".cuda(", ".cpu(", ".type_as("].into_iter().filter_map(|m| text.find(m)).min();
    let Some(moved) = method.map(|at| &text[..at]) else { return false };
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let named = |text: &str| {
        text.match_indices(moved).any(|(at, _)| {
            !text[..at].ends_with(|c| word(c) || c == '.') && !text[at + moved.len()..].starts_with(word)
        })
    };
    matches!(f.code, Code(201 | 202 | 204 | 205))
        && f.places().any(|p| p.file == d.file && p.span.start >= d.span.start && same_function(p, d, cx))
        && f.places().any(|p| named(cx.sources.text(p)))
}

/// A meeting whose stray side is reported where it was made (SD204, SD301) says nothing new.
fn told_elsewhere(mut findings: Vec<Finding>) -> Vec<Finding> {
    let told = findings.iter().filter(|f| matches!(f.code, Code(204 | 301)) && !f.is_silenced());
    let made: Vec<Place> = told.map(|f| f.primary.place).collect();
    findings.retain_mut(|f| {
        let said = matches!(f.code, Code(201 | 202)) && f.stray_from.is_some_and(|p| made.contains(&p));
        !said || f.leave()
    });
    findings
}

fn same_function(a: Place, b: Place, cx: &Context<'_>) -> bool {
    mismatch::function_of(a, cx) == mismatch::function_of(b, cx)
}

/// Findings belong to the file whose entry points were interpreted: so linting one file gives what a run over
/// everything gives for it. What happens elsewhere is told from the call that leads there.
fn at_home(mut finding: Finding, cx: &Context<'_>) -> Finding {
    if finding.primary.place.file == cx.file {
        return finding;
    }
    let here = |l: &Label| l.place.file == cx.file;
    let suspect = |&p: &Place| finding.related.iter().position(|l| l.place == p && here(l));
    let at = finding.suspects.iter().find_map(suspect);
    if let Some(i) = at.or_else(|| finding.related.iter().position(here)) {
        let home = finding.related.remove(i);
        let away = std::mem::replace(&mut finding.primary, home);
        finding.roots = vec![away.place];
        finding.related.insert(0, away);
    }
    finding
}

/// The other files whose own findings may say what one of these says: the one that has the cause, and the one where the
/// stray tensor was made.
pub fn refers_to(found: &Found) -> Vec<FileId> {
    let mut files: Vec<FileId> = found
        .iter()
        .flat_map(|(&file, findings)| findings.iter().flat_map(elsewhere).filter(move |&f| f != file))
        .collect();
    files.sort_unstable();
    files.dedup();
    files
}

fn elsewhere(finding: &Finding) -> impl Iterator<Item = FileId> {
    finding.roots.iter().copied().chain(finding.stray_from).map(|place| place.file)
}

/// Without what another file's own findings, in `found` or in `others`, say: one cause is one finding. That does not depend on
/// what is linted together, so linting a part of a project reports what a run over all of it does.
pub fn told_once(found: Found, others: &Found) -> Vec<Finding> {
    let mut own: FxHashMap<(Code, Place), Confidence> = FxHashMap::default();
    let said = |f: &&Finding| f.roots.is_empty() && !f.is_silenced() && !f.told_elsewhere;
    for finding in found.values().chain(others.values()).flatten().filter(said) {
        let mut tell = |place: Place| {
            let known = own.entry((finding.code, place)).or_insert(Confidence::Low);
            *known = finding.confidence.max(*known);
        };
        tell(finding.primary.place);
        let home = finding.primary.place.file;
        let also =
            finding.labels().filter(|l| matches!(l.role, Role::Repeated { .. }) && l.place.file == home);
        also.for_each(|l| tell(l.place));
    }
    let known = |code: Code, place: Place, least: Confidence| {
        own.get(&(code, place)).is_some_and(|&own| own >= least)
    };
    // What is reached from elsewhere may be surer than the file's own finding, or matter more: then it is told, and that is made one with
    // it (`refine/cause.rs`).
    let told = |f: &Finding| {
        !f.roots.is_empty() && f.roots.iter().all(|&place| known(f.code, place, f.confidence))
            || matches!(f.code, Code(201 | 202))
                && f.stray_from.is_some_and(|p| {
                    [204, 301].iter().any(|&c| known(Code(c), p, f.confidence.min(Confidence::Likely)))
                })
    };
    let all = found.into_values().flatten();
    all.filter_map(|mut f| (!told(&f) || f.leave()).then_some(f)).collect()
}

/// `reveal_device(…)`: for tests of the engine. Not a rule: has no page and is shown only when selected.
fn reveal(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::Reveal(text) = &event.kind else { return None };
    let label = Label::new(event.place, text);
    Some(Finding::new(Code(0), World::Always, text.clone(), label))
}

/// A finding about an event, with the event's world and condition, and the calls that led there.
fn finding(code: u16, event: &Event, message: String, primary: Place, label: &str) -> Finding {
    let mut f = Finding::new(Code(code), event.bite.world, message, Label::new(primary, label));
    f.condition = condition(&event.bite);
    f.premises.clone_from(&event.bite.premises);
    f.also.clone_from(&event.bite.also);
    f.behind_cuda = event.bite.behind_cuda;
    f
}

/// Is it in a file of the tests that has none itself? Who calls it skips where it cannot run.
fn helps_tests(place: Place, cx: &Context<'_>) -> bool {
    in_tests(place, cx) && !defines(place, "test", cx)
}

/// Is it in a file of the tests that has some? A program that trains and tests may be called `train_test.py`.
fn has_tests(place: Place, cx: &Context<'_>) -> bool {
    in_tests(place, cx) && defines(place, "test_", cx)
}

/// Does the file define a function whose name begins so?
fn defines(place: Place, name: &str, cx: &Context<'_>) -> bool {
    let named = |f: &crate::ir::Function| f.name.as_str().starts_with(name);
    cx.program.module_of(place.file).is_some_and(|m| cx.program.get(m).ir.functions.iter().any(named))
}

/// Is it test code? Its classes live as the tests let them, its files are its own, and it makes small things once.
fn in_tests(place: Place, cx: &Context<'_>) -> bool {
    let path = &cx.sources.get(place.file).path;
    crate::source::is_test(path, cx.root)
        && (crate::source::is_among_tests(path, cx.root)
            || !cx
                .program
                .module_of(place.file)
                .is_some_and(|m| crate::flow::is_program(&cx.program.get(m).ir)))
}

/// Later uses that go wrong for the same reason: at most this many are told.
const MAX_ALSO: usize = 12;

/// What is said of these.
const ALSO: &str = "needs it, too";

/// What is said of what does not need a device but raises on it.
const ALSO_RAISES: &str = "raises there, too";

/// Adds the later uses that need the same.
fn with_also(f: Finding, event: &Event) -> Finding {
    with_also_said(f, event, ALSO)
}

/// Adds the later places of the same cause, with these words.
fn with_also_said(mut f: Finding, event: &Event, said: &str) -> Finding {
    for (n, also) in event.also.iter().enumerate() {
        let role = Role::Repeated { through: also.through.clone() };
        let label = Label { role, ..Label::new(also.place, said) };
        if f.places().any(|p| p == also.place) {
            continue;
        }
        if n < MAX_ALSO {
            f.related.push(label);
        } else {
            f.unshown.push(label);
        }
    }
    f
}

/// Adds the calls that lead from the entry's file to the event.
fn with_stack(mut f: Finding, event: &Event) -> Finding {
    f.suspects.extend(event.stack.iter().rev());
    for &site in event.stack.iter().rev().take(3) {
        if f.related.len() < MAX_RELATED && !f.places().any(|p| p == site) {
            f.related.push(Label::call(site));
        }
    }
    // The outermost call is in the file that the finding belongs to. Of two tensors that meet elsewhere the innermost one there
    // says more.
    let own = |site: &&Place| event.stack.first().is_some_and(|first| first.file == site.file);
    let meets = matches!(event.kind, Kind::Mismatch { .. });
    let inner = event.stack.iter().rev().find(own).filter(|_| meets);
    for &site in inner.into_iter().chain(event.stack.first()) {
        if !f.places().any(|p| p == site) {
            f.related.push(Label::call(site));
        }
    }
    for &site in &event.stack {
        if !f.places().any(|p| p == site) {
            f.unshown.push(Label::call(site));
        }
    }
    f
}

fn condition(bite: &Bite) -> Option<String> {
    if bite.conditions.is_empty() {
        return None;
    }
    Some(format!("when {}", bite.conditions.join(" and ")))
}

/// A reason in words.
fn reason(step: &event::Step) -> &'static str {
    use crate::flow::value::Reason;
    match step.reason {
        Reason::Default => "made here without `device=`",
        Reason::Made => "made here on that device",
        Reason::Host | Reason::Typed => "made here, on the CPU",
        Reason::Moved => "moved here",
        Reason::Literal => "the device is written here",
        Reason::Given => "given from outside",
        Reason::Batch => "batches of a `DataLoader` are on the CPU",
        Reason::Module => "the module is made here",
        Reason::Loaded => "loaded here",
        Reason::Pinned => "pinned here",
        Reason::Unwaited => "copied here",
        Reason::Kept => "kept here as a plain attribute",
        Reason::Stored => "kept here in an attribute",
        Reason::Defaulted => "the device is left to its default here",
        Reason::Text | Reason::Number => "named here",
        Reason::Refused => "made of both here",
        Reason::None => "here",
    }
}
