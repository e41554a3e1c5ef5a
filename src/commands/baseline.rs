//! `--baseline` and `--update-baseline`: findings that are accepted are not told.

use std::path::{Path, PathBuf};

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Failure, say};
use crate::baseline::{self, Baseline, Looked, Stale, Update, identities};
use crate::config;
use crate::discover::Input;
use crate::finding::{Code, Finding};
use crate::refine::{Level, Refined, sort};
use crate::source::{Sources, display_name};

/// What the flags and the working directory say.
pub(super) struct Options<'a> {
    /// `--update-baseline`.
    pub update: Option<Update>,
    /// Are the details wanted?
    pub verbose: bool,
    /// Are warnings unwanted?
    pub quiet: bool,
    /// Is standard input linted?
    pub stdin: bool,
    /// The working directory.
    pub cwd: &'a Path,
}

impl<'a> Options<'a> {
    /// Only what baselines accept is asked for.
    pub(super) fn quiet(cwd: &'a Path) -> Self {
        Self { update: None, verbose: false, quiet: true, stdin: false, cwd }
    }
}

/// What a baseline cannot accept: a file that is not read whole hides what else is wrong with it.
const ALWAYS_TOLD: [Code; 3] = [Code(0), Code(1), Code(3)];

/// The baseline that the flags ask for.
pub(super) fn chosen(file: Option<&Path>, none: bool, cwd: &Path) -> config::Baseline {
    match file {
        _ if none => config::Baseline::Without,
        Some(path) => config::Baseline::File(cwd.join(path)),
        None => config::Baseline::Configured,
    }
}

/// Takes out of the findings what the baselines accept, and gives their number. Updates the baselines if that is asked for.
///
/// # Errors
/// If a baseline cannot be read or written.
pub(super) fn apply(refined: &mut Refined, files: &[Input], options: &Options<'_>) -> Result<usize, Failure> {
    let settings: FxHashMap<&Path, &Input> =
        files.iter().map(|input| (input.path.as_path(), input)).collect();
    let path_of = |input: &&Input| input.settings.baseline.clone();
    let mut paths: Vec<PathBuf> = files.iter().filter_map(|input| path_of(&input)).collect();
    paths.sort_unstable();
    paths.dedup();
    if paths.is_empty() && options.update.is_some() {
        return Err(Failure::Other(
            "`--update-baseline` needs a file: add `--baseline FILE`, or set `baseline = \"FILE\"` in the configuration".to_owned(),
        ));
    }
    if options.update.is_some() && options.stdin {
        return Err(Failure::Other("`--update-baseline` needs files, not standard input".to_owned()));
    }
    let run = Run::new(refined, &settings);
    let level = Level::of(files);
    let mut accepted = 0;
    for path in paths {
        let is_mine = |finding: &Finding, refined: &Refined| {
            let file = refined.sources.get(finding.primary.place.file).path.as_path();
            let baseline = settings.get(file).and_then(path_of);
            baseline.as_ref() == Some(&path) && !ALWAYS_TOLD.contains(&finding.code)
        };
        let (mut mine, others) = std::mem::take(&mut refined.findings)
            .into_iter()
            .partition::<Vec<_>, _>(|finding| is_mine(finding, refined));
        // What is not sure enough to be told is looked for as well, so that it does not count as gone, but takes no place of what is told.
        let is_told = |finding: &Finding| level.tells(finding, &refined.sources);
        mine.sort_by_key(|finding| !is_told(finding));
        let (left, known) = one(&path, mine, &refined.sources, &run, &is_told, options)?;
        accepted += known;
        refined.findings = others;
        refined.findings.extend(left);
    }
    sort(&mut refined.findings, &refined.sources);
    Ok(accepted)
}

