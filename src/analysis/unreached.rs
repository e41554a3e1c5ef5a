//! Lowers the confidence of findings by what the rest of the project says. Does anything use the function of the finding? Does anything in
//! the project use an accelerator?
//!
//! All files of the project count, whichever part of it is linted: a run over one file gives the same result as a run over all files.

use std::cell::RefCell;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use aho_corasick::AhoCorasick;
use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::project::{Project, Reading, projects_of};
use crate::finding::{Confidence, Finding};
use crate::flow::function_at;
use crate::ir::{Expr, ExprId, FuncId, Function, Import, Module, Stmt, Var};
use crate::link::{ModIdx, Program};
use crate::lower::{Kind, lower};
use crate::notebook::is_notebook;
use crate::source::read;
use crate::span::{FileId, Place, Span};
use crate::sym::Sym;
use crate::words::Words;

static ACCELERATORS: Words = Words::of("words of projects with accelerators");

/// Text in files that are run as programs.
const MAIN: &str = "__main__";

/// Gives low confidence to findings in code that nothing in the project calls, and to findings about meetings and number formats in
/// projects that use no accelerator.
pub(super) fn doubt_unreached(mut findings: Vec<Finding>, reading: &mut Reading<'_>) -> Vec<Finding> {
    let inputs = reading.inputs;
    let open = |f: &Finding| f.confidence == Confidence::Likely;
    for project in projects_of(&findings, |f, _| open(f), reading) {
        let here = |f: &Finding| open(f) && project.holds(f.primary.place.file, inputs);
        let library = project.is_library();
        let mut names: FxHashSet<Sym> = FxHashSet::default();
        for f in findings.iter().filter(|f| here(f)) {
            let asked = RefCell::new(&mut names);
            uncalled(&reading.program, f.primary.place, library, &|name, _| {
                asked.borrow_mut().insert(name);
                false
            });
        }
        if library && names.is_empty() {
            continue;
        }
        let texts = reading.places.texts(project.root(), project.settings());
        let known = project.files().iter().map(|path| {
            let file = reading.intake.file(path);
            file.and_then(|file| reading.program.module_of(file))
        });
        let known: Vec<Option<ModIdx>> = known.collect();
        let program = &reading.program;
        let said = Said::of(program, &project, &known, &texts, &names);
        let sources = &reading.analysis.sources;
        for f in findings.iter_mut().filter(|f| here(f)) {
            let place = f.primary.place;
            let path = &sources.get(place.file).path;
            if !library && !said.accelerator && matches!(f.code.0, 200..=299 | 700..=799) {
                f.doubt(Confidence::Low, "nothing in this project uses an accelerator");
            } else if (said.program || library)
                && let Some(name) =
                    uncalled(program, place, library, &|name, own| !said.is_used(program, name, path, own))
            {
                f.doubt(Confidence::Low, format!("nothing in this project calls `{name}`"));
            }
        }
    }
    findings
}

/// The name of the function or class around a place that nothing calls. `unused`: whether nothing in the project uses this name outside
/// this span.
fn uncalled(
    program: &Program,
    place: Place,
    library: bool,
    unused: &dyn Fn(Sym, Span) -> bool,
) -> Option<Sym> {
    let (m, f) = function_at(program, place)?;
    let ir = &program.get(m).ir;
    let function = ir.function(f);
    // Code outside the project may call what a library offers.
    let own = |name: Sym| !library || crate::ir::is_private(name.as_str());
    let Some(class) = function.class else {
        return (is_plain(ir, f, function) && own(function.name) && unused(function.name, function.span))
            .then_some(function.name);
    };
    let class = ir.class(class);
    if class.decorators.len == 0 && own(class.name) && unused(class.name, class.span) {
        return Some(class.name);
    }
    // A base class may call a method by a name that occurs nowhere else.
    let alone = class.bases.len == 0 && is_plain(ir, f, function);
    (alone && own(function.name) && unused(function.name, function.span)).then_some(function.name)
}

/// Is the function only called where its name occurs? Not a function with a decorator, nor one that Python or a test runner calls by
/// itself.
fn is_plain(ir: &Module, f: FuncId, function: &Function) -> bool {
    let name = function.name.as_str();
    f != FuncId(0)
        && ir.list(function.decorators).is_empty()
        && !name.starts_with("__")
        && name != "main"
        && !name.starts_with("test")
}

