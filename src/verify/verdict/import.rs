//! Can PyTorch be imported? What the trace of the import says, and what PyTorch says itself where it was really imported.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::libraries::{file_name, mend_libraries, package_of};
use super::{Case, Draft, modules};
use crate::verify::elf::{Defect, Library};
use crate::verify::imports::{Import, Unresolved};
use crate::verify::install::without_folders;
use crate::verify::loader::{Failure, Found};
use crate::verify::machine::{Imported, Problem, Torch};
use crate::verify::records::Recorded;

/// The identifiers of this file's problems.
pub(super) const IDS: &[&str] = &[
    "library-missing",
    "library-damaged",
    "symbol-missing",
    "module-missing",
    "packages-overlap",
    "file-size-differs",
    "import-fails",
    "import-differs",
];

/// Those with which nothing can be imported.
pub(super) const FATAL: &[&str] =
    &["library-missing", "library-damaged", "symbol-missing", "module-missing", "import-fails"];

/// More of a kind are only counted.
const MOST: usize = 5;

/// Is PyTorch beyond use?
pub(super) fn fails(problems: &[Problem]) -> bool {
    problems.iter().any(|problem| FATAL.contains(&problem.id.as_str()))
}

pub(super) fn problems(case: &Case) -> Vec<Problem> {
    let Some(torch) = &case.machine.torch else { return Vec::new() };
    let mut drafts: Vec<Draft> = modules::missing(case).into_iter().collect();
    if let Some(import) = case.import {
        drafts.extend(missing(case, import));
        drafts.extend(damaged(case, import));
        drafts.extend(unresolved(case, import));
    }
    let told = drafts.iter().any(|draft| draft.0.id == "symbol-missing");
    drafts.extend(overlaps(case).into_iter().chain(sizes(case)).filter(|_| !told));
    if let Some(imported) = &torch.imported {
        let expected = !torch.broken.is_empty() || drafts.iter().any(|it| FATAL.contains(&it.0.id.as_str()));
        drafts.extend(fails_in_earnest(case, imported, expected));
        drafts.extend(differs(case, torch, imported));
    }
    drafts.into_iter().map(Problem::from).collect()
}

fn missing(case: &Case, import: &Import) -> Option<Draft> {
    let mut names: Vec<(&str, Option<&Path>)> = Vec::new();
    for failure in &import.failures {
        if let Failure::Missing { name, by } = failure
            && !names.iter().any(|(known, _)| known == name)
        {
            names.push((name, by.as_deref()));
        }
    }
    let (first, _) = names.first()?;
    let rest = match names.len() - 1 {
        0 => "is missing".to_owned(),
        1 => "and another library are missing".to_owned(),
        n => format!("and {n} other libraries are missing"),
    };
    let mut by_library: Vec<(Option<&Path>, Vec<&str>)> = Vec::new();
    for (name, by) in &names {
        match by_library.iter_mut().find(|(known, _)| known == by) {
            Some((_, needed)) => needed.push(name),
            None => by_library.push((*by, vec![name])),
        }
    }
    let needs = by_library.into_iter().map(|(by, needed)| match by {
        Some(by) => format!("{} needs {}: in none of the loader's folders", file_name(by), needed.join(", ")),
        None => format!("there is no {}", needed.join(", ")),
    });
    let draft =
        Draft::error("library-missing", format!("{} {rest}: PyTorch cannot be imported", short(first)))
            .message_if(import.error.clone())
            .seen_all(needs);
    let mut packages: Vec<String> = Vec::new();
    for (name, _) in &names {
        match package_of(case, name).or_else(|| is_of_torch(name).then(|| "torch".to_owned())) {
            Some(package) if !packages.contains(&package) => packages.push(package),
            Some(_) => {}
            None if name.starts_with("libcuda.so") => {
                return Some(draft.remedy("repair the driver: this library is part of NVIDIA's driver"));
            }
            None => {
                return Some(draft.remedy(format!(
                    "install the package that contains {name}, or reinstall PyTorch with its dependencies"
                )));
            }
        }
    }
    let of_torch = packages.iter().any(|package| package == "torch");
    packages.retain(|package| package != "torch");
    let draft = draft.remedy("install the missing packages only");
    let rest = (!packages.is_empty()).then(|| mend_libraries(case, &packages));
    Some(match (of_torch.then(|| case.target().again()), rest) {
        (Some(Some(torch)), Some(rest)) => draft.command(format!("{torch} && {rest}")),
        (Some(torch), None) => draft.command_if(torch),
        (_, rest) => draft.command_if(rest),
    })
}

