//! The command line, and nothing else.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::baseline::Update;
use crate::finding::{Confidence, Severity};
use crate::report::Format;

/// Finds PyTorch device-placement bugs before the code meets a GPU.
#[derive(Debug, Parser)]
#[command(name = "samedevice", version, about, max_term_width = 100, propagate_version = true)]
#[command(after_help = EXIT_CODES)]
pub struct Cli {
    /// When to use color; `auto` honors NO_COLOR and CLICOLOR_FORCE
    #[arg(long, global = true, value_enum, default_value_t, value_name = "WHEN", help_heading = "Output")]
    pub color: Color,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes:
  0  nothing was found
  1  something was found that is at least a warning (`--fail-on-severity`)
  2  the tool could not do its work: wrong flags, wrong configuration, a path that is not there; with
     `--strict` also if something was not checked";

const VERIFY_EXIT_CODES: &str = "Exit codes:
  0  PyTorch can use an accelerator here
  1  it cannot, or not rightly, and the report says why
  2  it could not be found out, or the tool could not do its work";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Lint files and folders
    #[command(after_help = EXIT_CODES)]
    Check(Box<CheckArgs>),
    /// Explain a rule, or list all of them
    Rule(RuleArgs),
    /// Tell what this machine and its PyTorch can run, and why not
    #[command(after_help = VERIFY_EXIT_CODES)]
    Verify(VerifyArgs),
    /// The driver is asked in a process of its own: this one
    #[command(name = crate::verify::COMMAND, hide = true)]
    Probe(ProbeArgs),
}

/// `samedevice check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Files and folders to lint; `-` for standard input
    #[arg(default_value = ".", value_name = "PATHS")]
    pub paths: Vec<PathBuf>,

    /// The rules.
    #[command(flatten)]
    pub rules: RuleSelection,
    /// The files.
    #[command(flatten)]
    pub files: FileSelection,
    /// The configuration.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// The machine.
    #[command(flatten)]
    pub machine: MachineArgs,
    /// The output.
    #[command(flatten)]
    pub output: OutputArgs,

    /// What is accepted.
    #[command(flatten)]
    pub baseline: BaselineArgs,

    /// Number of threads [default: one for each core]
    #[arg(short, long, value_name = "N", help_heading = "Miscellaneous")]
    pub jobs: Option<usize>,
    /// Do not read or write a cache. There is none yet; accepted so that scripts may say so already
    #[arg(short, long, help_heading = "Miscellaneous")]
    pub no_cache: bool,
    /// Exit with 1 only for findings at least this severe [default: warning]
    #[arg(long, value_enum, value_name = "LEVEL", help_heading = "Miscellaneous")]
    pub fail_on_severity: Option<Severity>,
    /// Exit with 2 if something could not be checked: notebooks, or what is too large or too complex
    #[arg(long, help_heading = "Miscellaneous")]
    pub strict: bool,
    /// Exit with 0 even if something was found
    #[arg(short, long, help_heading = "Miscellaneous")]
    pub exit_zero: bool,
}

/// Which rules run.
#[derive(Debug, Args)]
#[command(next_help_heading = "Rules")]
pub struct RuleSelection {
    /// Run only these rules: codes (SD101), prefixes (SD2), names (unguarded-cuda) or ALL
    #[arg(long, value_delimiter = ',', value_name = "RULES")]
    pub select: Option<Vec<String>>,
    /// Run these rules besides
    #[arg(long, value_delimiter = ',', value_name = "RULES")]
    pub extend_select: Vec<String>,
    /// Do not run these rules
    #[arg(long, value_delimiter = ',', value_name = "RULES")]
    pub ignore: Vec<String>,
    /// Report only what is at least so sure [default: likely]
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub min_confidence: Option<Confidence>,
    /// Report what comments suppress, too
    #[arg(long)]
    pub no_ignores: bool,
}

/// Which files are linted.
#[derive(Debug, Args)]
#[command(next_help_heading = "Files")]
pub struct FileSelection {
    /// Skip what matches these globs, instead of what the configuration excludes
    #[arg(long, value_delimiter = ',', value_name = "GLOBS")]
    pub exclude: Option<Vec<String>>,
    /// Skip what matches these globs besides
    #[arg(long, value_delimiter = ',', value_name = "GLOBS")]
    pub extend_exclude: Vec<String>,
    /// Skip excluded files even if they are named on the command line
    #[arg(long)]
    pub force_exclude: bool,
    /// The name of what comes from standard input
    #[arg(long, value_name = "NAME")]
    pub stdin_filename: Option<PathBuf>,
    /// List the files that would be linted, and stop
    #[arg(long)]
    pub show_files: bool,
}

