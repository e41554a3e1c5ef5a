//! From a folder to its settings: the nearest configuration file upwards, and the command line above it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::file::{Layer, parse};
use super::patterns::Patterns;
use super::selector::{Selection, enabled};
use super::{
    ConfigError, DEFAULT_EXCLUDE, DEFAULT_MAX_ACCELERATOR_MEMORY, DEFAULT_MIN_CONFIDENCE,
    DEFAULT_OOM_THRESHOLD, Settings,
};
use crate::finding::{Confidence, Severity};
use crate::rules::page::Page;
use crate::source::{display_name, read};

/// The names of configuration files; in one folder, the first that is there counts.
pub const FILES: [&str; 3] = [".samedevice.toml", "samedevice.toml", PYPROJECT];

const PYPROJECT: &str = "pyproject.toml";

/// Where settings come from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Where {
    /// The nearest file upwards from each linted file.
    Search,
    /// `--config`: this file for all; its globs start at the working directory.
    File(PathBuf),
    /// `--isolated`: no file.
    Isolated,
}

/// What the command line says; it goes before any file.
#[derive(Clone, Default, Debug)]
pub struct Overrides {
    /// `--select`, `--extend-select`, `--ignore`.
    pub selection: Selection,
    /// `--exclude`: instead of what the file excludes.
    pub exclude: Option<Patterns>,
    /// `--extend-exclude`.
    pub extend_exclude: Option<Patterns>,
    /// `--force-exclude`.
    pub force_exclude: bool,
    /// `--strict`.
    pub strict: bool,
    /// `--fail-on-severity`.
    pub fail_on_severity: Option<Severity>,
    /// `--min-confidence`, for all rules.
    pub min_confidence: Option<Confidence>,
    /// `--baseline` (absolute) and `--no-baseline`.
    pub baseline: Baseline,
}

/// What the command line says of the baseline.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Baseline {
    /// Nothing: what the configuration says counts.
    #[default]
    Configured,
    /// `--no-baseline`.
    Without,
    /// `--baseline`: this file (absolute path).
    File(PathBuf),
}

/// Finds and remembers the settings of folders.
#[derive(Debug)]
pub struct Resolver {
    cwd: PathBuf,
    pages: &'static [Page],
    overrides: Overrides,
    /// The settings for all folders, unless they are searched.
    fixed: Option<Arc<Settings>>,
    defaults: Arc<Settings>,
    folders: FxHashMap<PathBuf, Arc<Settings>>,
}

impl Resolver {
    /// `cwd` is the absolute working directory.
    ///
    /// # Errors
    /// If `--config` names a file that cannot be read or is wrong.
    pub fn new(
        cwd: &Path,
        pages: &'static [Page],
        place: &Where,
        overrides: Overrides,
    ) -> Result<Self, ConfigError> {
        let defaults = Arc::new(combine(None, cwd, Layer::default(), &overrides, pages));
        let mut resolver = Self {
            cwd: cwd.to_owned(),
            pages,
            overrides,
            fixed: None,
            defaults: Arc::clone(&defaults),
            folders: FxHashMap::default(),
        };
        resolver.fixed = match place {
            Where::Search => None,
            Where::Isolated => Some(defaults),
            Where::File(path) => {
                let path = cwd.join(path);
                let layer = resolver.load(&path, cwd)?.unwrap_or_default();
                Some(Arc::new(resolver.settings_from(&path, cwd, layer)))
            }
        };
        Ok(resolver)
    }

    /// The settings for files in this absolute folder.
    ///
    /// # Errors
    /// If the configuration file that counts there is wrong.
    pub fn settings(&mut self, folder: &Path) -> Result<Arc<Settings>, ConfigError> {
        if let Some(fixed) = &self.fixed {
            return Ok(Arc::clone(fixed));
        }
        let mut found = None;
        let mut fresh = Vec::new();
        for folder in folder.ancestors() {
            if let Some(known) = self.folders.get(folder) {
                found = Some(Arc::clone(known));
                break;
            }
            fresh.push(folder);
            if let Some(settings) = self.in_folder(folder)? {
                found = Some(Arc::new(settings));
                break;
            }
        }
        let settings = found.unwrap_or_else(|| Arc::clone(&self.defaults));
        for folder in fresh {
            self.folders.insert(folder.to_owned(), Arc::clone(&settings));
        }
        Ok(settings)
    }

