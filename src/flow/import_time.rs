//! What happens to CUDA when a file is imported.

use rayon::prelude::*;

use crate::ir::{Expr, ExprId, FuncKind, Module, Stmt, StmtId};
use crate::link::{ModIdx, Program, Resolved, Target};
use crate::span::Span;
use crate::sym::Sym;
use crate::torch::{self, Accelerator, Without};

/// Which files initialise CUDA, or ask it something that makes the driver read the environment, when they are
/// imported: in their own bodies or through what they import.
#[derive(Debug, Default)]
pub struct ImportTime(Vec<bool>);

impl ImportTime {
    /// Looks at every file of the program, on the current thread pool.
    pub fn of(program: &Program) -> Self {
        let found: Vec<(bool, Vec<ModIdx>)> =
            (0..program.modules.len()).into_par_iter().map(|n| body(program, index(n))).collect();
        let mut importers: Vec<Vec<ModIdx>> = vec![Vec::new(); found.len()];
        for (n, (_, imports)) in found.iter().enumerate() {
            for m in imports {
                importers[m.0 as usize].push(index(n));
            }
        }
        let mut touches: Vec<bool> = found.iter().map(|(asks, _)| *asks).collect();
        let mut work: Vec<ModIdx> = (0..found.len()).filter(|&n| touches[n]).map(index).collect();
        while let Some(m) = work.pop() {
            for &importer in &importers[m.0 as usize] {
                if !std::mem::replace(&mut touches[importer.0 as usize], true) {
                    work.push(importer);
                }
            }
        }
        Self(touches)
    }

    /// Does importing the file touch CUDA?
    pub fn touches_cuda(&self, module: ModIdx) -> bool {
        self.0.get(module.0 as usize).copied().unwrap_or(false)
    }
}

fn index(n: usize) -> ModIdx {
    ModIdx(u32::try_from(n).unwrap_or(u32::MAX))
}

/// Does the file's own body touch CUDA, and which files does it import?
fn body(program: &Program, module: ModIdx) -> (bool, Vec<ModIdx>) {
    let linked = program.get(module);
    let ir = &linked.ir;
    let cuda = Sym::new("cuda");
    let deferred = deferred(ir);
    let now = |span: Span| {
        let before = deferred.partition_point(|d| d.start <= span.start);
        !before.checked_sub(1).is_some_and(|i| deferred[i].contains(span))
    };
    // Most files name CUDA nowhere.
    let names_cuda = ir.exprs.iter().any(|e| matches!(e, Expr::Attr { name, .. } if *name == cuda))
        || ir.imports.iter().any(|i| i.module.as_str().starts_with("torch.") || i.name == Some(cuda));
    let asks = names_cuda && ir.exprs.iter().zip(&ir.expr_spans).any(|(e, &at)| {
        let Expr::Call(call) = *e else { return false };
        let func = ir.call(call).func;
        // Most calls are of plain names or methods of variables: only dotted names can be PyTorch's.
        matches!(ir.expr(func), Expr::Attr { .. } | Expr::Var(_))
            && now(at)
            && matches!(program.resolve_expr(module, func), Some(Resolved::External(path)) if asks_cuda(path))
    });
    let mut imports = Vec::new();
    for (n, s) in ir.stmts.iter().enumerate() {
        let Stmt::Import(names) = s else { continue };
        if !now(ir.stmt_span(StmtId(u32::try_from(n).unwrap_or(u32::MAX)))) {
            continue;
        }
        for i in names {
            let target = linked.targets.get(&(i.level, i.module, i.name));
            if let Some(&(Target::Module(t) | Target::Member(t, _))) = target
                && !imports.contains(&t)
            {
                imports.push(t);
            }
        }
    }
    (asks, imports)
}

/// Code that does not run at import: functions' bodies, and what stands behind `if __name__ == "__main__"`. Outermost
/// spans only.
fn deferred(ir: &Module) -> Vec<Span> {
    let mut spans: Vec<Span> = ir
        .functions
        .iter()
        .filter(|f| f.parent.is_some() && f.kind != FuncKind::ClassBody)
        .map(|f| f.span)
        .collect();
    for (n, s) in ir.stmts.iter().enumerate() {
        if let Stmt::If { test, .. } = s
            && asks_for_main(ir, *test)
        {
            spans.push(ir.stmt_span(StmtId(u32::try_from(n).unwrap_or(u32::MAX))));
        }
    }
    spans.sort_by_key(|s| (s.start, std::cmp::Reverse(s.end)));
    let mut outermost: Vec<Span> = Vec::new();
    for span in spans {
        if !outermost.last().is_some_and(|o| o.contains(span)) {
            outermost.push(span);
        }
    }
    outermost
}

fn asks_for_main(ir: &Module, e: ExprId) -> bool {
    let main = |e: ExprId| matches!(ir.expr(e), Expr::Str(s) if s.as_str() == "__main__");
    match ir.expr(e) {
        Expr::Compare { left, right, .. } => main(left) || main(right),
        Expr::And(list) | Expr::Or(list) => ir.list(list).iter().any(|&e| asks_for_main(ir, e)),
        _ => false,
    }
}

/// Does the function initialise CUDA, or ask it something that makes the driver read the environment?
pub fn asks_cuda(path: Sym) -> bool {
    torch::call(path).and_then(|f| f.accelerator).is_some_and(|a| {
        a.accelerator == Accelerator::Cuda
            && (a.without == Without::Availability || a.without == Without::Raises && !a.context)
    })
}
