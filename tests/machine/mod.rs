//! A machine that is not there: a driver made of C, files in place of the system's, folders in place of Python's.
#![allow(dead_code, reason = "not every test file uses all of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

mod elf;

pub use elf::Elf;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// The driver's version in all of these machines.
pub const DRIVER: &str = "550.54.14";
pub const GIB: u64 = 1 << 30;

/// Compiles `tests/stub/NAME` into a shared library. Without a compiler there is nothing to test with.
fn compiled(source: &str, name: &str, flags: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(env!("CARGO_CRATE_NAME"));
    fs::create_dir_all(&folder).unwrap();
    let target = folder.join(format!("{name}.{}", std::process::id()));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stub").join(source);
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
        .arg(&target)
        .arg(source)
        .args(flags)
        .output()
        .expect("a C compiler, `cc`: the driver in these tests is written in C");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // At once, as another run of the same tests may be using the one that is there.
    fs::rename(&target, folder.join(name)).unwrap();
    folder.join(name)
}

/// The stub, compiled once.
pub fn stub() -> &'static Path {
    static STUB: OnceLock<PathBuf> = OnceLock::new();
    STUB.get_or_init(|| compiled("libcuda.c", "whole.so", &[]))
}

/// The stub without a function that every driver has.
pub fn incomplete_stub() -> &'static Path {
    static STUB: OnceLock<PathBuf> = OnceLock::new();
    STUB.get_or_init(|| compiled("libcuda.c", "incomplete.so", &["-DWITHOUT_VERSION"]))
}

/// A library for `LD_PRELOAD` that forbids to open `/dev/nvidiactl`.
pub fn forbidden() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| compiled("forbidden.c", "forbidden.so", &["-ldl"]))
}

/// A machine.
pub struct Machine {
    dir: TempDir,
    root: PathBuf,
    env: BTreeMap<String, String>,
}

