//! `samedevice check`: paths → findings → report → exit code.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rustc_hash::FxHashMap;

use super::unchecked::Unchecked;
use super::verify::{self, Asked};
use super::{Failure, baseline, say, show, terminal};
use crate::analysis::analyze;
use crate::cli::{CheckArgs, Color, Depth, FailOn, MachineArgs, RuleSelection};
use crate::config::file::unknown_rule;
use crate::config::selector::Selection;
use crate::config::{ConfigError, Overrides, Patterns, Resolver, Selector, Where};
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
    let analysis = pool.install(|| analyze(&found.files, !args.rules.no_ignores));
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
    let low = refined.leave_out(&found.files);
    let unchecked = Unchecked::of(&found, &refined, &cwd);
    write(
        args,
        color,
        &cwd,
        &found,
        &refined,
        Left { failed, accepted, low, not_checked: unchecked.details() },
    )?;
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
    let overrides = Overrides {
        selection: selection(&args.rules)?,
        exclude,
        extend_exclude: Some(extend_exclude),
        force_exclude: args.files.force_exclude,
        strict: args.strict,
        fail_on_severity: args.fail_on_severity,
        min_confidence: args.rules.min_confidence,
        baseline: baseline::chosen(args.baseline.baseline.as_deref(), args.baseline.no_baseline, cwd),
    };
    let place = match &args.config.config {
        Some(file) => Where::File(file.clone()),
        None if args.config.isolated => Where::Isolated,
        None => Where::Search,
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
    /// How many findings are not sure enough to be told.
    low: usize,
    /// A line for each thing that was not checked.
    not_checked: &'a [String],
}

fn write(
    args: &CheckArgs,
    color: Color,
    cwd: &Path,
    found: &Discovery,
    refined: &Refined,
    left: Left<'_>,
) -> Result<(), Failure> {
    let format = args.output.output_format;
    let root = root(format, cwd);
    let to_file = args.output.output_file.as_deref();
    let report = Report {
        sources: &refined.sources,
        findings: &refined.findings,
        pages: registry(),
        checked: found.files.len() - refined.too_large.len(),
        suppressed: refined.suppressed,
        accepted: left.accepted,
        low: left.low,
        failed: left.failed,
        not_checked: left.not_checked,
        version: env!("CARGO_PKG_VERSION"),
        summary: !args.output.quiet,
        color: if to_file.is_some() { color == Color::Always } else { terminal::color(color, &io::stdout()) },
        unicode: to_file.is_some() || terminal::unicode(),
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
    let Some(output) = &args.output.output_file else { return Ok(()) };
    // What does not exist yet is none of them.
    let Ok(target) = output.canonicalize() else { return Ok(()) };
    let sources = refined.sources.iter().map(|(_, source)| source.path.as_path());
    let configs = found.files.iter().filter_map(|input| input.settings.file.as_deref());
    let baselines = found.files.iter().filter_map(|input| input.settings.baseline.as_deref());
    let mut files = sources.chain(configs).chain(args.machine.machine.as_deref()).chain(baselines);
    let same =
        |file: &Path| file.file_name().is_some() && file.canonicalize().is_ok_and(|file| file == target);
    if files.any(same) {
        let output = output.display();
        let message = format!(
            "`{output}` is a file of this run and is not overwritten; name another one with `--output-file`"
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

/// What paths in the output are relative to: the working directory, but GitHub takes its workspace for that,
/// whatever folder of it a step works in.
fn root(format: Format, cwd: &Path) -> PathBuf {
    let workspace = match format {
        Format::Github | Format::Sarif => std::env::var_os("GITHUB_WORKSPACE").map(PathBuf::from),
        _ => None,
    };
    workspace
        .filter(|folder| folder.is_absolute() && cwd.starts_with(folder))
        .unwrap_or_else(|| cwd.to_owned())
}
