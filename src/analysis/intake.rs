//! Intake of files: reads and lowers them, follows their imports, links them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::Xxh3;

use super::extensions::extensions;
use super::memo::Memo;
use super::needed::Needed;
use super::passes::FailedPass;
use super::silences::Silences;
use crate::config::Settings;
use crate::discover::Input;
use crate::finding::{Code, Finding, Label};
use crate::flow::Exhausted;
use crate::ir::Module;
use crate::link::{Finder, Importer, PathId, Program, UNREAD};
use crate::lower::{Comment, Kind, Lowered, MAX_ERRORS, SyntaxError};
use crate::shield::shielded;
use crate::source::read::Unreadable;
use crate::source::{Content, NoContent, Source, Sources, is_test};
use crate::span::{FileId, Place, Span};
use crate::sym::Sym;
use crate::world::World;

/// The result of [`crate::analysis::analyze`].
#[derive(Debug, Default)]
pub struct Analysis {
    /// The inputs in their order, then the files that they import.
    pub sources: Sources,
    /// The findings of all rules, in no particular order.
    pub findings: Vec<Finding>,
    /// The comments that may be suppressions, by file.
    pub comments: Vec<(FileId, Vec<Comment>)>,
    /// The functions of the inputs that ran out of budget, so that later findings in them are missing. Sorted by file, in the order of the
    /// inputs, then by place.
    pub exhausted: Vec<Exhausted>,
    /// The steps that the run has taken, see [`crate::work`].
    pub work: u64,
    /// Files that were found in a folder and are too large to be read.
    pub too_large: Vec<FileId>,
    /// Notebooks in other languages than Python, each with its language.
    pub other_languages: Vec<(FileId, String)>,
    /// Cells of notebooks with an unknown cell magic, which were not read: the number of the cell, from 1, and the magic.
    pub unknown_cells: Vec<(FileId, usize, String)>,
    /// Projects with findings that are too large for the passes over the whole project.
    pub large_projects: Vec<LargeProject>,
    /// The passes over the whole project that stopped because of a bug in `samedevice`. The findings are as they were before those passes.
    pub failed_passes: Vec<FailedPass>,
}

/// A project of more than [`crate::discover::MAX_FILES`] files.
#[derive(Debug)]
pub struct LargeProject {
    /// The project's root.
    pub root: Arc<Path>,
    /// The project's settings.
    pub settings: Arc<Settings>,
}

/// A file that has been read.
pub(super) struct Loaded {
    path: PathBuf,
    name: String,
    root: PathBuf,
    /// The text. `None`: it can be read again from the disk.
    content: Option<Content>,
    problem: Option<Problem>,
    too_large: bool,
    /// The language of a notebook in another language than Python.
    other_language: Option<String>,
    /// See [`Analysis::unknown_cells`].
    unknown_cells: Vec<(usize, String)>,
    lowered: Option<Lowered>,
    /// A fingerprint of the text, if there is a memo.
    text: Option<u128>,
}

/// Why a file could not be analyzed.
struct Problem {
    code: Code,
    message: String,
    span: Span,
}

impl Problem {
    /// A problem of the whole file.
    fn new(code: Code, message: String) -> Self {
        Self { code, message, span: Span::default() }
    }
}

