//! Modules of others without which `import torch` ends at once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::source::read;

/// `torch/__init__.py` has 100 kB; in bytes.
const MAX_INIT: u64 = 4 << 20;

/// The packages that PyTorch asks for (`wanted`, normalized names), that its `__init__.py` imports in its outermost lines, and that no
/// folder of the search path has: `typing-extensions`. What it imports later is left out.
pub fn missing(
    torch: &Path,
    search_path: &[PathBuf],
    wanted: &BTreeMap<String, Option<String>>,
) -> Vec<String> {
    let text = read::short_text(&torch.join("__init__.py"), MAX_INIT).unwrap_or_default();
    let module = |package: &str| package.replace('-', "_");
    let is_imported = |package: &&String| {
        let name = module(package);
        text.lines().any(|line| imported(line).is_some_and(|other| other == name))
    };
    let there = |package: &String| {
        let name = module(package);
        search_path.iter().any(|folder| is_in(folder, &name))
    };
    wanted.keys().filter(is_imported).filter(|package| !there(package)).cloned().collect()
}

/// The first part of the name that a line imports, if the line is not indented: `import a.b`, `from a.b import c`.
fn imported(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("import ").or_else(|| line.strip_prefix("from "))?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    Some(&rest[..end]).filter(|name| !name.is_empty())
}

/// As a folder, a file or an extension: `NAME.cpython-311-x86_64-linux-gnu.so`, `NAME.pyd`.
fn is_in(folder: &Path, name: &str) -> bool {
    let begin = format!("{name}.");
    let entries = || std::fs::read_dir(folder).into_iter().flatten().flatten();
    folder.join(name).is_dir()
        || folder.join(format!("{name}.py")).is_file()
        || entries().any(|entry| entry.file_name().to_string_lossy().starts_with(&begin))
}

#[cfg(test)]
mod tests {
    use super::imported;

    #[test]
    fn what_a_line_imports() {
        for (line, name) in [
            ("import typing_extensions", Some("typing_extensions")),
            ("from typing_extensions import (", Some("typing_extensions")),
            ("import sympy.core as c", Some("sympy")),
            ("    import numpy", None),
            ("from . import _C", None),
            ("importlib.reload(torch)", None),
        ] {
            assert_eq!(imported(line), name, "{line}");
        }
    }
}
