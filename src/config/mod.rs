//! Configuration: `samedevice.toml`, `.samedevice.toml` or `[tool.samedevice]` in `pyproject.toml`, and the
//! command line above it → [`Settings`] of each folder.

pub mod error;
mod extend;
pub mod file;
pub mod keys;
pub mod patterns;
pub mod resolve;
#[cfg(test)]
pub(crate) mod sample;
pub mod selector;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::finding::{Code, Confidence, Severity};

pub use error::ConfigError;
pub use extend::inline;
pub use file::PerFileIgnore;
pub use patterns::Patterns;
pub use resolve::{Baseline, Overrides, Resolver, Where};
pub use selector::Selector;

/// Folders and files that nobody wants to have linted, as Ruff has them.
pub const DEFAULT_EXCLUDE: [&str; 27] = [
    ".bzr",
    ".direnv",
    ".eggs",
    ".git",
    ".git-rewrite",
    ".hg",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".nox",
    ".pants.d",
    ".pyenv",
    ".pytest_cache",
    ".pytype",
    ".ruff_cache",
    ".svn",
    ".tox",
    ".venv",
    ".vscode",
    "__pycache__",
    "__pypackages__",
    "_build",
    "buck-out",
    "build",
    "dist",
    "node_modules",
    "site-packages",
    "venv",
];

/// Allocations from this size on need a plan for out-of-memory errors: 1 GiB.
pub const DEFAULT_OOM_THRESHOLD: u64 = 1 << 30;

/// The largest memory of any accelerator sold: 288 GiB.
pub const DEFAULT_MAX_ACCELERATOR_MEMORY: u64 = 288 << 30;

/// What a caller or a user decides is told as well; what nobody comes to is not.
pub const DEFAULT_MIN_CONFIDENCE: Confidence = Confidence::Likely;

/// Everything that is configured, resolved for the files of one folder.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The file that it comes from; `None`: defaults and flags only.
    pub file: Option<PathBuf>,
    /// The files that it extends, the least important first.
    pub extends: Vec<PathBuf>,
    /// The absolute folder at which the globs start.
    pub root: PathBuf,
    /// The rules that are on.
    pub rules: BTreeSet<Code>,
    /// Severities that differ from the rules' pages.
    pub severity: BTreeMap<Code, Severity>,
    /// Rules that are off in some files.
    pub per_file_ignores: Vec<PerFileIgnore>,
    /// What is not walked into; any list excludes.
    pub excludes: Vec<Patterns>,
    /// Do excludes count for files that are named on the command line?
    pub force_exclude: bool,
    /// Must everything be checked that is asked for?
    pub strict: bool,
    /// The least severity that makes the exit code 1.
    pub fail_on_severity: Severity,
    /// The least confidence at which findings of some rules are told.
    pub confidence: BTreeMap<Code, Confidence>,
    /// The same of all other rules.
    pub min_confidence: Confidence,
    /// The file of the findings that are accepted (absolute path).
    pub baseline: Option<PathBuf>,
    /// Are fixes applied?
    pub fix: bool,
    /// Those too that may change what the program means?
    pub unsafe_fixes: bool,
    /// The rules whose fixes are offered; `None`: all.
    pub fixable: Option<Vec<Selector>>,
    /// Rules whose fixes are not.
    pub unfixable: Vec<Selector>,
    /// Bytes from which on an allocation needs a handler (SD501).
    pub oom_threshold: u64,
    /// Bytes that no accelerator has (SD507).
    pub max_accelerator_memory: u64,
}

impl Settings {
    /// Is this file or folder (absolute path) excluded itself? Its parents do not matter.
    pub fn excludes(&self, path: &Path) -> bool {
        self.excludes.iter().any(|patterns| patterns.matches(path))
    }

    /// Are fixes of the rule wanted? Of all entries of `fixable` and `unfixable` that match it, the most specific decides.
    pub fn may_fix(&self, code: Code) -> bool {
        let best =
            |list: &[Selector]| list.iter().filter(|s| s.matches(code)).map(Selector::specificity).max();
        match &self.fixable {
            None => best(&self.unfixable).is_none(),
            // `None` is less than anything.
            Some(list) => best(list) > best(&self.unfixable),
        }
    }

    /// Is a finding of this rule told that is so sure?
    pub fn tells(&self, code: Code, confidence: Confidence) -> bool {
        confidence >= self.confidence.get(&code).copied().unwrap_or(self.min_confidence)
    }

    /// Is the rule on in the file with this absolute path?
    pub fn is_on(&self, code: Code, path: &Path) -> bool {
        let ignored =
            |entry: &PerFileIgnore| entry.rules.iter().any(|s| s.matches(code)) && entry.matches(path);
        self.rules.contains(&code) && !self.per_file_ignores.iter().any(ignored)
    }
}
