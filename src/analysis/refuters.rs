//! Refutes findings with the project's other files: the callers only run with CUDA, set another default device, or handle the problem
//! themselves.

use rustc_hash::{FxHashMap, FxHashSet};

use super::project::{Reading, mentions, projects, projects_of};
use crate::assumption::{Assumption, ByDefault, Spot, Way};
use crate::finding::{Code, Finding};
use crate::flow::{
    Behind, CudaOnly, GPUS, Grouped, MOVE, Passed, Paths, QUESTION, SETTERS, SetBefore, Target, Uses,
    all_nccl, class_of, function_at, stays,
};
use crate::ir::FuncId;
use crate::link::{ClassKey, Program};
use crate::span::{FileId, Place, Span};
use crate::torch::{GPU_GROUP_MAKER, GROUP_MAKER, libraries_for_cuda};
use crate::world::World;

/// The rule about `torch.load` without `map_location`.
pub(super) const LOAD: Code = Code(105);
/// The rule about a device that a module chooses for itself.
pub(super) const IN_MODULE: Code = Code(305);
/// The rule about a model in evaluation mode that runs with gradients.
const WITH_GRADIENTS: Code = Code(506);
/// The rule about a tensor that is created on the CPU only to be moved.
pub(super) const COPIED: Code = Code(601);
/// The rule about double precision on MPS.
pub(super) const DOUBLE_ON_MPS: Code = Code(701);
/// The rule about a process group in which no process chooses its GPU.
const SAME_GPU: Code = Code(406);

/// The rule about the global rank as a device index.
const GLOBAL_RANK: Code = Code(405);

/// Removes findings about machines without CUDA in functions that only run where CUDA is available.
pub(super) fn reached_without_cuda(mut findings: Vec<Finding>, reading: &mut Reading<'_>) -> Vec<Finding> {
    let inputs = reading.inputs;
    let dependent: Vec<(FileId, bool)> =
        findings.iter().flat_map(|f| f.ways().map(|way| (way.spot.file, f.code == IN_MODULE))).collect();
    let passed = Passed::on_ways(&reading.program, findings.iter().flat_map(Finding::ways));
    for project in projects(dependent.iter().map(|d| d.0), reading) {
        let in_module = dependent.iter().any(|&(file, module)| module && project.holds(file, inputs));
        let known = project.modules(reading);
        let asked = Behind::asks(&reading.program, &known);
        let words = [&[QUESTION, GPUS, MOVE, GROUP_MAKER, GPU_GROUP_MAKER], libraries_for_cuda()].concat();
        if !project.complete(reading, &|text| asked || mentions(text, &words)) {
            continue;
        }
        let graph = project.graph(reading);
        let packages = project.packages(reading);
        let program = &reading.program;
        let cuda_only = CudaOnly::in_packages(program, &packages);
        let built = |way: &Way| program.module_of(way.spot.file).is_some_and(|m| cuda_only.contains(m));
        let imported = |way: &Way| way.spot.entry != FuncId(0) && built(way);
        let of = |uses: Uses| Behind::of(program, &graph, uses, findings.iter().flat_map(Finding::ways));
        let refused = of(Uses::None);
        // If constructing or calling a module needs CUDA in any case, the module cannot be on another device.
        let bound = in_module.then(|| of(Uses::Making));
        // Code on the way to the place needs CUDA. If every branch on the way does, that counts too, even if each could be fixed
        // separately.
        let needed = of(Uses::OnTheWay);
        // A module that chooses its own device is a bug even if other code needs CUDA, unless all code that constructs the module is
        // visible.
        let made = (in_module && !project.is_built()).then_some(&needed);
        findings.retain_mut(|f| {
            let (code, in_module) = (f.code, f.code == IN_MODULE);
            let behind = |b: &Behind, way: &Way| b.contains(program, way);
            let bound = bound.as_ref().filter(|_| in_module);
            let refuses = |way: &Way| {
                project.holds(way.spot.file, inputs)
                    && (code != LOAD && imported(way)
                        || behind(&refused, way)
                        || bound.is_some_and(|b| behind(b, way)))
            };
            let needed = if in_module { made } else { Some(&needed) };
            let needs = |way: &Way| {
                passed.is_passed(program, way)
                    || project.holds(way.spot.file, inputs)
                        && (code == LOAD && built(way) || needed.is_some_and(|b| behind(b, way)))
            };
            is_told(f, &refuses, &needs)
        });
    }
    let program = &reading.program;
    findings.retain_mut(|f| is_told(f, &|_| false, &|way| passed.is_passed(program, way)));
    findings
}

