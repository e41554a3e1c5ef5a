//! `samedevice check`: paths → findings → report → exit code.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rustc_hash::FxHashMap;

use super::progress::Progress;
use super::unchecked::Unchecked;
use super::verify::{self, Asked};
use super::{Failure, baseline, listed, say, show, terminal};
use crate::analysis::{FailedPass, STEPS, analyze};
use crate::cli::{CheckArgs, Color, Depth, FailOn, MachineArgs, Output, RuleSelection, is_setting};
use crate::config::file::unknown_rule;
use crate::config::selector::Selection;
use crate::config::{ConfigError, Overrides, Patterns, Resolver, Selector, Where, inline};
use crate::discover::{DiscoverError, Discovery, Options, absolute, discover, virtual_file};
use crate::finding::{Finding, Severity};
use crate::lower::STACK_BYTES;
use crate::refine::{Refined, refine};
use crate::report::{self, Format, Report, statistics};
use crate::rules::registry::registry;
use crate::source::read;
use crate::verify::machine;

/// Lints.
///
/// # Errors
/// If flags or configuration are wrong, or the output cannot be written.
pub fn run(args: &CheckArgs, color: Color) -> Result<ExitCode, Failure> {
    let cwd = std::env::current_dir()
        .map_err(|error| Failure::Other(format!("there is no working directory: {error}")))?;
    let mut resolver = resolver(args, &cwd)?;
    if args.config.show_settings {
        return show_settings(args, &cwd, &mut resolver);
    }
    let mut found = find(args, &cwd, &mut resolver)?;
    let mut failed = tell_errors(&mut found, args)?;
    if args.files.show_files {
        show::files(&found.files, &mut io::stdout().lock())?;
        return Ok(ExitCode::from(if failed { 2 } else { 0 }));
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads(args.jobs))
        .stack_size(STACK_BYTES)
        .build()
        .map_err(|error| Failure::Other(format!("cannot start threads: {error}")))?;
    let progress = Progress::new(found.files.len() * STEPS, args.output.quiet);
    let analysis = pool.install(|| analyze(&found.files, !args.rules.no_ignores, &|| progress.step()));
    drop(progress);
    let mut refined = refine(analysis, &found.files, registry());
    if let Some(asked) = asked(&args.machine)? {
        verify::judge(&mut refined.findings, &asked, &cwd)?;
        if args.machine.only_confirmed {
            refined.findings.retain(verify::is_confirmed);
        }
    }
    refuse_to_overwrite(args, &found, &refined)?;
    let accepted = baseline::apply(
        &mut refined,
        &found,
        &baseline::Options {
            update: args.baseline.update_baseline,
            verbose: args.output.verbose,
            quiet: args.output.quiet,
            cwd: &cwd,
        },
    )?;
    failed |= tell_failed_passes(&refined.failed_passes);
    let unchecked = Unchecked::of(&found, &refined, &cwd);
    for output in &args.output.all() {
        let left = Left { failed, accepted, not_checked: unchecked.details() };
        write(args, output, color, &cwd, &found, &refined, left)?;
    }
    failed |= tell_unchecked(&unchecked, args);
    Ok(exit_code(args, failed, &found, &refined))
}

/// How many threads there are to be; 0: as many as rayon thinks. More than cores are of no use, and each takes its stack.
/// That only one file is linted does not mean that there is work for one thread: those that it imports are read as well.
fn threads(asked: Option<usize>) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    asked.map_or(0, |asked| asked.min(cores))
}

/// Which machine the findings are to be judged for, if for one.
fn asked(args: &MachineArgs) -> Result<Option<Asked>, Failure> {
    if args.memory && args.verify != Some(Depth::Run) {
        return Err(Failure::Other("`--memory` allocates on the GPU, and needs `--verify=run`".to_owned()));
    }
    let depth = match args.verify {
        None if args.machine.is_none() => return Ok(None),
        None | Some(Depth::Look) => machine::Depth::Look,
        Some(Depth::Run) => machine::Depth::Run,
    };
    Ok(Some(Asked {
        file: args.machine.clone(),
        depth,
        memory: args.memory,
        python: args.python.clone(),
        time_limit: args.time_limit,
    }))
}

