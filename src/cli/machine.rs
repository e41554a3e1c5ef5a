//! Flags about machines: `check --verify`, `verify` and the probe.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// The machine that findings are judged for.
#[derive(Debug, Args)]
#[command(next_help_heading = "Machine")]
pub struct MachineArgs {
    /// Check each finding against this machine: confirmed, refuted or open; `--verify=run` also uses its GPUs briefly
    #[arg(
        long,
        value_enum,
        value_name = "run",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "look",
        hide_possible_values = true,
        group = "judged"
    )]
    pub verify: Option<Depth>,
    /// Check each finding against the machine in this file, written by `samedevice verify --output-format json`; `-` for standard input
    #[arg(long, value_name = "FILE", group = "judged")]
    pub machine: Option<PathBuf>,
    /// With `--verify=run`, also try to allocate the memory that findings are about, then free it
    #[arg(long, requires = "verify")]
    pub memory: bool,
    /// Report only findings that the machine confirms
    #[arg(long, requires = "judged")]
    pub only_confirmed: bool,
    /// Which verdicts make the exit code 1
    #[arg(long, value_enum, default_value_t, value_name = "VERDICT", requires = "judged")]
    pub fail_on_verdict: FailOn,
    /// The Python interpreter or environment whose PyTorch is checked: a path, or a name on `PATH`
    #[arg(long, value_name = "PYTHON", conflicts_with = "machine", requires = "verify")]
    pub python: Option<PathBuf>,
    /// Time limit for the driver, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub time_limit: u64,
}

/// How far `--verify` goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Depth {
    /// Questions only.
    Look,
    /// A context, an allocation, copies and a kernel besides.
    Run,
}

/// Which verdicts make the exit code 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum FailOn {
    /// All findings.
    #[default]
    Any,
    /// Findings that are confirmed or open.
    Possible,
    /// Findings that are confirmed.
    Confirmed,
}

/// `samedevice verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Also use each GPU briefly: create a context, allocate 4 MiB, copy, run a kernel
    #[arg(long)]
    pub run: bool,
    /// With `--run`, also try to allocate these sizes on each GPU, for example `20GiB`
    #[arg(long, value_name = "SIZES", value_delimiter = ',', requires = "run")]
    pub memory: Vec<bytesize::ByteSize>,
    /// The Python interpreter or environment whose PyTorch is checked: a path, or a name on `PATH`
    #[arg(long, value_name = "PYTHON")]
    pub python: Option<PathBuf>,
    /// Also import PyTorch with that interpreter, and compare the result with what its files say
    #[arg(long)]
    pub import: bool,
    /// Include the UUIDs of the GPUs, which identify this machine
    #[arg(long)]
    pub uuids: bool,
    /// Time limit for the driver, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub time_limit: u64,
    /// Show this saved report instead; `-` for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["run", "memory", "python", "import", "uuids"])]
    pub machine: Option<PathBuf>,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output_format: ReportFormat,
    /// Write to this file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub output_file: Option<PathBuf>,
}

/// Formats of the report about a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum ReportFormat {
    /// For people
    #[default]
    Text,
    /// For a bug report, without the name of your home folder
    Markdown,
    /// For programs; `--machine` reads it
    Json,
}

/// The probe.
#[derive(Debug, Args)]
pub struct ProbeArgs {
    /// Use the devices.
    #[arg(long)]
    pub run: bool,
    /// Sizes to allocate, in bytes.
    #[arg(long)]
    pub allocate: Vec<u64>,
}
