//! Copies of code in a project: generated files, and definitions under a comment `# Copied from lib.nets.Block.forward`.
//!
//! A bug in both copies has one cause, so it is one finding. Of a generated file and its source, the generated file gets the finding,
//! because other code imports it; the message names the place in the source. A copied definition gets no finding if the original definition
//! has the same one.
//!
//! The files themselves say what is a copy, so linting a part of a project reports the same as linting all of it. Copies without such a
//! comment must be fixed one by one, so each has its own finding.

use std::fs::read_dir;
use std::path::{Path, PathBuf};

use rustc_hash::{FxHashMap, FxHashSet};

use super::judged::importer;
use super::project::Reading;
use crate::finding::{Code, Finding, Label};
use crate::flow::Relevance;
use crate::ir::{FuncKind, Module};
use crate::rules::Found;
use crate::source::{Source, read};
use crate::span::{FileId, Place, Span};
use crate::sym::Sym;

/// How a comment above a copied definition begins.
const COPIED: &str = "copied from";
/// The word in the header of a generated file. Such a header also names the source file.
const GENERATED: &str = "generated";
/// How many bytes at the beginning of a file are searched for its header.
const HEADER: u64 = 4096;
/// Folders with more files than this are not searched for generated files.
const MAX_FOLDER: usize = 256;
/// How many lines above a definition are searched for its comment.
const MAX_COMMENTS: usize = 4;

/// The copies and originals of the code that findings are in.
#[derive(Default)]
pub(super) struct Copies {
    /// The source file of each generated file.
    sources: FxHashMap<FileId, FileId>,
    /// The generated files of each source file.
    generated: FxHashMap<FileId, Vec<FileId>>,
    /// The file of the original definition, by the place of the finding in the copied one.
    copied: FxHashMap<Place, FileId>,
}

/// What two findings must share to count as the same: rule, name of the function, marked text, text of the lines.
type Same = (Code, Option<Sym>, String, String);

impl Copies {
    /// Looks for copies that these findings are in, and reads the files of the other copies.
    pub(super) fn of(found: &Found, reading: &mut Reading<'_>, relevance: &mut Relevance) -> Self {
        let mut folders = FxHashMap::default();
        let mut of_files: Vec<(FileId, PathBuf, bool)> = Vec::new();
        let mut of_places: Vec<(Place, PathBuf)> = Vec::new();
        for (&file, findings) in found.iter().filter(|(_, findings)| !findings.is_empty()) {
            let path = reading.analysis.sources.get(file).path.clone();
            let Some(folder) = path.parent() else { continue };
            let pairs = folders.entry(folder.to_path_buf()).or_insert_with(|| generated_in(folder));
            for (generated, source) in pairs {
                match () {
                    () if *generated == path => of_files.push((file, source.clone(), true)),
                    () if *source == path => of_files.push((file, generated.clone(), false)),
                    () => {}
                }
            }
            of_places.extend(findings.iter().filter_map(|f| {
                let place = f.primary.place;
                Some((place, copied_from(place, reading)?)).filter(|(_, from)| *from != path)
            }));
        }
        let others = of_files.iter().map(|(_, path, _)| path).chain(of_places.iter().map(|(_, path)| path));
        read_too(others, reading, relevance);
        let mut copies = Self::default();
        for (file, path, is_generated) in of_files {
            let Some(other) = told_of(&path, reading) else { continue };
            let (generated, source) = if is_generated { (file, other) } else { (other, file) };
            copies.sources.insert(generated, source);
            copies.generated.entry(source).or_default().push(generated);
        }
        let known = of_places.into_iter().filter_map(|(place, path)| Some((place, told_of(&path, reading)?)));
        copies.copied = known.collect();
        copies
    }

    /// The files that may have the same findings.
    pub(super) fn others(&self) -> impl Iterator<Item = FileId> {
        self.generated.values().flatten().chain(self.copied.values()).copied()
    }

    /// The findings, by rule and place, that another file reports for the same cause.
    pub(super) fn told(
        &self,
        found: &Found,
        others: &Found,
        reading: &mut Reading<'_>,
    ) -> FxHashSet<(Code, Place)> {
        let mut told = FxHashSet::default();
        for f in found.values().flatten() {
            let place = f.primary.place;
            let generated = self.generated.get(&place.file).into_iter().flatten();
            let says = generated.chain(self.copied.get(&place)).any(|&other| {
                let findings = found.get(&other).or_else(|| others.get(&other));
                findings.into_iter().flatten().any(|g| {
                    !g.is_silenced()
                        && same(f.code, place, reading) == same(g.code, g.primary.place, reading)
                        && !is_copied_from(g.primary.place, place.file, reading)
                })
            });
            if says {
                told.insert((f.code, place));
            }
        }
        told
    }

    /// Adds the place in the source file to findings in generated files.
    pub(super) fn name_sources(&self, findings: &mut [Finding], reading: &Reading<'_>) {
        for f in findings {
            let place = f.primary.place;
            let Some(&source) = self.sources.get(&place.file) else { continue };
            if let Some(place) = counterpart(place, source, reading) {
                f.related.push(Label::new(place, "it is generated from this"));
            }
        }
    }
}

/// The generated files in a folder, each with its source file in the same folder.
fn generated_in(folder: &Path) -> Vec<(PathBuf, PathBuf)> {
    let Ok(entries) = read_dir(folder) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut paths: Vec<PathBuf> = paths.filter(|path| path.extension().is_some_and(|e| e == "py")).collect();
    if paths.len() > MAX_FOLDER {
        return Vec::new();
    }
    paths.sort_unstable();
    let source = |path: &PathBuf| {
        let header = read::head(path, HEADER).ok()?;
        let source = path.with_file_name(named_source(&String::from_utf8_lossy(&header))?);
        (source != *path && paths.binary_search(&source).is_ok()).then(|| (path.clone(), source))
    };
    paths.iter().filter_map(source).collect()
}