/// Is it one of the libraries in `torch/lib` that PyTorch itself is made of (`setup.py` of PyTorch)?
fn is_of_torch(name: &str) -> bool {
    let own = ["libtorch", "libc10", "libshm.so"];
    name.contains("/torch/") || own.iter().any(|begin| short(name).starts_with(begin))
}

/// A name without its folder.
fn short(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

fn damaged(case: &Case, import: &Import) -> Option<Draft> {
    let found = |failure: &Failure| match failure {
        Failure::Defective { path, defect } => Some((path.clone(), defect.clone())),
        Failure::Missing { .. } => None,
    };
    let files: Vec<_> = import.failures.iter().filter_map(found).collect();
    let (first, _) = files.first()?;
    let what = |path: &Path, defect: &Defect| {
        let what = match defect {
            Defect::Truncated { needed, length } => {
                format!("has {length} bytes, but its headers describe {needed}")
            }
            Defect::TooShort => "is too short for a library".to_owned(),
            Defect::NotRegular => "is not a regular file".to_owned(),
            Defect::OtherMachine => "is for another kind of processor".to_owned(),
            Defect::NotElf => "is no library".to_owned(),
            Defect::Unreadable(reason) => format!("cannot be read: {reason}"),
        };
        format!("{} {what}", path.display())
    };
    let recorded = files.iter().filter_map(|(path, _)| recorded(case, path));
    let sizes =
        recorded.filter(|one| !one.owners.iter().any(|owner| one.is_of(owner))).filter_map(size_differs);
    let sizes: Vec<String> = sizes.collect();
    let draft = Draft::error(
        "library-damaged",
        format!("{} is damaged: PyTorch cannot be imported", file_name(first)),
    )
    .message_if(import.error.clone().or_else(|| crash(&files)))
    .seen_all(files.iter().take(MOST).map(|(path, defect)| what(path, defect)))
    .seen_all(sizes);
    let packages: Option<BTreeSet<String>> =
        files.iter().map(|(path, _)| package_of(case, &file_name(path)).filter(|it| it != "torch")).collect();
    let draft = draft.remedy("reinstall the package that contains it");
    Some(match packages {
        Some(packages) => draft.command(mend_libraries(case, &packages.into_iter().collect::<Vec<_>>())),
        None => draft.command_if(case.target().again()),
    })
}

fn unresolved(case: &Case, import: &Import) -> Option<Draft> {
    let first = import.unresolved.first()?;
    let (cause, by) = match first {
        Unresolved::Symbol { name, by, .. } => {
            (format!("`{name}` is in none of the libraries that are loaded"), by)
        }
        Unresolved::Version { name, library, by } => (format!("{} has no `{name}`", file_name(library)), by),
    };
    let more = import.unresolved.len().saturating_sub(MOST);
    let draft = Draft::error("symbol-missing", format!("{cause}: PyTorch cannot be imported"))
        .message_if(import.error.clone())
        .seen_all(import.unresolved.iter().take(MOST).map(Unresolved::message))
        .seen_all((more > 0).then(|| format!("and {more} more")));
    // What the library that misses it is linked with: one of these is another than it was built with.
    let loaded = import.process.loaded.iter();
    let suspects: Vec<_> = match first {
        Unresolved::Version { library, .. } => loaded.filter(|one| one.library.path == *library).collect(),
        Unresolved::Symbol { .. } => {
            let needed = loaded.clone().find(|one| one.library.path == *by).map(|one| &one.library.needed);
            let needed: Vec<_> =
                needed.into_iter().flatten().filter_map(|name| import.process.get(name)).collect();
            needed
        }
    };
    let variable = suspects.iter().filter(|one| one.found == Found::Variable);
    let variable: BTreeSet<&Path> = variable.filter_map(|one| one.library.path.parent()).collect();
    if !variable.is_empty() {
        let folders: Vec<&str> = variable.iter().filter_map(|folder| folder.to_str()).collect();
        return Some(
            draft
                .seen_all(
                    folders.iter().map(|folder| {
                        format!("`LD_LIBRARY_PATH` has {folder}, and a library of it is loaded")
                    }),
                )
                .remedy("remove the folder from `LD_LIBRARY_PATH`")
                .command(without_folders(folders)),
        );
    }
    let recorded: Vec<&Recorded> =
        suspects.iter().filter_map(|one| recorded(case, &one.library.path)).collect();
    if let Some(overlap) = recorded.iter().find_map(|one| overlap(case, one)) {
        return Some(
            draft.seen_all(overlap.0.evidence).remedy(overlap.0.remedy).command_if(overlap.0.command),
        );
    }
    if matches!(first, Unresolved::Version { .. }) && suspects.iter().all(|one| one.found == Found::System) {
        return Some(draft.remedy(
            "the library of the system is too old: use a Python that includes a newer one (conda, uv), a newer system, or an older PyTorch",
        ));
    }
    // One that is not the file that was installed is more suspect than the others.
    let changed = |one: &&Recorded| !one.owners.iter().any(|owner| one.is_of(owner));
    let (changed, rest): (Vec<&Recorded>, Vec<&Recorded>) = recorded.into_iter().partition(changed);
    let seen: Vec<String> = changed.iter().filter_map(|one| size_differs(one)).collect();
    let suspects = if changed.is_empty() { rest } else { changed };
    let packages = suspects.iter().filter_map(|one| one.owners.first()).map(|owner| owner.package.clone());
    let packages: Vec<String> =
        packages.filter(|it| it != "torch").collect::<BTreeSet<_>>().into_iter().collect();
    let draft = draft.seen_all(seen).remedy("reinstall the dependencies of PyTorch");
    Some(if packages.is_empty() {
        draft.command_if(case.target().again())
    } else {
        draft.command(mend_libraries(case, &packages))
    })
}

/// The loader maps a file that is too short, and Python ends as soon as the missing part is touched.
fn crash(files: &[(PathBuf, Defect)]) -> Option<String> {
    let cut = files.iter().any(|(_, defect)| matches!(defect, Defect::Truncated { .. }));
    cut.then(|| "Bus error".to_owned())
}

fn recorded<'a>(case: &'a Case, path: &Path) -> Option<&'a Recorded> {
    case.installed.recorded.iter().find(|one| one.path == path || same(&one.path, path))
}

