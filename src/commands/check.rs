//! `samedevice check`: paths → findings → report → exit code.

use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::output::{Left, refuse_to_overwrite, write};
use super::progress::Progress;
use super::unchecked::Unchecked;
use super::verify::{self, Asked};
use super::{Failure, baseline, fix, listed, say, show};
use crate::analysis::{FailedPass, Memo, STEPS, analyze, analyze_again};
use crate::cli::{CheckArgs, Color, Depth, FailOn, RuleSelection, is_setting};
use crate::config::file::unknown_rule;
use crate::config::selector::Selection;
use crate::config::{ConfigError, Overrides, Patterns, Resolver, Selector, Where, inline};
use crate::discover::{DiscoverError, Discovery, Input, Options, absolute, discover, virtual_file};
use crate::finding::{Finding, Severity};
use crate::lower::STACK_BYTES;
use crate::refine::{Level, Refined, refine};
use crate::report::Format;
use crate::rules::registry::registry;
use crate::source::read;
use crate::verify::machine;

/// Lints.
///
/// # Errors
/// If flags or configuration are wrong, or the output cannot be written.
pub fn run(args: &CheckArgs, color: Color) -> Result<ExitCode, Failure> {
    let cwd = std::env::current_dir()
        .map_err(|error| Failure::Other(format!("cannot read the working directory: {error}")))?;
    let mut resolver = resolver(args, &cwd)?;
    if args.config.show_settings {
        return show_settings(args, &cwd, &mut resolver);
    }
    let Given { mut found, stdin } = find(args, &cwd, &mut resolver)?;
    let failed = tell_errors(&mut found, args)?;
    if args.files.show_files {
        show::files(&found.files, &mut io::stdout().lock())?;
        return Ok(ExitCode::from(if failed { 2 } else { 0 }));
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads(args.jobs))
        .stack_size(STACK_BYTES)
        .build()
        .map_err(|error| Failure::Other(format!("cannot start threads: {error}")))?;
    // Fixes are checked by linting again. Only then is it worth while to keep anything.
    let is_fixing = is_fixing(args, &found);
    let again = is_fixing || args.baseline.add_ignore.is_some();
    let memo = Mutex::new(Arc::new(Memo::default()));
    let lint = |inputs: &[Input]| {
        let progress = Progress::new(inputs.len() * STEPS, args.output.quiet);
        let (honors, step) = (!args.rules.no_ignores, || progress.step());
        let analysis = if again {
            analyze_again(inputs, honors, &step, &mut memo.lock().unwrap_or_else(PoisonError::into_inner))
        } else {
            analyze(inputs, honors, &step)
        };
        drop(progress);
        let mut refined = refine(analysis, inputs, registry());
        crate::fix::offer(&mut refined.findings, inputs, &refined.sources);
        leave_as_it_is(&mut refined, inputs);
        refined
    };
    if let Some(reason) = &args.baseline.add_ignore {
        let quiet = baseline::Options::quiet(&cwd);
        // What a baseline accepts needs no comment; what is wrong with one is told with the report.
        let ignored = |inputs: &[Input]| {
            let mut refined = lint(inputs);
            let _ = baseline::apply(&mut refined, inputs, &quiet);
            crate::fix::offer_ignores(&mut refined.findings, inputs, &refined.sources, reason, registry());
            leave_as_it_is(&mut refined, inputs);
            refined
        };
        let (refined, failed_fix) =
            pool.install(|| fix::add_ignores(&mut found.files, stdin.as_deref(), &ignored))?;
        let left = Left { failed: failed | failed_fix, to_stderr: stdin.is_some(), ..Left::default() };
        return report(args, color, &cwd, (&found, refined), left);
    }
    if is_fixing {
        let (refined, made, went_wrong) = pool.install(|| fix::make(&mut found.files, &lint));
        refuse_to_overwrite(args, &found, &refined)?;
        let failed =
            failed | went_wrong | fix::carry_out(&made, &found.files, stdin.as_deref(), args.fixes.diff)?;
        if !args.fixes.diff && !args.fixes.fix_only {
            return report(
                args,
                color,
                &cwd,
                (&found, refined),
                Left { failed, made: Some(&made), to_stderr: stdin.is_some(), ..Left::default() },
            );
        }
        fix::tell(&made, args);
        let differs = args.fixes.diff && !made.files.is_empty() && !args.exit_zero;
        return Ok(ExitCode::from(if failed { 2 } else { u8::from(differs) }));
    }
    let refined = pool.install(|| lint(&found.files));
    report(args, color, &cwd, (&found, refined), Left { failed, ..Left::default() })
}

/// What is not sure enough to be told is not changed either.
pub(super) fn leave_as_it_is(refined: &mut Refined, inputs: &[Input]) {
    let level = Level::of(inputs);
    for finding in &mut refined.findings {
        if !level.tells(finding, &refined.sources) {
            finding.fix = None;
        }
    }
}

/// Are files to be changed, or is to be shown how?
fn is_fixing(args: &CheckArgs, found: &Discovery) -> bool {
    args.fixes.diff || args.fixes.fix_only || found.files.iter().any(|input| input.settings.fix)
}

