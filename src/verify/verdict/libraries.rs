//! NVIDIA's libraries beside PyTorch: missing, of another version, or hidden by others.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Case, Draft};
use crate::verify::install::{Wanted, without_folders};
use crate::verify::machine::{Build, Problem, Torch};

/// Libraries that PyTorch links, by the words in their packages' names and by how their files begin.
const LIBRARIES: [(&str, &str, &str); 3] =
    [("cudnn", "cuDNN", "libcudnn"), ("nccl", "NCCL", "libnccl"), ("cublas", "cuBLAS", "libcublas")];

/// The identifiers of this file's problems.
pub(super) const IDS: &[&str] = &[
    "cudnn-missing",
    "nccl-missing",
    "cublas-missing",
    "cudnn-version",
    "nccl-version",
    "cublas-version",
    "cudnn-duplicated",
    "nccl-duplicated",
    "cublas-duplicated",
    "cuda-runtime-version",
];

pub(super) fn problems(case: &Case) -> Vec<Problem> {
    let Some(torch) = case.machine.torch.as_ref().filter(|torch| torch.build == Build::Cuda) else {
        return Vec::new();
    };
    let one = |library| [missing(case, torch, library), duplicated(case, torch, library)];
    let drafts = LIBRARIES.iter().flat_map(one).flatten();
    drafts.chain(runtime(case, torch)).map(Problem::from).collect()
}

/// The package that PyTorch asks for is not there, or not its files, or not in its version.
fn missing(case: &Case, torch: &Torch, (word, name, files): &(&str, &str, &str)) -> Option<Draft> {
    let begin = format!("nvidia-{word}");
    let (package, wanted) = case.installed.wanted.iter().find(|(package, _)| package.starts_with(&begin))?;
    let pinned = wanted.as_ref().map_or_else(|| package.clone(), |version| format!("{package}=={version}"));
    let command = mend_libraries(case, &[package]);
    let mend =
        |draft: Draft| draft.remedy(format!("install {name} for this PyTorch")).command(command.clone());
    let Some(installed) = case.installed.packages.get(package) else {
        return Some(mend(
            Draft::error(
                &format!("{word}-missing"),
                format!("{name} is missing, so that PyTorch cannot be imported"),
            )
            .seen(format!("PyTorch {} asks for {pinned}", torch.version.as_deref().unwrap_or_default())),
        ));
    };
    let is_there = |folders: &Vec<PathBuf>| folders.iter().any(|folder| has(folder, files));
    // Packages for CUDA 13 share one folder; it is enough that the file is in any of them.
    let folders = &case.installed.libraries;
    if !folders.is_empty() && !folders.values().any(is_there) && cfg!(unix) {
        return Some(mend(
            Draft::error(
                &format!("{word}-missing"),
                format!("{name}'s files are missing, so that PyTorch cannot be imported"),
            )
            .seen(format!("{package} {installed} is recorded, and no {files}.so is in `nvidia/*/lib`")),
        ));
    }
    let wanted = wanted.as_ref().filter(|wanted| *wanted != installed && !wanted.ends_with('*'))?;
    Some(mend(
        Draft::warning(
            &format!("{word}-version"),
            format!("{name} is not of the version that this PyTorch was built with"),
        )
        .seen(format!("{package} {installed} is installed, and {wanted} is asked for")),
    ))
}

/// Is there a file in the folder that begins so?
fn has(folder: &Path, begin: &str) -> bool {
    let mut entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.any(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name.starts_with(begin) && name.contains(".so")
    })
}

/// The files in the folder that begin so and have a version: `libcublas.so.13`.
fn versioned(folder: &Path, begin: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name.starts_with(begin) && name.contains(".so."))
        .collect()
}

/// `LD_LIBRARY_PATH` goes before what PyTorch brings.
fn duplicated(case: &Case, torch: &Torch, (word, name, files): &(&str, &str, &str)) -> Option<Draft> {
    let search = std::env::var_os("LD_LIBRARY_PATH")?;
    let lib = Path::new(&torch.path).join("lib");
    let own: Vec<&PathBuf> = case.installed.libraries.values().flatten().chain([&lib]).collect();
    // The loader looks for the name with its version: the toolkit's stubs and other major versions are not taken.
    let brought: Vec<String> = own.iter().flat_map(|folder| versioned(folder, files)).collect();
    let hides = |folder: &PathBuf| versioned(folder, files).iter().any(|name| brought.contains(name));
    let others = std::env::split_paths(&search);
    let others: Vec<PathBuf> =
        others.filter(|folder| !own.contains(&folder) && folder.is_absolute() && hides(folder)).collect();
    if others.is_empty() {
        return None;
    }
    Some(
        Draft::warning(&format!("{word}-duplicated"), format!("another {name} than PyTorch's own is loaded"))
            .seen_all(
                others
                    .iter()
                    .map(|folder| format!("`LD_LIBRARY_PATH` has {}, with {files} in it", folder.display())),
            )
            .remedy("take the folder out of `LD_LIBRARY_PATH`: PyTorch finds what it brings without it")
            .command(without_folders(others.iter().filter_map(|folder| folder.to_str()))),
    )
}

/// The runtime beside PyTorch is of another CUDA than PyTorch.
fn runtime(case: &Case, torch: &Torch) -> Option<Draft> {
    let cuda = torch.cuda?;
    let runtimes =
        case.installed.packages.iter().filter(|(package, _)| package.starts_with("nvidia-cuda-runtime"));
    let mut runtimes: Vec<_> = runtimes.collect();
    let matches =
        |version: &str| version.parse().is_ok_and(|version: crate::verify::machine::Version| version == cuda);
    if runtimes.is_empty() || runtimes.iter().any(|(_, version)| matches(version)) {
        return None;
    }
    let (package, version) = runtimes.remove(0);
    Some(
        Draft::warning(
            "cuda-runtime-version",
            "the CUDA runtime beside PyTorch is of another version than PyTorch",
        )
        .seen(format!("{package} {version} is installed, and PyTorch is built with CUDA {cuda}"))
        .remedy("install PyTorch again, with what it asks for")
        .command(mend_libraries(case, &[package])),
    )
}

/// The command that installs these packages as PyTorch asks for them.
fn mend_libraries(case: &Case, packages: &[&String]) -> String {
    let asked = &case.installed.wanted;
    let version = |name: &String| asked.get(name).cloned().flatten();
    let wanted = packages.iter().map(|name| Wanted { name: (*name).clone(), version: version(name) });
    let toolkit = asked.get("cuda-toolkit").cloned().flatten();
    case.target().libraries(&wanted.collect::<Vec<_>>(), toolkit.as_deref())
}
