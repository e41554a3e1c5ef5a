//! What the rest of the project says of a function, or of a file that is loaded: the files that the run did not ask for are
//! read, too, where a finding may depend on who calls it, or on who has written that.
//!
//! Which files a project has does not depend on what is linted, so neither does what is told. It is asked for only once
//! there is a finding that it could do away with, and only of projects of a usual size.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use memchr::memmem::Finder;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::intake::{Analysis, Intake, LargeProject};
use super::places::Places;
use crate::assumption::{Assumption, ByDefault, Spot, Way};
use crate::config::Settings;
use crate::discover::Input;
use crate::finding::{Code, Finding};
use crate::flow::{
    Behind, CallGraph, CudaOnly, GPUS, Grouped, MOVE, Passed, Paths, QUESTION, SETTERS, SetBefore, Target,
    Uses, Writers, all_nccl, class_of, function_at, is_program, stays,
};
use crate::ir::FuncId;
use crate::link::{ClassKey, ModIdx, Program};
use crate::notebook::is_notebook;
use crate::source::{is_among_tests, is_test, read};
use crate::span::{FileId, Place, Span};
use crate::torch::{GPU_GROUP_MAKER, GROUP_MAKER, libraries_for_cuda};
use crate::world::World;

/// `torch.load` without `map_location`.
pub(super) const LOAD: Code = Code(105);
/// A device that a module chooses for itself.
pub(super) const IN_MODULE: Code = Code(305);
/// A model in evaluation mode that is run with gradients.
const WITH_GRADIENTS: Code = Code(506);
/// A tensor that is made on the host only to be moved.
pub(super) const COPIED: Code = Code(601);
/// Double precision on MPS.
pub(super) const DOUBLE_ON_MPS: Code = Code(701);
/// A group of processes of which none chooses its GPU.
const SAME_GPU: Code = Code(406);

/// What has been read so far of the files that were asked for and of their projects, and what reads more.
pub(super) struct Reading<'a> {
    /// The files that were asked for.
    pub(super) inputs: &'a [Input],
    /// All files that are there, linked.
    pub(super) program: Program,
    pub(super) intake: Intake,
    pub(super) analysis: Analysis,
    pub(super) places: Places,
    /// Call graphs of projects, each with how many files there were.
    pub(super) graphs: Vec<(usize, Arc<CallGraph>)>,
}

/// Findings that may depend on callers, by the project that they are in.
pub(super) struct Project<'a> {
    /// One of its files that were asked for.
    pub(super) input: &'a Input,
    /// All of its files.
    files: Arc<[PathBuf]>,
}

/// The findings without those about machines without CUDA that are in functions which only run where CUDA is.
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
        // A module that cannot be made or run but with something that needs CUDA could not be elsewhere.
        let bound = in_module.then(|| of(Uses::Making));
        // Who comes there has taken one of some branches, whether or not it can be mended for itself.
        let needed = of(Uses::OnTheWay);
        // That a module chooses its device is bad whoever else needs CUDA, unless all who make it are in sight.
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

/// Does it hang on machines without CUDA coming there?
fn is_way(assumption: &Assumption) -> bool {
    matches!(assumption, Assumption::CudaMissing(_))
}

/// Is a finding told that depends on ways, if those of them do not count that come past a refusal, or past something that needs
/// CUDA itself? What goes wrong with CUDA, too, is told of such machines then.
fn is_told(f: &mut Finding, refuses: &dyn Fn(&Way) -> bool, needs: &dyn Fn(&Way) -> bool) -> bool {
    if !f.assumes(is_way) || !f.ways().all(|way| refuses(way) || needs(way)) {
        return true;
    }
    // Who refuses to go on without CUDA has thought of it.
    match f.where_cuda_is.take() {
        Some(message) if !f.ways().all(refuses) => {
            (f.world, f.message) = (World::Cuda, message);
            f.assumptions.retain(|a| !is_way(a));
            true
        }
        // What refuses has thought of it. A use is told itself.
        _ => !f.ways().all(refuses) && f.leave(),
    }
}

/// The findings without those about what functions make on the CPU by default, where the programs that use them have set
/// another default, or all who make the object.
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