/// The files that have been loaded so far.
#[derive(Default)]
pub(super) struct Intake {
    pub(super) modules: Vec<Module>,
    /// The index in `modules` of each file that could be read.
    pub(super) module_at: FxHashMap<FileId, usize>,
    pub(super) finder: Finder,
    pub(super) by_path: FxHashMap<PathId, FileId>,
    /// For each file, its path; and next, the root of its project.
    pub(super) path_ids: Vec<PathId>,
    pub(super) roots: Vec<Arc<Path>>,
    /// The `__init__.py` files.
    pub(super) packages: FxHashSet<FileId>,
    /// What is needed of files that the user did not ask for.
    pub(super) needed: Needed,
    /// The roots of files that are to be loaded.
    pub(super) wanted_roots: FxHashMap<PathId, Arc<Path>>,
    /// The `conftest.py` files of each test.
    conftests: FxHashMap<FileId, Vec<PathId>>,
    pub(super) importers: Vec<Option<Importer>>,
    /// The extensions that each project's `setup.py` builds for CUDA alone, by the project's root; and next, by file, for files of projects
    /// with any.
    extensions: FxHashMap<PathBuf, Arc<[Sym]>>,
    built: FxHashMap<FileId, Arc<[Sym]>>,
    /// The dotted names, from the project's root, of files in projects with such extensions.
    dotted: FxHashMap<FileId, Sym>,
    /// What comments and settings suppress in the loaded files.
    silence: Silences,
    /// What earlier analyses have lowered.
    pub(super) memo: Option<Arc<Memo>>,
    /// Fingerprints of the texts of the files, if there is a memo.
    pub(super) texts: FxHashMap<FileId, u128>,
}

impl Intake {
    /// An intake without files. `inputs` give the settings. `honor_comments`: whether suppression comments count.
    pub(super) fn new(inputs: &[Input], honor_comments: bool, memo: Option<Arc<Memo>>) -> Self {
        Self { silence: Silences::new(inputs, honor_comments), memo, ..Self::default() }
    }

    /// Adds loaded files in order and returns their ids.
    pub(super) fn take(&mut self, files: Vec<Loaded>, analysis: &mut Analysis) -> Vec<FileId> {
        self.modules.reserve(files.len());
        let mut taken = Vec::with_capacity(files.len());
        for loaded in files {
            let path = self.finder.path_id(&loaded.path);
            self.by_path.insert(path, file_id(self.importers.len()));
            self.path_ids.push(path);
            self.roots.push(Arc::from(loaded.root.as_path()));
            let ir = loaded.lowered.as_ref().map(|lowered| &lowered.module);
            self.importers.push(self.finder.importer(&loaded.path, &loaded.root, ir));
            let built =
                self.extensions.entry(loaded.root.clone()).or_insert_with_key(|root| extensions(root));
            let dotted = (!built.is_empty()).then(|| dotted(&loaded.path, &loaded.root));
            let package = loaded.path.file_stem().is_some_and(|stem| stem == "__init__");
            let file = analysis.sources.add(match loaded.content {
                Some(content) => Source::with_content(loaded.path, loaded.name, content),
                None => Source::on_disk(loaded.path, loaded.name),
            });
            taken.push(file);
            self.texts.extend(loaded.text.map(|text| (file, text)));
            if package {
                self.packages.insert(file);
            }
            if loaded.too_large {
                analysis.too_large.push(file);
            }
            analysis.other_languages.extend(loaded.other_language.map(|language| (file, language)));
            let unknown = loaded.unknown_cells.into_iter();
            analysis.unknown_cells.extend(unknown.map(|(cell, magic)| (file, cell, magic)));
            if let Some(Problem { code, message, span }) = loaded.problem {
                analysis.findings.push(plain_finding(code, message, Place { file, span }));
            }
            if let Some(dotted) = dotted {
                self.built.insert(file, built.clone());
                self.dotted.insert(file, dotted);
            }
            let Some(lowered) = loaded.lowered else { continue };
            analysis.findings.extend(syntax_findings(&lowered.errors, analysis.sources.get(file), file));
            for left in lowered.left_out {
                analysis.findings.push(plain_finding(Code(3), left.message, Place { file, span: left.span }));
            }
            self.silence.add(file, &lowered.comments, analysis.sources.get(file));
            if self.silence.honor_comments {
                analysis.comments.push((file, lowered.comments));
            }
            self.module_at.insert(file, self.modules.len());
            self.modules.push(lowered.module);
        }
        taken
    }