/// Judges what was found for the machine, and writes it.
fn report(
    args: &CheckArgs,
    color: Color,
    cwd: &Path,
    (found, mut refined): (&Discovery, Refined),
    left: Left<'_>,
) -> Result<ExitCode, Failure> {
    if let Some(asked) = asked(args)? {
        verify::judge(&mut refined.findings, &asked, cwd)?;
        if args.machine.only_confirmed {
            refined.findings.retain(verify::is_confirmed);
        }
    }
    refuse_to_overwrite(args, found, &refined)?;
    let options = baseline::Options {
        update: args.baseline.update_baseline,
        verbose: args.output.verbose,
        quiet: args.output.quiet,
        stdin: reads_stdin(args),
        cwd,
    };
    let accepted = baseline::apply(&mut refined, &found.files, &options)?;
    let low = refined.leave_out(&found.files);
    let failed_pass = tell_failed_passes(&refined.failed_passes);
    let unchecked = Unchecked::of(found, &refined, cwd);
    let (made, mut failed) = (left.made, left.failed | failed_pass);
    let outputs = args.output.all();
    for output in &outputs {
        let left = Left { failed, accepted, low, not_checked: unchecked.details(), ..left };
        write(args, output, color, cwd, found, &refined, left)?;
    }
    // The full report says it itself.
    if let Some(made) = made.filter(|_| outputs.iter().all(|output| output.format != Format::Full)) {
        fix::tell(made, args);
    }
    failed |= tell_unchecked(&unchecked, args);
    if args.output.verbose {
        tell_other_languages(&refined);
    }
    Ok(exit_code(args, failed, found, &refined))
}

/// How many threads there are to be; 0: as many as rayon thinks. More than cores are of no use, and each takes its stack.
/// That only one file is linted does not mean that there is work for one thread: those that it imports are read as well.
fn threads(asked: Option<usize>) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    asked.map_or(0, |asked| asked.min(cores))
}

/// Which machine the findings are to be judged for, if for one.
fn asked(all: &CheckArgs) -> Result<Option<Asked>, Failure> {
    let args = &all.machine;
    let from_stdin = args.machine.as_deref() == Some(Path::new("-"));
    let list = all.files.files_from.as_deref() == Some(Path::new("-"));
    if from_stdin && (reads_stdin(all) || list) {
        let both = "`--machine -` and the files to lint cannot both come from standard input: save one of them in a file";
        return Err(Failure::Other(both.to_owned()));
    }
    if args.memory && args.verify != Some(Depth::Run) {
        return Err(Failure::Other("`--memory` needs `--verify=run`".to_owned()));
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
            "error: internal error in the pass \"{name}\"; its findings are reported without that pass, so some may be \
             wrong. Please report this: {panic}"
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
        say(&format!("{summary}{}", if details { "" } else { " (--verbose lists them)" }));
    }
    if details {
        unchecked.details().iter().for_each(|line| say(&format!("not checked: {line}")));
    }
    if unchecked.is_strict() {
        say("error: `strict` is set and something was not checked; exclude it with `extend-exclude`");
    }
    unchecked.is_strict()
}

/// `--verbose`: notebooks that nobody could take for Python.
fn tell_other_languages(refined: &Refined) {
    for (file, language) in &refined.other_languages {
        let name = &refined.sources.get(*file).name;
        say(&format!("skipped: `{name}`: a notebook in the language `{language}`"));
    }
}

fn exit_code(args: &CheckArgs, failed: bool, found: &Discovery, refined: &Refined) -> ExitCode {
    let fails = |finding: &Finding| match args.machine.fail_on_verdict {
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
        min_confidence: args.rules.min_confidence,
        baseline: baseline::chosen(args.baseline.baseline.as_deref(), args.baseline.no_baseline, cwd),
        inline: settings.into_iter().flatten().collect(),
        fix: wanted(args.fixes.fix || args.fixes.fix_only || args.fixes.diff, args.fixes.no_fix),
        unsafe_fixes: wanted(args.fixes.unsafe_fixes, args.fixes.no_unsafe_fixes),
    };
    let place = match files.as_slice() {
        [file] => Where::File(file.into()),
        [] if args.config.isolated => Where::Isolated,
        [] => Where::Search,
        [..] => {
            return Err(ConfigError::new(
                "`--config` takes one file; use `extend` in it, or add `--config KEY=VALUE`",
            ));
        }
    };
    Resolver::new(cwd, registry(), &place, overrides)
}

/// What a flag and its opposite say, if one is given.
fn wanted(yes: bool, no: bool) -> Option<bool> {
    (yes || no).then_some(yes)
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

/// What is to be linted.
struct Given {
    found: Discovery,
    /// What came from standard input, if that was asked for.
    stdin: Option<Vec<u8>>,
}

/// Is standard input linted?
fn reads_stdin(args: &CheckArgs) -> bool {
    args.files.stdin_filename.is_some() || args.paths.iter().any(|path| path == Path::new("-"))
}

/// The files, or standard input as if it were one.
fn find(args: &CheckArgs, cwd: &Path, resolver: &mut Resolver) -> Result<Given, Failure> {
    let options = Options { cwd: cwd.to_owned() };
    if let Some(list) = &args.files.files_from {
        let found = discover(&listed::paths(list, args.files.null)?, &options, resolver);
        return Ok(Given { found, stdin: None });
    }
    let dash = Path::new("-");
    let name = args.files.stdin_filename.as_deref();
    if !reads_stdin(args) {
        return Ok(Given { found: discover(&args.paths, &options, resolver), stdin: None });
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
    let input = virtual_file(name.unwrap_or(dash), bytes.clone(), &options, resolver)?;
    let found = Discovery { files: input.into_iter().collect(), ..Discovery::default() };
    Ok(Given { found, stdin: Some(bytes) })
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

#[cfg(test)]
mod tests {
    use super::{FailedPass, tell_failed_passes};

    #[test]
    fn a_pass_that_panicked_makes_the_run_fail() {
        assert!(!tell_failed_passes(&[]));
        assert!(tell_failed_passes(&[FailedPass { name: "count copies", panic: "a mess".to_owned() }]));
    }
}
