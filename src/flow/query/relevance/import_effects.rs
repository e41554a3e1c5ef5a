//! The effects of importing a file on CUDA.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::project::context::closed_over;
use crate::flow::query::relevance::graph::number;
use crate::ir::{Block, Expr, ExprId, FuncId, FuncKind, Function, Module, Stmt, StmtId};
use crate::link::{ModIdx, Program, Resolved, Target};
use crate::reads;
use crate::span::Span;
use crate::sym::Sym;
use crate::torch::{self, Accelerator, Without};

/// The files whose import initializes CUDA, or queries it such that the driver reads the environment: in their own bodies or through
/// their imports.
#[derive(Debug, Default)]
pub struct ImportTime(FxHashSet<ModIdx>);

impl ImportTime {
    /// Combines the results of [`body`] for every file, in order.
    pub(crate) fn of(found: &[(bool, Vec<ModIdx>)]) -> Self {
        let mut importers: FxHashMap<ModIdx, Vec<ModIdx>> = FxHashMap::default();
        for (m, (_, imports)) in (0..).map(ModIdx).zip(found) {
            imports.iter().for_each(|&imported| importers.entry(imported).or_default().push(m));
        }
        let asking = (0..).map(ModIdx).zip(found).filter(|(_, (asks, _))| *asks).map(|(m, _)| m);
        Self(closed_over(asking.collect(), &importers, &|_| true))
    }

    /// Whether importing the file touches CUDA.
    pub fn touches_cuda(&self, module: ModIdx) -> bool {
        reads::note(module.0);
        self.0.contains(&module)
    }
}