    /// The `conftest.py` files that the tests among `asked` need and that are not loaded yet, each with its root.
    pub(super) fn conftests_of(
        &mut self,
        files: &[FileId],
        analysis: &Analysis,
    ) -> Vec<(PathBuf, Arc<Path>)> {
        let mut wanted = Vec::new();
        let mut seen: FxHashSet<PathId> = FxHashSet::default();
        for &file in files {
            let Some(importer) = self.importers[file.0 as usize] else { continue };
            let root = self.roots[file.0 as usize].clone();
            if !self.module_at.contains_key(&file) || !is_test(&analysis.sources.get(file).path, &root) {
                continue;
            }
            let conftests = self.finder.conftests(importer);
            for &found in &conftests {
                if !self.by_path.contains_key(&found) && seen.insert(found) {
                    wanted.push((self.finder.path(found).to_path_buf(), root.clone()));
                }
            }
            self.conftests.insert(file, conftests);
        }
        wanted
    }

    /// The file with this path, if it has been loaded.
    pub(super) fn file(&mut self, path: &Path) -> Option<FileId> {
        let id = self.finder.path_id(path);
        self.by_path.get(&id).copied()
    }

    /// The file that this file imports, or could import, by an absolute name.
    pub(super) fn imported(&mut self, by: FileId, module: Sym) -> Option<PathBuf> {
        let importer = (*self.importers.get(by.0 as usize)?)?;
        let found = self.finder.find(importer, 0, module)?;
        Some(self.finder.path(found).to_path_buf())
    }

    pub(super) fn link(&mut self) -> Program {
        let mut program = Program::link(std::mem::take(&mut self.modules), &mut |file, level, name| {
            let importer = (*self.importers.get(file.0 as usize)?)?;
            let path = self.finder.find(importer, level, name)?;
            Some(self.by_path.get(&path).copied().unwrap_or(UNREAD))
        });
        let file = |path: &PathId| self.by_path.get(path).copied();
        let conftests = self.conftests.iter();
        program.conftests =
            conftests.map(|(&test, paths)| (test, paths.iter().filter_map(file).collect())).collect();
        program.extensions.clone_from(&self.built);
        program.dotted.clone_from(&self.dotted);
        program.silence = Arc::clone(&self.silence.known);
        program
    }
}

/// The name by which the project imports a file, if the project's root is on Python's path: `ops.pool` for `ops/pool.py`.
fn dotted(path: &Path, root: &Path) -> Sym {
    let parts = path.strip_prefix(root).unwrap_or(path).with_extension("");
    let parts: Vec<_> = parts.iter().map(|part| part.to_string_lossy()).collect();
    Sym::new(&parts.join("."))
}

/// A finding for the first syntax error of a file, or of each cell of a notebook. The later ones are often its consequences, so they are
/// only counted.
fn syntax_findings(errors: &[SyntaxError], source: &Source, file: FileId) -> Vec<Finding> {
    let cell = |error: &SyntaxError| source.cell(error.span.start);
    let of_cell = errors.chunk_by(|a, b| cell(a) == cell(b));
    of_cell
        .filter_map(|errors| {
            let first = errors.first()?;
            let message = format!("syntax error: {}", first.message);
            let mut finding = plain_finding(Code(1), message, Place { file, span: first.span });
            if errors.len() > 1 {
                let part = if cell(first).is_some() { "cell" } else { "file" };
                let count = errors.len();
                let at_least = if count >= MAX_ERRORS { "at least " } else { "" };
                finding.primary.text = format!("the first of {at_least}{count} syntax errors in this {part}");
            }
            Some(finding)
        })
        .collect()
}

pub(super) fn plain_finding(code: Code, message: String, place: Place) -> Finding {
    Finding::new(code, World::Always, message, Label::new(place, String::new()))
}

impl Loaded {
    /// A file about which nothing is known yet.
    fn new(path: &Path, name: String, root: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
            name,
            root: root.to_path_buf(),
            content: Some(Content::default()),
            problem: None,
            too_large: false,
            other_language: None,
            unknown_cells: Vec::new(),
            lowered: None,
            text: None,
        }
    }
}

