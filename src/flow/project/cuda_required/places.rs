//! The places in files that are only reached with CUDA: code after a refusal, and branches for machines with CUDA.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Uses;
use super::own::Own;
use super::refuses::{Known, Memo, Points, Refusal, Refuses, at_import};
use crate::flow::query::nodes::{Node, named};
use crate::flow::query::reaching_values::blocks;
use crate::ir::{Block, ClassId, Expr, ExprId, FuncId, FuncKind, Stmt};
use crate::link::{ClassKey, ModIdx, Program};
use crate::span::Span;
use crate::sym::Sym;
use crate::torch;
use crate::work::spend;

/// Whether the function only runs after the import of its file, which does not finish without CUDA. Functions that the file's body runs
/// before its refusal do not count.
pub(super) fn after_import(program: &Program, points: &Points, m: ModIdx, f: FuncId) -> bool {
    let until = points.get(&(m, FuncId(0))).map_or(0, |p| p.after);
    at_import(points, m) && !run_by_body(program, m, until).contains(&f)
}

/// The functions of a file that its body mentions before that place, directly or not.
fn run_by_body(program: &Program, m: ModIdx, until: u32) -> FxHashSet<FuncId> {
    let ir = &program.get(m).ir;
    let number = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let (mut open, mut run) = (vec![FuncId(0)], FxHashSet::default());
    while let Some(f) = open.pop() {
        let own = if f == FuncId(0) { 0..number(ir.exprs.len()) } else { ir.function(f).exprs.clone() };
        for e in own.map(ExprId) {
            spend(1);
            if !matches!(ir.expr(e), Expr::Var(_) | Expr::Attr { .. })
                || ir.function_around(e) != f
                || f == FuncId(0) && ir.span(e).end > until
            {
                continue;
            }
            match named(program, m, e) {
                Some(Node::Function(at, g)) if at == m => {
                    open.extend(ir.functions_in(ir.function(g).span).filter(|&g| run.insert(g)));
                }
                Some(Node::Class(key)) if key.module == m => {
                    open.extend(ir.functions_in(ir.class(key.class).span).filter(|&g| run.insert(g)));
                }
                _ => {}
            }
        }
    }
    run
}

/// The `backward` of each `autograd.Function` whose `forward` refuses: `forward` has run before.
fn after_forward(program: &Program, m: ModIdx, known: &Known) -> Vec<Span> {
    let linked = program.get(m);
    let is_function = |p: &Sym| torch::base_class(*p).is_some_and(|b| b.kind == torch::Base::Function);
    let classes =
        linked.classes.iter().enumerate().filter(|(_, info)| info.externals.iter().any(is_function));
    let backward = classes.filter_map(|(n, _)| {
        let class = ClassKey { module: m, class: ClassId(u32::try_from(n).unwrap_or(u32::MAX)) };
        let forward = known.get(&program.find_method(class, Sym::new("forward"))?)?;
        let backward = program.own_method(class, Sym::new("backward"))?;
        (forward.refusal == Some(Refusal::Always)).then(|| linked.ir.function(backward).span)
    });
    backward.collect()
}

/// The places of a file that are only reached with CUDA: from a refusal to the end of its block, and branches for machines with CUDA. If
/// the file cannot be imported without CUDA, these are all its functions, unless the refusal may come after they run.
pub(super) fn there(program: &Program, m: ModIdx, known: &Known, uses: Uses, own: &Own) -> Vec<Span> {
    let ir = &program.get(m).ir;
    let whole = !uses.anywhere() && at_import(&known.points, m);
    let until = known.get(&(m, FuncId(0))).map_or(0, |p| p.after);
    let run = if whole { run_by_body(program, m, until) } else { FxHashSet::default() };
    let mut found = after_forward(program, m, known);
    let mut memo = Memo::default();
    for (n, function) in ir.functions.iter().enumerate() {
        let func = FuncId(u32::try_from(n).unwrap_or(u32::MAX));
        if function.kind == FuncKind::Function && whole && !run.contains(&func) {
            found.push(function.span);
        } else {
            // A script that needs CUDA reports that itself. The code that it uses has its own reasons.
            let uses = if uses == Uses::Making && func == FuncId(0) { Uses::None } else { uses };
            memo.clear();
            Refuses { program, module: m, func, known, uses, own, memo: &memo }.there(
                function.body,
                &mut Passed::default(),
                &mut found,
            );
        }
    }
    outermost(found)
}

