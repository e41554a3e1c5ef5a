//! `samedevice generate-shell-completion` and `generate-man`: what shells and `man` read about the command line.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::CommandFactory;

use super::Failure;
use crate::cli::{Cli, CompletionArgs, ManArgs};

/// The command line without what people do not call.
fn command() -> clap::Command {
    let whole = Cli::command();
    let shown = whole.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    // A command cannot be taken out of another one: this is the other one without any, and those that are shown.
    let mut bare = clap::Command::new("samedevice")
        .version(env!("CARGO_PKG_VERSION"))
        .args(whole.get_arguments().cloned())
        .subcommands(shown)
        .disable_help_subcommand(true);
    if let Some(about) = whole.get_about() {
        bare = bare.about(about.clone());
    }
    match whole.get_after_help() {
        Some(help) => bare.after_help(help.clone()),
        None => bare,
    }
}

/// Prints the script for a shell.
///
/// # Errors
/// If it cannot be written.
pub fn completion(args: &CompletionArgs) -> Result<ExitCode, Failure> {
    // What writes it gives up on a pipe that is closed; this tells.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command(), "samedevice", &mut script);
    print(&script)
}

/// Prints the manual page of the program, or writes those of all commands into a folder.
///
/// # Errors
/// If they cannot be written.
pub fn man(args: &ManArgs) -> Result<ExitCode, Failure> {
    let Some(folder) = &args.folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command()).render(&mut page)?;
        return print(&page);
    };
    let written = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command(), folder));
    written.map_err(|error| {
        let reason = crate::source::read::io_reason(&error);
        Failure::Other(format!("cannot write the pages into `{}`: {reason}", folder.display()))
    })?;
    Ok(ExitCode::SUCCESS)
}

fn print(text: &[u8]) -> Result<ExitCode, Failure> {
    let mut out = io::stdout().lock();
    out.write_all(text)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
