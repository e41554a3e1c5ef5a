//! What the rest of the project says of how sure a finding is: does anything name the function that it is in, and does anything in the
//! project use an accelerator?
//!
//! All of the project's files are asked, whatever part of it is linted: so a run over one file says what a run over all of it says.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::project::{Project, Reading, projects_of};
use crate::finding::{Confidence, Finding};
use crate::flow::function_at;
use crate::ir::{FuncId, Function, Module};
use crate::link::Program;
use crate::source::read;
use crate::span::{Place, Span};
use crate::sym::Sym;

/// Words of projects that use accelerators, or leave them to a framework.
const ACCELERATORS: [&str; 8] = ["cuda", "device", "gpu", "mps", "accelerat", "xpu", "npu", "lightning"];

/// What is in programs that are run: a file with a `__main__`.
const MAIN: &str = "__main__";

/// Gives findings in code that nothing in their project calls low confidence, and those about numbers in programs that use no accelerator.
pub(super) fn doubt_unreached(mut findings: Vec<Finding>, reading: &mut Reading<'_>) -> Vec<Finding> {
    let inputs = reading.inputs;
    let open = |f: &Finding| f.confidence == Confidence::Likely;
    for project in projects_of(&findings, |f, _| open(f), reading) {
        let here = |f: &Finding| open(f) && project.holds(f.primary.place.file, inputs);
        let program = &reading.program;
        let names: FxHashSet<Sym> =
            findings.iter().filter(|f| here(f)).flat_map(|f| Names::of(program, f.primary.place)).collect();
        let said = Said::of(&project, &reading.places.texts(project.root(), project.settings()), &names);
        let library = project.is_library();
        let sources = &reading.analysis.sources;
        for f in findings.iter_mut().filter(|f| here(f)) {
            let place = f.primary.place;
            let text = |span: Span| sources.text(Place { file: place.file, span });
            if !library && !said.accelerator && matches!(f.code.0, 200..=299 | 700..=799) {
                f.doubt(Confidence::Low, "nothing in this project uses an accelerator");
            } else if (said.program || library)
                && let Some(name) =
                    uncalled(program, place, library, &|name, own| said.elsewhere(name, text(own)) == 0)
            {
                f.doubt(Confidence::Low, format!("nothing in this project calls `{name}`"));
            }
        }
    }
    findings
}

/// The names under which a place is called.
struct Names;

impl Names {
    fn of(program: &Program, place: Place) -> Vec<Sym> {
        let Some((m, f)) = function_at(program, place) else { return Vec::new() };
        let ir = &program.get(m).ir;
        let function = ir.function(f);
        let class = function.class.map(|class| ir.class(class).name);
        class.into_iter().chain([function.name]).collect()
    }
}

/// The function or class around a place that nothing calls. `unnamed` says whether a name is in no text of the project besides those places.
fn uncalled(
    program: &Program,
    place: Place,
    library: bool,
    unnamed: &dyn Fn(Sym, Span) -> bool,
) -> Option<Sym> {
    let (m, f) = function_at(program, place)?;
    let ir = &program.get(m).ir;
    let function = ir.function(f);
    // Anybody may call what a library offers.
    let own = |name: Sym| !library || crate::ir::is_private(name.as_str());
    let Some(class) = function.class else {
        return (is_plain(ir, f, function) && own(function.name) && unnamed(function.name, function.span))
            .then_some(function.name);
    };
    let class = ir.class(class);
    if class.decorators.len == 0 && own(class.name) && unnamed(class.name, class.span) {
        return Some(class.name);
    }
    // A base calls what it knows, under names that nobody else says.
    let alone = class.bases.len == 0 && is_plain(ir, f, function);
    (alone && own(function.name) && unnamed(function.name, function.span)).then_some(function.name)
}

/// Is it only called where its name stands? Not what a decorator hands over, nor what Python calls by itself.
fn is_plain(ir: &Module, f: FuncId, function: &Function) -> bool {
    let name = function.name.as_str();
    f != FuncId(0)
        && ir.list(function.decorators).is_empty()
        && !name.starts_with("__")
        && name != "main"
        && !name.starts_with("test")
}

/// What the texts of a project say.
#[derive(Default)]
struct Said {
    /// How often each name is said.
    names: FxHashMap<Sym, usize>,
    /// Does one speak of an accelerator?
    accelerator: bool,
    /// Is one of the files a program?
    program: bool,
}

impl Said {
    /// By all of the project's files, and what else may name what is in them.
    fn of(project: &Project<'_>, others: &[PathBuf], names: &FxHashSet<Sym>) -> Self {
        let wanted: FxHashMap<&[u8], Sym> =
            names.iter().map(|name| (name.as_str().as_bytes(), *name)).collect();
        let (accelerator, program) = (AtomicBool::new(false), AtomicBool::new(false));
        // Once one file has it, the others need not be searched.
        let note = |found: &AtomicBool, text: &str, words: &[&str]| {
            if !found.load(Relaxed) && super::project::mentions(text, words) {
                found.store(true, Relaxed);
            }
        };
        let one = |(path, code): (&PathBuf, bool)| {
            let Ok(text) = read::read(path) else { return FxHashMap::default() };
            if code {
                note(&accelerator, &text, &ACCELERATORS);
                note(&program, &text, &[MAIN]);
            }
            let mut counts: FxHashMap<Sym, usize> = FxHashMap::default();
            for name in words(&text).filter_map(|word| wanted.get(word)) {
                *counts.entry(*name).or_default() += 1;
            }
            counts
        };
        let code = project.files().par_iter().map(|path| (path, true));
        let all = code.chain(others.par_iter().map(|path| (path, false)));
        let names = all.map(one).reduce(FxHashMap::default, |mut all, one| {
            one.into_iter().for_each(|(name, n)| *all.entry(name).or_default() += n);
            all
        });
        Self { names, accelerator: accelerator.into_inner(), program: program.into_inner() }
    }

    /// How often is the name said besides in this text?
    fn elsewhere(&self, name: Sym, own: &str) -> usize {
        self.names.get(&name).copied().unwrap_or_default().saturating_sub(count(own, name))
    }
}

/// The words of a text: what Python may call a name.
fn words(text: &str) -> impl Iterator<Item = &[u8]> {
    let part = |c: &u8| c.is_ascii_alphanumeric() || *c == b'_' || !c.is_ascii();
    text.as_bytes().split(move |c| !part(c)).filter(|word| !word.is_empty())
}

/// How often is the word in the text?
fn count(text: &str, word: Sym) -> usize {
    words(text).filter(|other| *other == word.as_str().as_bytes()).count()
}

#[cfg(test)]
mod tests {
    use super::count;
    use crate::sym::Sym;

    #[test]
    fn words_are_counted_whole() {
        assert_eq!(count("step(step) my_step steps step\u{e9} x.step", Sym::new("step")), 3);
    }
}