/// Applies one baseline to these findings, those that are told first. Gives those that are left, and how many places of what is told it
/// accepts.
fn one(
    path: &Path,
    findings: Vec<Finding>,
    sources: &Sources,
    run: &Run<'_>,
    is_told: &dyn Fn(&Finding) -> bool,
    options: &Options<'_>,
) -> Result<(Vec<Finding>, usize), Failure> {
    let folder = path.parent().unwrap_or(path);
    let told = identities(sources, folder, &findings);
    let read = baseline::read(path).map_err(failure)?;
    if read.is_none() && options.update.is_none() {
        let name = display_name(path, options.cwd);
        return Err(Failure::Other(format!(
            "the baseline `{name}` does not exist; create it with `--update-baseline`, or run with `--no-baseline`"
        )));
    }
    let is_new = read.is_none();
    let mut baseline = read.unwrap_or_default();
    let shown: usize =
        findings.iter().zip(&told).filter(|(f, _)| is_told(f)).map(|(_, places)| places.len()).sum();
    let mut difference = baseline.compare(told.iter().flatten(), &Folder { path: folder, run });
    match options.update {
        None => tell_stale(path, &difference.stale, options),
        Some(update) => {
            let old = baseline.clone();
            baseline.remove(&difference.stale);
            if is_new || update == Update::Grow {
                let places = told.iter().flatten().zip(&mut difference.known).take(shown);
                let new = places.filter(|(_, known)| !**known);
                for (told, known) in new {
                    baseline.add(told);
                    *known = true;
                }
            }
            baseline::write(path, &baseline).map_err(failure)?;
            tell_update(path, &old, &baseline, options);
        }
    }
    let mut flags = difference.known.as_slice();
    let mut left = Vec::new();
    for (finding, places) in findings.into_iter().zip(&told) {
        let (mine, others) = flags.split_at(places.len().min(flags.len()));
        flags = others;
        left.extend(finding.without(mine));
    }
    Ok((left, difference.known.iter().take(shown).filter(|known| **known).count()))
}

fn failure(error: baseline::BaselineError) -> Failure {
    Failure::Other(error.to_string())
}

/// Says what is in the baseline and no longer found.
fn tell_stale(path: &Path, stale: &[Stale], options: &Options<'_>) {
    let count: usize = stale.iter().map(|gone| gone.count).sum();
    if count == 0 || options.quiet {
        return;
    }
    let name = display_name(path, options.cwd);
    let entries = if count == 1 { "1 place".to_owned() } else { format!("{count} places") };
    let details = if options.verbose { "" } else { " (--verbose lists them)" };
    say(&format!("{name}: {entries} no longer found{details}; remove them with --update-baseline"));
    if options.verbose {
        for gone in stale {
            let times = if gone.count == 1 { String::new() } else { format!(", {} times", gone.count) };
            say(&format!("  {}: {} `{}`{times}", gone.identity.path, gone.identity.rule, gone.marked));
        }
    }
}

fn tell_update(path: &Path, old: &Baseline, new: &Baseline, options: &Options<'_>) {
    if options.quiet {
        return;
    }
    let name = display_name(path, options.cwd);
    let (before, after) = (old.len(), new.len());
    let change = if old == new { "unchanged, " } else { "" };
    let from = if before == after { String::new() } else { format!(", {before} before") };
    let places = if after == 1 { "place" } else { "places" };
    say(&format!("{name}: {change}{after} {places}{from}"));
}

/// What this run has looked at.
struct Run<'a> {
    files: &'a FxHashMap<&'a Path, &'a Input>,
    /// The files that were not read whole.
    in_part: FxHashSet<PathBuf>,
}

impl<'a> Run<'a> {
    fn new(refined: &Refined, files: &'a FxHashMap<&'a Path, &'a Input>) -> Self {
        let broken =
            refined.findings.iter().filter(|f| ALWAYS_TOLD.contains(&f.code)).map(|f| f.primary.place.file);
        let exhausted = refined.exhausted.iter().map(|function| function.place.file);
        let in_part = broken.chain(exhausted).chain(refined.too_large.iter().copied());
        Self { files, in_part: in_part.map(|file| refined.sources.get(file).path.clone()).collect() }
    }
}

/// A run as seen from a baseline's folder.
struct Folder<'a> {
    path: &'a Path,
    run: &'a Run<'a>,
}

impl Looked for Folder<'_> {
    fn is_checked(&self, path: &str, rule: Code) -> bool {
        let path = joined(self.path, path);
        match self.run.files.get(path.as_path()) {
            Some(input) => input.settings.is_on(rule, &path) && !self.run.in_part.contains(&path),
            None => !path.exists(),
        }
    }
}

/// The path below the folder, or above it where it starts with `..`.
fn joined(folder: &Path, path: &str) -> PathBuf {
    let mut joined = folder.to_owned();
    for part in path.split('/') {
        match part {
            ".." => _ = joined.pop(),
            part => joined.push(part),
        }
    }
    joined
}
