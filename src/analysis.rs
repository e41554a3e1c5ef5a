//! From files to findings: reads, lowers, follows imports, links, interprets and judges. The stations before and after are `discover` and
//! `refine`.

mod around;
mod callers;
mod copies;
mod cuda_alone;
mod extensions;
mod fingerprints;
mod given;
mod groups;
mod intake;
mod judged;
mod makers;
mod memo;
mod needed;
mod outline;
mod passes;
mod places;
mod project;
mod refuters;
mod saved;
mod silences;
mod unreached;

use std::sync::Arc;

use rayon::prelude::*;

use self::copies::Copies;
use self::fingerprints::Fingerprints;
pub use self::intake::{Analysis, LargeProject};
use self::intake::{Intake, Loaded, file_id, load};
use self::judged::{Judged, importer, judged};
pub use self::memo::{Memo, Work};
pub use self::passes::FailedPass;
use self::passes::Passes;
use self::places::Places;
use self::project::Reading;
use crate::assumption::Assumption;
use crate::discover::Input;
use crate::finding::Finding;
use crate::flow::Relevance;
use crate::link::Program;
use crate::rules::Found;
use crate::source::{Source, Sources};
use crate::span::FileId;
use crate::work;

/// How often [`analyze`] calls `step` for each input: once after reading it, once after judging it.
pub const STEPS: usize = 2;

/// Analyzes files on the current thread pool. Every input gets a source, an empty one if it has no text. `honor_comments`: whether
/// suppression comments count. `step` is called [`STEPS`] times for each input, from any thread.
pub fn analyze(inputs: &[Input], honor_comments: bool, step: &(dyn Fn() + Sync)) -> Analysis {
    analyzed(inputs, honor_comments, step, Passes::default(), None)
}

/// The same, with what earlier analyses of such files have kept. The result is the same as that of [`analyze`], except for
/// [`Analysis::work`].
pub fn analyze_again(
    inputs: &[Input],
    honor_comments: bool,
    step: &(dyn Fn() + Sync),
    memo: &mut Arc<Memo>,
) -> Analysis {
    analyzed(inputs, honor_comments, step, Passes::default(), Some(memo))
}

fn analyzed(
    inputs: &[Input],
    honor_comments: bool,
    step: &(dyn Fn() + Sync),
    mut passes: Passes,
    mut memo: Option<&mut Arc<Memo>>,
) -> Analysis {
    let mut analysis = Analysis::default();
    let mut intake = Intake::new(inputs, honor_comments, memo.as_deref().cloned());
    let loaded = |(i, input)| {
        let loaded = load(input, file_id(i), intake.memo.as_deref());
        step();
        loaded
    };
    let first: Vec<Loaded> = inputs.par_iter().enumerate().map(loaded).collect();
    let inputs_read = first.len();
    let linked = passes.made("follow imports", || {
        let asked = intake.take(first, &mut analysis);
        // A run follows imports through the project, so that linting one file finds what linting all files finds.
        intake.needs(asked, &mut analysis);
        let program = intake.link();
        let relevance = Relevance::of(&program);
        (program, relevance)
    });
    let Some((program, mut relevance)) = linked else {
        name_sources(&mut analysis, inputs);
        analysis.failed_passes = passes.into_failed();
        return analysis;
    };
    let first: Vec<(FileId, &Input)> = (0..).map(file_id).zip(inputs).collect();
    let first = judged_all(&first, (&program, &relevance), &intake, &analysis.sources, step);
    let mut found = Found::default();
    for (file, judged) in first {
        found.insert(file, judged.findings);
        analysis.exhausted.extend(judged.exhausted);
    }
    let mut reading =
        Reading { inputs, program, intake, analysis, places: Places::of(inputs), graphs: Vec::new() };
    let findings = of_causes(found, &mut reading, &mut relevance, &mut passes);
    let findings = of_callers(findings, &mut reading, &mut passes);
    let findings = passes.on("one finding per line", findings, |findings| {
        let is_on =
            |file: FileId, code| inputs.get(file.0 as usize).is_none_or(|i| i.settings.is_on(code, &i.path));
        crate::rules::one_on_a_line(findings, &reading.analysis.sources, &is_on)
    });
    let large = passes.made("large projects", || project::too_large(&findings, &mut reading));
    let Reading { program, mut analysis, intake, .. } = reading;
    analysis.large_projects = large.unwrap_or_default();
    analysis.findings.extend(findings);
    analysis.comments.retain(|(file, _)| (file.0 as usize) < inputs_read);
    analysis.work = rayon::broadcast(|_| work::take()).into_iter().sum();
    analysis.failed_passes = passes.into_failed();
    drop(intake);
    match memo.as_mut().and_then(|memo| Arc::get_mut(memo)) {
        Some(memo) => memo.finish(program.into_modules(), &analysis.sources),
        // The process ends soon. Freeing these values piece by piece takes longer than leaking them.
        None => std::mem::forget((program, relevance)),
    }
    analysis
}