/// The findings without those about modules that the project makes itself and leaves on the CPU, or that it is still making.
pub(super) fn on_moved_modules(mut findings: Vec<Finding>, reading: &mut Reading<'_>) -> Vec<Finding> {
    let inputs = reading.inputs;
    let dependent: Vec<FileId> =
        findings.iter().flat_map(Finding::on_modules).map(|spot| spot.file).collect();
    for project in projects(dependent.into_iter(), reading) {
        if !project.complete(reading, &|_| true) {
            continue;
        }
        // A library is there for programs that are not in sight, which may move what it leaves where it is.
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

/// The findings without those of this kind of which something holds that the paths to their causes say. The files that lead there are read.
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

/// The findings without those that all callers in the project have seen to: they call without gradients, or choose a GPU
/// before.
pub(super) fn seen_to_by_callers(findings: Vec<Finding>, reading: &mut Reading<'_>) -> Vec<Finding> {
    let asks = |f: &Finding, _: &Program| matches!(f.code, WITH_GRADIENTS | SAME_GPU);
    answered_by_callers(findings, reading, &asks, &|f, paths, reading| {
        function_at(&reading.program, f.primary.place).is_some_and(|target| match f.code {
            WITH_GRADIENTS => paths.without_gradients(target),
            _ => paths.after_choice(target),
        })
    })
}

/// The findings without those about machines without CUDA, MPS among them, at places that only the processes of NCCL groups come to.
pub(super) fn only_in_groups(mut findings: Vec<Finding>, reading: &mut Reading<'_>) -> Vec<Finding> {
    let inputs = reading.inputs;
    // Each process of a group loads onto the one GPU that a file came from.
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

/// The findings without those about copies that a program makes once.
pub(super) fn copied_once(findings: Vec<Finding>, reading: &mut Reading<'_>) -> Vec<Finding> {
    let once = |f: &Finding, paths: &Paths<'_>| causes(f).into_iter().all(|place| paths.run_once(place));
    // Other files can only show more calls: the project is read where something runs once as far as the files in sight say.
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

/// Scripts at the top of a project that build or test it.
const BUILDS: [&str; 6] =
    ["setup.py", "versioneer.py", "conftest.py", "noxfile.py", "tasks.py", "hubconf.py"];

impl Project<'_> {
    /// Reads those of the project's files that are not there yet, if the text of one of them may say something. False if none
    /// may, and then none is read.
    pub(super) fn complete(
        &self,
        reading: &mut Reading<'_>,
        may_tell: &(dyn Fn(&str) -> bool + Sync),
    ) -> bool {
        let Reading { program, intake, analysis, places, .. } = reading;
        let missing: Vec<&PathBuf> = self.files.iter().filter(|path| intake.file(path).is_none()).collect();
        if missing.is_empty() {
            return true;
        }
        if !missing.par_iter().any(|path| read::read(path).is_ok_and(|text| may_tell(&text))) {
            return false;
        }
        let wanted = missing.into_iter().map(|path| (path.clone(), places.root_of_file(path))).collect();
        intake.modules = std::mem::take(program).into_modules();
        intake.follow(wanted, analysis);
        *program = intake.link();
        true
    }

    /// Are all of its files there?
    fn is_read(&self, reading: &mut Reading<'_>) -> bool {
        self.files.iter().all(|path| reading.intake.file(path).is_some())
    }

    /// The same with more files.
    pub(super) fn and(mut self, more: Vec<PathBuf>) -> Self {
        self.files = self.files.iter().cloned().chain(more).collect();
        self
    }

    /// Its Python files.
    pub(super) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Where it begins.
    pub(super) fn root(&self) -> &Arc<Path> {
        &self.input.root
    }

    /// What is configured for it.
    pub(super) fn settings(&self) -> &Arc<Settings> {
        &self.input.settings
    }

    /// Is it made to be installed?
    pub(super) fn is_built(&self) -> bool {
        is_installed_from(&self.input.root)
    }

    /// Is it made for others to import? It says how it is installed, or there is nothing in it besides packages and their
    /// tests: what has been installed, say.
    pub(super) fn is_library(&self) -> bool {
        self.is_built() || self.is_packages()
    }

    /// Is it a library and no more? One with scripts beside its packages is there for these.
    pub(super) fn is_only_library(&self) -> bool {
        let root = &self.input.root;
        let script = |file: &PathBuf| {
            let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            // A notebook beside a package shows how that is used.
            let is_script = !BUILDS.contains(&name) && !is_notebook(file);
            file.parent() == Some(root.as_ref()) && is_script && !is_test(file, root)
        };
        self.is_library() && !self.files.iter().any(script)
    }

    fn is_packages(&self) -> bool {
        let root = &self.input.root;
        let mut packages = FxHashMap::default();
        let mut in_package = |file: &Path| {
            let mut parts = file.strip_prefix(root).ok()?.components();
            let folder = parts.next().filter(|_| parts.next().is_some())?;
            let folder = root.join(folder);
            Some(*packages.entry(folder).or_insert_with_key(|folder| folder.join("__init__.py").exists()))
        };
        let code = |file: &&PathBuf| !is_test(file, root) && !is_notebook(file);
        let mut files = self.files.iter().filter(code).peekable();
        files.peek().is_some() && files.all(|file| in_package(file).unwrap_or_default())
    }

    /// Is the file one of those that this project was looked for?
    pub(super) fn holds(&self, file: FileId, inputs: &[Input]) -> bool {
        inputs.get(file.0 as usize).is_some_and(|input| {
            input.root == self.input.root && Arc::ptr_eq(&input.settings, &self.input.settings)
        })
    }

    /// Its files that are there and are imported after the `__init__.py` of a package, each with that.
    fn packages(&self, reading: &mut Reading<'_>) -> Vec<(ModIdx, ModIdx)> {
        let Reading { program, intake, .. } = reading;
        let mut module = |path: &Path| program.module_of(intake.file(path)?);
        let pairs = self.files.iter().filter_map(|path| {
            let folder = path.parent()?;
            let package = if path.ends_with("__init__.py") { folder.parent()? } else { folder };
            Some((module(path)?, module(&package.join("__init__.py"))?))
        });
        pairs.collect()
    }

    /// The call graph of those of its files that are there.
    pub(super) fn graph(&self, reading: &mut Reading<'_>) -> Arc<CallGraph> {
        let files = self.modules(reading);
        let size = reading.program.modules.len();
        reading.graphs.retain(|(known, _)| *known == size);
        let known = reading.graphs.iter().find(|(_, graph)| graph.files() == files);
        if let Some((_, graph)) = known {
            return Arc::clone(graph);
        }
        let graph = Arc::new(CallGraph::of(&reading.program, &files));
        reading.graphs.push((size, Arc::clone(&graph)));
        graph
    }

    /// The call graph with the files that name one of these functions, one that calls it, or one of these words.
    pub(super) fn callers(
        &self,
        reading: &mut Reading<'_>,
        targets: &[Target],
        words: &[&str],
    ) -> Arc<CallGraph> {
        loop {
            let graph = self.graph(reading);
            let size = reading.program.modules.len();
            if self.is_read(reading) {
                return graph;
            }
            let names = Paths::of(&reading.program, &graph, false).names(targets);
            let words: Vec<&str> = words.iter().copied().chain(names.iter().map(|n| n.as_str())).collect();
            self.complete(reading, &|text| mentions(text, &words));
            if reading.program.modules.len() == size {
                return graph;
            }
        }
    }

    /// The call graph with the files that call what writes for others: they say what is written.
    pub(super) fn with_helpers(&self, reading: &mut Reading<'_>) -> Arc<CallGraph> {
        loop {
            let graph = self.graph(reading);
            let size = reading.program.modules.len();
            let helpers = Writers::of(&reading.program, &graph).helpers();
            let words: Vec<&str> = helpers.iter().map(|name| name.as_str()).collect();
            self.complete(reading, &|text| mentions(text, &words));
            if reading.program.modules.len() == size {
                return graph;
            }
        }
    }

    /// Those of the project's files that are there, without its tests: what they call, they call in their own ways.
    pub(super) fn modules(&self, reading: &mut Reading<'_>) -> Vec<ModIdx> {
        let Reading { program, intake, .. } = reading;
        let root = &self.input.root;
        let mut file = |path: &PathBuf| {
            // What is only called a test may be a program.
            let test = is_test(path, root);
            if test && is_among_tests(path, root) {
                return None;
            }
            let m = program.module_of(intake.file(path)?)?;
            (!test || is_program(&program.get(m).ir)).then_some(m)
        };
        let files: Vec<ModIdx> = self.files.iter().filter_map(&mut file).collect();
        reading.program.note(&files);
        files
    }
}

/// Is there something in this folder that says how what is in it is installed?
pub(super) fn is_installed_from(root: &Path) -> bool {
    ["setup.py", "setup.cfg", "pyproject.toml"].iter().any(|name| root.join(name).exists())
}

/// Is one of the words in the text?
pub(super) fn mentions(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| Finder::new(word).find(text.as_bytes()).is_some())
}

/// The projects, read apart, of the findings that are `open`.
pub(super) fn projects_of<'a>(
    findings: &[Finding],
    open: impl Fn(&Finding, &Program) -> bool,
    reading: &mut Reading<'a>,
) -> Vec<Project<'a>> {
    let files: Vec<FileId> =
        findings.iter().filter(|f| open(f, &reading.program)).map(|f| f.primary.place.file).collect();
    projects(files.into_iter(), reading)
}