    /// The settings that this very folder's configuration file makes, if it has one.
    fn in_folder(&self, folder: &Path) -> Result<Option<Settings>, ConfigError> {
        for name in FILES {
            let path = folder.join(name);
            if path.is_file()
                && let Some(layer) = self.load(&path, folder)?
            {
                return Ok(Some(self.settings_from(&path, folder, layer)));
            }
        }
        Ok(None)
    }

    fn load(&self, path: &Path, root: &Path) -> Result<Option<Layer>, ConfigError> {
        let text = read::text(path).map_err(|reason| ConfigError::unreadable(path, reason))?;
        let pyproject = path.file_name().is_some_and(|name| name == PYPROJECT);
        // Other tools' broken files are not ours to complain about.
        if pyproject && !text.contains("samedevice") {
            return Ok(None);
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        parse(text, pyproject, root, self.pages)
            .map_err(|error| error.in_file(&display_name(path, &self.cwd), text))
    }

    fn settings_from(&self, path: &Path, root: &Path, layer: Layer) -> Settings {
        combine(Some(path.to_owned()), root, layer, &self.overrides, self.pages)
    }
}

/// One file's layer and the command line above it.
fn combine(
    file: Option<PathBuf>,
    root: &Path,
    layer: Layer,
    overrides: &Overrides,
    pages: &[Page],
) -> Settings {
    let exclude = overrides.exclude.clone().or(layer.exclude);
    // The built-in names are no globs, so they compile.
    let exclude = exclude.unwrap_or_else(|| Patterns::new(root, &DEFAULT_EXCLUDE).unwrap_or_default());
    let mut excludes = vec![exclude, layer.extend_exclude];
    excludes.extend(overrides.extend_exclude.clone());
    excludes.retain(|patterns| !patterns.texts().is_empty());
    let mut severity = BTreeMap::new();
    for (selector, level) in &layer.severity {
        severity
            .extend(pages.iter().filter(|page| selector.matches(page.code)).map(|page| (page.code, *level)));
    }
    let mut confidence = BTreeMap::new();
    // The command line outranks the file, what that says of single rules included.
    if overrides.min_confidence.is_none() {
        for (selector, level) in &layer.confidence {
            let codes = pages.iter().filter(|page| selector.matches(page.code)).map(|page| page.code);
            confidence.extend(codes.map(|code| (code, *level)));
        }
    }
    let baseline = match &overrides.baseline {
        Baseline::Configured => {
            let folder = file.as_deref().and_then(Path::parent).unwrap_or(root);
            layer.baseline.map(|path| folder.join(path))
        }
        Baseline::Without => None,
        Baseline::File(path) => Some(path.clone()),
    };
    Settings {
        file,
        root: root.to_owned(),
        rules: enabled(pages, &[&layer.selection, &overrides.selection]),
        severity,
        per_file_ignores: layer.per_file_ignores,
        excludes,
        force_exclude: layer.force_exclude || overrides.force_exclude,
        strict: layer.strict || overrides.strict,
        fail_on_severity: overrides.fail_on_severity.or(layer.fail_on_severity).unwrap_or(Severity::Warning),
        confidence,
        min_confidence: overrides.min_confidence.or(layer.min_confidence).unwrap_or(DEFAULT_MIN_CONFIDENCE),
        baseline,
        oom_threshold: layer.oom_threshold.unwrap_or(DEFAULT_OOM_THRESHOLD),
        max_accelerator_memory: layer.max_accelerator_memory.unwrap_or(DEFAULT_MAX_ACCELERATOR_MEMORY),
    }
}