/// Gives every input a source, also inputs that were not read.
fn name_sources(analysis: &mut Analysis, inputs: &[Input]) {
    for input in inputs.iter().skip(analysis.sources.len()) {
        analysis.sources.add(Source::new(input.path.clone(), input.name.clone(), String::new()));
    }
}

/// Merges the findings of all files so that one cause is one finding. No caller is asked yet.
fn of_causes(
    found: Found,
    reading: &mut Reading<'_>,
    relevance: &mut Relevance,
    passes: &mut Passes,
) -> Vec<Finding> {
    let found = passes.on("arguments of callers", found, |mut found| {
        given::decided_elsewhere(&mut found, reading, relevance);
        found
    });
    let copies = passes.made("copied code", || Copies::of(&found, reading, relevance));
    let copies = copies.unwrap_or_default();
    let others = passes.made("imported files", || of_others(&found, &copies, reading, relevance));
    let both = (found, others.unwrap_or_default());
    let (found, others) = passes.on("process groups", both, |(mut found, mut others)| {
        groups::of_nccl(&mut found, &mut others, reading);
        (found, others)
    });
    let copied = passes.made("findings in copied code", || copies.told(&found, &others, reading));
    let copied = copied.unwrap_or_default();
    let all = found.values().flatten().cloned().collect();
    let findings = passes.on("one finding per cause", all, |_: Vec<Finding>| {
        let mut findings = crate::rules::told_once(found, &others);
        findings.retain_mut(|f| !copied.contains(&(f.code, f.primary.place)) || f.leave());
        findings
    });
    passes.on("sources of generated code", findings, |mut findings| {
        copies.name_sources(&mut findings, reading);
        findings
    })
}

/// The findings in files that the user did not ask for and that findings refer to. If an imported file has its own finding for a cause, a
/// file that uses it needs none, whether or not the imported file is linted.
fn of_others(found: &Found, copies: &Copies, reading: &Reading<'_>, relevance: &Relevance) -> Found {
    let mut asked: Vec<FileId> = crate::rules::refers_to(found).into_iter().chain(copies.others()).collect();
    asked.sort_unstable();
    asked.dedup();
    let Reading { inputs, program, intake, analysis, .. } = reading;
    let sources = &analysis.sources;
    let others = asked.into_iter().filter(|file| !found.contains_key(file));
    let others: Vec<(FileId, &Input)> =
        others.filter_map(|file| Some((file, importer(&sources.get(file).path, inputs)?))).collect();
    let judged = judged_all(&others, (program, relevance), intake, sources, &|| ());
    judged.into_iter().map(|(file, judged)| (file, judged.findings)).collect()
}