/// The name of the source file of a generated file, from the comments at its beginning.
fn named_source(header: &str) -> Option<&str> {
    let comments = header.lines().map(str::trim).take_while(|line| line.is_empty() || line.starts_with('#'));
    let mut named = comments.filter(|line| line.contains(GENERATED)).flat_map(str::split_whitespace);
    named.find_map(|word| {
        let path = word.trim_matches(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.' | '/'));
        let path = path.trim_end_matches('.');
        path.ends_with(".py").then(|| path.rsplit('/').next()).flatten()
    })
}

/// The file of the original definition, if a comment above the definition around `place` names it.
fn copied_from(place: Place, reading: &mut Reading<'_>) -> Option<PathBuf> {
    let program = &reading.program;
    let ir = &program.get(program.module_of(place.file)?).ir;
    let source = reading.analysis.sources.get(place.file);
    let names: Vec<&str> =
        definitions(ir, place.span).filter_map(|at| origin_above(source, at.start)).collect();
    let modules =
        names.iter().flat_map(|name| name.match_indices('.').rev().take(2).map(|(at, _)| &name[..at]));
    let modules: Vec<Sym> = modules.map(Sym::new).collect();
    modules.into_iter().find_map(|module| reading.intake.imported(place.file, module))
}

/// Whether a comment says that the definition around `place` was copied from `file`.
fn is_copied_from(place: Place, file: FileId, reading: &mut Reading<'_>) -> bool {
    let path = reading.analysis.sources.get(file).path.clone();
    copied_from(place, reading).is_some_and(|from| from == path)
}

/// The functions and classes around a place.
fn definitions(ir: &Module, at: Span) -> impl Iterator<Item = Span> {
    let functions = ir.functions.iter().filter(|f| f.kind == FuncKind::Function).map(|f| f.span);
    functions.chain(ir.classes.iter().map(|c| c.span)).filter(move |span| span.contains(at))
}

/// The dotted name in a comment `# Copied from lib.nets.Block with A->B` above a definition.
fn origin_above(source: &Source, start: u32) -> Option<&str> {
    let row = source.row(start);
    let above = (1..row).rev().take(MAX_COMMENTS).map(|row| source.row_text(row).trim());
    above.take_while(|line| line.starts_with('#')).find_map(|line| {
        let text = line.trim_start_matches('#').trim_start();
        let begins = text.get(..COPIED.len()).is_some_and(|t| t.eq_ignore_ascii_case(COPIED));
        let name = text.get(COPIED.len()..)?.trim_start_matches(':').split_whitespace().next()?;
        let dotted = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
        (begins && dotted && name.contains('.')).then_some(name)
    })
}

/// Reads those of the files that have not been read yet.
fn read_too<'p>(
    paths: impl Iterator<Item = &'p PathBuf>,
    reading: &mut Reading<'_>,
    relevance: &mut Relevance,
) {
    let Reading { program, intake, analysis, places, .. } = reading;
    let mut missing: Vec<PathBuf> = paths.filter(|path| intake.file(path).is_none()).cloned().collect();
    missing.sort_unstable();
    missing.dedup();
    if missing.is_empty() {
        return;
    }
    let wanted = missing.into_iter().map(|path| {
        let root = places.root_of_file(&path);
        (path, root)
    });
    let wanted = wanted.collect();
    intake.modules = std::mem::take(program).into_modules();
    intake.follow(wanted, analysis);
    *program = intake.link();
    *relevance = Relevance::of(program);
}

/// The file, if it has been read and findings may be reported in it.
fn told_of(path: &Path, reading: &mut Reading<'_>) -> Option<FileId> {
    let file = reading.intake.file(path)?;
    let excluded = importer(path, reading.inputs).is_none_or(|input| input.settings.excludes(path));
    (!excluded).then_some(file)
}

fn same(code: Code, place: Place, reading: &Reading<'_>) -> Same {
    let source = reading.analysis.sources.get(place.file);
    let row = |at: u32| source.row(at);
    let rows = (row(place.span.start)..=row(place.span.end)).map(|row| source.row_text(row));
    let normal = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = rows.map(normal).collect();
    (code, function_around(place, reading), normal(place.span.slice(source.text())), lines.join(" "))
}

/// The name of the innermost function around a place.
fn function_around(place: Place, reading: &Reading<'_>) -> Option<Sym> {
    let ir = &reading.program.get(reading.program.module_of(place.file)?).ir;
    ir.function_at(place.span).map(|f| f.name)
}

/// The place in another file with the same text, in a function of the same name; `None` unless there is exactly one.
fn counterpart(place: Place, file: FileId, reading: &Reading<'_>) -> Option<Place> {
    let marked = reading.analysis.sources.text(place);
    let text = reading.analysis.sources.get(file).text();
    let function = function_around(place, reading);
    let mut found = text.match_indices(marked).filter_map(|(at, _)| {
        let start = u32::try_from(at).ok()?;
        let span = Span::new(start, start + (place.span.end - place.span.start));
        let place = Place { file, span };
        (function_around(place, reading) == function).then_some(place)
    });
    let first = found.next().filter(|_| !marked.is_empty())?;
    found.next().is_none().then_some(first)
}
