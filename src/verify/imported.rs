//! PyTorch, really imported: in a process of that Python, with the time limit of the driver.

use std::process::Command;

use serde::Deserialize;

use super::child;
use super::examine::Options;
use super::machine::Imported;
use super::process::start;
use super::python::Environment;

/// What Python runs. It prints one line, after whatever else is printed; `python -c` has the working directory on its search path,
/// as programs have that are there. Written for every Python 3.
const PROGRAM: &str = r#"
import json, sys
said = {}
try:
    import torch
    said["version"] = str(torch.__version__)
    said["cuda"] = getattr(torch.version, "cuda", None)
    said["hip"] = getattr(torch.version, "hip", None)
    said["available"] = bool(torch.cuda.is_available())
    said["count"] = int(torch.cuda.device_count())
    said["archs"] = list(getattr(torch.cuda, "get_arch_list", list)())
except BaseException as error:
    lines = [line for line in str(error).splitlines() if line.strip()]
    said["error"] = type(error).__name__ + ": " + (lines[0] if lines else "")
sys.stdout.write("\n" + json.dumps(said) + "\n")
sys.stdout.flush()
"#;

/// The line.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Said {
    version: Option<String>,
    cuda: Option<String>,
    hip: Option<String>,
    available: Option<bool>,
    count: Option<u32>,
    archs: Vec<String>,
    error: Option<String>,
}

/// Imports PyTorch with this environment's Python.
pub fn ask(environment: &Environment, options: &Options) -> Imported {
    let failed = |failure: String| Imported { failure: Some(failure), ..Imported::default() };
    let Some(interpreter) = &environment.interpreter else {
        return failed("the environment has no interpreter".to_owned());
    };
    let mut command = Command::new(interpreter);
    command.arg("-c").arg(PROGRAM).current_dir(&options.cwd);
    let ended = match start(command, options.limit) {
        Ok(running) => running.wait(),
        Err(error) => return failed(format!("{} cannot be started: {error}", interpreter.display())),
    };
    let text = String::from_utf8_lossy(&ended.output);
    // Clean-up may hang or crash after the answer.
    let said = text.lines().rev().find_map(|line| serde_json::from_str::<Said>(line).ok());
    let Some(said) = said else {
        return failed(match ended.status {
            None => format!("the import was not done after {} seconds", options.limit.as_secs()),
            Some(status) => format!("Python ended with {}, and said nothing", child::how(status)),
        });
    };
    let failure = said.error.as_ref().map(|_| "Python raised an error".to_owned());
    Imported {
        failure,
        error: said.error,
        version: said.version,
        cuda: said.cuda,
        hip: said.hip,
        available: said.available,
        count: said.count,
        archs: said.archs,
    }
}