/// What a run left.
#[derive(Debug)]
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Run {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl Machine {
    /// Without anything of NVIDIA's or Python's.
    pub fn bare() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let machine = Self { dir, root, env: BTreeMap::new() };
        for folder in ["project", "home", "bin", "system/proc", "system/dev", "system/sys/bus/pci/devices"] {
            fs::create_dir_all(machine.path(folder)).unwrap();
        }
        machine
            .system("proc/version", "Linux version 6.8.0-45-generic (buildd@lcy02)\n")
            .point("PATH", "bin")
            .point("HOME", "home")
            .point("SAMEDEVICE_SYSTEM_ROOT", "system")
    }

    /// With a GPU, an A100, and no driver.
    pub fn with_gpu() -> Self {
        Self::bare().on_bus("0000:10:00.0", "0x10de", "0x20b0")
    }

    /// A display controller on the PCI bus.
    pub fn on_bus(self, address: &str, vendor: &str, device: &str) -> Self {
        let file = |name: &str| format!("sys/bus/pci/devices/{address}/{name}");
        self.system(&file("vendor"), &format!("{vendor}\n"))
            .system(&file("device"), &format!("{device}\n"))
            .system(&file("class"), "0x030200\n")
    }

    /// The kernel's driver that has it.
    pub fn bound(self, address: &str, driver: &str) -> Self {
        let folder = self.path(&format!("system/sys/bus/pci/drivers/{driver}"));
        fs::create_dir_all(&folder).unwrap();
        symlink(folder, self.path(&format!("system/sys/bus/pci/devices/{address}/driver"))).unwrap();
        self
    }

    /// With a GPU and a driver that works.
    pub fn with_driver() -> Self {
        let machine = Self::with_gpu()
            .system(
                "proc/driver/nvidia/version",
                &format!(
                    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  {DRIVER}  Thu Feb 22 01:44:30 UTC 2024\n"
                ),
            )
            .system("dev/nvidiactl", "")
            .system("dev/nvidia-uvm", "")
            .system("dev/nvidia0", "");
        machine.library("system/lib", stub())
    }

    /// With all that PyTorch needs: the one for CUDA 12.6 in `.venv`.
    pub fn usable() -> Self {
        Self::with_driver().torch(&Torch::cu126())
    }

    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// A variable of the environment.
    pub fn set(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.insert(name.to_owned(), value.into());
        self
    }

    /// A variable that names a folder of this machine.
    pub fn point(self, name: &str, path: &str) -> Self {
        let path = machine_path(&self, path);
        self.set(name, path)
    }

    /// A file.
    pub fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// A file of the system.
    pub fn system(self, path: &str, content: &str) -> Self {
        self.file(&format!("system/{path}"), content)
    }

    /// Takes a file away.
    pub fn without(self, path: &str) -> Self {
        fs::remove_file(self.path(path)).unwrap();
        self
    }

    /// A driver's library in this folder, which the loader looks into before others.
    pub fn library(self, folder: &str, library: &Path) -> Self {
        let name = format!("libcuda.so.{DRIVER}");
        fs::create_dir_all(self.path(folder)).unwrap();
        fs::copy(library, self.path(folder).join(&name)).unwrap();
        symlink(&name, self.path(folder).join("libcuda.so.1")).unwrap();
        self.search_first(folder)
    }

    /// Puts a folder in front of `LD_LIBRARY_PATH`.
    pub fn search_first(self, folder: &str) -> Self {
        let folder = machine_path(&self, folder);
        let path = match self.env.get("LD_LIBRARY_PATH") {
            Some(rest) => format!("{folder}:{rest}"),
            None => folder,
        };
        self.set("LD_LIBRARY_PATH", path)
    }

    /// A program, as a script of the shell.
    pub fn program(self, name: &str, script: &str) -> Self {
        let path = format!("bin/{name}");
        let machine = self.file(&path, format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(machine.path(&path), fs::Permissions::from_mode(0o755)).unwrap();
        machine
    }

    /// The environment's interpreter, as a script of the shell.
    pub fn python(self, script: &str) -> Self {
        let path = "project/.venv/bin/python";
        let machine = self.file(path, format!("#!/bin/sh\n{script}\n"));
        fs::set_permissions(machine.path(path), fs::Permissions::from_mode(0o755)).unwrap();
        machine
    }

    /// `nvidia-smi` with these lines for GPUs and processes.
    pub fn smi(self, gpus: &[&str], processes: &[&str]) -> Self {
        let script = format!(
            "case $1 in --query-gpu*) printf '%s' '{}';; *) printf '%s' '{}';; esac",
            lines(gpus),
            lines(processes)
        );
        self.program("nvidia-smi", &script)
    }

    /// A virtual environment in the project with this PyTorch.
    pub fn torch(self, torch: &Torch) -> Self {
        self.environment("project/.venv").installed("project/.venv/lib/python3.11/site-packages", torch)
    }

    /// Installs the program into this environment, and runs it there.
    pub fn program_in(self, prefix: &str) -> Self {
        let path = self.path(prefix).join("bin/samedevice");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if fs::hard_link(env!("CARGO_BIN_EXE_samedevice"), &path).is_err() {
            fs::copy(env!("CARGO_BIN_EXE_samedevice"), &path).unwrap();
        }
        self.point("TEST_PROGRAM", &format!("{prefix}/bin/samedevice"))
    }

    /// A virtual environment in this folder.
    pub fn environment(self, folder: &str) -> Self {
        self.file(&format!("{folder}/pyvenv.cfg"), "home = /nowhere/bin\nversion = 3.11.7\n")
            .file(&format!("{folder}/bin/python"), "")
            .file(&format!("{folder}/lib/python3.11/site-packages/pip/__init__.py"), "")
    }

    /// A PyTorch in this folder.
    pub fn installed(self, site: &str, torch: &Torch) -> Self {
        let info = format!("{site}/torch-{}.dist-info", torch.distribution);
        let mut machine = self
            .file(&format!("{site}/torch/__init__.py"), "raise SystemExit('nobody may import this')\n")
            .file(&format!("{site}/torch/version.py"), torch.version_py())
            .file(&format!("{site}/torch/_C.cpython-311-x86_64-linux-gnu.so"), torch.extension().bytes())
            .file(&format!("{site}/torch/lib/libtorch_python.so"), torch.python_library().bytes())
            .file(&format!("{info}/METADATA"), torch.metadata())
            .file(&format!("{info}/INSTALLER"), torch.installer);
        if torch.cuda.is_some() {
            machine =
                machine.file(&format!("{site}/torch/lib/libtorch_cuda.so"), torch.cuda_library().bytes());
        }
        for (package, version) in torch.packages {
            let folder = format!("{site}/{}-{version}.dist-info", package.replace('-', "_"));
            machine = machine.file(&format!("{folder}/METADATA"), "");
        }
        for library in torch.libraries {
            let soname = library.rsplit('/').next().unwrap();
            machine =
                machine.file(&format!("{site}/nvidia/{library}"), Elf { soname, ..Elf::default() }.bytes());
        }
        machine
    }

    fn command(&self, arguments: &str) -> Command {
        // The program may be installed into an environment of the machine.
        let installed = self.env.get("TEST_PROGRAM").map(PathBuf::from);
        let mut command = Command::new(installed.unwrap_or_else(|| env!("CARGO_BIN_EXE_samedevice").into()));
        command
            .args(arguments.split_whitespace())
            .current_dir(self.path("project"))
            .env_clear()
            .envs(&self.env);
        command
    }

    pub fn run(&self, arguments: &str) -> Run {
        let begin = Instant::now();
        let output = self.command(arguments).output().unwrap();
        Run {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            took: begin.elapsed(),
        }
    }

    /// The document of `samedevice verify ARGUMENTS`.
    pub fn verify(&self, arguments: &str) -> Value {
        let run = self.run(&format!("verify --output-format json {arguments}"));
        let machine = run.json();
        let expected = match machine["status"].as_str() {
            Some("usable") => 0,
            Some("problem") => 1,
            _ => 2,
        };
        assert_eq!(run.code, Some(expected), "{run:?}");
        for problem in machine["problems"].as_array().unwrap() {
            assert!(!problem["remedy"].as_str().unwrap().is_empty(), "{problem}");
            assert!(!problem["evidence"].as_array().unwrap().is_empty(), "{problem}");
        }
        machine
    }

    /// What the stub's functions were called, as lines.
    pub fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Lets the stub write its log.
    pub fn logged(self) -> Self {
        let log = machine_path(&self, "log");
        self.set("STUB_LOG", log)
    }
}

fn machine_path(machine: &Machine, path: &str) -> String {
    machine.path(path).to_str().unwrap().to_owned()
}

fn lines(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// The identifiers of the problems, in their order, without notes.
pub fn problems(machine: &Value) -> Vec<&str> {
    let problems = machine["problems"].as_array().unwrap().iter();
    problems
        .filter(|problem| problem["gravity"] != "note")
        .map(|problem| problem["id"].as_str().unwrap())
        .collect()
}

/// The problem with this identifier, as one text.
pub fn problem(machine: &Value, id: &str) -> String {
    let problems = machine["problems"].as_array().unwrap();
    let found = problems.iter().find(|problem| problem["id"] == id);
    found.unwrap_or_else(|| panic!("no {id} in {problems:#?}")).to_string()
}

/// Asserts that the first problem is this one, that it names these things, and what follows for CUDA.
pub fn expect(machine: &Value, id: &str, cuda: &str, parts: &[&str]) {
    assert_eq!(problems(machine).first(), Some(&id), "{machine:#}");
    let text = problem(machine, id);
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(machine["worlds"]["cuda"]["holds"], cuda, "{machine:#}");
}

/// An installed PyTorch.
#[derive(Clone, Debug)]
pub struct Torch {
    pub version: &'static str,
    pub distribution: &'static str,
    pub cuda: Option<&'static str>,
    pub hip: Option<&'static str>,
    pub xpu: Option<&'static str>,
    pub archs: &'static str,
    pub installer: &'static str,
    pub requires: &'static [&'static str],
    pub packages: &'static [(&'static str, &'static str)],
    /// The libraries of NVIDIA's that are there, below `nvidia`.
    pub libraries: &'static [&'static str],
    /// Those that `libtorch_cuda.so` needs.
    pub needed: &'static [&'static str],
}

