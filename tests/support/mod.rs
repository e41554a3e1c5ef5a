//! A temporary project and the built binary in it.
#![allow(dead_code, clippy::expect_used, reason = "not every test file uses all of it; tests may panic")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// A project in a temporary folder, which is also the user's home.
pub struct Project {
    dir: TempDir,
    root: PathBuf,
}

/// What a run left.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Project {
    /// With these files, by path and content.
    pub fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        // On macOS the folder is behind a link.
        let root = dir.path().canonicalize().expect("its real path").join("project");
        fs::create_dir(&root).expect("a folder");
        let project = Self { dir, root };
        for (path, content) in files {
            project.write(path, content);
        }
        project
    }

    /// Its absolute path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The home of the user, above the project.
    pub fn home(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file, with the folders above it.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, content).expect("a file");
    }

    /// Runs `samedevice` with these arguments, separated by blanks, in the project.
    pub fn run(&self, arguments: &str) -> Run {
        self.run_with(arguments, b"", &[])
    }

    /// The same with standard input and environment variables.
    pub fn run_with(&self, arguments: &str, stdin: &[u8], env: &[(&str, &str)]) -> Run {
        let mut child = self
            .command(env!("CARGO_BIN_EXE_samedevice"))
            .args(arguments.split_whitespace())
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        // The program may end without having read it all.
        let _ = child.stdin.take().expect("a pipe").write_all(stdin);
        Run::from(child.wait_with_output().expect("the program ends"))
    }

    /// The same of what may never end: it is stopped after a generous while, and then has no exit code.
    pub fn run_to_its_end(&self, arguments: &str, stdin: Stdio) -> Run {
        let mut child = self
            .command(env!("CARGO_BIN_EXE_samedevice"))
            .args(arguments.split_whitespace())
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let start = Instant::now();
        while child.try_wait().expect("a child").is_none() {
            if start.elapsed() > Duration::from_secs(120) {
                child.kill().expect("a child");
            }
            sleep(Duration::from_millis(20));
        }
        Run::from(child.wait_with_output().expect("the program ends"))
    }

    /// Makes a named pipe; false where there is no such thing.
    pub fn pipe(&self, path: &str) -> bool {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        Command::new("mkfifo").arg(path).status().is_ok_and(|status| status.success())
    }

    /// A program in the project, with nothing of this machine's configuration.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.root).env("HOME", self.home());
        for name in [
            "SAMEDEVICE_CONFIG",
            "SAMEDEVICE_OUTPUT_FILE",
            "SAMEDEVICE_OUTPUT_FORMAT",
            "CI_PROJECT_DIR",
            "FORCE_HYPERLINK",
            "XDG_CONFIG_HOME",
            "GIT_CONFIG_GLOBAL",
            "CLICOLOR_FORCE",
            "GITHUB_WORKSPACE",
            "COLUMNS",
        ] {
            command.env_remove(name);
        }
        command
    }

    /// The files that `check ARGUMENTS` would lint, separated by blanks. Nothing may go wrong.
    pub fn files(&self, arguments: &str) -> String {
        let run = self.run(&format!("check --show-files {arguments}"));
        assert_eq!(run.code, Some(0), "{run:?}");
        run.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("UTF-8"),
        }
    }
}

/// What a run prints on a terminal of 100 columns; `None` where there is no `script`, which makes terminals.
#[cfg(target_os = "linux")]
pub fn on_a_terminal(project: &Project, arguments: &str, env: &[(&str, &str)]) -> Option<String> {
    let line = format!("'{}' {arguments}", env!("CARGO_BIN_EXE_samedevice"));
    let mut script = project.command("script");
    script.args(["--quiet", "--command", &line, "/dev/null"]).stdin(Stdio::null()).env("COLUMNS", "100");
    script.env_remove("NO_COLOR").env_remove("CI").envs(env.iter().copied());
    let output = script.output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}
