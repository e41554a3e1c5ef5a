//! What is asked of a file again and again, found out once, when it is asked first.

use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::OnceLock;

use rustc_hash::{FxHashMap, FxHasher};

use super::{CallId, Expr, ExprId, FuncId, FuncKind, Function, Module, Stmt, StmtId, Var};
use crate::span::Span;
use crate::sym::Sym;
use crate::work::spend;

/// The indices of one file. A module is the same whether or not it has been asked.
#[derive(Default, Debug)]
pub struct Index {
    frames: OnceLock<Vec<Frame>>,
    settings: OnceLock<FxHashMap<u64, Vec<Setting>>>,
    mentions: OnceLock<FxHashMap<Var, Vec<ExprId>>>,
    given: OnceLock<FxHashMap<ExprId, CallId>>,
    calls: OnceLock<FxHashMap<Span, ExprId>>,
    parents: OnceLock<Vec<ExprId>>,
    pub(super) owners: OnceLock<Box<[FuncId]>>,
    silent: OnceLock<ExprSet>,
    named_calls: OnceLock<NamedCalls>,
    loops: OnceLock<Vec<(usize, Span)>>,
}

/// The calls of a file by name.
#[derive(Debug, Default)]
struct NamedCalls {
    /// Each name, and where its calls begin.
    names: Vec<(Sym, u32)>,
    calls: Vec<CallId>,
}

impl Module {
    /// The loops of the file: the indices of the statements, in order, each with its span.
    pub fn loops(&self) -> &[(usize, Span)] {
        self.index.loops.get_or_init(|| {
            let statements = self.stmts.iter().zip(&self.stmt_spans).enumerate();
            let looped = statements.filter(|(_, (s, _))| matches!(s, Stmt::For { .. } | Stmt::While { .. }));
            looped.map(|(n, (_, &span))| (n, span)).collect()
        })
    }
}

/// A set of one file's expressions.
#[derive(Clone, Debug)]
pub struct ExprSet(Box<[u64]>);

impl ExprSet {
    /// The empty set, with room for the expressions of the file.
    fn of(ir: &Module) -> Self {
        Self(vec![0; ir.exprs.len().div_ceil(64)].into())
    }

    /// Puts an expression of the file into it.
    pub fn insert(&mut self, e: ExprId) {
        if let Some(bits) = self.0.get_mut(e.0 as usize / 64) {
            *bits |= 1 << (e.0 % 64);
        }
    }

    /// Is the expression in it?
    pub fn contains(&self, e: ExprId) -> bool {
        self.0.get(e.0 as usize / 64).is_some_and(|bits| bits >> (e.0 % 64) & 1 == 1)
    }
}

impl Extend<ExprId> for ExprSet {
    fn extend<T: IntoIterator<Item = ExprId>>(&mut self, all: T) {
        all.into_iter().for_each(|e| self.insert(e));
    }
}

impl Clone for Index {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Index {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A function or class in the text.
#[derive(Debug)]
struct Frame {
    span: Span,
    func: FuncId,
    /// The index of the innermost one around it.
    around: Option<usize>,
}

/// A place that gives a variable, or an attribute or item of one, something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// The statement.
    pub stmt: StmtId,
    /// What it sets there.
    pub target: ExprId,
    /// The whole value, if it is an assignment that does not take it apart.
    pub value: Option<ExprId>,
}

impl Module {
    /// The functions, lambdas and class bodies around a place, the innermost first; not the file's own body.
    pub fn functions_around(&self, place: Span) -> impl Iterator<Item = FuncId> + '_ {
        let frames = self.index.frames.get_or_init(|| frames(self));
        let mut at = frames.partition_point(|f| f.span.start <= place.start).checked_sub(1);
        std::iter::from_fn(move || {
            spend(1);
            let frame = frames.get(at?)?;
            at = frame.around;
            Some(frame)
        })
        .filter(move |frame| frame.span.contains(place))
        .map(|frame| frame.func)
    }

    /// The innermost `def` around a place of the file.
    pub fn function_at(&self, place: Span) -> Option<&Function> {
        self.functions_around(place).map(|f| self.function(f)).find(|f| f.kind == FuncKind::Function)
    }

