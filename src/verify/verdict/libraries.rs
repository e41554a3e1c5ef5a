//! NVIDIA's libraries beside PyTorch: not installed, of another version, or not those that are loaded.

use std::path::Path;

use super::{Case, Draft};
use crate::verify::imports::Import;
use crate::verify::install::{Wanted, extra, without_folders};
use crate::verify::loader::Found;
use crate::verify::machine::{Build, Problem, Torch, Version};

/// The identifiers of this file's problems.
pub(super) const IDS: &[&str] =
    &["package-missing", "library-version", "library-duplicated", "cuda-runtime-version"];

pub(super) fn problems(case: &Case) -> Vec<Problem> {
    let Some(torch) = case.machine.torch.as_ref().filter(|torch| torch.build == Build::Cuda) else {
        return Vec::new();
    };
    let drafts = [
        missing(case, torch),
        other_version(case),
        case.import.and_then(|import| duplicated(case, torch, import)),
        runtime(case, torch),
    ];
    drafts.into_iter().flatten().map(Problem::from).collect()
}

/// The name of a file, without its folder.
pub(super) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The package by its short name, without the CUDA that it is for: `cudart` for `nvidia-cuda-runtime-cu12`.
fn stem(package: &str) -> &str {
    let (name, cuda) = package.rsplit_once("-cu").unwrap_or((package, ""));
    extra(if !cuda.is_empty() && cuda.bytes().all(|b| b.is_ascii_digit()) { name } else { package })
}

/// The installed package that is the one that is asked for: an extra of `cuda-toolkit` has not the name of the package.
fn installed<'a>(case: &'a Case, wanted: &str) -> Option<(&'a String, &'a String)> {
    let packages = &case.installed.packages;
    packages.get_key_value(wanted).or_else(|| packages.iter().find(|(name, _)| extra(name) == extra(wanted)))
}

/// The package that brings this library, as it was asked for or is installed.
pub(super) fn package_of(case: &Case, library: &str) -> Option<String> {
    let wanted = &case.installed.wanted;
    let recorded = case.installed.recorded.iter().filter(|one| file_name(&one.path) == library);
    let owners: Vec<&String> = recorded.flat_map(|one| &one.owners).map(|owner| &owner.package).collect();
    if let Some(&owner) = owners.iter().find(|owner| wanted.contains_key(**owner)).or(owners.first()) {
        return Some(owner.clone());
    }
    // `libcusparseLt.so.0` is of `nvidia-cusparselt-cu12`, `libnvshmem_host.so.3` of `nvidia-nvshmem-cu12`.
    let name = library.strip_prefix("lib")?.split(".so").next()?.to_ascii_lowercase();
    let nvidia = || wanted.keys().filter(|package| package.starts_with("nvidia-"));
    let by_name =
        nvidia().filter(|package| name.starts_with(stem(package))).max_by_key(|package| stem(package).len());
    let by_table = || {
        let folder = case.import?.preloads.folder_of(library)?.replace('_', "-");
        nvidia().find(|package| stem(package) == extra(&folder))
    };
    by_name.or_else(by_table).cloned()
}

/// PyTorch asks for packages that are not there, and can be imported without them.
fn missing(case: &Case, torch: &Torch) -> Option<Draft> {
    if case.import.is_some_and(|import| !import.works()) {
        return None;
    }
    let nvidia = case.installed.wanted.keys().filter(|package| package.starts_with("nvidia-"));
    let mut packages: Vec<String> =
        nvidia.filter(|package| installed(case, package).is_none()).cloned().collect();
    let version = torch.version.as_deref().unwrap_or_default();
    let asks =
        packages.iter().map(|package| format!("PyTorch {version} requires {package}")).collect::<Vec<_>>();
    let later = case.import.map(|import| import.later.as_slice()).unwrap_or_default();
    let needs = later.iter().map(|(by, name)| format!("{} needs {name}, which is missing", file_name(by)));
    let mut needs: Vec<String> = needs.collect();
    for (_, name) in later {
        packages.extend(package_of(case, name).filter(|package| !packages.contains(package)));
    }
    // What a library opens by itself, as cuDNN does with its parts, is needed by no header.
    let lost = case.installed.recorded.iter().filter(|one| case.import.is_some() && one.size.is_none());
    for one in lost {
        let asked = |package: &&str| package.starts_with("nvidia-");
        let Some(owner) = one.owners.iter().map(|owner| owner.package.as_str()).find(asked) else { continue };
        needs.push(format!("{owner} has recorded {}, which is not there", one.path.display()));
        if !packages.iter().any(|package| extra(package) == extra(owner)) {
            packages.push(owner.to_owned());
        }
    }
    // What its own libraries need and no package of NVIDIA's brings is for other machines.
    if packages.is_empty() {
        return None;
    }
    let what = match (asks.is_empty(), asks.len()) {
        (true, _) => "an NVIDIA library is missing".to_owned(),
        (_, 1) => "a package that PyTorch requires is missing".to_owned(),
        (_, n) => format!("{n} packages that PyTorch requires are missing"),
    };
    let later = if case.import.is_some() {
        ": PyTorch can be imported, but code that needs them fails later"
    } else {
        ""
    };
    Some(
        Draft::warning("package-missing", format!("{what}{later}"))
            .seen_all(asks)
            .seen_all(needs)
            .remedy("install the missing packages only")
            .command(mend_libraries(case, &packages)),
    )
}