pub(super) fn load(input: &Input, file: FileId, memo: Option<&Memo>) -> Loaded {
    let content = shielded(|| match &input.bytes {
        Some(bytes) => Content::decode(&input.path, bytes.clone()),
        None => Content::read(&input.path),
    });
    let mut loaded = Loaded::new(&input.path, input.name.clone(), &input.root);
    match content {
        Ok(Ok(content)) => lower_into(&mut loaded, content, input.bytes.is_none(), file, memo),
        Ok(Err(NoContent::Unreadable(Unreadable::TooLarge))) if !input.named => loaded.too_large = true,
        Ok(Err(NoContent::Unreadable(reason))) => {
            loaded.problem = Some(Problem::new(Code(3), format!("cannot read this file: {reason}")));
        }
        Ok(Err(NoContent::Broken { text, span, message })) => {
            loaded.content = Some(text.into());
            let message = format!("cannot read this notebook: {message}");
            loaded.problem = Some(Problem { code: Code(3), message, span });
        }
        Ok(Err(NoContent::Other(language))) => loaded.other_language = Some(language),
        Err(panic) => loaded.problem = Some(Problem::new(Code(1), internal_error(&panic))),
    }
    loaded
}

/// Loads a file only because another file imports it. Problems in it are not reported.
pub(super) fn load_import(path: &Path, root: &Path, file: FileId, memo: Option<&Memo>) -> Loaded {
    let mut loaded = Loaded::new(path, read_name(path, root), root);
    if let Ok(Ok(content)) = shielded(|| Content::read(path)) {
        lower_into(&mut loaded, content, true, file, memo);
        loaded.problem = None;
        loaded.unknown_cells.clear();
        if let Some(l) = &mut loaded.lowered {
            l.errors.clear();
            l.left_out.clear();
        }
    }
    loaded
}

fn read_name(path: &Path, root: &Path) -> String {
    let cwd = std::env::current_dir().unwrap_or_else(|_| root.to_path_buf());
    crate::source::display_name(path, &cwd)
}

/// Lowers the text into `loaded`. `stays`: the text can be read again from the disk.
fn lower_into(loaded: &mut Loaded, content: Content, stays: bool, file: FileId, memo: Option<&Memo>) {
    let kind = Kind::named(&loaded.path, content.notebook.as_deref());
    if let Some(notebook) = &content.notebook {
        loaded.unknown_cells = notebook.unknown().to_vec();
    }
    let lower = || shielded(|| crate::lower::lower(file, &content.text, kind));
    let lowered = match memo {
        None => lower(),
        Some(memo) => {
            let text = fingerprint(&content.text, kind);
            loaded.text = Some(text);
            memo.lowered(&loaded.path, text, file, lower)
        }
    };
    match lowered {
        Ok(lowered) => loaded.lowered = Some(lowered),
        Err(panic) => loaded.problem = Some(Problem::new(Code(1), internal_error(&panic))),
    }
    // Files with suppression comments or syntax errors need their text, to read the comments and to show the errors.
    let asked_for = loaded
        .lowered
        .as_ref()
        .is_none_or(|l| !(l.comments.is_empty() && l.errors.is_empty() && l.left_out.is_empty()));
    loaded.content = (asked_for || !stays).then_some(content);
}

/// A fingerprint of what a file is lowered from.
fn fingerprint(text: &str, kind: Kind<'_>) -> u128 {
    let mut hasher = Xxh3::new();
    hasher.update(text.as_bytes());
    if let Kind::Notebook(starts) = kind {
        starts.iter().for_each(|start| hasher.update(&start.to_le_bytes()));
    }
    hasher.digest128()
}

pub(super) fn file_id(i: usize) -> FileId {
    FileId(u32::try_from(i).unwrap_or(u32::MAX))
}

/// The message of the finding for a bug in `samedevice`.
pub(super) fn internal_error(panic: &str) -> String {
    format!("internal error; please report this together with the file: {panic}")
}