impl Torch {
    /// From PyTorch's own index.
    pub fn cu126() -> Self {
        Self {
            version: "2.15.0+cu126",
            distribution: "2.15.0+cu126",
            cuda: Some("12.6"),
            hip: None,
            xpu: None,
            archs: "sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90",
            installer: "pip\n",
            requires: &["nvidia-cudnn-cu12==9.10.2.21; platform_system == \"Linux\"", "filelock"],
            packages: &[("nvidia-cudnn-cu12", "9.10.2.21")],
            libraries: &["cudnn/lib/libcudnn.so.9"],
            needed: &["libcudnn.so.9"],
        }
    }

    /// What `pip install torch` gives: its record has no `+cu132`.
    pub fn pypi() -> Self {
        Self {
            version: "2.15.0+cu132",
            distribution: "2.15.0",
            cuda: Some("13.2"),
            archs: "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120",
            requires: &[
                "filelock",
                "cuda-toolkit[cublas,cudart,cufft]==13.2.2; platform_system == \"Linux\"",
                "nvidia-cudnn-cu13==9.26.0.51; platform_system == \"Linux\"",
                "nvidia-nccl-cu13==2.30.7; platform_system == \"Linux\"",
                "triton~=3.9.0; platform_system == \"Linux\" and python_version < \"3.16\"",
                "optree>=0.13.0; extra == \"optree\"",
            ],
            packages: &[
                ("nvidia-cublas", "13.4.1.3"),
                ("nvidia-cuda-runtime", "13.2.86"),
                ("nvidia-cufft", "12.2.0.57"),
                ("nvidia-cudnn-cu13", "9.26.0.51"),
                ("nvidia-nccl-cu13", "2.30.7"),
            ],
            libraries: &["cu13/lib/libcublas.so.13", "cudnn/lib/libcudnn.so.9", "nccl/lib/libnccl.so.2"],
            needed: &["libcublas.so.13", "libcudnn.so.9", "libnccl.so.2"],
            ..Self::cu126()
        }
    }