/// Does the assumption say that a machine without CUDA reaches the place?
fn is_way(assumption: &Assumption) -> bool {
    matches!(assumption, Assumption::CudaMissing(_))
}

/// Whether a finding is kept. Ways past a refusal to run without CUDA (`refuses`), or past code that needs CUDA itself (`needs`), do not
/// count. If no other way is left, but the finding also fails with CUDA, it becomes a finding about machines with CUDA.
fn is_told(f: &mut Finding, refuses: &dyn Fn(&Way) -> bool, needs: &dyn Fn(&Way) -> bool) -> bool {
    if !f.assumes(is_way) || !f.ways().all(|way| refuses(way) || needs(way)) {
        return true;
    }
    // `take` the message for machines with CUDA. If every way refuses to continue without CUDA, the author has considered such machines.
    match f.where_cuda_is.take() {
        Some(message) if !f.ways().all(refuses) => {
            (f.world, f.message) = (World::Cuda, message);
            f.assumptions.retain(|a| !is_way(a));
            true
        }
        // A refusal on every way removes the finding. Code that needs CUDA on the way has a finding of its own.
        _ => !f.ways().all(refuses) && f.leave(),
    }
}

/// Removes findings about what functions make on the CPU by default, where the programs that call them, or all code that constructs the
/// object, set another default.
pub(super) fn made_by_default(mut findings: Vec<Finding>, reading: &mut Reading<'_>) -> Vec<Finding> {
    let inputs = reading.inputs;
    for project in projects_of(&findings, |f, _| f.by_default().is_some(), reading) {
        if !project.complete(reading, &|text| mentions(text, &SETTERS)) {
            continue;
        }
        let graph = project.graph(reading);
        let program = &reading.program;
        let here = |f: &Finding| f.by_default().filter(|_| project.holds(f.primary.place.file, inputs));
        let before = [ByDefault::Device, ByDefault::Type].map(|by| {
            let asked = findings.iter().filter(|f| here(f) == Some(by));
            SetBefore::of(program, &graph, by, asked.flat_map(Finding::places))
        });
        findings.retain(|f| {
            let Some(by) = here(f) else { return true };
            !f.places().any(|p| before.iter().any(|b| b.reaches(program, p, by)))
        });
    }
    findings
}

/// Removes findings about modules that the project constructs and leaves on the CPU, and about code that only runs while a module is
/// constructed.
pub(super) fn on_moved_modules(mut findings: Vec<Finding>, reading: &mut Reading<'_>) -> Vec<Finding> {
    let inputs = reading.inputs;
    let dependent: Vec<FileId> =
        findings.iter().flat_map(Finding::on_modules).map(|spot| spot.file).collect();
    for project in projects(dependent.into_iter(), reading) {
        if !project.complete(reading, &|_| true) {
            continue;
        }
        // Programs outside the project may use a library, and may move a module that the library itself leaves on the CPU.
        let shared = project.is_built();
        let graph = project.graph(reading);
        let files = graph.files();
        let program = &reading.program;
        let target = |spot: &Spot| Some((program.module_of(spot.file)?, spot.entry));
        let class = |spot: &Spot| target(spot).and_then(|(m, f)| class_of(program, m, f));
        let paths = Paths::of(program, &graph, shared);
        let mut known: FxHashMap<ClassKey, bool> = FxHashMap::default();
        findings.retain(|f| {
            let mut stays = |spot: &Spot| {
                if !project.holds(spot.file, inputs) {
                    return false;
                }
                let rests = |k| *known.entry(k).or_insert_with(|| stays(program, files, k));
                !shared && class(spot).is_some_and(rests)
                    || target(spot).is_some_and(|target| paths.while_making(target))
            };
            f.on_modules().next().is_none() || !f.on_modules().all(&mut stays)
        });
    }
    findings
}

