//! The program: arguments → command → exit code.

use std::process::ExitCode;

use clap::Parser;
use samedevice::cli::Cli;
use samedevice::commands::{complain, run};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let color = cli.color;
    match run(cli) {
        Ok(code) => code,
        Err(failure) if failure.is_broken_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            complain(&failure, color);
            ExitCode::from(2)
        }
    }
}