/// The findings in these files, each with the input whose settings apply. `step` is called for each file.
fn judged_all(
    files: &[(FileId, &Input)],
    (program, relevance): (&Program, &Relevance),
    intake: &Intake,
    sources: &Sources,
    step: &(dyn Fn() + Sync),
) -> Vec<(FileId, Judged)> {
    let memo = intake.memo.as_deref();
    let prints = memo.map(|memo| (memo, Fingerprints::new(program, relevance, intake, sources, memo)));
    let judged = |&(file, input): &(FileId, &Input)| {
        let judge = || judged(file, input, program, relevance, sources);
        let judged = match &prints {
            Some((memo, prints)) => memo.judged(input, (file, &sources.get(file).path), prints, judge),
            None => judge(),
        };
        step();
        (file, judged)
    };
    files.par_iter().map(judged).collect()
}

/// A pass over the findings that reads the project's other files.
type Asks = fn(Vec<Finding>, &mut Reading<'_>) -> Vec<Finding>;

/// A pass that removes findings whose assumption the project's other files refute.
struct Refuter {
    /// Its name, in a few words.
    name: &'static str,
    /// The assumptions that it refutes. It keeps findings without such an assumption.
    refutes: fn(&Assumption) -> bool,
    ask: Asks,
}

/// The refuters, in the order in which they run. Those that remove the most findings come first, so that the others have less to check.
/// `given` and `groups` also refute assumptions; they run earlier, before it is decided which file reports a cause.
const REFUTERS: [Refuter; 10] = [
    Refuter {
        name: "reached without CUDA",
        refutes: |a| matches!(a, Assumption::CudaMissing(_)),
        ask: refuters::reached_without_cuda,
    },
    Refuter {
        name: "reached in process groups only",
        refutes: |a| matches!(a, Assumption::CudaMissing(_) | Assumption::RunsOnMps),
        ask: refuters::only_in_groups,
    },
    Refuter {
        name: "reached on MPS",
        refutes: |a| matches!(a, Assumption::RunsOnMps),
        ask: callers::off_mps,
    },
    Refuter {
        name: "saved files",
        refutes: |a| matches!(a, Assumption::SavedFromGpu),
        ask: saved::saved_elsewhere,
    },
    Refuter {
        name: "default devices",
        refutes: |a| matches!(a, Assumption::DefaultDevice(_)),
        ask: refuters::made_by_default,
    },
    Refuter {
        name: "modules that move",
        refutes: |a| matches!(a, Assumption::ModuleMoved(_)),
        ask: refuters::on_moved_modules,
    },
    Refuter {
        name: "other code that moves modules",
        refutes: |a| matches!(a, Assumption::DefaultDevice(_)),
        ask: makers::moved_by_others,
    },
    Refuter {
        name: "facts at callers",
        refutes: |a| {
            matches!(a, Assumption::GradientsOn | Assumption::NoGpuChosen | Assumption::SeveralProcesses)
        },
        ask: refuters::seen_to_by_callers,
    },
    Refuter {
        name: "count copies",
        refutes: |a| matches!(a, Assumption::RunsOften),
        ask: refuters::copied_once,
    },
    Refuter {
        name: "copies of arguments",
        refutes: |a| matches!(a, Assumption::LeftToDefault),
        ask: callers::copied_instead,
    },
];

/// The passes that lower the confidence of findings or merge several into one, with their names. They also read the project's other files,
/// and run in this order.
const DOUBTS: [(&str, Asks); 2] =
    [("unreached code", unreached::doubt_unreached), ("CUDA-only projects", cuda_alone::told_once)];

/// The findings that remain after all passes over the project.
fn of_callers(mut findings: Vec<Finding>, reading: &mut Reading<'_>, passes: &mut Passes) -> Vec<Finding> {
    for Refuter { name, refutes, ask } in REFUTERS {
        findings = passes.on(name, findings, |findings| {
            if findings.iter().any(|f| f.assumes(refutes)) { ask(findings, reading) } else { findings }
        });
    }
    for (name, pass) in DOUBTS {
        findings = passes.on(name, findings, |findings| pass(findings, reading));
    }
    findings
}

#[cfg(test)]
mod tests;