/// Whether the file's own body touches CUDA, and the files that it imports.
pub(crate) fn body(program: &Program, module: ModIdx) -> (bool, Vec<ModIdx>) {
    let linked = program.get(module);
    let ir = &linked.ir;
    let cuda = Sym::new("cuda");
    let for_main = outermost(for_main(ir));
    let bodies = ir.functions.iter().filter(|f| is_deferred(f)).map(|f| f.span);
    let deferred = outermost(bodies.chain(for_main.iter().copied()).collect());
    let within = |spans: &[Span], span: Span| {
        let before = spans.partition_point(|d| d.start <= span.start);
        before.checked_sub(1).is_some_and(|i| spans[i].contains(span))
    };
    // A quick test: most files do not mention CUDA.
    let names_cuda = ir.has_attribute(cuda)
        || ir.imports.iter().any(|i| i.module.as_str().starts_with("torch.") || i.name == Some(cuda));
    let asks = outside_bodies(ir).any(|n| {
        let Expr::Call(call) = ir.exprs[n] else { return false };
        let func = ir.call(call).func;
        // Most calls are of plain names or methods of variables. Only dotted names can be PyTorch's.
        matches!(ir.expr(func), Expr::Attr { .. } | Expr::Var(_))
            && !within(&for_main, ir.expr_spans[n])
            && match program.resolve_expr(module, func) {
                Some(Resolved::External(path)) => names_cuda && asks_cuda(path),
                Some(Resolved::Function(m, f)) => Always { program, module: m }.asks(f, MOST_CALLS),
                _ => false,
            }
    });
    let mut imports = Vec::new();
    for (n, s) in ir.stmts.iter().enumerate() {
        let Stmt::Import(names) = *s else { continue };
        if within(&deferred, ir.stmt_span(StmtId(u32::try_from(n).unwrap_or(u32::MAX)))) {
            continue;
        }
        for i in ir.imported(names) {
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

/// The maximum depth of calls that are followed.
const MOST_CALLS: u32 = 4;

/// The operations that functions of a file execute in every call.
struct Always<'a> {
    program: &'a Program,
    module: ModIdx,
}

impl Always<'_> {
    /// Whether the function queries CUDA in every call, on all paths.
    fn asks(&self, func: FuncId, depth: u32) -> bool {
        let function = self.ir().function(func);
        let deferred = function.is_generator || function.is_async || function.decorators.len > 0;
        !deferred && self.block_asks(function.body, depth).unwrap_or(false)
    }

    fn ir(&self) -> &Module {
        &self.program.get(self.module).ir
    }

    /// The answer for a block; `None` if the code after it decides.
    fn block_asks(&self, block: Block, depth: u32) -> Option<bool> {
        self.ir().block(block).iter().find_map(|&s| self.statement_asks(s, depth))
    }

    fn statement_asks(&self, s: StmtId, depth: u32) -> Option<bool> {
        let asks = |e: ExprId| self.expression_asks(e, depth);
        let yes = |asks: bool| asks.then_some(true);
        match *self.ir().stmt(s) {
            Stmt::Expr(e) | Stmt::Assign { value: e, .. } | Stmt::AugAssign { value: e, .. } => yes(asks(e)),
            Stmt::AnnAssign { value, .. } => yes(value.is_some_and(asks)),
            Stmt::Return(value) => Some(value.is_some_and(asks)),
            Stmt::With { ref items, body } => {
                yes(items.iter().any(|&(e, _)| asks(e))).or_else(|| self.block_asks(body, depth))
            }
            Stmt::Try { body, .. } => self.block_asks(body, depth),
            // Only one of several paths continues here, so nothing later is certain.
            Stmt::If { test, .. } | Stmt::While { test, .. } => Some(asks(test)),
            Stmt::For { iter, .. } => yes(asks(iter)),
            Stmt::Raise { .. } | Stmt::Assert { .. } | Stmt::Match { .. } => Some(false),
            _ => None,
        }
    }

    /// Whether evaluating the expression queries CUDA, regardless of its tests.
    fn expression_asks(&self, e: ExprId, depth: u32) -> bool {
        let ir = self.ir();
        let asks = |e: ExprId| self.expression_asks(e, depth);
        match ir.expr(e) {
            Expr::Call(id) => {
                let call = ir.call(id);
                call.args.iter().any(|a| asks(a.value)) || asks(call.func) || self.call_asks(call.func, depth)
            }
            Expr::IfElse(id) => asks(ir.if_else(id).test),
            Expr::And(list) | Expr::Or(list) => ir.list(list).first().is_some_and(|&x| asks(x)),
            Expr::Attr { base, .. } => asks(base),
            Expr::Index { base, index } => asks(base) || asks(index),
            Expr::Unary { operand, .. } => asks(operand),
            Expr::Binary { left, right, .. } | Expr::Compare { left, right, .. } => asks(left) || asks(right),
            Expr::Tuple(list)
            | Expr::List(list)
            | Expr::Set(list)
            | Expr::Dict(list)
            | Expr::Format(list) => ir.list(list).iter().any(|&x| asks(x)),
            _ => false,
        }
    }

    fn call_asks(&self, func: ExprId, depth: u32) -> bool {
        match self.program.resolve_expr(self.module, func) {
            Some(Resolved::External(path)) => asks_cuda(path),
            Some(Resolved::Function(module, f)) => {
                depth > 0 && Always { program: self.program, module }.asks(f, depth - 1)
            }
            _ => false,
        }
    }
}

/// The numbers of the expressions that are in no function's body. They include the defaults of parameters and the decorators, which are
/// evaluated at the function's definition.
fn outside_bodies(ir: &Module) -> impl Iterator<Item = usize> {
    // Functions and their expressions are numbered in the same order. The range of an outer function includes its inner functions.
    let bodies = ir.functions.iter().filter(|f| is_deferred(f)).map(|f| f.exprs.clone());
    let end = number(ir.exprs.len());
    let mut from = 0;
    let gaps = bodies.chain(std::iter::once(end..end)).map(move |body| {
        let gap = from..body.start.max(from);
        from = from.max(body.end);
        gap
    });
    gaps.flatten().map(|n| n as usize)
}

/// Whether the body runs later than its definition.
fn is_deferred(f: &Function) -> bool {
    f.parent.is_some() && f.kind != FuncKind::ClassBody
}

/// The statements behind `if __name__ == "__main__"`, which do not run on import.
fn for_main(ir: &Module) -> Vec<Span> {
    let statements = ir.stmts.iter().zip(&ir.stmt_spans);
    let main = statements.filter(|(s, _)| matches!(s, Stmt::If { test, .. } if asks_for_main(ir, *test)));
    main.map(|(_, &span)| span).collect()
}

/// The spans that are in no other span of the list, in order.
fn outermost(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|s| (s.start, std::cmp::Reverse(s.end)));
    let mut outermost: Vec<Span> = Vec::new();
    for span in spans {
        if !outermost.last().is_some_and(|o| o.contains(span)) {
            outermost.push(span);
        }
    }
    outermost
}

/// `__name__ == "__main__"`, alone or in a larger test.
pub(crate) fn asks_for_main(ir: &Module, e: ExprId) -> bool {
    let main = |e: ExprId| matches!(ir.expr(e), Expr::Str(s) if s.as_str() == "__main__");
    match ir.expr(e) {
        Expr::Compare { left, right, .. } => main(left) || main(right),
        Expr::And(list) | Expr::Or(list) => ir.list(list).iter().any(|&e| asks_for_main(ir, e)),
        _ => false,
    }
}

/// Whether the function initializes CUDA, or queries it such that the driver reads the environment. Counting devices does not: PyTorch
/// uses NVIDIA's management library for that (`_device_count_nvml`; also observed on an H100).
pub fn asks_cuda(path: Sym) -> bool {
    torch::call(path).and_then(|f| f.accelerator).is_some_and(|a| {
        a.without == Without::Availability && matches!(a.accelerator, Accelerator::Cuda | Accelerator::Any)
            || a.accelerator == Accelerator::Cuda && a.without == Without::Raises && !a.context
    })
}
