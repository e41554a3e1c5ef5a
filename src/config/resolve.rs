//! From a folder to its settings: the nearest configuration file upwards, and the command line above it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::extend::Reader;
use super::file::Layer;
use super::patterns::Patterns;
use super::selector::{Selection, enabled};
use super::{
    ConfigError, DEFAULT_EXCLUDE, DEFAULT_MAX_ACCELERATOR_MEMORY, DEFAULT_MIN_CONFIDENCE,
    DEFAULT_OOM_THRESHOLD, Settings,
};
use crate::finding::{Confidence, Severity};
use crate::rules::page::Page;

/// The names of configuration files; in one folder, the first that is there counts.
pub const FILES: [&str; 3] = [".samedevice.toml", "samedevice.toml", PYPROJECT];

pub(super) const PYPROJECT: &str = "pyproject.toml";

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
    /// `--config 'key = value'`, the later ones over the earlier ones. They go before files, and the flags go before them.
    pub inline: Vec<Layer>,
    /// `--min-confidence`, for all rules.
    pub min_confidence: Option<Confidence>,
    /// `--baseline` (absolute) and `--no-baseline`.
    pub baseline: Baseline,
    /// `--fix`, `--no-fix`.
    pub fix: Option<bool>,
    /// `--unsafe-fixes`, `--no-unsafe-fixes`.
    pub unsafe_fixes: Option<bool>,
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
        let defaults = Arc::new(combine(cwd, Vec::new(), &overrides, pages));
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
                // A file without our table is one that says nothing, and is named where the settings are shown.
                let nothing = || vec![Layer { file: Some(path.clone()), ..Layer::default() }];
                let layers = resolver.reader().load(&path, cwd)?.unwrap_or_else(nothing);
                Some(Arc::new(resolver.settings_from(cwd, layers)))
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
                && let Some(layers) = self.reader().load(&path, folder)?
            {
                return Ok(Some(self.settings_from(folder, layers)));
            }
        }
        Ok(None)
    }

    fn reader(&self) -> Reader<'_> {
        Reader { cwd: &self.cwd, pages: self.pages }
    }

    fn settings_from(&self, root: &Path, layers: Vec<Layer>) -> Settings {
        combine(root, layers, &self.overrides, self.pages)
    }
}

/// The layers of the files, the least important first, and the command line above them.
fn combine(root: &Path, files: Vec<Layer>, overrides: &Overrides, pages: &[Page]) -> Settings {
    let mut paths: Vec<PathBuf> = files.iter().filter_map(|layer| layer.file.clone()).collect();
    let mut layers = files;
    layers.extend(overrides.inline.iter().cloned());
    turn_on_again(&mut layers);
    // The built-in names are no globs, so they compile.
    let built_in = || Patterns::new(root, &DEFAULT_EXCLUDE).unwrap_or_default();
    let exclude = overrides.exclude.clone().or(last(&layers, |layer| layer.exclude.clone()));
    let mut excludes = vec![exclude.unwrap_or_else(built_in)];
    excludes.extend(layers.iter().map(|layer| layer.extend_exclude.clone()));
    excludes.extend(overrides.extend_exclude.clone());
    excludes.retain(|patterns| !patterns.texts().is_empty());
    let mut levels: Vec<_> = layers.iter().flat_map(|layer| &layer.severity).collect();
    // A stable sort: of equals the later layer's is the last.
    levels.sort_by_key(|(selector, _)| selector.specificity());
    let mut severity = BTreeMap::new();
    for (selector, level) in levels {
        severity
            .extend(pages.iter().filter(|page| selector.matches(page.code)).map(|page| (page.code, *level)));
    }
    let selections = layers.iter().map(|layer| {
        let mut selection = layer.selection.clone();
        selection.ignore.extend(layer.off.iter().cloned());
        selection
    });
    let selections: Vec<Selection> = selections.chain([overrides.selection.clone()]).collect();
    let mut confidence = BTreeMap::new();
    // The command line outranks the files, what they say of single rules included.
    if overrides.min_confidence.is_none() {
        let mut levels: Vec<_> = layers.iter().flat_map(|layer| &layer.confidence).collect();
        levels.sort_by_key(|(selector, _)| selector.specificity());
        for (selector, level) in levels {
            let codes = pages.iter().filter(|page| selector.matches(page.code)).map(|page| page.code);
            confidence.extend(codes.map(|code| (code, *level)));
        }
    }
    let baseline = match &overrides.baseline {
        Baseline::Configured => last(&layers, |layer| layer.baseline.as_ref().map(|path| path.value.clone())),
        Baseline::Without => None,
        Baseline::File(path) => Some(path.clone()),
    };
    Settings {
        file: paths.pop(),
        extends: paths,
        root: root.to_owned(),
        rules: enabled(pages, &selections.iter().collect::<Vec<_>>()),
        severity,
        per_file_ignores: layers.iter().flat_map(|layer| layer.per_file_ignores.clone()).collect(),
        excludes,
        force_exclude: overrides.force_exclude || last(&layers, |layer| layer.force_exclude).unwrap_or(false),
        strict: overrides.strict || last(&layers, |layer| layer.strict).unwrap_or(false),
        fail_on_severity: overrides
            .fail_on_severity
            .or(last(&layers, |layer| layer.fail_on_severity))
            .unwrap_or(Severity::Warning),
        confidence,
        min_confidence: overrides
            .min_confidence
            .or(last(&layers, |layer| layer.min_confidence))
            .unwrap_or(DEFAULT_MIN_CONFIDENCE),
        baseline,
        fix: overrides.fix.or(last(&layers, |layer| layer.fix)).unwrap_or(false),
        unsafe_fixes: overrides.unsafe_fixes.or(last(&layers, |layer| layer.unsafe_fixes)).unwrap_or(false),
        fixable: last(&layers, |layer| layer.fixable.clone()),
        unfixable: layers.iter().flat_map(|layer| layer.unfixable.clone()).collect(),
        oom_threshold: last(&layers, |layer| layer.oom_threshold).unwrap_or(DEFAULT_OOM_THRESHOLD),
        max_accelerator_memory: last(&layers, |layer| layer.max_accelerator_memory)
            .unwrap_or(DEFAULT_MAX_ACCELERATOR_MEMORY),
    }
}

/// What the most important layer that says anything says.
fn last<T>(layers: &[Layer], said: impl Fn(&Layer) -> Option<T>) -> Option<T> {
    layers.iter().rev().find_map(said)
}

/// A severity turns on again what a less important layer has turned `off` in the same words.
fn turn_on_again(layers: &mut [Layer]) {
    for at in 1..layers.len() {
        let (below, above) = layers.split_at_mut(at);
        let Some(above) = above.first() else { return };
        for layer in below {
            layer.off.retain(|off| above.severity.iter().all(|(selector, _)| selector != off));
        }
    }
}
