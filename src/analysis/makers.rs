//! Refutes findings about an object's attribute that other code of the project moves. All files of the project are read.

use rustc_hash::{FxHashMap, FxHashSet};

use super::project::{Reading, projects_of};
use crate::finding::Finding;
use crate::flow::{class_of, function_at, is_module_class, parts_moved_by_others};
use crate::ir::{Expr, FuncId, Var};
use crate::link::{ClassKey, ModIdx, Program};
use crate::span::Place;
use crate::sym::Sym;

/// Removes findings about what an object makes on the CPU and never moves, if other code in the project may move that attribute.
pub(super) fn moved_by_others(mut findings: Vec<Finding>, reading: &mut Reading<'_>) -> Vec<Finding> {
    let inputs = reading.inputs;
    for project in projects_of(&findings, |f, _| f.by_default().is_some(), reading) {
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
            let here = f.by_default().is_some() && project.holds(f.primary.place.file, inputs);
            !(here && f.places().any(&mut moved))
        });
    }
    findings
}

/// The attributes of `self` that a method calls at a place.
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
