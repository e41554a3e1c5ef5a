//! What `import torch` would load, and whether that would work: PyTorch's own steps, with the loader of glibc, by the files alone.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::elf::{Defect, Undefined};
use super::loader::{Failure, Found, Loaded, Process};
use super::machine::Version;
use super::preloads::{Preloads, entries};
use super::system::Files;
use crate::source::read;

/// `torch/__init__.py` of 2.15 has 100 KB; in bytes.
const MAX_INIT: u64 = 4 << 20;

/// What would come of `import torch`.
#[derive(Debug)]
pub struct Import {
    /// The process, with what it has loaded in the end.
    pub process: Process,
    /// The last line of what Python prints, if it fails and that is known.
    pub error: Option<String>,
    /// Why libraries are not loaded, the one that Python tells first.
    pub failures: Vec<Failure>,
    /// Names that no library has, or versions.
    pub unresolved: Vec<Unresolved>,
    /// Libraries of PyTorch's that are loaded later, where they are used, with what they miss.
    pub later: Vec<(PathBuf, String)>,
    /// What PyTorch loads by itself.
    pub preloads: Preloads,
}

/// Something that a library needs and no other gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// A function or variable.
    Symbol {
        /// Its name.
        name: String,
        /// The version of it that is asked for.
        version: Option<String>,
        /// The library that needs it.
        by: PathBuf,
    },
    /// A version of a library's interface.
    Version {
        /// `GLIBCXX_3.4.29`.
        name: String,
        /// The library that ought to have it.
        library: PathBuf,
        /// The one that needs it.
        by: PathBuf,
    },
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The folder `torch`.
    pub torch: &'a Path,
    /// Its C extension.
    pub extension: &'a Path,
    /// Where modules are imported from.
    pub search_path: &'a [PathBuf],
    /// The CUDA that PyTorch is built with.
    pub cuda: Option<Version>,
    /// Python.
    pub interpreter: Option<&'a Path>,
}

/// Goes through the import. Nothing if it cannot be known what the loader does.
pub fn trace(question: &Question, files: &Files) -> Option<Import> {
    let mut process = Process::of(question.interpreter, files)?;
    let text = read::short_text(&question.torch.join("__init__.py"), MAX_INIT).unwrap_or_default();
    let preloads = Preloads::of(&text);
    let mut failures = Vec::new();
    let mut error = None;
    if preloads.global_deps {
        (failures, error) = global_deps(question, &preloads, &mut process);
    }
    for failure in process.open(question.extension, true) {
        if !failures.contains(&failure) {
            failures.push(failure);
        }
    }
    let error = error.or_else(|| Some(format!("ImportError: {}", failures.first()?.message()?)));
    let (mut unresolved, mut later) = (Vec::new(), Vec::new());
    if failures.is_empty() {
        unresolved = if !preloads.lazy { self::unresolved(&process) } else { Vec::new() };
        later = loaded_later(question.torch, &mut process);
    }
    let error = error.or_else(|| Some(format!("ImportError: {}", unresolved.first()?.message())));
    Some(Import { process, error, failures, unresolved, later, preloads })
}

impl Import {
    /// Would it work?
    pub fn works(&self) -> bool {
        self.failures.is_empty() && self.unresolved.is_empty()
    }
}

impl Failure {
    /// What the loader says of it (`dl-load.c` of glibc); nothing where that is not known or it says nothing, as the process
    /// ends by a signal.
    pub fn message(&self) -> Option<String> {
        match self {
            Self::Missing { name, .. } => {
                Some(format!("{name}: cannot open shared object file: No such file or directory"))
            }
            Self::Defective { path, defect: Defect::TooShort } => {
                Some(format!("{}: file too short", path.display()))
            }
            Self::Defective { path, defect: Defect::NotElf } => {
                Some(format!("{}: invalid ELF header", path.display()))
            }
            Self::Defective { .. } => None,
        }
    }
}

impl Unresolved {
    /// What the loader says of it (`dl-lookup.c`, `dl-version.c` of glibc).
    pub fn message(&self) -> String {
        match self {
            Self::Symbol { name, version: None, by } => format!("{}: undefined symbol: {name}", by.display()),
            Self::Symbol { name, version: Some(version), by } => {
                format!("{}: undefined symbol: {name}, version {version}", by.display())
            }
            Self::Version { name, library, by } => {
                format!("{}: version `{name}' not found (required by {})", library.display(), by.display())
            }
        }
    }
}

