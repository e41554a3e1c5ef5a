//! Refutes findings that assume what callers pass, with the calls in the project's other files.
//!
//! If other files of the project call a function, each with arguments of its own, these calls decide: the engine interprets the callers
//! with their arguments. If none of them has the finding, it is dropped. A finding is also dropped in a function that only ever runs on the
//! host, where all arguments are on the CPU.

use rustc_hash::{FxHashMap, FxHashSet};

use super::judged::{findings_of, importer};
use super::project::{Project, Reading, mentions, projects};
use crate::assumption::Parameter as Given;
use crate::finding::{Code, Finding};
use crate::flow::{Calls, HostSide, Relevance, Target};
use crate::ir::{FuncId, is_private};
use crate::link::{ModIdx, Program};
use crate::rules::Found;
use crate::source::is_test;
use crate::span::FileId;

/// At most this many files with callers are interpreted. If none of them has the finding, the others are not checked.
/// them.
const MAX_CALLERS: usize = 12;
/// The rule about 64-bit numbers on a device that has none.
const DOUBLE_ON_MPS: Code = Code(701);

/// Removes findings from `found` that calls in other files refute.
pub(super) fn decided_elsewhere(found: &mut Found, reading: &mut Reading<'_>, relevance: &mut Relevance) {
    let inputs = reading.inputs;
    let given =
        |found: &Found| -> Vec<Given> { found.values().flatten().flat_map(|f| f.parameters()).collect() };
    let all = given(found);
    for project in projects(all.iter().map(|g| g.file), reading) {
        let here: Vec<Given> = all.iter().filter(|g| project.holds(g.file, inputs)).copied().collect();
        let targets: FxHashSet<Target> = here.iter().filter_map(|g| target(&reading.program, *g)).collect();
        let size = reading.program.len();
        let host = host_side(&targets, &project, reading);
        let calls = calls_of(targets, &project, reading).unwrap_or_default();
        if reading.program.len() != size {
            *relevance = Relevance::of(&reading.program);
        }
        let (shared, offers) = (project.is_built(), project.is_only_library());
        let mut said = Said { found, others: FxHashMap::default(), host, shared, offers, reading, relevance };
        let decided: Vec<(FileId, Finding)> = said.decided(&here, &calls);
        for (file, finding) in decided {
            if let Some(findings) = found.get_mut(&file) {
                findings.retain(|f| *f != finding);
            }
        }
    }
}

/// The calls in the project of these functions, and of functions that pass their own parameters on to them. `None` if the project is too
/// large to read.
fn calls_of(
    mut targets: FxHashSet<Target>,
    project: &Project<'_>,
    reading: &mut Reading<'_>,
) -> Option<Calls> {
    let names: Vec<&str> = targets.iter().flat_map(|&t| names(&reading.program, t)).collect();
    if !project.complete(reading, &|text| mentions(text, &names)) {
        return None;
    }
    let graph = project.graph(reading);
    let (mut open, mut calls) = (targets.clone(), Calls::default());
    while !open.is_empty() {
        calls.add(&reading.program, &graph, &open);
        open = calls.handing_on(&reading.program);
        open.retain(|&target| targets.insert(target));
    }
    Some(calls)
}

/// The code that runs on the host, as far as these functions are concerned. Reads the files that mention functions on the way to them.
fn host_side(targets: &FxHashSet<Target>, project: &Project<'_>, reading: &mut Reading<'_>) -> HostSide {
    let targets: Vec<Target> = targets.iter().copied().collect();
    let names = HostSide::of(project.graph(reading)).leading_to(&reading.program, &targets);
    let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
    project.complete(reading, &|text| mentions(text, &names));
    HostSide::of(project.graph(reading))
}

fn target(program: &Program, given: Given) -> Option<Target> {
    Some((program.module_of(given.file)?, given.func))
}

