//! What a GPU has said of small programs (`data/hardware.txt`): what it refused is found, and nothing in what it accepted.

mod harness;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use harness::check;

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

/// No machine without CUDA gets to the program.
const GUARD: &str = "import torch\n\nif not torch.cuda.is_available():\n    raise SystemExit(0)\n\n";

/// One program and what the GPU said.
struct Case {
    name: String,
    verdict: String,
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
            cases.push(Case { name, verdict, program: GUARD.to_owned() });
        }
    }
    Ok(cases)
}

#[test]
fn the_linter_agrees_with_a_gpu() -> std::io::Result<()> {
    let cases = cases()?;
    assert!(cases.len() > 1000, "only {} programs", cases.len());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hardware");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    for (n, case) in cases.iter().enumerate() {
        fs::write(folder.join(format!("p{n}.py")), &case.program)?;
    }
    let options = ["--ignore", ELSEWHERE].map(str::to_owned);
    let found = check(&folder, Path::new("."), false, &options).map_err(std::io::Error::other)?;
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
