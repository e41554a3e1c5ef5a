//! Where functions refuse to continue without CUDA.

use std::cell::RefCell;

use rustc_hash::{FxHashMap, FxHashSet};

use super::Uses;
use super::needs::USES;
use super::own::Own;
use super::statements::at_once;
use crate::flow::query::call_sites::own_method;
use crate::flow::query::nodes::{Node, named};
use crate::flow::query::reaching_values::blocks;
use crate::ir::{
    Arg, ArgKind, Block, Call, Expr, ExprId, FuncId, FuncKind, Import, Module, Stmt, StmtId, UnaryOp, Var,
};
use crate::link::{ModIdx, Program, Target};
use crate::sym::Sym;
use crate::work::spend;

/// The maximum number of rounds in which refusals are propagated through calls.
const MAX_ROUNDS: usize = 6;

/// How a function refuses to continue without CUDA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// For every caller.
    Always,
    /// Unless the caller passes an argument for this parameter.
    Unless(Sym),
}

/// A refusal in a function: the text position after it, and how it affects callers (`None`: not at all).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Point {
    pub(super) after: u32,
    pub(super) refusal: Option<Refusal>,
}

/// A function of the program, or a file's body.
type Function = (ModIdx, FuncId);

/// The first refusal of each function.
pub(super) type Points = FxHashMap<Function, Point>;

/// The refusals that are known so far.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) points: Points,
    /// The functions that the current analysis has queried.
    asked: RefCell<Vec<Function>>,
    /// The functions that have been analyzed, each with those that query it.
    askers: FxHashMap<Function, Vec<Function>>,
}

impl Known {
    /// The refusal of the function, if it is known. Records the query.
    pub(super) fn get(&self, function: &Function) -> Option<&Point> {
        self.asked.borrow_mut().push(*function);
        self.points.get(function)
    }

    /// The functions that have been queried since the last call, each once.
    fn take_asked(&self) -> Vec<Function> {
        let mut asked = self.asked.take();
        asked.sort_unstable();
        asked.dedup();
        asked
    }
}

/// Finds refusals on demand: only functions are analyzed that a question leads to.
pub(super) struct Finder<'a> {
    pub(super) program: &'a Program,
    pub(super) uses: Uses,
    pub(super) own: &'a Own,
    /// The files whose functions are analyzed. Functions of other files never refuse.
    pub(super) files: FxHashSet<ModIdx>,
}

/// The functions that [`Finder::look`] works on.
#[derive(Default)]
struct Work {
    /// Those that have not been analyzed yet.
    new: Vec<Function>,
    /// Those of which a callee has a new result.
    open: FxHashSet<Function>,
    memo: Memo,
}

