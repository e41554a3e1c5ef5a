//! The program: arguments → command → exit code.

use std::process::ExitCode;

use samedevice::cli::Cli;
use samedevice::commands::{complain, run};

/// The interpreter makes and drops many small things.
#[cfg(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::read();
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