/// Which findings are accepted.
#[derive(Debug, Args)]
#[command(next_help_heading = "Baseline")]
pub struct BaselineArgs {
    /// Report only what is not in this file of accepted findings
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Report everything, whatever the configuration accepts
    #[arg(long, conflicts_with_all = ["baseline", "update_baseline"])]
    pub no_baseline: bool,
    /// Make the baseline, or remove from it what is no longer found; `grow` adds what is new
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "shrink",
        conflicts_with_all = ["only_confirmed", "no_ignores"]
    )]
    pub update_baseline: Option<Update>,
}

/// Where the configuration comes from.
#[derive(Debug, Args)]
#[command(next_help_heading = "Configuration")]
pub struct ConfigArgs {
    /// Use this samedevice.toml or pyproject.toml for all files
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Ignore all configuration files
    #[arg(long, conflicts_with = "config")]
    pub isolated: bool,
    /// Show the settings for the first path, and stop
    #[arg(long, conflicts_with = "show_files")]
    pub show_settings: bool,
}

/// The machine that findings are judged for.
#[derive(Debug, Args)]
#[command(next_help_heading = "Machine")]
pub struct MachineArgs {
    /// Ask this machine whether each finding bites here; `--verify=run` also uses its GPUs for a moment
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
    /// Judge for the machine whose `samedevice verify --output-format json` is in this file
    #[arg(long, value_name = "FILE", group = "judged")]
    pub machine: Option<PathBuf>,
    /// With `--verify=run`, allocate what findings assume, up to what is free, and give it back
    #[arg(long, requires = "verify")]
    pub memory: bool,
    /// Show only findings that bite there
    #[arg(long, requires = "judged")]
    pub only_confirmed: bool,
    /// Which findings make the exit code 1
    #[arg(long, value_enum, default_value_t, value_name = "WHICH", requires = "judged")]
    pub fail_on: FailOn,
    /// The interpreter or environment that has the PyTorch to judge for
    #[arg(long, value_name = "PATH", conflicts_with = "machine", requires = "verify")]
    pub python: Option<PathBuf>,
    /// How long the driver may take, in seconds
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

/// Which findings make the exit code 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum FailOn {
    /// All that are shown.
    #[default]
    Any,
    /// Those that are not refuted.
    Possible,
    /// Those that bite on the machine.
    Confirmed,
}

/// `samedevice verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Use the GPUs for a moment: a context, 4 MiB, copies and a kernel
    #[arg(long)]
    pub run: bool,
    /// Allocate these sizes ("20GiB") on each GPU for a moment, too
    #[arg(long, value_name = "SIZES", value_delimiter = ',', requires = "run")]
    pub memory: Vec<bytesize::ByteSize>,
    /// The interpreter or environment that has the PyTorch in question
    #[arg(long, value_name = "PATH")]
    pub python: Option<PathBuf>,
    /// Show the GPUs' UUIDs, which identify this machine
    #[arg(long)]
    pub uuids: bool,
    /// How long the driver may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub time_limit: u64,
    /// Show this saved report instead
    #[arg(long, value_name = "FILE", conflicts_with_all = ["run", "memory", "python", "uuids"])]
    pub machine: Option<PathBuf>,
    /// How to write it
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output_format: PageFormat,
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

/// How findings are shown.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// How to write what was found
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "FORMAT",
        env = "SAMEDEVICE_OUTPUT_FORMAT",
        hide_env_values = true
    )]
    pub output_format: Format,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub output_file: Option<PathBuf>,
    /// Count the findings of each rule instead of showing them
    #[arg(long)]
    pub statistics: bool,
    /// Print what was found and nothing else, no summary and no warnings
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say on standard error which files and settings are used
    #[arg(short, long)]
    pub verbose: bool,
}

/// `samedevice rule`.
#[derive(Debug, Args)]
pub struct RuleArgs {
    /// Code (SD101) or name (unguarded-cuda); all rules if there is none
    #[arg(value_name = "RULE")]
    pub rule: Option<String>,
    /// How to write it
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output_format: PageFormat,
}

/// Formats of rules' pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum PageFormat {
    /// For people
    #[default]
    Text,
    /// For machines
    Json,
}

/// When to use color.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum Color {
    /// On a terminal
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_definitions_are_consistent() {
        super::Cli::command().debug_assert();
    }
}
