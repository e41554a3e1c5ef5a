//! What a run spends: every function ends within its budget, and what does not is said.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use samedevice::analysis::{Analysis, analyze};
use samedevice::config::Settings;
use samedevice::discover::Input;
use samedevice::lower::STACK_BYTES;

/// Analyzes one program that is in a folder of its own.
fn analysis(program: &str) -> Result<Analysis, Box<dyn Error>> {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("work");
    std::fs::create_dir_all(&root)?;
    let settings = Settings {
        file: None,
        root: root.clone(),
        rules: BTreeSet::new(),
        severity: BTreeMap::new(),
        per_file_ignores: Vec::new(),
        excludes: Vec::new(),
        force_exclude: false,
        oom_threshold: 1 << 30,
        max_accelerator_memory: 1 << 40,
    };
    let input = Input {
        path: root.join("program.py"),
        name: "program.py".to_owned(),
        root: root.into(),
        settings: Arc::new(settings),
        bytes: Some(program.as_bytes().to_vec()),
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).stack_size(STACK_BYTES).build()?;
    Ok(pool.install(|| analyze(&[input])))
}

/// The names of what ran out of budget, in order.
fn exhausted(program: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let analysis = analysis(program)?;
    for e in &analysis.exhausted {
        let at = e.place.span;
        let text = program.get(at.start as usize..at.end as usize);
        assert!(text == Some(e.name.as_str()) || text == Some(""), "{e:?}: {text:?}");
    }
    Ok(analysis.exhausted.iter().map(|e| e.name.as_str().to_owned()).collect())
}

/// So many statements that one function cannot be gone through.
fn many_statements(indent: &str) -> String {
    (0..6_000).fold(String::new(), |mut text, i| {
        let _ = writeln!(text, "{indent}x = x + torch.ones(2) * {i}");
        text
    })
}

#[test]
fn functions_that_run_out_are_named() -> Result<(), Box<dyn Error>> {
    let (body, deeper) = (many_statements("    "), many_statements("        "));
    let program = format!(
        "import torch\nfrom torch import nn\n\ndef short(x):\n    return x + torch.ones(2)\n\ndef long(x):\n{body}    return x\n\nclass Net(nn.Module):\n    def __init__(self, x):\n{deeper}\n    def forward(self, x):\n{deeper}        return x\n"
    );
    assert_eq!(exhausted(&program)?, ["long", "__init__", "forward"]);
    let script = format!("import torch\n\nx = torch.ones(2)\n{}", many_statements("").repeat(2));
    assert_eq!(exhausted(&script)?, ["<module>"]);
    assert!(exhausted("import torch\n\nx = torch.ones(2)\n")?.is_empty());
    Ok(())
}