/// Packages are there in another version than PyTorch asks for.
fn other_version(case: &Case) -> Option<Draft> {
    let other = case.installed.wanted.iter().filter(|(package, _)| package.starts_with("nvidia-"));
    let other = other.filter_map(|(package, wanted)| {
        let wanted = wanted.as_ref().filter(|wanted| !wanted.ends_with('*'))?;
        let (name, version) = installed(case, package).filter(|(_, version)| *version != wanted)?;
        Some((name.clone(), format!("{name} {version} is installed, but {wanted} is required")))
    });
    let (packages, seen): (Vec<String>, Vec<String>) = other.unzip();
    let cause = match packages.as_slice() {
        [] => return None,
        [one] => format!("{one} does not have the version that this PyTorch was built with"),
        more => format!(
            "{} NVIDIA packages do not have the versions that this PyTorch was built with",
            more.len()
        ),
    };
    // `torch/backends/cudnn/__init__.py` compares it with the one that PyTorch was built with.
    let cudnn = packages.iter().any(|package| stem(package) == "cudnn");
    Some(
        Draft::warning("library-version", cause)
            .message_if(cudnn.then(|| "RuntimeError: cuDNN version incompatibility".to_owned()))
            .seen_all(seen)
            .remedy("install the versions that PyTorch requires")
            .command(mend_libraries(case, &packages)),
    )
}

/// The loader takes a library from `LD_LIBRARY_PATH`, and PyTorch brings one of that name: by the `DT_RPATH` and `DT_RUNPATH`
/// of what needs it.
fn duplicated(case: &Case, torch: &Torch, import: &Import) -> Option<Draft> {
    let lib = Path::new(&torch.path).join("lib");
    let own = || case.installed.libraries.values().flatten().chain([&lib]);
    let is_own = |folder: &Path| {
        let real = folder.canonicalize();
        own().any(|own| real.as_ref().is_ok_and(|real| own.canonicalize().is_ok_and(|own| own == *real)))
    };
    let mut folders: Vec<&str> = Vec::new();
    let mut seen = Vec::new();
    for loaded in import.process.loaded.iter().filter(|loaded| loaded.found == Found::Variable) {
        let Some(folder) = loaded.library.path.parent().filter(|folder| !is_own(folder)) else { continue };
        if let (Some(brought), Some(folder)) =
            (own().find(|own| own.join(&loaded.name).is_file()), folder.to_str())
        {
            seen.push(format!(
                "{} is loaded from {folder}, but PyTorch's own copy is in {}",
                loaded.name,
                brought.display()
            ));
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
    }
    if folders.is_empty() {
        return None;
    }
    let cudnn = seen.iter().any(|text| text.starts_with("libcudnn"));
    Some(
        Draft::warning(
            "library-duplicated",
            "`LD_LIBRARY_PATH` makes the loader use other libraries than PyTorch's own",
        )
        .message_if(cudnn.then(|| "RuntimeError: cuDNN version incompatibility".to_owned()))
        .seen_all(seen)
        .remedy("remove the folder from `LD_LIBRARY_PATH`: PyTorch finds its own libraries without it")
        .command(without_folders(folders)),
    )
}

/// The runtime beside PyTorch is of another CUDA than PyTorch.
fn runtime(case: &Case, torch: &Torch) -> Option<Draft> {
    let cuda = torch.cuda?;
    let runtimes =
        case.installed.packages.iter().filter(|(package, _)| package.starts_with("nvidia-cuda-runtime"));
    let mut runtimes: Vec<_> = runtimes.collect();
    let matches = |version: &str| version.parse().is_ok_and(|version: Version| version == cuda);
    if runtimes.is_empty() || runtimes.iter().any(|(_, version)| matches(version)) {
        return None;
    }
    let (package, version) = runtimes.remove(0);
    Some(
        Draft::warning(
            "cuda-runtime-version",
            "the installed CUDA runtime has another version than the one PyTorch was built with",
        )
        .seen(format!("{package} {version} is installed, and PyTorch is built with CUDA {cuda}"))
        .remedy("reinstall PyTorch with its dependencies")
        .command(mend_libraries(case, std::slice::from_ref(package))),
    )
}

/// The command that installs these packages as PyTorch asks for them.
pub(super) fn mend_libraries(case: &Case, packages: &[String]) -> String {
    let asked = &case.installed.wanted;
    let version = |name: &String| asked.get(name).cloned().flatten();
    let wanted = packages.iter().map(|name| Wanted { name: name.clone(), version: version(name) });
    let toolkit = asked.get("cuda-toolkit").cloned().flatten();
    case.target().libraries(&wanted.collect::<Vec<_>>(), toolkit.as_deref())
}
