//! The command line, and nothing else.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

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
  1  something was found
  2  the tool could not do its work: wrong flags, wrong configuration, a path that is not there";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Lint files and folders
    #[command(after_help = EXIT_CODES)]
    Check(Box<CheckArgs>),
    /// Explain a rule, or list all of them
    Rule(RuleArgs),
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
    /// The output.
    #[command(flatten)]
    pub output: OutputArgs,

    /// Number of threads [default: one for each core]
    #[arg(short, long, value_name = "N", help_heading = "Miscellaneous")]
    pub jobs: Option<usize>,
    /// Do not read or write a cache. There is none yet; accepted so that scripts may say so already
    #[arg(short, long, help_heading = "Miscellaneous")]
    pub no_cache: bool,
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
