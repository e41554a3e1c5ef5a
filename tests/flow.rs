//! What the flow engine knows, apart from any rule: `fixtures/flow`, see the README there.
//!
//! Every file in that folder, and every folder in it as a project, is run with the pseudo-rule SD000, which says
//! what `reveal_device(…)` and `reveal_world()` stand for. The comments say what is expected.

mod harness;

use std::fs;
use std::path::{Path, PathBuf};

use harness::check;
use samedevice::rules::example::revelations;

#[test]
fn revealed_devices_and_worlds_are_as_announced() -> std::io::Result<()> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/flow"));
    let mut projects = entries(folder)?;
    projects.retain(|p| p.is_dir() || is_python(p));
    let mut total = 0;
    let mut failures = Vec::new();
    for project in projects {
        compare(folder, &project, &mut total, &mut failures)?;
    }
    assert!(total > 0, "no `# revealed:` comment in {}", folder.display());
    assert!(
        failures.is_empty(),
        "{} failures in {total} revelations:\n{}",
        failures.len(),
        failures.join("\n")
    );
    Ok(())
}

fn compare(
    folder: &Path,
    project: &Path,
    total: &mut usize,
    failures: &mut Vec<String>,
) -> std::io::Result<()> {
    // A folder is a project of its own, a file is one alone.
    let (root, what) = if project.is_dir() {
        (project, Path::new("."))
    } else {
        (folder, project.strip_prefix(folder).unwrap_or(project))
    };
    let options = ["--select", "SD000"].map(str::to_owned);
    let mut expected = Vec::new();
    for file in python_files(project)? {
        let text = fs::read_to_string(&file)?;
        let name = file.strip_prefix(root).unwrap_or(&file).to_string_lossy().replace('\\', "/");
        expected.extend(revelations(&text).into_iter().map(|(row, t)| (name.clone(), row, t.to_owned())));
    }
    *total += expected.len();
    let shown = |name: &str| {
        let prefix = root.strip_prefix(folder).unwrap_or(root);
        prefix.join(name).to_string_lossy().into_owned()
    };
    let mut found = match check(root, what, false, &options) {
        Ok(found) => found,
        Err(message) => {
            failures.push(format!("{}: {message} ({} expected)", project.display(), expected.len()));
            return Ok(());
        }
    };
    for (name, row, text) in expected {
        match found.iter().position(|f| f.file == name && f.row == row) {
            Some(at) => {
                let message = found.remove(at).message;
                if message != text {
                    failures.push(format!("{}:{row}: revealed `{message}`, expected `{text}`", shown(&name)));
                }
            }
            None => failures.push(format!("{}:{row}: nothing revealed, expected `{text}`", shown(&name))),
        }
    }
    failures.extend(found.iter().map(|f| format!("{}:{}: revealed `{}`", shown(&f.file), f.row, f.message)));
    Ok(())
}

fn entries(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths = fs::read_dir(folder)?.map(|e| e.map(|e| e.path())).collect::<Result<Vec<_>, _>>()?;
    paths.sort();
    Ok(paths)
}

fn python_files(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in entries(path)? {
        if entry.is_dir() || is_python(&entry) {
            files.extend(python_files(&entry)?);
        }
    }
    Ok(files)
}

fn is_python(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "py")
}