impl Finder<'_> {
    /// The result of `ask` when the refusals of all functions that it queries are known.
    pub(super) fn answer<T>(&self, known: &RefCell<Known>, ask: impl Fn(&Known) -> T) -> T {
        loop {
            let (answer, asked) = {
                let known = known.borrow();
                (ask(&known), known.take_asked())
            };
            if !self.look(&mut known.borrow_mut(), &asked) {
                return answer;
            }
        }
    }

    /// Analyzes these functions and those that they query. Whether any of them had not been analyzed before.
    fn look(&self, known: &mut Known, wanted: &[Function]) -> bool {
        let (mut work, mut all) = (Work::default(), Vec::new());
        self.add(known, wanted, &mut work);
        for _ in 0..MAX_ROUNDS {
            // Callees come after their callers, and are analyzed again before them.
            for n in (0..all.len()).rev() {
                if work.open.remove(&all[n]) {
                    self.analyze(known, all[n], &mut work);
                }
            }
            while let Some(function) = work.new.pop() {
                all.push(function);
                self.analyze(known, function, &mut work);
            }
            if work.open.is_empty() {
                break;
            }
        }
        !all.is_empty()
    }

    /// Adds those of the functions to the work that have not been analyzed.
    fn add(&self, known: &mut Known, functions: &[Function], work: &mut Work) {
        for f in functions.iter().filter(|f| self.files.contains(&f.0)) {
            known.askers.entry(*f).or_insert_with(|| {
                work.new.push(*f);
                Vec::new()
            });
        }
    }

    /// Analyzes one function. It is analyzed again only if the result of a function that it queries changes.
    fn analyze(&self, known: &mut Known, (m, f): Function, work: &mut Work) {
        let Self { program, uses, own, .. } = *self;
        // With uses, a function's refusal may move to an earlier place when more is known.
        if !uses.anywhere() && known.points.contains_key(&(m, f)) {
            return;
        }
        work.memo.clear();
        let point = Refuses { program, module: m, func: f, known, uses, own, memo: &work.memo }.whole();
        let asked = known.take_asked();
        self.add(known, &asked, work);
        for function in asked {
            known.askers.entry(function).or_default().push((m, f));
        }
        let Some(mut point) = point else { return };
        let function = program.get(m).ir.function(f);
        // A call of a generator or an async function does not run its body.
        if uses.anywhere() && (function.is_generator || function.is_async) {
            point.refusal = None;
        }
        if known.points.insert((m, f), point) != Some(point) {
            work.open.extend(known.askers.get(&(m, f)).into_iter().flatten());
        }
    }
}

/// Whether no caller continues without CUDA.
pub(super) fn always(point: Option<&Point>) -> bool {
    point.is_some_and(|p| p.refusal == Some(Refusal::Always))
}

/// Whether the file cannot be imported without CUDA.
pub(super) fn at_import(points: &Points, m: ModIdx) -> bool {
    always(points.get(&(m, FuncId(0))))
}

/// Results for one function: each enclosing branch asks for the same ones.
#[derive(Default)]
pub(super) struct Memo {
    /// The first refusal of a block.
    blocks: RefCell<FxHashMap<Block, Option<Point>>>,
    /// Whether a statement may leave the function.
    leaving: RefCell<FxHashMap<StmtId, bool>>,
}

impl Memo {
    /// The capacity that is kept for the next function. Most functions are small.
    const ROOM: usize = 64;

    pub(super) fn clear(&mut self) {
        fn clear<K, V>(map: &mut RefCell<FxHashMap<K, V>>) {
            let map = map.get_mut();
            if map.capacity() > Memo::ROOM { *map = FxHashMap::default() } else { map.clear() }
        }
        clear(&mut self.blocks);
        clear(&mut self.leaving);
    }
}

/// The analysis of one function.
#[derive(Clone, Copy)]
pub(super) struct Refuses<'a> {
    pub(super) program: &'a Program,
    pub(super) module: ModIdx,
    pub(super) func: FuncId,
    pub(super) known: &'a Known,
    pub(super) uses: Uses,
    pub(super) own: &'a Own,
    pub(super) memo: &'a Memo,
}

