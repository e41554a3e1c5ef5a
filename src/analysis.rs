//! The middle of the way, from files to findings: read, lower, follow imports, link, interpret, judge.

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::discover::Input;
use crate::finding::{Code, Finding, Label};
use crate::flow::Relevance;
use crate::ir::Module;
use crate::link::{Finder, Program};
use crate::lower::{Comment, Kind, Lowered};
use crate::rules::{Context, Found, Limits};
use crate::shield::shielded;
use crate::source::{Source, Sources, read};
use crate::span::{FileId, Place, Span};
use crate::world::World;

/// What is known of all files.
#[derive(Debug, Default)]
pub struct Analysis {
    /// The files that were asked for, in the order of the inputs; then those that they import.
    pub sources: Sources,
    /// Everything that was found, by whatever rule, in no particular order.
    pub findings: Vec<Finding>,
    /// The comments that may be suppressions, by file.
    pub comments: Vec<(FileId, Vec<Comment>)>,
}

/// A file that has been read.
struct Loaded {
    path: PathBuf,
    name: String,
    root: PathBuf,
    text: String,
    problem: Option<(Code, String)>,
    lowered: Option<Lowered>,
}

/// Analyzes files on the current thread pool. Every input gets a source, an empty one if it has no text.
pub fn analyze(inputs: &[Input]) -> Analysis {
    let mut analysis = Analysis::default();
    let mut modules: Vec<Module> = Vec::new();
    let mut paths: FxHashMap<PathBuf, FileId> = FxHashMap::default();
    let mut roots: FxHashMap<FileId, PathBuf> = FxHashMap::default();
    let finder = Finder::default();
    let first: Vec<Loaded> =
        inputs.par_iter().enumerate().map(|(i, input)| load(input, file_id(i))).collect();
    let asked = first.len();
    let mut wanted = take_in(first, &mut analysis, &mut modules, &mut paths, &mut roots, &finder);
    // Imports are followed through the project, so that linting one file finds what linting all of them does.
    while !wanted.is_empty() {
        let base = analysis.sources.len();
        let more: Vec<Loaded> = wanted
            .par_iter()
            .enumerate()
            .map(|(i, (path, root))| load_import(path, root, file_id(base + i)))
            .collect();
        wanted = take_in(more, &mut analysis, &mut modules, &mut paths, &mut roots, &finder);
    }
    let find = |file: FileId, level: u32, name: &str| {
        let path = finder.find(&analysis.sources.get(file).path, roots.get(&file)?, level, name)?;
        paths.get(&path).copied()
    };
    let program = Program::link(modules, &find);
    let relevance = Relevance::of(&program);
    let found: Found = inputs
        .par_iter()
        .enumerate()
        .map(|(i, input)| {
            let file = file_id(i);
            (file, findings_of(file, input, &program, &relevance, &analysis.sources))
        })
        .collect();
    // What an imported file says of itself need not be said again where it is used, whether or not it is linted.
    let others: Found = crate::rules::refers_to(&found)
        .into_par_iter()
        .filter(|file| !found.contains_key(file))
        .filter_map(|file| {
            let input = importer(file, inputs, &roots)?;
            Some((file, findings_of(file, input, &program, &relevance, &analysis.sources)))
        })
        .collect();
    analysis.findings.extend(crate::rules::told_once(found, &others));
    analysis.comments.retain(|(file, _)| (file.0 as usize) < asked);
    analysis
}

/// An input of the same project as the file, for its settings.
fn importer<'a>(file: FileId, inputs: &'a [Input], roots: &FxHashMap<FileId, PathBuf>) -> Option<&'a Input> {
    let root = roots.get(&file)?;
    inputs.iter().find(|input| *input.root == **root).or(inputs.first())
}

fn file_id(i: usize) -> FileId {
    FileId(u32::try_from(i).unwrap_or(u32::MAX))
}