/// Removes those of the findings that satisfy `asks` for which `holds` is true on the paths to their causes. Reads the files with these
/// paths.
pub(super) fn answered_by_callers(
    mut findings: Vec<Finding>,
    reading: &mut Reading<'_>,
    asks: &dyn Fn(&Finding, &Program) -> bool,
    holds: &dyn Fn(&Finding, &Paths<'_>, &Reading<'_>) -> bool,
) -> Vec<Finding> {
    let inputs = reading.inputs;
    for project in projects_of(&findings, asks, reading) {
        let here =
            |f: &Finding, program: &Program| asks(f, program) && project.holds(f.primary.place.file, inputs);
        let asked = findings.iter().filter(|f| here(f, &reading.program));
        let targets: Vec<Target> =
            asked.flat_map(causes).filter_map(|place| function_at(&reading.program, place)).collect();
        let graph = project.callers(reading, &targets, &[]);
        let paths = Paths::of(&reading.program, &graph, project.is_built());
        findings.retain(|f| !(here(f, &reading.program) && holds(f, &paths, reading)));
    }
    findings
}

/// Removes findings about a problem that all callers in the project avoid: they switch gradients off, choose a GPU before the call, or
/// call in the first process only.
pub(super) fn seen_to_by_callers(findings: Vec<Finding>, reading: &mut Reading<'_>) -> Vec<Finding> {
    let asks = |f: &Finding, _: &Program| matches!(f.code, WITH_GRADIENTS | SAME_GPU | GLOBAL_RANK);
    answered_by_callers(findings, reading, &asks, &|f, paths, reading| {
        let target = || function_at(&reading.program, f.primary.place);
        match f.code {
            WITH_GRADIENTS => target().is_some_and(|target| paths.without_gradients(target)),
            SAME_GPU => target().is_some_and(|target| paths.after_choice(target)),
            _ => causes(f).into_iter().all(|place| paths.in_first_process(place)),
        }
    })
}

/// Removes findings about machines without CUDA, and about MPS, at places that only processes of NCCL groups reach.
pub(super) fn only_in_groups(mut findings: Vec<Finding>, reading: &mut Reading<'_>) -> Vec<Finding> {
    let inputs = reading.inputs;
    // SD105 stays: each process of a group would load onto the one GPU that the file was saved from.
    let asks = |f: &Finding, _: &Program| f.code == DOUBLE_ON_MPS || f.code != LOAD && f.assumes(is_way);
    for project in projects_of(&findings, asks, reading) {
        project.complete(reading, &|text| mentions(text, &[GROUP_MAKER, GPU_GROUP_MAKER]));
        let graph = project.graph(reading);
        let program = &reading.program;
        if !all_nccl(program, graph.files()) {
            continue;
        }
        let here = |f: &Finding| asks(f, program) && project.holds(f.primary.place.file, inputs);
        let spot = |way: &Way| {
            let at = Span { start: way.spot.at, end: way.spot.at };
            Place { file: way.spot.file, span: at }
        };
        let places = |f: &Finding| [causes(f), f.ways().map(spot).collect()].concat();
        let asked = findings.iter().filter(|f| here(f)).flat_map(places);
        let grouped = Grouped::of(program, &graph, asked);
        let contains = |place: Place| grouped.contains(program, place);
        findings.retain(|f| {
            let spots = || f.code != DOUBLE_ON_MPS && f.ways().map(spot).all(contains);
            !(here(f) && (spots() || causes(f).into_iter().all(contains)))
        });
    }
    findings
}

/// Removes findings about copies that a program makes once.
pub(super) fn copied_once(findings: Vec<Finding>, reading: &mut Reading<'_>) -> Vec<Finding> {
    let once = |f: &Finding, paths: &Paths<'_>| causes(f).into_iter().all(|place| paths.run_once(place));
    // Other files can only add calls. So the project is read only if the files read so far say that the place runs once.
    let copied = |f: &Finding, _: &Program| f.code == COPIED;
    let mut open: FxHashSet<Place> = FxHashSet::default();
    for project in projects_of(&findings, copied, reading) {
        let graph = project.graph(reading);
        let paths = Paths::of(&reading.program, &graph, project.is_built());
        let may_be = findings.iter().filter(|f| f.code == COPIED && once(f, &paths));
        open.extend(may_be.map(|f| f.primary.place));
    }
    let asks = |f: &Finding, _: &Program| f.code == COPIED && open.contains(&f.primary.place);
    answered_by_callers(findings, reading, &asks, &|f, paths, _| once(f, paths))
}

/// The places of a finding's cause.
pub(super) fn causes(f: &Finding) -> Vec<Place> {
    if f.roots.is_empty() { vec![f.primary.place] } else { f.roots.clone() }
}
