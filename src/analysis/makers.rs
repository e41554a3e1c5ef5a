//! Findings about modules of which the project says how they are made, called and moved: where it is an application, all
//! its files together.

use rustc_hash::{FxHashMap, FxHashSet};

use super::project::{IN_MODULE, Project, Reading, mentions, projects_of};
use crate::discover::project_texts;
use crate::finding::{Code, Finding};
use crate::flow::{Fixed, class_of, function_at, hangs_on_values, is_module_class, parts_moved_by_others};
use crate::ir::{Expr, FuncId, Var};
use crate::link::{ClassKey, ModIdx, Program};
use crate::source::read;
use crate::span::Place;
use crate::sym::Sym;
use crate::world::World;

/// What needs CUDA where nobody has asked for it.
const NEEDS: [Code; 3] = [Code(101), Code(106), IN_MODULE];

/// The findings without those about what an object has made on the CPU and never moves, where somebody else in the project
/// may move that part of it.
pub(super) fn moved_by_others(mut findings: Vec<Finding>, reading: &mut Reading<'_>) -> Vec<Finding> {
    let inputs = reading.inputs;
    for project in projects_of(&findings, |f| f.by_default.is_some(), inputs) {
        if !project.complete(reading, &|_| true) {
            continue;
        }
        let files = project.modules(reading);
        let program = &reading.program;
        let mut known: FxHashMap<ClassKey, FxHashSet<Sym>> = FxHashMap::default();
        let mut moved = |place: Place| {
            let Some((m, f)) = function_at(program, place) else { return false };
            let Some(class) = class_of(program, m, f).filter(|&k| !is_module_class(program, k)) else {
                return false;
            };
            let names = known.entry(class).or_insert_with(|| parts_moved_by_others(program, &files, class));
            !names.is_empty() && own_parts(program, m, f, place).any(|name| names.contains(&name))
        };
        findings.retain(|f| {
            let here = f.by_default.is_some() && project.holds(f.primary.place.file, inputs);
            !(here && f.places().any(&mut moved))
        });
    }
    findings
}

/// The attributes of its own object that a method calls at a place.
fn own_parts(program: &Program, m: ModIdx, f: FuncId, place: Place) -> impl Iterator<Item = Sym> {
    let ir = &program.get(m).ir;
    let receiver = ir.function(f).params.first().map(|p| Expr::Var(Var::Local(p.slot)));
    ir.calls().filter_map(move |call| match ir.expr(call.func) {
        Expr::Attr { base, name }
            if Some(ir.expr(base)) == receiver && place.span.contains(ir.span(call.func)) =>
        {
            Some(name)
        }
        _ => None,
    })
}

/// The findings without those in branches that nothing in the project comes to, for what its calls give.
pub(super) fn on_what_is_left_out(mut findings: Vec<Finding>, reading: &mut Reading<'_>) -> Vec<Finding> {
    let inputs = reading.inputs;
    let branches = |f: &Finding, program: &Program| places(f).any(|place| hangs_on_values(program, place));
    for project in projects_of(&findings, |f| branches(f, &reading.program), inputs) {
        if project.is_built() || !project.complete(reading, &|_| true) {
            continue;
        }
        let Some(settings) = settings_of(&project) else { continue };
        let files = project.modules(reading);
        let named = |name: Sym| settings.iter().any(|text| mentions(text, &[name.as_str()]));
        let fixed = Fixed::of(&reading.program, &files, &named);
        findings.retain(|f| {
            // Who has asked for CUDA by a flag gets it.
            let chosen =
                |place| f.world == World::NoCuda && NEEDS.contains(&f.code) && fixed.is_chosen(place);
            let here = project.holds(f.primary.place.file, inputs);
            !(here && places(f).any(|place| fixed.contains(place) || chosen(place)))
        });
    }
    findings
}

/// The places that must be reached.
fn places(f: &Finding) -> impl Iterator<Item = Place> {
    [Some(f.primary.place), f.stray_from].into_iter().flatten()
}

/// The texts of a project's files that may choose classes and functions by their names; nothing if it has too many.
fn settings_of(project: &Project<'_>) -> Option<Vec<String>> {
    let texts = project_texts(project.root(), project.settings())?;
    let documents = ["md", "rst", "txt"];
    let settings = texts
        .iter()
        .filter(|path| path.extension().is_none_or(|e| documents.iter().all(|document| e != *document)));
    Some(settings.filter_map(|path| read::read(path).ok()).collect())
}