/// Adds loaded files in order; gives the files that they import and that nobody has loaded yet.
fn take_in(
    files: Vec<Loaded>,
    analysis: &mut Analysis,
    modules: &mut Vec<Module>,
    paths: &mut FxHashMap<PathBuf, FileId>,
    roots: &mut FxHashMap<FileId, PathBuf>,
    finder: &Finder,
) -> Vec<(PathBuf, PathBuf)> {
    let mut imports = Vec::new();
    for loaded in files {
        let file = analysis.sources.add(Source::new(loaded.path.clone(), loaded.name, loaded.text));
        paths.insert(loaded.path.clone(), file);
        roots.insert(file, loaded.root.clone());
        if let Some((code, message)) = loaded.problem {
            analysis.findings.push(plain_finding(code, message, Place { file, span: Span::default() }));
        }
        let Some(lowered) = loaded.lowered else { continue };
        for error in lowered.errors {
            let message = format!("syntax error: {}", error.message);
            analysis.findings.push(plain_finding(Code(1), message, Place { file, span: error.span }));
        }
        for import in &lowered.module.imports {
            imports.push((
                loaded.path.clone(),
                loaded.root.clone(),
                import.level,
                import.module,
                import.name,
            ));
        }
        analysis.comments.push((file, lowered.comments));
        modules.push(lowered.module);
    }
    let mut wanted: Vec<(PathBuf, PathBuf)> = Vec::new();
    let mut seen: FxHashMap<PathBuf, ()> = FxHashMap::default();
    for (path, root, level, module, name) in imports {
        let module = module.as_str();
        let sub = name.map(|n| if module.is_empty() { n.to_string() } else { format!("{module}.{n}") });
        for candidate in [Some(module.to_owned()), sub].into_iter().flatten() {
            let Some(found) = finder.find(&path, &root, level, &candidate) else { continue };
            if !paths.contains_key(&found) && seen.insert(found.clone(), ()).is_none() {
                wanted.push((found, root.clone()));
            }
        }
    }
    wanted
}

fn plain_finding(code: Code, message: String, place: Place) -> Finding {
    Finding::new(code, World::Always, message, Label { place, text: String::new() })
}

fn load(input: &Input, file: FileId) -> Loaded {
    let text = shielded(|| match &input.bytes {
        Some(bytes) => read::decode(bytes.clone()),
        None => read::read(&input.path),
    });
    let mut loaded = Loaded {
        path: input.path.clone(),
        name: input.name.clone(),
        root: input.root.to_path_buf(),
        text: String::new(),
        problem: None,
        lowered: None,
    };
    match text {
        Ok(Ok(text)) => lower_into(&mut loaded, text, file),
        Ok(Err(reason)) => loaded.problem = Some((Code(3), format!("cannot read this file: {reason}"))),
        Err(panic) => loaded.problem = Some((Code(1), internal_error(&panic))),
    }
    loaded
}

/// A file that is only needed because another one imports it: what is wrong with it is not reported.
fn load_import(path: &Path, root: &Path, file: FileId) -> Loaded {
    let mut loaded = Loaded {
        path: path.to_path_buf(),
        name: read_name(path, root),
        root: root.to_path_buf(),
        text: String::new(),
        problem: None,
        lowered: None,
    };
    if let Ok(Ok(text)) = shielded(|| read::read(path)) {
        lower_into(&mut loaded, text, file);
        loaded.problem = None;
        if let Some(l) = &mut loaded.lowered {
            l.errors.clear();
        }
    }
    loaded
}

fn read_name(path: &Path, root: &Path) -> String {
    let cwd = std::env::current_dir().unwrap_or_else(|_| root.to_path_buf());
    crate::source::display_name(path, &cwd)
}

fn lower_into(loaded: &mut Loaded, text: String, file: FileId) {
    let kind = if loaded.path.extension().is_some_and(|e| e == "pyi") { Kind::Stub } else { Kind::Script };
    match shielded(|| crate::lower::lower(file, &text, kind)) {
        Ok(lowered) => loaded.lowered = Some(lowered),
        Err(panic) => loaded.problem = Some((Code(1), internal_error(&panic))),
    }
    loaded.text = text;
}

fn findings_of(
    file: FileId,
    input: &Input,
    program: &Program,
    relevance: &Relevance,
    sources: &Sources,
) -> Vec<Finding> {
    let Some(module) = program.module_of(file) else { return Vec::new() };
    let judged = shielded(|| {
        let outcome = crate::flow::run_module(program, relevance, module);
        let limits = Limits {
            oom_threshold: input.settings.oom_threshold,
            max_accelerator_memory: input.settings.max_accelerator_memory,
        };
        let cx = Context {
            file,
            root: &input.root,
            sources,
            program,
            cuda_only: outcome.cuda_only,
            refuses: outcome.refuses,
            limits,
        };
        crate::rules::judge(&outcome, &cx)
    });
    match judged {
        Ok(findings) => findings,
        Err(panic) => {
            let place = Place { file, span: Span::default() };
            vec![plain_finding(Code(1), internal_error(&panic), place)]
        }
    }
}

/// The message of the finding that a bug of ours becomes.
pub fn internal_error(panic: &str) -> String {
    format!("internal error, please report it with this file: {panic}")
}
