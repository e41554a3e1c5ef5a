//! What the rest of the project says of how sure a finding is: does anything name the function that it is in, and does anything in the
//! project use an accelerator?
//!
//! All of the project's files are asked, whatever part of it is linted: so a run over one file says what a run over all of it says.

use std::path::PathBuf;

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
        let code = project.files();
        let one = |(path, code): (&PathBuf, bool)| {
            let Ok(text) = read::read(path) else { return Self::default() };
            Self {
                names: names.iter().map(|&name| (name, count(&text, name))).filter(|(_, n)| *n > 0).collect(),
                accelerator: code && super::project::mentions(&text, &ACCELERATORS),
                program: code && super::project::mentions(&text, &[MAIN]),
            }
        };
        let all = code.par_iter().map(|path| (path, true)).chain(others.par_iter().map(|path| (path, false)));
        all.map(one).reduce(Self::default, |mut all, one| {
            for (name, n) in one.names {
                *all.names.entry(name).or_default() += n;
            }
            all.accelerator |= one.accelerator;
            all.program |= one.program;
            all
        })
    }

    /// How often is the name said besides in this text?
    fn elsewhere(&self, name: Sym, own: &str) -> usize {
        self.names.get(&name).copied().unwrap_or_default().saturating_sub(count(own, name))
    }
}

/// How often is the word in the text?
fn count(text: &str, word: Sym) -> usize {
    let word = word.as_str();
    let part = |c: Option<&u8>| c.is_some_and(|c| c.is_ascii_alphanumeric() || *c == b'_' || !c.is_ascii());
    let bytes = text.as_bytes();
    let whole = |&at: &usize| {
        !part(at.checked_sub(1).and_then(|before| bytes.get(before))) && !part(bytes.get(at + word.len()))
    };
    memchr::memmem::find_iter(bytes, word.as_bytes()).filter(whole).count()
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