    pub fn cpu() -> Self {
        Self {
            version: "2.15.0+cpu",
            distribution: "2.15.0+cpu",
            cuda: None,
            archs: "",
            requires: &[],
            packages: &[],
            libraries: &[],
            ..Self::cu126()
        }
    }

    pub fn rocm() -> Self {
        Self { version: "2.15.0+rocm7.0", hip: Some("7.0.51831"), ..Self::cpu() }
    }

    /// `torch._C`.
    pub fn extension(&self) -> Elf<'_> {
        Elf { needed: vec!["libtorch_python.so"], rpath: "$ORIGIN/lib", ..Elf::default() }
    }

    /// `libtorch_python.so`.
    pub fn python_library(&self) -> Elf<'_> {
        let needed = self.cuda.map(|_| "libtorch_cuda.so").into_iter().collect();
        Elf { soname: "libtorch_python.so", needed, rpath: "$ORIGIN", text: self.archs, ..Elf::default() }
    }

    /// `libtorch_cuda.so`: needs all of NVIDIA's libraries that there are to be, where PyTorch's wheels look for them.
    pub fn cuda_library(&self) -> Elf<'_> {
        Elf {
            soname: "libtorch_cuda.so",
            needed: self.needed.to_vec(),
            rpath: "$ORIGIN/../../nvidia/cublas/lib:$ORIGIN/../../nvidia/cudnn/lib:$ORIGIN/../../nvidia/nccl/lib:\
                    $ORIGIN/../../nvidia/cuda_cupti/lib:$ORIGIN/../../nvidia/cu13/lib:$ORIGIN",
            ..Elf::default()
        }
    }

    fn version_py(&self) -> String {
        let value = |value: Option<&str>| value.map_or("None".to_owned(), |value| format!("'{value}'"));
        format!(
            "from typing import Optional\n\n__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip']\n\
             __version__ = '{}'\ndebug = False\ncuda: Optional[str] = {}\ngit_version = 'abc'\nhip: Optional[str] = {}\n\
             xpu: Optional[str] = {}\n",
            self.version,
            value(self.cuda),
            value(self.hip),
            value(self.xpu)
        )
    }

    fn metadata(&self) -> String {
        let requires: String = self.requires.iter().map(|line| format!("Requires-Dist: {line}\n")).collect();
        format!("Metadata-Version: 2.1\nName: torch\nVersion: {}\n{requires}\nTensors.\n", self.distribution)
    }
}