/// Says which passes a bug has stopped, and whether there are any.
fn tell_failed_passes(passes: &[FailedPass]) -> bool {
    for FailedPass { name, panic } in passes {
        say(&format!(
            "error: internal error in the pass that is to {name}; its findings are told as they were before, some of them \
             perhaps wrongly; please report it: {panic}"
        ));
    }
    !passes.is_empty()
}

/// Says what was not checked, and whether that means failure.
fn tell_unchecked(unchecked: &Unchecked, args: &CheckArgs) -> bool {
    let Some(summary) = unchecked.summary() else { return false };
    // Who is quiet and strict is told why it failed.
    let details = !args.output.quiet && args.output.verbose;
    if !args.output.quiet || unchecked.is_strict() {
        say(&format!("{summary}{}", if details { "" } else { "; see --verbose" }));
    }
    if details {
        unchecked.details().iter().for_each(|line| say(&format!("not checked: {line}")));
    }
    if unchecked.is_strict() {
        say("error: `strict` asks for everything to be checked; exclude what need not be (`extend-exclude`)");
    }
    unchecked.is_strict()
}

fn exit_code(args: &CheckArgs, failed: bool, found: &Discovery, refined: &Refined) -> ExitCode {
    let fails = |finding: &Finding| match args.machine.fail_on {
        FailOn::Any => true,
        FailOn::Possible => verify::is_possible(finding),
        FailOn::Confirmed => verify::is_confirmed(finding),
    };
    let levels: FxHashMap<&Path, Severity> =
        found.files.iter().map(|input| (input.path.as_path(), input.settings.fail_on_severity)).collect();
    let severe = |finding: &Finding| {
        let path = refined.sources.get(finding.primary.place.file).path.as_path();
        finding.severity >= levels.get(path).copied().unwrap_or(Severity::Warning)
    };
    let counts = refined.findings.iter().any(|finding| severe(finding) && fails(finding));
    ExitCode::from(match (failed, counts) {
        (true, _) => 2,
        (false, true) if !args.exit_zero => 1,
        _ => 0,
    })
}

fn resolver(args: &CheckArgs, cwd: &Path) -> Result<Resolver, ConfigError> {
    let patterns = |flag: &str, globs: &[String]| {
        Patterns::new(cwd, globs)
            .map_err(|bad| ConfigError::new(format!("malformed glob in `{flag}`: {}", bad.reason)))
    };
    let exclude = args.files.exclude.as_ref().map(|globs| patterns("--exclude", globs)).transpose()?;
    let extend_exclude = patterns("--extend-exclude", &args.files.extend_exclude)?;
    let (settings, files): (Vec<&String>, Vec<&String>) =
        args.config.config.iter().partition(|text| is_setting(text));
    let settings =
        settings.iter().map(|text| inline(text, cwd, registry())).collect::<Result<Vec<_>, ConfigError>>()?;
    let overrides = Overrides {
        selection: selection(&args.rules)?,
        exclude,
        extend_exclude: Some(extend_exclude),
        force_exclude: args.files.force_exclude,
        strict: args.strict,
        fail_on_severity: args.fail_on_severity,
        baseline: baseline::chosen(args.baseline.baseline.as_deref(), args.baseline.no_baseline, cwd),
        inline: settings.into_iter().flatten().collect(),
    };
    let place = match files.as_slice() {
        [file] => Where::File(file.into()),
        [] if args.config.isolated => Where::Isolated,
        [] => Where::Search,
        [..] => return Err(ConfigError::new("`--config` takes one file; extend it, or set keys besides")),
    };
    Resolver::new(cwd, registry(), &place, overrides)
}