    /// The functions, lambdas and class bodies that begin within a part of the text.
    pub fn functions_in(&self, part: Span) -> impl Iterator<Item = FuncId> + '_ {
        let frames = self.index.frames.get_or_init(|| frames(self));
        let from = frames.partition_point(|f| f.span.start < part.start);
        let within = frames[from..].iter().take_while(move |f| f.span.start < part.end);
        within.filter(move |f| part.contains(f.span)).map(|f| f.func)
    }

    /// What may set what the expression names, anywhere in the file, in the order of the statements: assignments, loops and `with`,
    /// several at once taken apart.
    pub fn settings(&self, named: ExprId) -> impl Iterator<Item = Setting> + '_ {
        self.settings_in(named, 0..self.stmts.len())
    }

    /// The same in statements with these numbers.
    pub fn settings_in(&self, named: ExprId, stmts: Range<usize>) -> impl Iterator<Item = Setting> + '_ {
        let all = self.index.settings.get_or_init(|| settings(self));
        let all = self.name_key(named).and_then(|key| all.get(&key)).map_or(&[][..], Vec::as_slice);
        let from = all.partition_point(|s| (s.stmt.0 as usize) < stmts.start);
        let to = all.partition_point(|s| (s.stmt.0 as usize) < stmts.end);
        let part = all.get(from..to).unwrap_or_default();
        part.iter().copied().filter(move |s| {
            spend(1);
            self.names_the_same(s.target, named)
        })
    }

    /// The expressions with numbers in this range that are this variable, as functions number theirs.
    pub fn mentions_in(&self, var: Var, exprs: Range<u32>) -> &[ExprId] {
        let all = self.index.mentions.get_or_init(|| mentions(self));
        let all = all.get(&var).map_or(&[][..], Vec::as_slice);
        let from = all.partition_point(|e| e.0 < exprs.start);
        let to = all.partition_point(|e| e.0 < exprs.end);
        all.get(from..to).unwrap_or_default()
    }

    /// The call that is given the expression as it is.
    pub fn call_given(&self, e: ExprId) -> Option<CallId> {
        self.index.given.get_or_init(|| given(self)).get(&e).copied()
    }

    /// The call at just this place.
    pub fn call_at(&self, place: Span) -> Option<ExprId> {
        let calls = self.index.calls.get_or_init(|| {
            spend(self.exprs.len());
            let all = self.exprs.iter().zip(&self.expr_spans).enumerate();
            let calls = all.filter(|(_, (e, _))| matches!(e, Expr::Call(_)));
            // The first of several is what the text says.
            calls.rev().map(|(n, (_, &at))| (at, ExprId(number(n)))).collect()
        });
        calls.get(&place).copied()
    }

    /// The expression of the same function that this one is a part of: parts are numbered before it.
    pub fn parent(&self, e: ExprId) -> Option<ExprId> {
        let parents = self.index.parents.get_or_init(|| parents(self));
        let function = self.function(self.function_around(e));
        let end = if function.parent.is_none() { number(self.exprs.len()) } else { function.exprs.end };
        parents.get(e.0 as usize).copied().filter(|p| p.0 < end)
    }

    /// Finds out in which function each expression stands, for those who ask of many.
    pub fn note_owners(&self) {
        self.index.owners.get_or_init(|| owners(self));
    }

    /// Mentions by which nothing runs: annotations, bases, `isinstance`.
    pub fn silent(&self) -> &ExprSet {
        self.index.silent.get_or_init(|| silent(self))
    }

    /// The names, the last parts of dotted ones, of what is called, each with its calls in the order of their numbers.
    pub fn named_calls(&self) -> impl Iterator<Item = (Sym, &[CallId])> {
        let all = self.index.named_calls.get_or_init(|| named_calls(self));
        let ends = all.names.iter().skip(1).map(|&(_, from)| from as usize).chain([all.calls.len()]);
        all.names.iter().zip(ends).map(|(&(name, from), to)| (name, &all.calls[from as usize..to]))
    }

    /// A number that is the same for expressions that name the same, see [`Module::names_the_same`], and for few others. Nothing for
    /// what names nothing.
    pub fn name_key(&self, named: ExprId) -> Option<u64> {
        let mut hasher = FxHasher::default();
        let mut at = named;
        loop {
            spend(1);
            match self.expr(at) {
                Expr::Var(var) => {
                    var.hash(&mut hasher);
                    return Some(hasher.finish());
                }
                Expr::Attr { base, name } => {
                    name.hash(&mut hasher);
                    at = base;
                }
                Expr::Index { base, .. } => {
                    0_u8.hash(&mut hasher);
                    at = base;
                }
                _ => return None,
            }
        }
    }
}

