//! Findings that take for granted what callers give, where the project's other files say what that is.
//!
//! A function that other files of its project call, each with something of their own, is judged by these calls: what they give
//! is interpreted with them. If none of them comes to the finding, it is dropped. So is a finding in what only ever works on the
//! host, where everything that is given is on the CPU.

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

/// More files than this are not interpreted to see what they give; nor need they be, where so many call it.
const MAX_CALLERS: usize = 12;
/// Numbers of 64 bits on a device that has none.
const DOUBLE_ON_MPS: Code = Code(701);

/// Takes out of `found` what calls in other files decide.
pub(super) fn decided_elsewhere(found: &mut Found, reading: &mut Reading<'_>, relevance: &mut Relevance) {
    let inputs = reading.inputs;
    let given =
        |found: &Found| -> Vec<Given> { found.values().flatten().flat_map(|f| f.parameters()).collect() };
    let all = given(found);
    for project in projects(all.iter().map(|g| g.file), reading) {
        let here: Vec<Given> = all.iter().filter(|g| project.holds(g.file, inputs)).copied().collect();
        let targets: FxHashSet<Target> = here.iter().filter_map(|g| target(&reading.program, *g)).collect();
        let size = reading.program.modules.len();
        let host = host_side(&targets, &project, reading);
        let calls = calls_of(targets, &project, reading).unwrap_or_default();
        if reading.program.modules.len() != size {
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

/// The calls of these functions in the project, and of those that hand on to them what they are given; none if it is too
/// large to be read for that.
fn calls_of(
    mut targets: FxHashSet<Target>,
    project: &Project<'_>,
    reading: &mut Reading<'_>,
) -> Option<Calls> {
    loop {
        let names: Vec<&str> = targets.iter().flat_map(|&t| names(&reading.program, t)).collect();
        if !project.complete(reading, &|text| mentions(text, &names)) {
            return None;
        }
        let graph = project.graph(reading);
        let calls = Calls::of(&reading.program, &graph, &targets);
        let more = calls.handing_on(&reading.program);
        let before = targets.len();
        targets.extend(more);
        if targets.len() == before {
            return Some(calls);
        }
    }
}

/// What works on the host, as far as these functions go: the files that mention what leads to them are read.
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

/// The name by which the function is called, and that of the class that it is a method of.
fn names(program: &Program, (m, f): Target) -> Vec<&'static str> {
    let ir = &program.get(m).ir;
    let function = ir.function(f);
    let class = function.class.map(|class| ir.class(class).name.as_str());
    let own = Some(function.name.as_str()).filter(|name| !matches!(*name, "__init__" | "__call__"));
    own.into_iter().chain(class).collect()
}

/// What files say, the ones that were asked for and others.
struct Said<'a> {
    found: &'a Found,
    others: Found,
    host: HostSide,
    /// Others call the project's functions as well: it is made to be installed.
    shared: bool,
    /// That is all it is made for.
    offers: bool,
    reading: &'a Reading<'a>,
    relevance: &'a Relevance,
}

impl Said<'_> {
    /// The findings that calls decide, and that none of the files with these calls comes to.
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

    /// Is what is given there on the host, or do calls decide it, and does none of their files come to the finding?
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

    /// Is it, by its name and those around it, there for who installs the project? What its other files give it is one
    /// use among others.
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

    /// Does the file come to it, too?
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
        // Where it is slow on a GPU says nothing of MPS.
        let kin = |other: &Finding| f.code != DOUBLE_ON_MPS || other.code == f.code;
        findings.into_iter().flatten().filter(|other| kin(other)).any(|other| {
            other.roots.contains(&f.primary.place) || other.places().any(|p| f.places().any(|q| p == q))
        })
    }
}