/// The places that are not inside another one, in order.
pub(super) fn outermost(mut places: Vec<Span>) -> Vec<Span> {
    places.sort_unstable_by_key(|at| (at.start, Reverse(at.end)));
    let mut until = 0;
    places.retain(|at| {
        let kept = at.end > until;
        until = until.max(at.end);
        kept
    });
    places
}

/// Whether the place is inside one of these places, which are disjoint and in order.
pub(super) fn is_within(places: &[Span], at: Span) -> bool {
    let next = places.partition_point(|place| place.start <= at.start);
    next.checked_sub(1).is_some_and(|n| places[n].contains(at))
}

/// Tests that earlier code has passed and whose true branch needs CUDA. From here on, they can only be true with CUDA.
#[derive(Default)]
struct Passed {
    tests: Vec<u64>,
    known: FxHashMap<u64, u32>,
}

impl Passed {
    fn push(&mut self, test: u64) {
        self.tests.push(test);
        *self.known.entry(test).or_default() += 1;
    }

    fn truncate(&mut self, len: usize) {
        for test in self.tests.drain(len..) {
            if let Some(n) = self.known.get_mut(&test) {
                *n -= 1;
            }
        }
    }

    fn contains(&self, test: u64) -> bool {
        self.known.get(&test).is_some_and(|&n| n > 0)
    }
}

impl Refuses<'_> {
    /// Adds the places of the block, and of nested blocks, that are only reached with CUDA. `passed` contains variables that can only be
    /// true with CUDA at this point.
    fn there(&self, block: Block, passed: &mut Passed, found: &mut Vec<Span>) {
        let ir = self.ir();
        let statements = ir.block(block);
        let (Some(&last), known) = (statements.last(), passed.tests.len()) else { return };
        for (n, &s) in statements.iter().enumerate() {
            for inner in blocks(ir, ir.stmt(s)) {
                self.there(inner, passed, found);
            }
            if let Stmt::If { test, then, orelse } = *ir.stmt(s) {
                let key = ir.name_key(test);
                let before = || key.is_some_and(|key| passed.contains(key));
                let branch = match self.only_with_cuda(test) {
                    Some(outcome) => Some(if outcome { then } else { orelse }),
                    None => before().then_some(then),
                };
                found.extend(branch.and_then(|b| {
                    let (first, last) = (ir.block(b).first()?, ir.block(b).last()?);
                    Some(Span { start: ir.stmt_span(*first).start, end: ir.stmt_span(*last).end })
                }));
                if let Some(key) = key
                    && self.uses.anywhere()
                    && self.is_lasting(test)
                    && self.block(then).is_some()
                {
                    passed.push(key);
                }
            }
            // The code after the `__main__` branch of a script counts as well.
            if let Some(point) = self.stmt(s).or_else(|| self.filled(s, &statements[n + 1..])) {
                found.push(Span { start: point.after, end: ir.stmt_span(last).end });
                break;
            }
        }
        passed.truncate(known);
    }

    /// Whether the expression is a variable or attribute that the function does not set later.
    fn is_lasting(&self, e: ExprId) -> bool {
        let ir = self.ir();
        let mut set = ir.settings_in(e, ir.stmts_of(ir.function(self.func)));
        matches!(ir.expr(e), Expr::Var(_) | Expr::Attr { .. })
            && !set.any(|s| ir.stmt_span(s.stmt).start > ir.span(e).end)
    }
}