fn number(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

fn frames(ir: &Module) -> Vec<Frame> {
    spend(ir.functions.len());
    let all = ir.functions.iter().enumerate().skip(1);
    let mut frames: Vec<Frame> =
        all.map(|(n, f)| Frame { span: f.span, func: FuncId(number(n)), around: None }).collect();
    frames.sort_by_key(|f| (f.span.start, std::cmp::Reverse(f.span.end)));
    let mut open: Vec<usize> = Vec::new();
    for at in 0..frames.len() {
        let span = frames[at].span;
        while open.last().is_some_and(|&o| !frames[o].span.contains(span)) {
            open.pop();
        }
        frames[at].around = open.last().copied();
        open.push(at);
    }
    frames
}

fn settings(ir: &Module) -> FxHashMap<u64, Vec<Setting>> {
    spend(ir.stmts.len());
    let mut all: FxHashMap<u64, Vec<Setting>> = FxHashMap::default();
    for (n, stmt) in ir.stmts.iter().enumerate() {
        let mut add = |target: ExprId, value: Option<ExprId>| {
            let mut one = |target: ExprId, value: Option<ExprId>| {
                if let Some(key) = ir.name_key(target) {
                    all.entry(key).or_default().push(Setting { stmt: StmtId(number(n)), target, value });
                }
            };
            match ir.expr(target) {
                Expr::Tuple(list) | Expr::List(list) => ir.list(list).iter().for_each(|&t| one(t, None)),
                _ => one(target, value),
            }
        };
        match *stmt {
            Stmt::Assign { targets, value } => ir.list(targets).iter().for_each(|&t| add(t, Some(value))),
            Stmt::AugAssign { target, .. } | Stmt::AnnAssign { target, .. } | Stmt::For { target, .. } => {
                add(target, None);
            }
            Stmt::With { ref items, .. } => {
                items.iter().filter_map(|&(_, target)| target).for_each(|t| add(t, None));
            }
            _ => {}
        }
    }
    all
}

/// By expression, the one around it; a number that none has where there is none.
fn parents(ir: &Module) -> Vec<ExprId> {
    let mut parents = vec![ExprId(u32::MAX); ir.exprs.len()];
    // What has no parent yet, in the order of the text.
    let mut open: Vec<usize> = Vec::new();
    for (n, at) in ir.expr_spans.iter().enumerate() {
        let mut first = open.len();
        while first > 0 && ir.expr_spans[open[first - 1]].start >= at.start {
            first -= 1;
        }
        spend(open.len() - first + 1);
        for child in open.split_off(first) {
            if at.contains(ir.expr_spans[child]) {
                parents[child] = ExprId(number(n));
            } else {
                open.push(child);
            }
        }
        open.push(n);
    }
    parents
}

fn mentions(ir: &Module) -> FxHashMap<Var, Vec<ExprId>> {
    spend(ir.exprs.len());
    let mut all: FxHashMap<Var, Vec<ExprId>> = FxHashMap::default();
    for (n, e) in ir.exprs.iter().enumerate() {
        if let Expr::Var(var) = *e {
            all.entry(var).or_default().push(ExprId(number(n)));
        }
    }
    all
}

fn given(ir: &Module) -> FxHashMap<ExprId, CallId> {
    let mut all = FxHashMap::default();
    for (n, call) in ir.calls().enumerate() {
        spend(call.args.len());
        for arg in call.args {
            all.entry(arg.value).or_insert(CallId(number(n)));
        }
    }
    all
}

/// By expression, the innermost function or class body that it stands in: functions and their expressions are numbered in the same
/// order.
fn owners(ir: &Module) -> Box<[FuncId]> {
    spend(ir.exprs.len());
    let mut open: Vec<usize> = Vec::new();
    let mut next = 1;
    let owner = |n: usize| {
        let at = number(n);
        while open.last().is_some_and(|&f| ir.functions[f].exprs.end <= at) {
            open.pop();
        }
        while let Some(function) = ir.functions.get(next).filter(|f| f.exprs.start <= at) {
            if function.exprs.contains(&at) {
                open.push(next);
            }
            next += 1;
        }
        FuncId(number(open.last().copied().unwrap_or(0)))
    };
    (0..ir.exprs.len()).map(owner).collect()
}

fn silent(ir: &Module) -> ExprSet {
    let mut skipped = ExprSet::of(ir);
    let mut skip = |e: ExprId| {
        let range = ir.exprs_in(e);
        spend(range.len());
        skipped.extend(range.map(|n| ExprId(number(n))));
    };
    for f in &ir.functions {
        f.params.iter().filter_map(|p| p.annotation).chain(f.returns).for_each(&mut skip);
    }
    for class in &ir.classes {
        ir.args(class.bases).iter().for_each(|a| skip(a.value));
    }
    for stmt in &ir.stmts {
        if let Stmt::AnnAssign { annotation, .. } = stmt {
            skip(*annotation);
        }
    }
    for call in ir.calls() {
        let asks = matches!(ir.expr(call.func), Expr::Var(Var::Unbound(name)) if matches!(name.as_str(), "isinstance" | "issubclass"));
        if asks && let Some(class) = call.args.get(1) {
            skip(class.value);
        }
    }
    skipped
}

fn named_calls(ir: &Module) -> NamedCalls {
    spend(ir.calls.len());
    let calls = ir.calls().enumerate();
    let mut all: Vec<(Sym, CallId)> =
        calls.filter_map(|(n, call)| Some((ir.last_name(call.func)?, CallId(number(n))))).collect();
    all.sort_unstable();
    let mut named = NamedCalls::default();
    for (name, call) in all {
        if named.names.last().is_none_or(|&(last, _)| last != name) {
            named.names.push((name, number(named.calls.len())));
        }
        named.calls.push(call);
    }
    named
}