/// `nvidia/nccl/lib/../lib/x` and `nvidia/nccl/lib/x` are one.
fn same(a: &Path, b: &Path) -> bool {
    a.file_name() == b.file_name() && a.canonicalize().is_ok_and(|a| b.canonicalize().is_ok_and(|b| a == b))
}

/// Packages that have written to one file: one for CUDA 12 and one for CUDA 13, mostly.
fn overlaps(case: &Case) -> Vec<Draft> {
    let mut told: BTreeSet<Vec<&str>> = BTreeSet::new();
    let mut drafts = Vec::new();
    for one in &case.installed.recorded {
        let mut packages: Vec<&str> = one.owners.iter().map(|owner| owner.package.as_str()).collect();
        packages.dedup();
        if packages.len() > 1 && told.insert(packages) {
            drafts.extend(overlap(case, one));
        }
    }
    drafts
}

fn overlap(case: &Case, one: &Recorded) -> Option<Draft> {
    let is_wanted = |package: &str| case.installed.wanted.contains_key(package);
    let right = one.owners.iter().find(|owner| is_wanted(&owner.package))?;
    let others: Vec<_> = one.owners.iter().filter(|owner| owner.package != right.package).collect();
    let other = others.first()?;
    let names: Vec<&str> = others.iter().map(|owner| owner.package.as_str()).collect();
    let whose = match (one.is_of(right), one.is_of(other)) {
        (true, false) => Some(format!("the file is the one of {}", right.package)),
        (false, true) => Some(format!("the file is the one of {}", other.package)),
        _ => None,
    };
    let mend = mend_libraries(case, std::slice::from_ref(&right.package));
    let both = |owner: &crate::verify::records::Owner| format!("{} {}", owner.package, owner.version);
    Some(
        Draft::warning(
            "packages-overlap",
            format!("{} and {} have written to the same file", right.package, names.join(" and ")),
        )
        .seen(format!("{} is of {} and of {}", one.path.display(), both(right), both(other)))
        .seen_all(whose)
        .remedy(format!(
            "uninstall {}, which removes the file, and reinstall {}",
            names.join(" and "),
            right.package
        ))
        .command(format!("{} && {mend}", case.target().uninstall(&names))),
    )
}

fn size_differs(one: &Recorded) -> Option<String> {
    let owner = one.owners.first()?;
    let (size, recorded) = (one.size?, owner.size?);
    Some(format!(
        "{} has {size} bytes, and {} {} recorded {recorded}",
        one.path.display(),
        owner.package,
        owner.version
    ))
}

