//! The output of `samedevice check`: reports in all formats, and the files they go to.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::{Failure, fix, terminal};
use crate::cli::{CheckArgs, Color, Output};
use crate::discover::Discovery;
use crate::refine::Refined;
use crate::report::{self, Format, Report, statistics};
use crate::rules::registry::registry;
use crate::source::read;

/// What else is to be told of a run.
#[derive(Default)]
pub struct Left<'a> {
    /// Was there an error?
    pub failed: bool,
    /// How many findings baselines accept.
    pub accepted: usize,
    /// What has been fixed.
    pub made: Option<&'a fix::Made>,
    /// Is standard output for a fixed text?
    pub to_stderr: bool,
    /// How many findings are not sure enough to be told.
    pub low: usize,
    /// A line for each thing that was not checked.
    pub not_checked: &'a [String],
}

/// Writes one report.
///
/// # Errors
/// If the file or the stream cannot be written.
pub fn write(
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
        checked: found.files.len() - refined.too_large.len() - refined.other_languages.len(),
        suppressed: refined.suppressed,
        accepted: left.accepted,
        low: left.low,
        failed: left.failed,
        not_checked: left.not_checked,
        version: env!("CARGO_PKG_VERSION"),
        fixed: left.made.map_or(0, |made| made.count),
        unsafe_fixes: found.files.iter().any(|input| input.settings.unsafe_fixes),
        summary: !args.output.quiet,
        color,
        unicode: to_file.is_some() || terminal::unicode(),
        links: color && to_file.is_none() && terminal::links(),
        width: terminal::width(),
        root: &root,
    };
    let mut out: Box<dyn Write> = match to_file {
        None if left.to_stderr => Box::new(BufWriter::new(io::stderr().lock())),
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
pub fn refuse_to_overwrite(args: &CheckArgs, found: &Discovery, refined: &Refined) -> Result<(), Failure> {
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
        let message =
            format!("`{output}` is an input of this run and is not overwritten; choose another output file");
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