impl Refuses<'_> {
    pub(super) fn ir(&self) -> &Module {
        &self.program.get(self.module).ir
    }

    /// The first refusal of the function. A refusal that affects only callers is placed after the function's end.
    fn whole(&self) -> Option<Point> {
        let point = self.block(self.ir().function(self.func).body);
        let held_up = point.is_none_or(|p| p.refusal.is_none());
        if held_up && self.uses.anywhere() && self.divides_by_gpus() {
            let after = point.map_or(u32::MAX, |p| p.after);
            return Some(Point { after, refusal: Some(Refusal::Always) });
        }
        point
    }

    /// The first statement of the block that does not complete without CUDA.
    pub(super) fn block(&self, block: Block) -> Option<Point> {
        if let Some(&known) = self.memo.blocks.borrow().get(&block) {
            return known;
        }
        let found = self.first_in(block);
        self.memo.blocks.borrow_mut().insert(block, found);
        found
    }

    fn first_in(&self, block: Block) -> Option<Point> {
        let mut left = false;
        let statements = self.ir().block(block);
        for (n, &s) in statements.iter().enumerate() {
            if let Some(point) = self.stmt(s).or_else(|| self.filled(s, &statements[n + 1..])) {
                // Some path has returned before the refusal, so callers may continue.
                return Some(if left { Point { refusal: None, ..point } } else { point });
            }
            left = left || self.uses.anywhere() && self.may_leave(s);
        }
        None
    }

    /// Whether the statement may return from the function.
    pub(super) fn may_leave(&self, s: StmtId) -> bool {
        let ir = self.ir();
        let inner = blocks(ir, ir.stmt(s));
        if inner.is_empty() {
            return matches!(ir.stmt(s), Stmt::Return(_));
        }
        if let Some(&known) = self.memo.leaving.borrow().get(&s) {
            return known;
        }
        spend(1);
        let leaves = inner.into_iter().any(|b| ir.block(b).iter().any(|&s| self.may_leave(s)));
        self.memo.leaving.borrow_mut().insert(s, leaves);
        leaves
    }

    pub(super) fn stmt(&self, s: StmtId) -> Option<Point> {
        spend(1);
        let after = self.ir().stmt_span(s).end;
        let point = |refusal| Some(Point { after, refusal });
        match *self.ir().stmt(s) {
            Stmt::Assert { test, .. } if self.only_with_cuda(test) == Some(true) => {
                point(Some(Refusal::Always))
            }
            Stmt::Expr(e) | Stmt::Assign { value: e, .. } | Stmt::Return(Some(e))
                if self.calls_refusal(e) || self.uses(e) =>
            {
                point(Some(Refusal::Always))
            }
            ref stmt if self.uses.anywhere() && at_once(stmt).into_iter().any(|e| self.uses(e)) => {
                point(Some(Refusal::Always))
            }
            Stmt::Import(names) if self.ir().imported(names).iter().any(|i| self.imports_refusal(i)) => {
                point(Some(Refusal::Always))
            }
            // A class body runs at its definition.
            Stmt::Class(class, _) => {
                let func = self.ir().class(class).body;
                let body = Refuses { func, ..*self }.block(self.ir().function(func).body);
                body.and_then(|p| point(p.refusal))
            }
            Stmt::With { ref items, body } => {
                let entered = items.iter().any(|&(e, _)| self.calls_refusal(e));
                if entered { point(Some(Refusal::Always)) } else { self.block(body) }
            }
            // A loop in a constructor that creates parts runs at least once, and so does a loop over models or batches.
            Stmt::For { iter, body, .. }
                if self.uses.anywhere() || self.makes_parts() && self.counts_up(iter) =>
            {
                self.block(body).filter(|_| !may_skip(self.ir(), body)).and_then(|p| point(p.refusal))
            }
            Stmt::If { test, then, orelse } => {
                let left = match self.only_with_cuda(test) {
                    Some(false) => self.leaves(then),
                    Some(true) => self.leaves(orelse),
                    // An import does not run this branch.
                    None if self.is_script(test) => {
                        return self.block(then).map(|p| Point { refusal: None, ..p });
                    }
                    None => None,
                };
                match left {
                    Some(for_callers) => point(for_callers.then_some(Refusal::Always)),
                    None if self.counts_branches() && self.ends(then).and(self.ends(orelse)).is_some() => {
                        let all = [then, orelse].map(|block| self.ends(block));
                        point(all.iter().all(|end| *end == Some(true)).then_some(Refusal::Always))
                    }
                    None => self.by_default(test).and_then(|param| {
                        let inner = self.block(then)?;
                        (inner.refusal == Some(Refusal::Always))
                            .then_some(Point { after, refusal: Some(Refusal::Unless(param)) })
                    }),
                }
            }
            _ => None,
        }
    }

    fn makes_parts(&self) -> bool {
        self.ir().function(self.func).kind == FuncKind::Function && self.is_constructor()
    }

    /// `range(…)`
    fn counts_up(&self, e: ExprId) -> bool {
        let ir = self.ir();
        matches!(ir.expr(e), Expr::Call(call)
            if ir.is_builtin(ir.call(call).func, "range"))
    }

    /// `__name__ == "__main__"`
    fn is_script(&self, e: ExprId) -> bool {
        matches!(self.ir().expr(e), Expr::Compare { left, .. }
            if matches!(self.ir().expr(left), Expr::Var(Var::Unbound(name)) if name.as_str() == "__name__"))
    }

    /// The parameter, if the test is a parameter or its negation, and its default takes the branch.
    fn by_default(&self, test: ExprId) -> Option<Sym> {
        let (e, wanted) = match self.ir().expr(test) {
            Expr::Unary { op: UnaryOp::Not, operand } => (operand, false),
            _ => (test, true),
        };
        let Expr::Var(Var::Local(slot)) = self.ir().expr(e) else { return None };
        let param = self.ir().function(self.func).params.iter().find(|p| p.slot == slot)?;
        let default = self.ir().expr(param.default?);
        (default == if wanted { Expr::True } else { Expr::False }).then_some(param.name)
    }

    /// Whether the expression calls a function that does not return without CUDA.
    pub(super) fn calls_refusal(&self, e: ExprId) -> bool {
        let Expr::Call(id) = self.ir().expr(e) else { return false };
        let call = self.ir().call(id);
        let callee = match named(self.program, self.module, call.func) {
            Some(Node::Function(m, f)) => Some((m, f)),
            Some(Node::Class(key)) => self.program.find_method(key, Sym::new("__init__")),
            None if self.uses.anywhere() => own_method(self.program, self.module, self.func, call.func),
            None => None,
        };
        let Some((m, f)) = callee else { return false };
        // A comment that switches the rules off at the call also covers the callee's uses. A callee that raises is a refusal in any case.
        if self.uses != Uses::None && self.is_silenced(e, USES) {
            return false;
        }
        match self.known.get(&(m, f)).and_then(|p| p.refusal) {
            Some(Refusal::Always) => true,
            Some(Refusal::Unless(param)) => !gives(&self.program.get(m).ir, f, call, param),
            None => false,
        }
    }

    /// Whether the import is of a file whose body does not complete without CUDA.
    fn imports_refusal(&self, import: &Import) -> bool {
        let targets = &self.program.get(self.module).targets;
        match targets.get(&(import.level, import.module, import.name)) {
            Some(&(Target::Module(m) | Target::Member(m, _))) => always(self.known.get(&(m, FuncId(0)))),
            _ => false,
        }
    }

    /// Whether the function is a constructor, or the body of a class or file: other code needs its result.
    pub(super) fn is_constructor(&self) -> bool {
        let function = self.ir().function(self.func);
        match function.kind {
            FuncKind::Module | FuncKind::ClassBody => true,
            FuncKind::Function => function.class.is_some() && function.name.as_str() == "__init__",
            FuncKind::Lambda => false,
        }
    }
}

/// Whether an iteration of a loop with this body may skip the rest of the body.
fn may_skip(ir: &Module, body: Block) -> bool {
    ir.block(body).iter().map(|&s| ir.stmt(s)).any(|s| {
        matches!(s, Stmt::Break | Stmt::Continue) || blocks(ir, s).into_iter().any(|b| may_skip(ir, b))
    })
}

/// Whether the call may pass an argument for this parameter.
fn gives(ir: &Module, f: FuncId, call: Call<'_>, param: Sym) -> bool {
    let at = ir.function(f).params.iter().position(|p| p.name == param).unwrap_or(0);
    let positional = call.args.iter().filter(|a| a.kind == ArgKind::Positional).count();
    positional > at
        || call.args.iter().any(|a: &Arg| match a.kind {
            ArgKind::Keyword(name) => name == param,
            ArgKind::Star | ArgKind::DoubleStar => true,
            ArgKind::Positional => false,
        })
}
