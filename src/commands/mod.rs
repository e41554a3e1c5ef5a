//! What the program does, one file a command.

mod baseline;
pub mod check;
mod config;
mod fix;
mod generate;
mod listed;
mod output;
mod progress;
pub mod rule;
mod server;
mod show;
mod terminal;
mod unchecked;
pub mod verify;

use std::io::{self, Write};
use std::process::ExitCode;

use miette::{GraphicalReportHandler, GraphicalTheme};

use crate::cli::{Cli, Color, Command};
use crate::config::ConfigError;
use crate::report::one_line;

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The configuration or a flag is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The output could not be written.
    #[error("cannot write the output: {}", crate::source::read::io_reason(.0))]
    Output(#[from] io::Error),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl Failure {
    /// Did the reader of the output go away, as `head` does? Then there is nobody to tell.
    pub fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Runs the command.
///
/// # Errors
/// If it could not do its work.
pub fn run(cli: Cli) -> Result<ExitCode, Failure> {
    match cli.command {
        Command::Check(args) => check::run(&args, cli.color),
        Command::Rule(args) => rule::run(&args, cli.color),
        Command::Config(args) => config::run(&args, cli.color),
        Command::GenerateShellCompletion(args) => generate::completion(&args),
        Command::GenerateMan(args) => generate::man(&args),
        Command::Server => server::run(),
        Command::Verify(args) => verify::run(&args, cli.color),
        Command::Probe(args) => Ok(verify::probe(&args)),
    }
}

/// Tells people, on standard error, why nothing came of it.
pub fn complain(failure: &Failure, color: Color) {
    let drawing = match failure {
        Failure::Config(error) => drawn(error, color),
        _ => None,
    };
    match (drawing, failure) {
        (Some(drawing), _) => {
            let _ = writeln!(io::stderr().lock(), "{}", drawing.trim_end());
        }
        (None, Failure::Config(error)) => match miette::Diagnostic::help(error) {
            Some(help) => say(&format!("error: {error}; {help}")),
            None => say(&format!("error: {error}")),
        },
        (None, other) => say(&format!("error: {other}")),
    }
}

/// A line on standard error, without what a terminal would act on. If standard error is closed, so be it.
fn say(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", one_line(line.trim_end()));
}

/// The error with the piece of the file that it is about, if there is one.
fn drawn(error: &ConfigError, color: Color) -> Option<String> {
    if !error.has_source() {
        return None;
    }
    let theme = if terminal::color(color, &io::stderr()) {
        GraphicalTheme::unicode()
    } else {
        GraphicalTheme::unicode_nocolor()
    };
    let mut text = String::new();
    let handler = GraphicalReportHandler::new_themed(theme).with_wrap_lines(false);
    handler.render_report(&mut text, error).ok().map(|()| text)
}
