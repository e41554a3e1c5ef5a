//! Flags about the output of `check`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::report::Format;
use crate::suggest::closest;

/// How findings are shown.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Output format
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
    #[arg(short, long, value_name = "FILE", env = "SAMEDEVICE_OUTPUT_FILE", hide_env_values = true)]
    pub output_file: Option<PathBuf>,
    /// Write the findings in this format to FILE, or to standard output; you can repeat it for other files
    #[arg(long, value_name = "FORMAT[=FILE]", value_parser = output)]
    pub output: Vec<Output>,
    /// Show how many findings each rule has, instead of the findings
    #[arg(long)]
    pub statistics: bool,
    /// Print only the findings: no summary, no warnings
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Also print the files and settings in use, to standard error
    #[arg(short, long)]
    pub verbose: bool,
}

/// A format, and where it goes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Output {
    /// The format.
    pub format: Format,
    /// The file; `None`: standard output.
    pub file: Option<PathBuf>,
}

/// Reads `FORMAT[=FILE]`.
fn output(text: &str) -> Result<Output, String> {
    let (name, file) = text.split_once('=').map_or((text, None), |(name, file)| (name, Some(file)));
    let format = Format::from_str(name, false).map_err(|_| {
        let values = Format::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let names: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
        match closest(name, names.iter().map(String::as_str)) {
            Some(meant) => format!("there is no format `{name}`; did you mean `{meant}`?"),
            None => format!("there is no format `{name}`; the formats are {}", names.join(", ")),
        }
    })?;
    match file {
        Some("") => Err("the file name after `=` is missing".to_owned()),
        file => Ok(Output { format, file: file.filter(|file| *file != "-").map(PathBuf::from) }),
    }
}

impl OutputArgs {
    /// All that is to be written, files first: if nobody reads standard output any more, they are there.
    pub fn all(&self) -> Vec<Output> {
        let mut all = self.output.clone();
        if all.is_empty() {
            all.push(Output { format: self.output_format, file: self.output_file.clone() });
        }
        all.sort_by_key(|output| output.file.is_none());
        all
    }
}