fn selection(rules: &RuleSelection) -> Result<Selection, ConfigError> {
    let parse = |flag: &str, texts: &[String]| -> Result<Vec<Selector>, ConfigError> {
        let one = |text: &String| Selector::parse(text, registry());
        let unknown = |unknown| unknown_rule(&unknown).prefixed(&format!("`{flag}`: "));
        texts.iter().map(one).collect::<Result<_, _>>().map_err(unknown)
    };
    Ok(Selection {
        select: rules.select.as_ref().map(|texts| parse("--select", texts)).transpose()?,
        extend_select: parse("--extend-select", &rules.extend_select)?,
        ignore: parse("--ignore", &rules.ignore)?,
    })
}

/// The files, or standard input as if it were one.
fn find(args: &CheckArgs, cwd: &Path, resolver: &mut Resolver) -> Result<Discovery, Failure> {
    let options = Options { cwd: cwd.to_owned() };
    if let Some(list) = &args.files.files_from {
        return Ok(discover(&listed::paths(list, args.files.null)?, &options, resolver));
    }
    let dash = Path::new("-");
    let name = args.files.stdin_filename.as_deref();
    if name.is_none() && !args.paths.iter().any(|path| path == dash) {
        return Ok(discover(&args.paths, &options, resolver));
    }
    // Without paths there is the default; editors also pass the name twice.
    let allowed = |path: &&PathBuf| *path == dash || *path == Path::new(".") || Some(path.as_path()) == name;
    if args.paths.len() > 1 || !args.paths.iter().all(|path| allowed(&path)) {
        return Err(Failure::Other("standard input cannot be linted together with other paths".to_owned()));
    }
    let mut bytes = Vec::new();
    read::upto_max(io::stdin().lock(), &mut bytes).map_err(|error| {
        Failure::Other(format!("cannot read standard input: {}", read::io_reason(&error)))
    })?;
    let input = virtual_file(name.unwrap_or(dash), bytes, &options, resolver)?;
    Ok(Discovery { files: input.into_iter().collect(), ..Discovery::default() })
}

/// Tells what could not be found. Says whether that means failure.
///
/// # Errors
/// If a configuration is wrong: then nothing is linted.
fn tell_errors(found: &mut Discovery, args: &CheckArgs) -> Result<bool, ConfigError> {
    let mut failed = false;
    for error in found.errors.drain(..) {
        failed = true;
        match error {
            DiscoverError::Config(error) => return Err(error),
            other => say(&format!("error: {other}")),
        }
    }
    if found.files.is_empty() && found.excluded.is_none() && !failed && !args.output.quiet {
        say("warning: no Python files found");
    }
    if args.output.verbose {
        tell_files(found);
    }
    Ok(failed)
}

/// `--verbose`.
fn tell_files(found: &Discovery) {
    let mut configs: Vec<_> = found.files.iter().filter_map(|input| input.settings.file.as_deref()).collect();
    configs.sort_unstable();
    configs.dedup();
    for config in configs {
        say(&format!("configuration: {}", config.display()));
    }
    say(&format!("files: {}", found.files.len()));
}

fn show_settings(args: &CheckArgs, cwd: &Path, resolver: &mut Resolver) -> Result<ExitCode, Failure> {
    let path = absolute(args.paths.first().map_or(Path::new("."), PathBuf::as_path), cwd);
    let folder = if path.is_dir() { path.as_path() } else { path.parent().unwrap_or(&path) };
    let settings = resolver.settings(folder)?;
    show::settings(&settings, registry(), &mut io::stdout().lock())?;
    Ok(ExitCode::SUCCESS)
}

/// What of that which was asked for has not been looked at.
struct Left<'a> {
    /// Was there an error?
    failed: bool,
    /// How many findings baselines accept.
    accepted: usize,
    /// A line for each thing that was not checked.
    not_checked: &'a [String],
}