/// Libraries of another length than their package says. One that is whole may have been changed on purpose (`strip`, `patchelf`), or the
/// package's list is wrong: that of torch 1.9.1 has 2.5 GB for `libtorch_cpu.so`.
fn sizes(case: &Case) -> Option<Draft> {
    let broken = |one: &&Recorded| {
        let failures = case.import.map(|import| import.failures.as_slice()).unwrap_or_default();
        failures
            .iter()
            .any(|failure| matches!(failure, Failure::Defective { path, .. } if same(path, &one.path)))
    };
    let differ =
        case.installed.recorded.iter().filter(|one| !one.owners.iter().any(|owner| one.is_of(owner)));
    let differ: Vec<&Recorded> = differ.filter(|one| one.size.is_some() && !broken(one)).collect();
    let is_whole = |one: &&Recorded| Library::open(&one.path).is_ok_and(|library| library.whole);
    let (whole, cut): (Vec<&Recorded>, Vec<&Recorded>) = differ.into_iter().partition(is_whole);
    let id = "file-size-differs";
    let (files, draft) = if cut.is_empty() {
        let first = file_name(&whole.first()?.path);
        (whole, Draft::note(id, format!("{first} does not have the size that its package records")))
    } else {
        let cause = match cut.len() {
            1 => format!("{} is damaged", file_name(&cut[0].path)),
            n => format!("{n} libraries are damaged"),
        };
        (cut, Draft::warning(id, format!("{cause}: code that needs it fails")))
    };
    let more = files.len().saturating_sub(MOST);
    let draft = draft
        .seen_all(files.iter().filter_map(|one| size_differs(one)).take(MOST))
        .seen_all((more > 0).then(|| format!("and {more} more")))
        .remedy("unless someone changed it on purpose, reinstall the package that contains it");
    let packages = files.iter().filter_map(|one| one.owners.first()).map(|owner| owner.package.clone());
    let packages: Vec<String> = packages.collect::<BTreeSet<_>>().into_iter().collect();
    Some(if packages.iter().any(|package| package == "torch") {
        draft.command_if(case.target().again())
    } else {
        draft.command(mend_libraries(case, &packages))
    })
}

/// PyTorch was imported, and that failed. Where the files say why, that is told instead.
fn fails_in_earnest(case: &Case, imported: &Imported, expected: bool) -> Option<Draft> {
    let failure = imported.failure.as_ref()?;
    if expected {
        return None;
    }
    let draft = Draft::error("import-fails", "PyTorch cannot be imported").seen(failure.clone());
    let draft = draft.message_if(imported.error.clone());
    Some(
        draft
            .remedy("fix what the error names; if it names a file of PyTorch, reinstall PyTorch")
            .command_if(case.target().again()),
    )
}

/// What PyTorch says of itself is not what its files say.
fn differs(case: &Case, torch: &Torch, imported: &Imported) -> Option<Draft> {
    if imported.failure.is_some() {
        return None;
    }
    let mut seen = Vec::new();
    if let Some(import) = case.import.filter(|import| !import.works()) {
        let error = import.error.as_deref().unwrap_or("no known cause");
        seen.push(format!("it was imported, and by its files `import torch` ends with \"{error}\""));
    }
    let mut compare = |what: &str, said: Option<String>, read: Option<String>| {
        if said != read {
            let text = |value: Option<String>| value.unwrap_or_else(|| "None".to_owned());
            seen.push(format!("`{what}` is {}, and the files say {}", text(said), text(read)));
        }
    };
    compare("torch.__version__", imported.version.clone(), torch.version.clone());
    let short = |cuda: &String| {
        cuda.parse::<crate::verify::machine::Version>().map_or_else(|_| cuda.clone(), |it| it.to_string())
    };
    compare("torch.version.cuda", imported.cuda.as_ref().map(short), torch.cuda.map(|cuda| cuda.to_string()));
    if !imported.archs.is_empty() && !torch.archs.is_empty() {
        compare("torch.cuda.get_arch_list()", Some(imported.archs.join(" ")), Some(torch.archs.join(" ")));
    }
    // Where the driver shows none, `device_count()` may still be what NVML counts.
    if let (Some(false), Some(count @ 1..)) = (imported.available, case.machine.visible.count)
        && torch.cuda.is_some()
    {
        seen.push(format!("`torch.cuda.is_available()` is False, and the driver shows {count}"));
    }
    if seen.is_empty() {
        return None;
    }
    Some(
        Draft::warning("import-differs", "PyTorch reports something else than its files")
            .seen_all(seen)
            .remedy("check which PyTorch is imported: `python -c \"import torch; print(torch.__file__)\"` in that folder"),
    )
}