/// `_load_global_deps`: failures, and Python's error.
fn global_deps(
    question: &Question,
    preloads: &Preloads,
    process: &mut Process,
) -> (Vec<Failure>, Option<String>) {
    let path = question.torch.join("lib/libtorch_global_deps.so");
    let major = question.cuda.map(|cuda| cuda.major);
    let find = |preload| preloads.find(preload, question.search_path, major);
    let mut failures = process.open(&path, false);
    if failures.is_empty() {
        let loaded = |words: &String| {
            let mut paths = process.loaded.iter().map(|loaded| loaded.library.path.display().to_string());
            paths.any(|path| path.contains(words.as_str()))
        };
        if preloads.only_with.as_ref().is_none_or(loaded) {
            for preload in &preloads.after {
                match find(preload) {
                    Some(file) if !process.open(&file, false).is_empty() => break,
                    // What is raised here is caught, and the rest is left out.
                    None if preload.required => break,
                    Some(_) | None => {}
                }
            }
        }
        return (Vec::new(), None);
    }
    let message = failures.first().and_then(Failure::message);
    let error = message.as_ref().map(|message| format!("OSError: {message}"));
    let known = |message: &String| preloads.fallback.iter().any(|one| message.contains(one.stem()));
    if !message.as_ref().is_some_and(known) {
        return (failures, error);
    }
    for preload in &preloads.fallback {
        let Some(file) = find(preload) else {
            if !preload.required {
                continue;
            }
            let pattern = &preload.pattern;
            let error = if preloads.value_error {
                format!("ValueError: {pattern} not found in the system path")
            } else {
                format!("OSError: {pattern}: cannot open shared object file: No such file or directory")
            };
            return (failures, Some(error));
        };
        let own = process.open(&file, false);
        if let Some(first) = own.first() {
            let error = first.message().map(|message| format!("OSError: {message}"));
            return (own, error);
        }
    }
    failures = process.open(&path, false);
    let error = failures.first().and_then(Failure::message).map(|message| format!("OSError: {message}"));
    (failures, error)
}

/// What the loaded libraries need of each other and do not have, the loader's first at the top. All names are bound at once:
/// `import` opens libraries with `RTLD_NOW`. Nothing is told where the names of a library cannot be read.
fn unresolved(process: &Process) -> Vec<Unresolved> {
    let mut asked: Vec<(usize, Vec<Undefined>)> = Vec::new();
    let mut given: BTreeSet<Vec<u8>> = BTreeSet::new();
    let mut needs: Vec<(usize, String, String)> = Vec::new();
    let mut gives: Vec<Option<Vec<String>>> = Vec::new();
    for (at, loaded) in process.loaded.iter().enumerate() {
        let Some(symbols) = loaded.library.symbols() else { return Vec::new() };
        // The system's libraries are right among themselves.
        if loaded.found != Found::System && loaded.library.interpreter.is_none() {
            asked.push((at, symbols.undefined));
            needs.extend(symbols.needs.into_iter().map(|(library, version)| (at, library, version)));
        }
        given.extend(symbols.defined);
        gives.push(symbols.gives);
    }
    let path = |at: usize| process.loaded[at].library.path.clone();
    let mut unresolved = Vec::new();
    for (by, library, version) in needs {
        let names = |it: &Loaded| it.name == library || it.library.soname.as_ref() == Some(&library);
        let Some(at) = process.loaded.iter().position(names) else { continue };
        if gives[at].as_ref().is_some_and(|gives| !gives.contains(&version)) {
            unresolved.push(Unresolved::Version { name: version, library: path(at), by: path(by) });
        }
    }
    // Python's names are those of the interpreter, which is not always known.
    let of_python = |name: &[u8]| name.starts_with(b"Py") || name.starts_with(b"_Py");
    // What was loaded last is bound first.
    for (by, undefined) in asked.into_iter().rev() {
        let missing: Vec<Undefined> =
            undefined.into_iter().filter(|one| !of_python(&one.name) && !given.contains(&one.name)).collect();
        let order =
            process.loaded[by].library.in_loading_order(missing.iter().map(|one| one.index).collect());
        let missing = order.into_iter().filter_map(|index| missing.iter().find(|one| one.index == index));
        unresolved.extend(missing.map(|one| {
            let name = String::from_utf8_lossy(&one.name).into_owned();
            Unresolved::Symbol { name, version: one.version.clone(), by: path(by) }
        }));
    }
    unresolved
}

/// PyTorch's other libraries, such as the one for linear algebra on the GPU.
fn loaded_later(torch: &Path, process: &mut Process) -> Vec<(PathBuf, String)> {
    let mut later = Vec::new();
    for path in entries(&torch.join("lib")) {
        if path.extension().is_some_and(|extension| extension == "so") {
            for failure in process.open(&path, false) {
                match failure {
                    // The driver is not PyTorch's, and its absence has causes of its own.
                    Failure::Missing { name, .. } if name != "libcuda.so.1" => {
                        later.push((path.clone(), name))
                    }
                    _ => {}
                }
            }
        }
    }
    later
}