/// The name by which a function is called, and the name of the class that it is a method of.
fn names(program: &Program, (m, f): Target) -> Vec<&'static str> {
    let ir = &program.get(m).ir;
    let function = ir.function(f);
    let class = function.class.map(|class| ir.class(class).name.as_str());
    let own = Some(function.name.as_str()).filter(|name| !matches!(*name, "__init__" | "__call__"));
    own.into_iter().chain(class).collect()
}

/// The findings of files, and what is known about the project, while calls are checked.
struct Said<'a> {
    found: &'a Found,
    others: Found,
    host: HostSide,
    /// The project is made to be installed, so code outside it may also call its functions.
    shared: bool,
    /// The project is a library and has no scripts of its own.
    offers: bool,
    reading: &'a Reading<'a>,
    relevance: &'a Relevance,
}

impl Said<'_> {
    /// The findings that calls refute: the calls decide the argument, and no file with such a call has the finding.
    fn decided(&mut self, given: &[Given], calls: &Calls) -> Vec<(FileId, Finding)> {
        let mut decided = Vec::new();
        for (&file, findings) in self.found {
            for f in findings {
                if f.parameters().next().is_some()
                    && f.parameters().all(|g| given.contains(&g) && self.is_decided(g, f, calls))
                {
                    decided.push((file, f.clone()));
                }
            }
        }
        decided
    }

    /// Is the parameter always on the host, or do calls decide it and none of their files has the finding?
    fn is_decided(&mut self, given: Given, f: &Finding, calls: &Calls) -> bool {
        let Some(target) = target(&self.reading.program, given) else { return false };
        if self.host.contains(&self.reading.program, target) {
            return true;
        }
        if given.followed || self.offers && self.is_offered(target) {
            return false;
        }
        let side = (!self.shared).then_some(&self.host);
        let callers = calls.deciding(&self.reading.program, side, target, given.index);
        callers.is_some_and(|files| !files.iter().take(MAX_CALLERS).any(|&m| self.tells(m, f)))
    }

    /// Is the function, by its name and the names around it, part of the public interface of a library? Then the calls in the project are
    /// only some of its calls.
    fn is_offered(&self, (m, f): Target) -> bool {
        let ir = &self.reading.program.get(m).ir;
        let function = ir.function(f);
        let class = function.class.map(|class| ir.class(class).name.as_str());
        let nested = function.class.is_none() && function.parent.is_some_and(|parent| parent != FuncId(0));
        let path = &self.reading.analysis.sources.get(ir.file).path;
        let Some(input) = importer(path, self.reading.inputs) else { return false };
        let within = path.strip_prefix(&input.root).unwrap_or(path);
        let names = within.components().filter_map(|c| c.as_os_str().to_str());
        !nested
            && !function.is_private()
            && !class.is_some_and(is_private)
            && !names.into_iter().any(|name| is_private(name.trim_end_matches(".py")))
            && !is_test(path, &input.root)
            && path.parent().is_some_and(|folder| folder.join("__init__.py").exists())
    }

    /// Does the file with a call have the same finding, or a finding with this cause?
    fn tells(&mut self, m: ModIdx, f: &Finding) -> bool {
        let Reading { inputs, program, analysis, .. } = self.reading;
        let file = program.get(m).ir.file;
        if !self.found.contains_key(&file) && !self.others.contains_key(&file) {
            let path = &analysis.sources.get(file).path;
            let findings = importer(path, inputs).map_or_else(Vec::new, |input| {
                findings_of(file, input, program, self.relevance, &analysis.sources)
            });
            self.others.insert(file, findings);
        }
        let findings = self.found.get(&file).or_else(|| self.others.get(&file));
        // A finding about slow 64-bit numbers on a GPU does not support a finding about MPS.
        let kin = |other: &Finding| f.code != DOUBLE_ON_MPS || other.code == f.code;
        findings.into_iter().flatten().filter(|other| kin(other)).any(|other| {
            other.roots.contains(&f.primary.place) || other.places().any(|p| f.places().any(|q| p == q))
        })
    }
}