/// Which names the files of a project use.
#[derive(Default)]
struct Said {
    /// The indices in `code` of the Python files whose text contains each name.
    files: FxHashMap<Sym, Vec<usize>>,
    /// All Python files of the project. Each is lowered when it is first needed.
    code: Vec<Code>,
    /// The names in other texts, such as configurations and notebooks. What these do with a name is unknown.
    elsewhere: FxHashSet<Sym>,
    /// Whether a file mentions an accelerator.
    accelerator: bool,
    /// Whether a file is a program.
    program: bool,
}

/// A Python file.
struct Code {
    path: PathBuf,
    /// The file, if the run has already read it. Its text may differ from the text on the disk.
    known: Option<ModIdx>,
    lowered: OnceLock<Option<Module>>,
}

impl Said {
    /// Searches all of the project's files, and `others`, for these names. `known`: the files of the project that the run has read.
    fn of(
        program: &Program,
        project: &Project<'_>,
        known: &[Option<ModIdx>],
        others: &[PathBuf],
        names: &FxHashSet<Sym>,
    ) -> Self {
        let wanted: Vec<Sym> = names.iter().copied().collect();
        let finder = AhoCorasick::new(wanted.iter().map(|name| name.as_str())).ok();
        // A library is no program, and leaves the accelerator to its users.
        let library = project.is_library();
        let (accelerator, is_program) = (AtomicBool::new(library), AtomicBool::new(library));
        // After a word has been found in one file, the other files are not searched for it.
        let note = |found: &AtomicBool, text: &str, words: &[&str]| {
            if !found.load(Relaxed) && super::project::mentions(text, words) {
                found.store(true, Relaxed);
            }
        };
        let in_text = |text: &str| -> FxHashSet<Sym> {
            let found = finder.iter().flat_map(|finder| finder.find_overlapping_iter(text));
            let whole = found.filter(|at| is_whole(text.as_bytes(), at.range()));
            whole.filter_map(|at| wanted.get(at.pattern().as_usize())).copied().collect()
        };
        let named = |path: &PathBuf, code: bool, known: Option<ModIdx>| -> FxHashSet<Sym> {
            let noted = !code || accelerator.load(Relaxed) && is_program.load(Relaxed);
            let ir = known.map(|m| &program.get(m).ir);
            if let Some(ir) = ir.filter(|_| noted) {
                return in_ir(ir, &wanted, &in_text);
            }
            let Ok(text) = read::read(path) else { return FxHashSet::default() };
            if code {
                note(&accelerator, &text, ACCELERATORS.all());
                note(&is_program, &text, &[MAIN]);
            }
            ir.map_or_else(|| in_text(&text), |ir| in_ir(ir, &wanted, &in_text))
        };
        let files = project.files().iter().zip(known.iter().copied());
        let (notebooks, scripts): (Vec<_>, Vec<_>) = files.partition(|(path, _)| is_notebook(path));
        let in_code: Vec<FxHashSet<Sym>> =
            scripts.par_iter().map(|&(path, known)| named(path, true, known)).collect();
        let shown = notebooks.par_iter().map(|(path, _)| named(path, true, None));
        let told = others.par_iter().map(|path| named(path, false, None));
        let elsewhere = shown.chain(told).reduce(FxHashSet::default, |mut all, one| {
            all.extend(one);
            all
        });
        let mut files: FxHashMap<Sym, Vec<usize>> = FxHashMap::default();
        for (n, names) in in_code.into_iter().enumerate() {
            names.into_iter().for_each(|name| files.entry(name).or_default().push(n));
        }
        let code = scripts.into_iter().map(|(path, known)| Code {
            path: path.clone(),
            known,
            lowered: OnceLock::new(),
        });
        let (accelerator, program) = (accelerator.into_inner(), is_program.into_inner());
        Self { files, code: code.collect(), elsewhere, accelerator, program }
    }

    /// Does anything use the name outside `own` in this file?
    fn is_used(&self, program: &Program, name: Sym, path: &Path, own: Span) -> bool {
        self.elsewhere.contains(&name)
            || self.files.get(&name).is_some_and(|files| {
                files.par_iter().filter_map(|&n| self.code.get(n)).any(|code| {
                    let own = (code.path == path).then_some(own);
                    code.module(program).is_none_or(|ir| uses(ir, name, own))
                })
            })
    }
}

impl Code {
    /// The lowered file; `None` if it cannot be read.
    fn module<'a>(&'a self, program: &'a Program) -> Option<&'a Module> {
        if let Some(known) = self.known {
            return Some(&program.get(known).ir);
        }
        let lowered = self.lowered.get_or_init(|| {
            let text = read::read(&self.path).ok()?;
            Some(lower(FileId(u32::MAX), &text, Kind::named(&self.path, None)).module)
        });
        lowered.as_ref()
    }
}