fn write(
    args: &CheckArgs,
    output: &Output,
    color: Color,
    cwd: &Path,
    found: &Discovery,
    refined: &Refined,
    left: Left<'_>,
) -> Result<(), Failure> {
    let format = output.format;
    let root = root(format, cwd);
    let to_file = output.file.as_deref();
    let color =
        if to_file.is_some() { color == Color::Always } else { terminal::color(color, &io::stdout()) };
    let report = Report {
        sources: &refined.sources,
        findings: &refined.findings,
        pages: registry(),
        checked: found.files.len() - refined.too_large.len(),
        suppressed: refined.suppressed,
        accepted: left.accepted,
        failed: left.failed,
        not_checked: left.not_checked,
        version: env!("CARGO_PKG_VERSION"),
        summary: !args.output.quiet,
        color,
        unicode: to_file.is_some() || terminal::unicode(),
        links: color && to_file.is_none() && terminal::links(),
        width: terminal::width(),
        root: &root,
    };
    let mut out: Box<dyn Write> = match to_file {
        None => Box::new(BufWriter::new(io::stdout().lock())),
        Some(path) => Box::new(BufWriter::new(create(path)?)),
    };
    if args.output.statistics {
        statistics::write(format, &report, &mut out)?;
    } else {
        report::write(format, &report, &mut out)?;
    }
    Ok(out.flush()?)
}

/// A file of the run, be it source or configuration, is no place for its output.
fn refuse_to_overwrite(args: &CheckArgs, found: &Discovery, refined: &Refined) -> Result<(), Failure> {
    for output in args.output.all().iter().filter_map(|output| output.file.as_deref()) {
        refuse_file(output, args, found, refined)?;
    }
    Ok(())
}

fn refuse_file(output: &Path, args: &CheckArgs, found: &Discovery, refined: &Refined) -> Result<(), Failure> {
    // What does not exist yet is none of them.
    let Ok(target) = output.canonicalize() else { return Ok(()) };
    let sources = refined.sources.iter().map(|(_, source)| source.path.as_path());
    let configs =
        found.files.iter().flat_map(|input| input.settings.file.iter().chain(&input.settings.extends));
    let configs = configs.map(PathBuf::as_path);
    let baselines = found.files.iter().filter_map(|input| input.settings.baseline.as_deref());
    let lists = args.files.files_from.as_deref();
    let given = args.machine.machine.as_deref().into_iter().chain(lists);
    let mut files = sources.chain(configs).chain(baselines).chain(given);
    let same =
        |file: &Path| file.file_name().is_some() && file.canonicalize().is_ok_and(|file| file == target);
    if files.any(same) {
        let output = output.display();
        let message = format!(
            "`{output}` is a file of this run and is not overwritten; name another one for the output"
        );
        return Err(Failure::Other(message));
    }
    Ok(())
}

fn create(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| {
        let reason = read::io_reason(&error);
        Failure::Other(format!("cannot write `{}`: {reason}", path.display()))
    })
}

/// What paths in the output are relative to: the working directory, but GitHub and GitLab take the folder of their clone for
/// that, whatever folder of it a step works in.
fn root(format: Format, cwd: &Path) -> PathBuf {
    let variable = match format {
        Format::Github | Format::Sarif => Some("GITHUB_WORKSPACE"),
        Format::Gitlab => Some("CI_PROJECT_DIR"),
        _ => None,
    };
    variable
        .and_then(std::env::var_os)
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute() && cwd.starts_with(folder))
        .unwrap_or_else(|| cwd.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{FailedPass, tell_failed_passes};

    #[test]
    fn a_pass_that_panicked_makes_the_run_fail() {
        assert!(!tell_failed_passes(&[]));
        assert!(tell_failed_passes(&[FailedPass { name: "count copies", panic: "a mess".to_owned() }]));
    }
}
