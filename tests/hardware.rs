//! What a GPU has said of small programs (`data/hardware.txt`): what it refused is found, and nothing in what it accepted.

mod harness;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use harness::{Found, check};

/// Rules about speed, memory and style: a GPU has no opinion on them.
const ELSEWHERE: &str = "SD5,SD6,SD7";

/// Refused, and not found. Each with the reason, which is that the engine does not know what decides.
const SILENT: &[(&str, &str)] = &[
    ("addcmul:zero_dim_cuda:tensor1", "two numbers from the CPU at once: the table speaks of one at a time"),
    (
        "ctc_cuda_log_probs_cpu_int32_concatenated",
        "cuDNN wants `int32` targets on the CPU, others want them on CUDA",
    ),
    ("cuda_times_np_array", "a NumPy number would be accepted, and what NumPy gives may be either"),
    ("diff_cpu_prepend", "with `n=0` it is accepted"),
    ("scalar_ldexp", "an exponent of integers; one of floats is accepted"),
];

/// Fails wherever its tensors are, and is found for the wrong reason.
const FOUND: &[(&str, &str)] = &[("scalar_matmul", "`@` takes no numbers at all")];

/// Accepted, and the result is taken to be elsewhere than it was.
const ELSEWHERE_IN_FACT: &[(&str, &str)] = &[
    (
        "data_assignment_cross",
        "what shares memory by `.data =` is followed for the parameters of modules only",
    ),
    ("vector_to_parameters_cross", "assigns to `.data` as well"),
    ("swap_tensors_cross", "not followed"),
    (
        "suite:nn.CTCLoss:module:one_cpu:log_probs:117",
        "a module's result is taken to be where its CUDA inputs are",
    ),
];

/// No machine without CUDA gets to the program.
const GUARD: &str = "import torch\n\nif not torch.cuda.is_available():\n    raise SystemExit(0)\n\n";

/// One program and what the GPU said.
struct Case {
    name: String,
    verdict: String,
    /// Where its `result` was, if that was accepted.
    device: Option<String>,
    program: String,
}

/// The programs of the data.
fn cases() -> std::io::Result<Vec<Case>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/hardware.txt");
    let mut cases: Vec<Case> = Vec::new();
    for line in fs::read_to_string(path)?.lines() {
        if let (Some(code), Some(case)) = (line.strip_prefix("    "), cases.last_mut()) {
            case.program.push_str(code);
            case.program.push('\n');
        } else if !line.is_empty() && !line.starts_with('#') {
            let mut words = line.split(' ').map(str::to_owned);
            let (name, verdict) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
            cases.push(Case { name, verdict, device: words.next(), program: GUARD.to_owned() });
        }
    }
    Ok(cases)
}

/// Lints programs, each in the file of its number, all at once.
fn lint(
    name: &str,
    programs: impl Iterator<Item = (usize, String)>,
    options: [&str; 2],
) -> std::io::Result<Vec<Found>> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    for (n, program) in programs {
        fs::write(folder.join(format!("p{n}.py")), program)?;
    }
    check(&folder, Path::new("."), false, &options.map(str::to_owned)).map_err(std::io::Error::other)
}

#[test]
fn the_linter_agrees_with_a_gpu() -> std::io::Result<()> {
    let cases = cases()?;
    assert!(cases.len() > 1000, "only {} programs", cases.len());
    let programs = cases.iter().enumerate().map(|(n, case)| (n, case.program.clone()));
    let found = lint("hardware", programs, ["--ignore", ELSEWHERE])?;
    let told: BTreeSet<&str> = found.iter().map(|f| f.file.as_str()).collect();
    let (mut wrong, mut differ) = (String::new(), BTreeSet::new());
    for (n, case) in cases.iter().enumerate() {
        let told = told.contains(format!("p{n}.py").as_str());
        if told == (case.verdict == "refused") {
            continue;
        }
        differ.insert(case.name.as_str());
        let allowed = if told { FOUND } else { SILENT };
        let known = allowed.iter().any(|(name, _)| *name == case.name);
        if !known || case.verdict == "accepted" {
            let what = if told { "found" } else { "silent" };
            wrong.push_str(&format!("    {} {}, and {what}:\n{}\n", case.name, case.verdict, case.program));
        }
    }
    for (name, _) in SILENT.iter().chain(FOUND).filter(|(name, _)| !differ.contains(name)) {
        wrong.push_str(&format!("    {name} agrees now: take it off the list\n"));
    }
    assert!(wrong.is_empty(), "of {} programs these differ\n{wrong}", cases.len());
    Ok(())
}

#[test]
fn results_are_where_the_gpu_had_them() -> std::io::Result<()> {
    let cases = cases()?;
    let device = |case: &Case| match case.device.as_deref() {
        Some("cpu") => Some("cpu"),
        Some("cuda:0") => Some("cuda"),
        _ => None,
    };
    let told = cases.iter().enumerate().filter(|(_, case)| device(case).is_some());
    let programs = told.map(|(n, case)| (n, case.program.clone() + "reveal_device(result)\n"));
    let found = lint("hardware_results", programs, ["--select", "SD000"])?;
    let (mut wrong, mut right, mut differ) = (String::new(), 0, BTreeSet::new());
    for Found { file, message, .. } in &found {
        let number = file.trim_start_matches('p').trim_end_matches(".py");
        let Some(case) = number.parse().ok().and_then(|n: usize| cases.get(n)) else { continue };
        // Anything else is one of several places, or none that is known.
        let known = ["cpu", "cuda", "cuda:0"].contains(&message.as_str());
        let same = device(case).is_some_and(|d| message.starts_with(d));
        right += usize::from(known && same);
        if known && !same {
            differ.insert(case.name.as_str());
        }
        let listed = ELSEWHERE_IN_FACT.iter().any(|(name, _)| *name == case.name);
        if known && same == listed {
            wrong.push_str(&format!(
                "    {} {:?}, and here {message}\n{}\n",
                case.name, case.device, case.program
            ));
        }
    }
    for (name, _) in ELSEWHERE_IN_FACT.iter().filter(|(name, _)| !differ.contains(name)) {
        wrong.push_str(&format!("    {name} agrees now, or is not known: take it off the list\n"));
    }
    assert!(right > 400, "only {right} results are known");
    assert!(wrong.is_empty(), "of {} results these differ\n{wrong}", found.len());
    Ok(())
}
