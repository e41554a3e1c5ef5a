//! The command line, and nothing else.

mod machine;
mod output;
mod pages;

use std::path::{Path, PathBuf, absolute};

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

pub use self::machine::{Depth, FailOn, MachineArgs, ProbeArgs, ReportFormat, VerifyArgs};
pub use self::output::{Output, OutputArgs};
pub use self::pages::{CompletionArgs, KeyArgs, ManArgs, PageFormat, RuleArgs};
use crate::baseline::Update;
use crate::finding::{Confidence, Severity};

/// Finds PyTorch device-placement bugs before the code runs on a GPU.
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

const EXIT_CODES: &str = "Exit codes of `check`:
  0  no findings, or only findings below `--fail-on-severity`
  1  at least one finding is a warning or an error (`--fail-on-severity`)
  2  samedevice could not run: invalid flags or configuration, or a missing path;
     with `--strict` also if something was not checked";

const VERIFY_EXIT_CODES: &str = "Exit codes of `verify`:
  0  PyTorch can use an accelerator here
  1  PyTorch cannot use an accelerator here, or not correctly; the report says why
  2  unknown: a check failed or timed out, or samedevice could not run";

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Lint files and folders
    #[command(after_help = EXIT_CODES)]
    Check(Box<CheckArgs>),
    /// Explain a rule, or list all of them
    Rule(RuleArgs),
    /// List the configuration keys, or explain one
    Config(KeyArgs),
    /// Print a shell completion script
    GenerateShellCompletion(CompletionArgs),
    /// Print the manual page, or write the pages of all commands into a folder
    GenerateMan(ManArgs),
    /// Serve an editor: a language server on standard input and output
    Server,
    /// Show whether PyTorch can use the GPUs of this machine, and if not, why
    #[command(after_help = VERIFY_EXIT_CODES)]
    Verify(VerifyArgs),
    /// The child process that queries the driver
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
    /// The fixes.
    #[command(flatten)]
    pub fixes: FixArgs,
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
    /// Accepted for compatibility with other linters: samedevice has no cache
    #[arg(short, long, help_heading = "Miscellaneous")]
    pub no_cache: bool,
    /// Exit with 1 only for findings of at least this severity [default: warning]
    #[arg(long, value_enum, value_name = "LEVEL", help_heading = "Miscellaneous")]
    pub fail_on_severity: Option<Severity>,
    /// Exit with 2 if something was not checked, for example a file that is too large
    #[arg(long, help_heading = "Miscellaneous")]
    pub strict: bool,
    /// Exit with 0 even if there are findings
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
    /// Run these rules in addition to the selected ones
    #[arg(long, value_delimiter = ',', value_name = "RULES")]
    pub extend_select: Vec<String>,
    /// Do not run these rules
    #[arg(long, value_delimiter = ',', value_name = "RULES")]
    pub ignore: Vec<String>,
    /// Report only findings of at least this confidence [default: likely]
    #[arg(long, value_enum, value_name = "LEVEL")]
    pub min_confidence: Option<Confidence>,
    /// Also report findings that comments suppress
    #[arg(long)]
    pub no_ignores: bool,
}

/// What is done about findings.
#[derive(Debug, Args)]
#[command(next_help_heading = "Fixes")]
pub struct FixArgs {
    /// Apply safe fixes: those that do not change what the program does where it works
    #[arg(long, overrides_with = "no_fix")]
    pub fix: bool,
    /// Fix nothing, whatever the configuration says.
    #[arg(long, overrides_with = "fix", hide = true)]
    pub no_fix: bool,
    /// Also count and apply fixes that may change what the program does
    #[arg(long, overrides_with = "no_unsafe_fixes")]
    pub unsafe_fixes: bool,
    /// Apply safe fixes only, whatever the configuration says.
    #[arg(long, overrides_with = "unsafe_fixes", hide = true)]
    pub no_unsafe_fixes: bool,
    /// Show the fixes as a diff and write nothing; exit with 1 if there are any
    #[arg(long, conflicts_with_all = ["no_fix", "statistics", "output_file"])]
    pub diff: bool,
    /// Apply fixes and do not report the remaining findings; exit with 0
    #[arg(long, conflicts_with = "no_fix")]
    pub fix_only: bool,
}