/// The projects that these files are in, as far as they were asked for.
pub(super) fn projects<'a>(
    files: impl Iterator<Item = FileId>,
    reading: &mut Reading<'a>,
) -> Vec<Project<'a>> {
    let inputs = reading.inputs;
    let mut seen: FxHashSet<(&Path, *const Settings)> = FxHashSet::default();
    let files: FxHashSet<FileId> = files.collect();
    let asked = files.into_iter().filter_map(|file| inputs.get(file.0 as usize));
    let firsts = asked.filter(|input| seen.insert((&input.root, Arc::as_ptr(&input.settings))));
    firsts
        .filter_map(|input| Some(Project { input, files: reading.places.files_of(input, inputs)? }))
        .collect()
}

/// The projects of these findings that are too large for all that is asked of a project above.
pub(super) fn too_large(findings: &[Finding], reading: &mut Reading<'_>) -> Vec<LargeProject> {
    let (inputs, places) = (reading.inputs, &mut reading.places);
    let mut seen: FxHashSet<&Path> = FxHashSet::default();
    let asked = findings.iter().filter_map(|f| inputs.get(f.primary.place.file.0 as usize));
    let firsts = asked.filter(|input| seen.insert(&input.root));
    let large = firsts.filter(|input| places.files_of(input, inputs).is_none());
    let project = |input: &Input| LargeProject { root: input.root.clone(), settings: input.settings.clone() };
    let mut large: Vec<LargeProject> = large.map(project).collect();
    large.sort_by(|a, b| a.root.cmp(&b.root));
    large
}
