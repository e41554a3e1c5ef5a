//! The programs that show a rule: those on its page, and those in `fixtures/rules/SDnnn`.

use std::fs;
use std::path::{Path, PathBuf};

use samedevice::rules::example::{self, Program};
use samedevice::rules::page::Page;

/// A program, and where it is written.
pub struct Shown {
    /// The file, relative to the project's root.
    pub file: String,
    /// The row of its first fence in that file, from 1.
    pub row: usize,
    /// The program.
    pub program: Program,
}

impl Shown {
    /// Where to look: `rules/SD101-unguarded-cuda.md:31 (Example)`.
    pub fn place(&self) -> String {
        format!("{}:{} ({})", self.file, self.row, self.program.title)
    }
}

/// All programs of the rule, those of the page first. The error says what is wrong with a file.
pub fn shown(page: &Page) -> Result<Vec<Shown>, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let name = format!("rules/{}.md", page.slug());
    let text = fs::read_to_string(root.join(&name)).map_err(|e| format!("{name}: {e}"))?;
    let above = text.lines().count() - page.body.lines().count();
    let on_page = example::programs(page.body).map_err(|e| format!("{name}: {e}"))?;
    let mut all: Vec<Shown> = on_page
        .into_iter()
        .map(|program| Shown { file: name.clone(), row: above + program.line, program })
        .collect();
    for path in files(&root.join("fixtures/rules").join(page.code.to_string())) {
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        let text = fs::read_to_string(&path).map_err(|e| format!("{name}: {e}"))?;
        let cases = example::cases(&text).map_err(|e| format!("{name}: {e}"))?;
        all.extend(cases.into_iter().map(|program| Shown { file: name.clone(), row: program.line, program }));
    }
    Ok(all)
}

/// The files of a folder, sorted; none if there is no such folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    files
}