/// Those of the names that the file may use. `in_text` finds them in a text.
fn in_ir(ir: &Module, names: &[Sym], in_text: &dyn Fn(&str) -> FxHashSet<Sym>) -> FxHashSet<Sym> {
    let mut found: FxHashSet<Sym> = ir.strings.iter().flat_map(|text| in_text(text.as_str())).collect();
    let bound = ir.functions.iter().flat_map(|f| &f.slots).copied();
    let imported = ir.imports.iter().filter_map(|import| import.name);
    let unbound = ir.exprs.iter().filter_map(|expr| match *expr {
        Expr::Var(Var::Unbound(name)) => Some(name),
        _ => None,
    });
    found.extend(bound.chain(imported).chain(unbound).filter(|name| names.contains(name)));
    found.extend(names.iter().filter(|&&name| ir.has_attribute(name)));
    found
}

/// Does the file use the name outside this span? An import, an entry of `__all__` and a comment are no uses. A string may be one: a key in
/// a registry, for example.
fn uses(ir: &Module, name: Sym, own: Option<Span>) -> bool {
    let exported = exported(ir);
    let besides = |n: usize| {
        let at = ir.expr_spans[n];
        !own.is_some_and(|own| own.contains(at)) && !exported.iter().any(|all| all.contains(at))
    };
    // Imported under another name, it may be used anywhere.
    let renamed = |import: &Import| {
        let kept = match import.target {
            Some(Var::Local(slot) | Var::Global(slot)) => {
                ir.functions.first().and_then(|f| f.slots.get(usize::from(slot)))
            }
            _ => None,
        };
        import.name == Some(name) && kept != Some(&name)
    };
    if ir.imports.iter().any(renamed) {
        return true;
    }
    ir.exprs.iter().enumerate().any(|(n, expr)| {
        let said = match *expr {
            Expr::Attr { name: said, .. } => said == name,
            Expr::Str(text) => words(text.as_str()).any(|word| word == name.as_str().as_bytes()),
            Expr::Var(_) => u32::try_from(n).is_ok_and(|n| ir.variable_of(ExprId(n)) == Some(name)),
            _ => false,
        };
        said && besides(n)
    })
}

/// The values of `__all__` in the file.
fn exported(ir: &Module) -> Vec<Span> {
    let names = |target: ExprId| ir.variable_of(target).is_some_and(|name| name.as_str() == "__all__");
    let all = ir.stmts.iter().filter_map(|stmt| match *stmt {
        Stmt::Assign { targets, value } => ir.list(targets).iter().any(|&t| names(t)).then_some(value),
        Stmt::AugAssign { target, value, .. } => names(target).then_some(value),
        _ => None,
    });
    all.map(|value| ir.span(value)).collect()
}

/// Can the byte be part of a Python name?
fn is_part(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || !c.is_ascii()
}

/// Is this range a whole word?
fn is_whole(text: &[u8], at: Range<usize>) -> bool {
    let before = at.start.checked_sub(1).and_then(|n| text.get(n));
    !before.into_iter().chain(text.get(at.end)).any(|&c| is_part(c))
}

/// The words of a text that can be Python names.
fn words(text: &str) -> impl Iterator<Item = &[u8]> {
    text.as_bytes().split(|&c| !is_part(c)).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{is_whole, uses, words};
    use crate::lower::{Kind, lower};
    use crate::span::{FileId, Span};
    use crate::sym::Sym;

    #[test]
    fn words_are_whole() {
        let text = "step(step) my_step steps step\u{e9}";
        assert_eq!(words(text).filter(|word| *word == b"step").count(), 2);
        let found = text.match_indices("step").filter(|&(at, _)| is_whole(text.as_bytes(), at..at + 4));
        assert_eq!(found.count(), 2);
    }

    #[test]
    fn a_name_is_used_where_it_is_read() {
        let used = |text: &str| uses(&lower(FileId(0), text, Kind::Script).module, Sym::new("step"), None);
        for text in [
            "step()",
            "x.step",
            "make('step')",
            "load('pkg.train.step')",
            "f = [step]",
            "def f(): return step",
        ] {
            assert!(used(text), "{text}");
        }
        for text in ["def step(): pass", "from a import step", "__all__ = ['step']", "# step()", "steps()"] {
            assert!(!used(text), "{text}");
        }
        let own = Some(Span::new(0, 29));
        let text = "def step(n): return step(n-1)\n";
        assert!(!uses(&lower(FileId(0), text, Kind::Script).module, Sym::new("step"), own));
    }
}
