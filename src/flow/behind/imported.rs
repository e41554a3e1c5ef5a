//! Files that are only imported where CUDA is: by files that cannot be imported without it, or by imports that come after a
//! refusal.
//!
//! What is in such a file and mentioned nowhere runs in no program that has not come past that. That is known of a project
//! whose files are all in sight, and where none is imported by a name that is put together.

use rustc_hash::{FxHashMap, FxHashSet};

use super::refuses::{Points, at_import};
use crate::flow::scripts::is_script;
use crate::ir::Stmt;
use crate::link::{ModIdx, Program, Resolved, Target};
use crate::span::Span;

/// Those of the files, but for `packages`, which are imported with what is in them.
pub(super) fn only_with_cuda(
    program: &Program,
    files: &[ModIdx],
    packages: &FxHashSet<ModIdx>,
    points: &Points,
    there: &FxHashMap<ModIdx, Vec<Span>>,
) -> FxHashSet<ModIdx> {
    let mut importers: FxHashMap<ModIdx, Vec<(ModIdx, Span)>> = FxHashMap::default();
    for &m in files {
        let linked = program.get(m);
        if imports_by_name(program, m) {
            return FxHashSet::default();
        }
        for (s, &at) in linked.ir.stmts.iter().zip(&linked.ir.stmt_spans) {
            let Stmt::Import(imports) = *s else { continue };
            for i in linked.ir.imported(imports) {
                let target = linked.targets.get(&(i.level, i.module, i.name));
                if let Some(&(Target::Module(of) | Target::Member(of, _))) = target {
                    importers.entry(of).or_default().push((m, at));
                }
            }
        }
    }
    let script = |m: ModIdx| is_script(&program.get(m).ir);
    let mut only: FxHashSet<ModIdx> = files
        .iter()
        .copied()
        .filter(|m| importers.contains_key(m) && !packages.contains(m) && !script(*m))
        .collect();
    let late = |only: &FxHashSet<ModIdx>, &(by, at): &(ModIdx, Span)| {
        at_import(points, by)
            || only.contains(&by)
            || there.get(&by).is_some_and(|there| there.iter().any(|span| span.contains(at)))
    };
    // Those that only import one another are imported by nobody.
    loop {
        let open = |m: &ModIdx| !importers[m].iter().all(|import| late(&only, import));
        let Some(m) = only.iter().copied().find(open) else { break };
        only.remove(&m);
    }
    let mut grounded = FxHashSet::default();
    while let Some(&m) = only
        .iter()
        .find(|m| !grounded.contains(*m) && importers[*m].iter().any(|import| late(&grounded, import)))
    {
        grounded.insert(m);
    }
    grounded
}

/// Does the file import others by names that are put together, or by their texts?
fn imports_by_name(program: &Program, m: ModIdx) -> bool {
    let ir = &program.get(m).ir;
    ir.calls().any(|call| {
        ir.last_name(call.func)
            .is_some_and(|n| matches!(n.as_str(), "import_module" | "__import__" | "run_path"))
            && matches!(program.resolve_expr(m, call.func), Some(Resolved::External(_)) | None)
    })
}
