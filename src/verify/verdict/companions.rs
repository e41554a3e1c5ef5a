//! Packages that are built for one PyTorch, and stand beside another: torchvision, torchaudio, xformers.

use super::{Case, Draft};
use crate::verify::machine::{Problem, Torch};
use crate::verify::records::Companion;

/// The identifiers of this file's problems.
pub(super) const IDS: &[&str] = &["companion-mismatch", "several-records"];

pub(super) fn problems(case: &Case) -> Vec<Problem> {
    let Some(torch) = &case.machine.torch else { return Vec::new() };
    let drafts = [mismatch(case, torch), records(case, torch)];
    drafts.into_iter().flatten().map(Problem::from).collect()
}

/// What people see: torchvision registers its operators with the PyTorch that it was built with (pytorch/vision#8461);
/// the others miss C++ names.
fn symptom(name: &str) -> Option<&'static str> {
    match name {
        "torchvision" => {
            Some("`import torchvision` ends with \"RuntimeError: operator torchvision::nms does not exist\"")
        }
        _ => None,
    }
}

fn mismatch(case: &Case, torch: &Torch) -> Option<Draft> {
    let version = torch.version.as_deref()?;
    let other: Vec<(&Companion, String)> =
        case.installed.companions.iter().filter_map(|one| Some((one, why(one, version)?))).collect();
    let names: Vec<&str> = other.iter().map(|(one, _)| one.name.as_str()).collect();
    if names.is_empty() {
        return None;
    }
    let are = if names.len() == 1 { "is" } else { "are" };
    Some(
        Draft::warning(
            "companion-mismatch",
            format!("{} {are} built for another PyTorch version", names.join(" and ")),
        )
        .seen_all(other.iter().map(|(_, why)| why.clone()))
        .message_if(names.iter().find_map(|name| symptom(name)).map(str::to_owned))
        .remedy(format!("install the versions for PyTorch {version}"))
        .command_if(case.target().beside_torch(&names)),
    )
}

/// Why the package does not go with this PyTorch.
fn why(one: &Companion, torch: &str) -> Option<String> {
    let (public, local) = torch.split_once('+').unwrap_or((torch, ""));
    let Companion { name, version, wants } = one;
    if let Some(wants) = wants {
        let (wanted, _) = wants.split_once('+').unwrap_or((wants, ""));
        let fits = match wanted.strip_suffix(".*") {
            Some(begin) => public == begin || public.starts_with(&format!("{begin}.")),
            None => same(wanted, public),
        };
        if !fits {
            return Some(format!("{name} {version} requires torch {wants}, and {torch} is installed"));
        }
    }
    // PyPI's wheels have no such part, and then nothing is known.
    let (_, built) = version.split_once('+')?;
    let (own, others) = (kind(local)?, kind(built)?);
    (own != others).then(|| format!("{name} {version} is built for {built}, and PyTorch {torch} for {local}"))
}

/// Are the versions one? 2.5 is 2.5.0.
fn same(a: &str, b: &str) -> bool {
    let trimmed = |text: &str| {
        let mut text = text;
        while let Some(rest) = text.strip_suffix(".0") {
            text = rest;
        }
        text.to_owned()
    };
    trimmed(a) == trimmed(b)
}

/// `cu124` and `cu121` go together, as CUDA's major versions are compared (`_check_cuda_version` in torchvision's
/// `extension.py`): `cu12`; `cpu`; `rocm6`.
fn kind(local: &str) -> Option<String> {
    let letters = local.find(|c: char| c.is_ascii_digit()).unwrap_or(local.len());
    let (name, number) = local.split_at(letters);
    match name {
        "cpu" => Some("cpu".to_owned()),
        "cu" => Some(format!("cu{}", number.get(..2)?)),
        "rocm" => Some(format!("rocm{}", number.split('.').next()?)),
        _ => None,
    }
}

/// Two records of PyTorch, as an interrupted or mixed installation leaves them.
fn records(case: &Case, torch: &Torch) -> Option<Draft> {
    let records = &case.installed.records;
    if records.len() < 2 {
        return None;
    }
    let version = torch.version.as_deref().unwrap_or("of unknown version");
    Some(
        Draft::warning("several-records", "there are several records of PyTorch in one folder")
            .seen(format!("they are of {}", records.join(", ")))
            .seen(format!("the files are those of {version}"))
            .remedy("reinstall it; if an old record remains, delete the `torch-*.dist-info` folder of the other version")
            .command_if(case.target().again()),
    )
}
