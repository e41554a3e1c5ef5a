//! Questions to a whole project. A finding may depend on who calls a function, or on who has written a file that is loaded. Then the run
//! also reads files of the project that the user did not ask for.
//!
//! The files of a project do not depend on which of them are linted, so neither do the answers. A project is only read if it has a finding
//! that an answer could remove, and if it is not too large.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use memchr::memmem::Finder;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::intake::{Analysis, Intake, LargeProject};
use super::places::Places;
use crate::config::Settings;
use crate::discover::Input;
use crate::finding::Finding;
use crate::flow::{CallGraph, Paths, Target, Writers, is_program};
use crate::link::{ModIdx, Program};
use crate::notebook::is_notebook;
use crate::source::{is_among_tests, is_test, read};
use crate::span::FileId;
use crate::words::Words;

/// The state of a run while it reads the inputs' projects.
pub(super) struct Reading<'a> {
    /// The files that the user asked for.
    pub(super) inputs: &'a [Input],
    /// All files that have been read, linked.
    pub(super) program: Program,
    pub(super) intake: Intake,
    pub(super) analysis: Analysis,
    pub(super) places: Places,
    /// The call graphs of projects, each with the number of files that had been read at that time.
    pub(super) graphs: Vec<(usize, Arc<CallGraph>)>,
}

/// A project with findings that may depend on its other files.
pub(super) struct Project<'a> {
    /// One of its inputs.
    pub(super) input: &'a Input,
    /// All of its files.
    files: Arc<[PathBuf]>,
}

static BUILDS: Words = Words::of("scripts that build or test");
static INSTALLS: Words = Words::of("files that say how to install");

impl Project<'_> {
    /// Reads all missing files of the project if the text of one of them satisfies `may_tell`. Returns whether all files have been read; if
    /// no text satisfies it, reads none and returns false.
    pub(super) fn complete(
        &self,
        reading: &mut Reading<'_>,
        may_tell: &(dyn Fn(&str) -> bool + Sync),
    ) -> bool {
        let Reading { program, intake, analysis, places, .. } = reading;
        let missing: Vec<&PathBuf> = self.files.iter().filter(|path| intake.file(path).is_none()).collect();
        if missing.is_empty() {
            return true;
        }
        if !missing.par_iter().any(|path| read::read(path).is_ok_and(|text| may_tell(&text))) {
            return false;
        }
        let wanted = missing.into_iter().map(|path| (path.clone(), places.root_of_file(path))).collect();
        intake.modules = std::mem::take(program).into_modules();
        intake.follow(wanted, analysis);
        *program = intake.link();
        true
    }

    /// Whether all of its files have been read.
    fn is_read(&self, reading: &mut Reading<'_>) -> bool {
        self.files.iter().all(|path| reading.intake.file(path).is_some())
    }

    /// The project with additional files.
    pub(super) fn and(mut self, more: Vec<PathBuf>) -> Self {
        self.files = self.files.iter().cloned().chain(more).collect();
        self
    }

    /// Its Python files.
    pub(super) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Its root folder.
    pub(super) fn root(&self) -> &Arc<Path> {
        &self.input.root
    }

    /// Its settings.
    pub(super) fn settings(&self) -> &Arc<Settings> {
        &self.input.settings
    }

    /// Is it made to be installed?
    pub(super) fn is_built(&self) -> bool {
        is_installed_from(&self.input.root)
    }

    /// Is it made for others to import? It has a file that says how to install it, or it contains only packages and their tests, such as an
    /// installed package.
    pub(super) fn is_library(&self) -> bool {
        self.is_built() || self.is_packages()
    }

    /// Is it only a library? If there are scripts next to its packages, it also exists for these scripts.
    pub(super) fn is_only_library(&self) -> bool {
        let root = &self.input.root;
        let script = |file: &PathBuf| {
            let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            // A notebook next to a package is an example of its use.
            let is_script = !BUILDS.has(name) && !is_notebook(file);
            file.parent() == Some(root.as_ref()) && is_script && !is_test(file, root)
        };
        self.is_library() && !self.files.iter().any(script)
    }

    fn is_packages(&self) -> bool {
        let root = &self.input.root;
        let mut packages = FxHashMap::default();
        let mut in_package = |file: &Path| {
            let mut parts = file.strip_prefix(root).ok()?.components();
            let folder = parts.next().filter(|_| parts.next().is_some())?;
            let folder = root.join(folder);
            Some(*packages.entry(folder).or_insert_with_key(|folder| folder.join("__init__.py").exists()))
        };
        let code = |file: &&PathBuf| !is_test(file, root) && !is_notebook(file);
        let mut files = self.files.iter().filter(code).peekable();
        files.peek().is_some() && files.all(|file| in_package(file).unwrap_or_default())
    }

    /// Is the file an input with the same root and settings as this project?
    pub(super) fn holds(&self, file: FileId, inputs: &[Input]) -> bool {
        inputs.get(file.0 as usize).is_some_and(|input| {
            input.root == self.input.root && Arc::ptr_eq(&input.settings, &self.input.settings)
        })
    }

    /// The files of its packages that have been read, each with the `__init__.py` that Python imports before it.
    pub(super) fn packages(&self, reading: &mut Reading<'_>) -> Vec<(ModIdx, ModIdx)> {
        let Reading { program, intake, .. } = reading;
        let mut module = |path: &Path| program.module_of(intake.file(path)?);
        let pairs = self.files.iter().filter_map(|path| {
            let folder = path.parent()?;
            let package = if path.ends_with("__init__.py") { folder.parent()? } else { folder };
            Some((module(path)?, module(&package.join("__init__.py"))?))
        });
        pairs.collect()
    }

    /// The call graph of those of its files that have been read.
    pub(super) fn graph(&self, reading: &mut Reading<'_>) -> Arc<CallGraph> {
        let files = self.modules(reading);
        let size = reading.program.len();
        reading.graphs.retain(|(known, _)| *known == size);
        let known = reading.graphs.iter().find(|(_, graph)| graph.files() == files);
        if let Some((_, graph)) = known {
            return Arc::clone(graph);
        }
        let graph = Arc::new(CallGraph::of(&reading.program, &files));
        reading.graphs.push((size, Arc::clone(&graph)));
        graph
    }

    /// The call graph after reading the files that name one of these functions, one of their callers, or one of these words.
    pub(super) fn callers(
        &self,
        reading: &mut Reading<'_>,
        targets: &[Target],
        words: &[&str],
    ) -> Arc<CallGraph> {
        loop {
            let graph = self.graph(reading);
            let size = reading.program.len();
            if self.is_read(reading) {
                return graph;
            }
            let names = Paths::of(&reading.program, &graph, false).names(targets);
            let words: Vec<&str> = words.iter().copied().chain(names.iter().map(|n| n.as_str())).collect();
            self.complete(reading, &|text| mentions(text, &words));
            if reading.program.len() == size {
                return graph;
            }
        }
    }

    /// The call graph after reading the files that call helpers which save files: the callers decide what is written.
    pub(super) fn with_helpers(&self, reading: &mut Reading<'_>) -> Arc<CallGraph> {
        loop {
            let graph = self.graph(reading);
            let size = reading.program.len();
            let helpers = Writers::of(&reading.program, &graph).helpers();
            let words: Vec<&str> = helpers.iter().map(|name| name.as_str()).collect();
            self.complete(reading, &|text| mentions(text, &words));
            if reading.program.len() == size {
                return graph;
            }
        }
    }

    /// Its files that have been read, without its tests, because tests call functions in unusual ways.
    pub(super) fn modules(&self, reading: &mut Reading<'_>) -> Vec<ModIdx> {
        let Reading { program, intake, .. } = reading;
        let root = &self.input.root;
        let mut file = |path: &PathBuf| {
            // A file that is only named like a test may be a program.
            let test = is_test(path, root);
            if test && is_among_tests(path, root) {
                return None;
            }
            let m = program.module_of(intake.file(path)?)?;
            (!test || is_program(&program.get(m).ir)).then_some(m)
        };
        let files: Vec<ModIdx> = self.files.iter().filter_map(&mut file).collect();
        reading.program.note(&files);
        files
    }
}

