//! `samedevice verify`: what this machine can run; and the probe that it starts.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use super::{Failure, say, terminal};
use crate::cli::{Color, ProbeArgs, ReportFormat, VerifyArgs};
use crate::finding::{Finding, Verdict};
use crate::source::write::prepared;
use crate::verify::examine::{Options, examine};
use crate::verify::judge::Judge;
use crate::verify::machine::{Depth, Machine, Status};
use crate::verify::{contradictions, load, markdown, probe, text};
use crate::world::World;

/// Examines this machine, or shows a saved report of another.
///
/// # Errors
/// If flags are wrong, or nothing can be written.
pub fn run(args: &VerifyArgs, color: Color) -> Result<ExitCode, Failure> {
    let machine = match &args.machine {
        Some(file) => saved(file)?,
        None => examine(&Options {
            depth: if args.run { Depth::Run } else { Depth::Look },
            allocate: args.memory.iter().map(bytesize::ByteSize::as_u64).collect(),
            python: args.python.clone(),
            import: args.import,
            uuids: args.uuids,
            limit: Duration::from_secs(args.time_limit),
            cwd: cwd()?,
        })
        .map_err(Failure::Other)?,
    };
    match &args.output_file {
        None => {
            let stdout = io::stdout();
            let look = text::Look { color: terminal::color(color, &stdout), unicode: terminal::unicode() };
            let mut out = BufWriter::new(stdout.lock());
            write(&machine, args.output_format, look, &mut out)?;
            out.flush()?;
        }
        Some(path) => {
            let look = text::Look { color: color == Color::Always, unicode: true };
            let mut bytes = Vec::new();
            write(&machine, args.output_format, look, &mut bytes)?;
            replace(path, &bytes)?;
        }
    }
    Ok(ExitCode::from(match machine.status {
        Status::Usable => 0,
        Status::Problem => 1,
        Status::Unknown => 2,
    }))
}

fn write(machine: &Machine, format: ReportFormat, look: text::Look, out: &mut dyn Write) -> io::Result<()> {
    match format {
        ReportFormat::Text => text::write(machine, look, out),
        ReportFormat::Markdown => markdown::write(machine, out),
        ReportFormat::Json => {
            serde_json::to_writer_pretty(&mut *out, machine).map_err(io::Error::other)?;
            writeln!(out)
        }
    }
}

/// Writes the file as a whole: what was there stays if that fails. A device is written to.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let regular = std::fs::metadata(path).map_or(true, |metadata| metadata.is_file());
    let written = if regular {
        // Behind a link.
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        prepared(&target, bytes).and_then(|file| file.persist(&target).map(drop).map_err(io::Error::from))
    } else {
        std::fs::write(path, bytes)
    };
    let failure = |error: io::Error| {
        Failure::Other(format!(
            "cannot write `{}`: {}",
            path.display(),
            crate::source::read::io_reason(&error)
        ))
    };
    written.map_err(failure)
}

/// A saved report. What in it cannot all be true is told.
fn saved(file: &Path) -> Result<Machine, Failure> {
    let machine = load(file).map_err(Failure::Other)?;
    for contradiction in contradictions::of(&machine) {
        say(&format!("warning: the report in {} contradicts itself: {contradiction}", named(file)));
    }
    Ok(machine)
}

/// What messages call the file.
fn named(file: &Path) -> String {
    if file == Path::new("-") { "standard input".to_owned() } else { format!("`{}`", file.display()) }
}

/// The probe's own process.
pub fn probe(args: &ProbeArgs) -> ExitCode {
    let orders = probe::Orders { run: args.run, allocate: args.allocate.clone() };
    probe::run(&orders, &mut io::stdout().lock());
    ExitCode::SUCCESS
}

fn cwd() -> Result<PathBuf, Failure> {
    std::env::current_dir()
        .map_err(|error| Failure::Other(format!("cannot read the working directory: {error}")))
}

/// Which machine `check` judges for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// A saved report instead of this machine.
    pub file: Option<PathBuf>,
    /// How far to go.
    pub depth: Depth,
    /// Allocate what findings assume?
    pub memory: bool,
    /// Where PyTorch is.
    pub python: Option<PathBuf>,
    /// How long the driver may take, in seconds.
    pub time_limit: u64,
}

/// Marks each finding with what the machine says of it.
///
/// # Errors
/// If there is no such report, or the flags are wrong.
pub fn judge(findings: &mut [Finding], asked: &Asked, cwd: &Path) -> Result<(), Failure> {
    if let Some(file) = &asked.file {
        let machine = saved(file)?;
        let file = if file == Path::new("-") { Path::new("standard input") } else { file };
        mark(findings, &Judge::saved(&machine, file));
        return Ok(());
    }
    // Without findings there is nothing to ask the driver for.
    if findings.is_empty() {
        return Ok(());
    }
    let mut sizes: Vec<u64> = findings.iter().filter_map(|finding| size(finding.world)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let machine = examine(&Options {
        depth: asked.depth,
        allocate: if asked.memory { sizes } else { Vec::new() },
        python: asked.python.clone(),
        import: false,
        uuids: false,
        limit: Duration::from_secs(asked.time_limit),
        cwd: cwd.to_owned(),
    })
    .map_err(Failure::Other)?;
    mark(findings, &Judge::here(&machine));
    Ok(())
}

const fn size(world: World) -> Option<u64> {
    match world {
        World::FreeBelow(bytes) => Some(bytes),
        _ => None,
    }
}

fn mark(findings: &mut [Finding], judge: &Judge) {
    for finding in findings {
        finding.verdict = Some(judge.judge(finding));
    }
}

/// Does it bite on the machine that was asked?
pub fn is_confirmed(finding: &Finding) -> bool {
    finding.verdict.as_ref().is_some_and(|judgement| judgement.verdict == Verdict::Confirmed)
}

/// Can it bite there, as far as is known?
pub fn is_possible(finding: &Finding) -> bool {
    finding.verdict.as_ref().is_none_or(|judgement| judgement.verdict != Verdict::Refuted)
}