/// Which files are linted.
#[derive(Debug, Args)]
#[command(next_help_heading = "Files")]
pub struct FileSelection {
    /// Skip files that match these globs, instead of those that the configuration excludes
    #[arg(long, value_delimiter = ',', value_name = "GLOBS")]
    pub exclude: Option<Vec<String>>,
    /// Skip files that match these globs in addition to the excluded ones
    #[arg(long, value_delimiter = ',', value_name = "GLOBS")]
    pub extend_exclude: Vec<String>,
    /// Skip excluded files even if you name them on the command line
    #[arg(long)]
    pub force_exclude: bool,
    /// The path of the file that comes from standard input
    #[arg(long, value_name = "NAME")]
    pub stdin_filename: Option<PathBuf>,
    /// Lint the files listed in this file, one path per line; `-` for standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["paths", "stdin_filename"])]
    pub files_from: Option<PathBuf>,
    /// The paths in that list end with NUL, as from `git diff -z` or `find -print0`
    #[arg(short = '0', long)]
    pub null: bool,
    /// List the files that would be linted, then exit
    #[arg(long)]
    pub show_files: bool,
}

/// The reason of a suppression comment.
fn reason(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.contains('#') || text.chars().any(char::is_control) {
        return Err("a reason must be one line without `#`".to_owned());
    }
    Ok(text.to_owned())
}

/// Which findings are accepted.
#[derive(Debug, Args)]
#[command(next_help_heading = "Baseline")]
pub struct BaselineArgs {
    /// Report only findings that are not in this baseline file
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Report all findings, even if the configuration names a baseline
    #[arg(long, conflicts_with_all = ["baseline", "update_baseline"])]
    pub no_baseline: bool,
    /// Create the baseline, or remove findings that are gone; `grow` also adds new ones
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "shrink",
        conflicts_with_all = ["only_confirmed", "no_ignores", "diff", "fix_only"]
    )]
    pub update_baseline: Option<Update>,
    /// Add a suppression comment to each finding, with this reason
    #[arg(
        long,
        value_name = "REASON",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        value_parser = reason,
        conflicts_with_all = ["update_baseline", "only_confirmed", "no_ignores", "fix", "diff", "fix_only"]
    )]
    pub add_ignore: Option<String>,
}

/// Where the configuration comes from.
#[derive(Debug, Args)]
#[command(next_help_heading = "Configuration")]
pub struct ConfigArgs {
    /// Use this configuration file for all files, or set one key: `--config 'strict = true'`
    #[arg(long, value_name = "FILE|KEY=VALUE", env = "SAMEDEVICE_CONFIG", hide_env_values = true)]
    pub config: Vec<String>,
    /// Ignore all configuration files
    #[arg(long)]
    pub isolated: bool,
    /// Show the settings for the first path, then exit
    #[arg(long, conflicts_with = "show_files")]
    pub show_settings: bool,
}

impl Cli {
    /// Reads the command line of this process. Ends the process if it is wrong, or asks for help.
    pub fn read() -> Self {
        let matches = Self::command().get_matches();
        let read = Self::from_arg_matches(&matches).and_then(|mut cli| {
            if let (Command::Check(args), Some(given)) =
                (&mut cli.command, matches.subcommand_matches("check"))
            {
                agree(args, given)?;
            }
            Ok(cli)
        });
        read.unwrap_or_else(|error| error.exit())
    }
}

/// Makes flags agree that outrank or contradict each other. What comes from the environment gives way to any flag.
fn agree(args: &mut CheckArgs, given: &ArgMatches) -> Result<(), clap::Error> {
    let conflict = |message: String| Err(clap::Error::raw(ErrorKind::ArgumentConflict, message + "\n"));
    let flag = |id: &str| given.value_source(id) == Some(ValueSource::CommandLine);
    if args.config.isolated {
        let is_file = |text: &String| !is_setting(text);
        if !flag("config") {
            args.config.config.clear();
        } else if let Some(file) = args.config.config.iter().find(|text| is_file(text)) {
            return conflict(format!(
                "`--isolated` cannot be used with `--config {file}`: it reads no configuration files"
            ));
        }
    }
    if args.files.null && args.files.files_from.is_none() {
        return conflict("`--null` needs `--files-from`".to_owned());
    }
    for id in ["output_format", "output_file"] {
        if !args.output.output.is_empty() && flag(id) {
            let other = id.replace('_', "-");
            return conflict(format!(
                "`--output` cannot be used with `--{other}`: write one `--output FORMAT[=FILE]` for each format"
            ));
        }
    }
    let place =
        |output: &Output| output.file.as_deref().map(|file| absolute(file).unwrap_or(file.to_owned()));
    for (at, output) in args.output.output.iter().enumerate() {
        if args.output.output.iter().skip(at + 1).any(|other| place(other) == place(output)) {
            return conflict(match &output.file {
                Some(file) => format!("two `--output` flags write to the same file, `{}`", file.display()),
                None => "two `--output` flags write to standard output: give one of them a file, \
                         `--output FORMAT=FILE`"
                    .to_owned(),
            });
        }
    }
    Ok(())
}

/// Is what `--config` was given a setting, and no file?
pub fn is_setting(text: &str) -> bool {
    text.contains('=') && !Path::new(text).exists()
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