/// Does the folder contain a file that says how to install its contents?
pub(super) fn is_installed_from(root: &Path) -> bool {
    INSTALLS.all().iter().any(|name| root.join(name).exists())
}

/// Whether the text contains one of the words.
pub(super) fn mentions(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| Finder::new(word).find(text.as_bytes()).is_some())
}

/// The projects of the findings that are `open`, each once.
pub(super) fn projects_of<'a>(
    findings: &[Finding],
    open: impl Fn(&Finding, &Program) -> bool,
    reading: &mut Reading<'a>,
) -> Vec<Project<'a>> {
    let files: Vec<FileId> =
        findings.iter().filter(|f| open(f, &reading.program)).map(|f| f.primary.place.file).collect();
    projects(files.into_iter(), reading)
}

/// The projects of those of these files that are inputs, each once.
pub(super) fn projects<'a>(
    files: impl Iterator<Item = FileId>,
    reading: &mut Reading<'a>,
) -> Vec<Project<'a>> {
    let inputs = reading.inputs;
    let mut seen: FxHashSet<(&Path, *const Settings)> = FxHashSet::default();
    let files: FxHashSet<FileId> = files.collect();
    let asked = files.into_iter().filter_map(|file| inputs.get(file.0 as usize));
    let firsts = asked.filter(|input| seen.insert((&input.root, Arc::as_ptr(&input.settings))));
    firsts
        .filter_map(|input| Some(Project { input, files: reading.places.files_of(input, inputs)? }))
        .collect()
}

/// The projects with findings that are too large to be read as a whole.
pub(super) fn too_large(findings: &[Finding], reading: &mut Reading<'_>) -> Vec<LargeProject> {
    let (inputs, places) = (reading.inputs, &mut reading.places);
    let mut seen: FxHashSet<&Path> = FxHashSet::default();
    let asked = findings.iter().filter_map(|f| inputs.get(f.primary.place.file.0 as usize));
    let firsts = asked.filter(|input| seen.insert(&input.root));
    let large = firsts.filter(|input| places.files_of(input, inputs).is_none());
    let project = |input: &Input| LargeProject { root: input.root.clone(), settings: input.settings.clone() };
    let mut large: Vec<LargeProject> = large.map(project).collect();
    large.sort_by(|a, b| a.root.cmp(&b.root));
    large
}
