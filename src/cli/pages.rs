//! Flags of the commands that explain rules and keys, and of those that write completions and manual pages.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `samedevice config`.
#[derive(Debug, Args)]
pub struct KeyArgs {
    /// A configuration key; without it, all keys are listed
    #[arg(value_name = "KEY")]
    pub key: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output_format: PageFormat,
}

/// `samedevice generate-shell-completion`.
#[derive(Debug, Args)]
pub struct CompletionArgs {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// `samedevice generate-man`.
#[derive(Debug, Args)]
pub struct ManArgs {
    /// Write the pages of all commands into this folder
    #[arg(value_name = "FOLDER")]
    pub folder: Option<PathBuf>,
}

/// `samedevice rule`.
#[derive(Debug, Args)]
pub struct RuleArgs {
    /// Code (SD101) or name (unguarded-cuda); without it, all rules are listed
    #[arg(value_name = "RULE")]
    pub rule: Option<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub output_format: PageFormat,
}

/// Formats of rules' pages.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum PageFormat {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}
