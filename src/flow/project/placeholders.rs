//! Code that only runs if a value is missing that is always given, or given that is always missing. Examples:
//! `if sample is None: sample = self.make_dummy(…)`, where all callers pass a sample; `if self.remap is not None`, where no code passes a
//! `remap`.

use std::ops::Range;

use rustc_hash::FxHashSet;

use crate::flow::project::call_graph::{Kind, Node, Route};
use crate::flow::project::unmoved_modules::class_of;
use crate::flow::project::{Paths, is_implicit};
use crate::flow::query::call_sites::{argument, given_for};
use crate::flow::query::nodes::function_at;
use crate::flow::query::path_conditions::conditions;
use crate::ir::{ArgKind, Call, CmpOp, Expr, ExprId, FuncId, FuncKind, Function, Module, Param, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Program};
use crate::span::Place;
use crate::sym::Sym;
use crate::words::Words;

/// The maximum number of callers that are followed.
const MAX_NAMES: usize = 8;
/// Functions that may return `None`.
static MAY_LACK: Words = Words::of("may return None");

/// The analysis of callers and their arguments.
pub struct StandIns<'a> {
    program: &'a Program,
    paths: Paths<'a>,
}

impl<'a> StandIns<'a> {
    /// Uses these paths.
    pub fn of(paths: Paths<'a>) -> Self {
        Self { program: paths.program, paths }
    }

    /// The names of the functions on the path to the place, and of their classes. Empty if no test for `None` is on the path in the
    /// place's own file.
    pub fn words(program: &Program, place: Place) -> FxHashSet<Sym> {
        let mut words = FxHashSet::default();
        let Some((m, f)) = function_at(program, place) else { return words };
        let ir = &program.get(m).ir;
        let (mut open, mut seen) = (vec![place.span], vec![ir.function(f).name]);
        let mut asked = false;
        while let Some(at) = open.pop() {
            asked |= conditions(ir, at).into_iter().any(|(test, _)| asks_for_none(ir, test));
            let Some((_, f)) = function_at(program, Place { span: at, ..place }) else { continue };
            let name = ir.function(f).name;
            words.insert(name);
            words.extend(
                class_of(program, m, f).map(|class| program.get(class.module).ir.class(class.class).name),
            );
            if seen.len() > MAX_NAMES || seen.contains(&name) && at != place.span {
                continue;
            }
            seen.push(name);
            let calls = ir.calls().filter(|call| ir.last_name(call.func) == Some(name));
            open.extend(calls.map(|call| ir.span(call.func)));
        }
        if asked { words } else { FxHashSet::default() }
    }

    /// Whether the place is only reached if an argument is missing that all callers pass, or given that no caller passes.
    pub fn holds(&self, place: Place) -> bool {
        let Some(target) = function_at(self.program, place) else { return false };
        let never = |m: ModIdx, e: ExprId| self.is_skipped(m, self.program.get(m).ir.span(e));
        self.is_skipped(target.0, place.span) || self.paths.whenever(target, &never)
    }

    /// Whether a test on the path to the place never has the required outcome.
    fn is_skipped(&self, m: ModIdx, at: crate::span::Span) -> bool {
        let tests = conditions(&self.program.get(m).ir, at);
        tests.into_iter().any(|(test, outcome)| self.never_comes_out(m, test, outcome))
    }

    fn never_comes_out(&self, m: ModIdx, test: ExprId, outcome: bool) -> bool {
        let ir = &self.program.get(m).ir;
        match ir.expr(test) {
            Expr::And(list) if outcome => ir.list(list).iter().any(|&e| self.never_comes_out(m, e, outcome)),
            Expr::Or(list) if !outcome => ir.list(list).iter().any(|&e| self.never_comes_out(m, e, outcome)),
            Expr::Compare { op: op @ (CmpOp::Is | CmpOp::IsNot), left, right }
                if ir.expr(right) == Expr::None =>
            {
                let missing = (op == CmpOp::Is) == outcome;
                match ir.expr(left) {
                    Expr::Var(Var::Local(_)) => missing && self.is_always_given(m, left),
                    Expr::Attr { base, name } => !missing && self.is_never_kept(m, base, name),
                    _ => false,
                }
            }
            _ => false,
        }
    }

    /// Whether the variable is a parameter for which every call passes an argument that is not `None`.
    fn is_always_given(&self, m: ModIdx, variable: ExprId) -> bool {
        let ir = &self.program.get(m).ir;
        let (f, at) = (ir.function_around(variable), ir.span(variable));
        let function = ir.function(f);
        let is = |p: &Param| ir.expr(variable) == Expr::Var(Var::Local(p.slot));
        let Some(n) = function.params.iter().position(is) else { return false };
        // Other projects may omit an optional argument.
        let optional = function.params[n].default.is_some();
        if function.kind != FuncKind::Function || is_implicit(function) {
            return false;
        }
        let before = sets(ir, function, ir.expr(variable)).any(|(e, _)| ir.span(e).start < at.start);
        let Some(calls) = self.paths.calls((m, f)).filter(|calls| !before && !calls.is_empty()) else {
            return false;
        };
        calls.into_iter().all(|(k, call)| {
            let there = &self.program.get(k).ir;
            let call = there.call(call);
            match given_for(function, n, there, call) {
                Some(e) => (k == m || !self.paths.shared || !optional) && !may_be_none(there, e),
                None => !optional && !is_spread(call),
            }
        })
    }

    /// Whether the attribute is always `None`: the constructor takes it from a parameter that no caller passes, as in `self.remap`.
    fn is_never_kept(&self, m: ModIdx, base: ExprId, name: Sym) -> bool {
        let ir = &self.program.get(m).ir;
        let f = ir.function_around(base);
        let receiver = ir.function(f).params.first().map(|p| Expr::Var(Var::Local(p.slot)));
        let Some(class) = class_of(self.program, m, f).filter(|_| Some(ir.expr(base)) == receiver) else {
            return false;
        };
        let Some(init) = self.program.own_method(class, Sym::new("__init__")) else { return false };
        let function = ir.function(init);
        let given = |value: ExprId| {
            let is = |p: &Param| ir.expr(value) == Expr::Var(Var::Local(p.slot));
            let n = function.params.iter().position(is)?;
            function.params[n].default.filter(|&e| ir.expr(e) == Expr::None).map(|_| n)
        };
        let Some(n) = set_attributes(ir, ir.stmts_of(function), name).find_map(given) else { return false };
        // Another assignment may set it to a value.
        let all = self.paths.graph.files().iter().map(|&k| &self.program.get(k).ir);
        let values = all.flat_map(|ir| set_attributes(ir, 0..ir.stmts.len(), name));
        values.take(2).count() == 1 && self.is_made_without(class, n, function.params[n].name)
    }

    /// Whether the project creates instances of the class, and none with an argument for this parameter of the constructor.
    fn is_made_without(&self, class: ClassKey, n: usize, name: Sym) -> bool {
        let mentions = self.paths.graph.mentions(self.program, Node::Class(class), Route::Made);
        let mut mentions = mentions.map(|(mention, _)| mention).peekable();
        mentions.peek().is_some()
            && mentions.all(|mention| {
                let Kind::Call(call) = mention.kind else { return false };
                let ir = &self.program.get(mention.module).ir;
                let given = argument(ir.call(call), n.saturating_sub(1), name);
                !is_spread(ir.call(call)) && given.is_none_or(|e| ir.expr(e) == Expr::None)
            })
    }
}

/// Whether the test compares a value with `None`.
fn asks_for_none(ir: &Module, test: ExprId) -> bool {
    ir.exprs_in(test).any(|n| {
        matches!(ir.exprs[n], Expr::Compare { op: CmpOp::Is | CmpOp::IsNot, right, .. } if ir.expr(right) == Expr::None)
    })
}

fn is_spread(call: Call<'_>) -> bool {
    call.args.iter().any(|a| matches!(a.kind, ArgKind::Star | ArgKind::DoubleStar))
}

/// The assignments of a function to a variable, each with the value if there is one.
fn sets<'i>(
    ir: &'i Module,
    function: &Function,
    variable: Expr,
) -> impl Iterator<Item = (ExprId, Option<ExprId>)> + 'i {
    let targets = move |s: &Stmt| match *s {
        Stmt::Assign { targets, value } => {
            ir.list(targets).iter().map(|&t| (t, Some(value))).collect::<Vec<_>>()
        }
        Stmt::AnnAssign { target, value, .. } => vec![(target, value)],
        Stmt::AugAssign { target, .. } | Stmt::For { target, .. } => vec![(target, None)],
        _ => Vec::new(),
    };
    let binds = move |t: ExprId| match variable {
        Expr::Var(var) => ir.binds(t, var),
        _ => false,
    };
    ir.stmts[ir.stmts_of(function)].iter().flat_map(targets).filter(move |&(t, _)| binds(t))
}

/// The values that these statements of a file assign to attributes of this name.
fn set_attributes(ir: &Module, stmts: Range<usize>, name: Sym) -> impl Iterator<Item = ExprId> + '_ {
    ir.stmts[stmts].iter().filter_map(move |s| match *s {
        Stmt::Assign { targets, value } => {
            let is = |&t: &ExprId| matches!(ir.expr(t), Expr::Attr { name: n, .. } if n == name);
            ir.list(targets).iter().any(is).then_some(value)
        }
        _ => None,
    })
}

/// Whether the argument may be `None`, according to the function around it.
fn may_be_none(ir: &Module, e: ExprId) -> bool {
    match ir.expr(e) {
        Expr::Var(Var::Local(slot)) => {
            let f = ir.function_around(e);
            let function = ir.function(f);
            let param = function.params.iter().find(|p| p.slot == slot);
            let default = param.and_then(|p| p.default).is_some_and(|d| ir.expr(d) == Expr::None);
            let set = |value: Option<ExprId>| value.is_some_and(|v| ir.expr(v) == Expr::None);
            default || f == FuncId(0) || sets(ir, function, ir.expr(e)).any(|(_, value)| set(value))
        }
        Expr::Call(id) => {
            let func = ir.call(id).func;
            ir.last_name(func).is_none_or(|name| MAY_LACK.has(name.as_str()))
        }
        Expr::Str(_)
        | Expr::Int(_)
        | Expr::Float(_)
        | Expr::True
        | Expr::False
        | Expr::Tuple(_)
        | Expr::List(_)
        | Expr::Dict(_)
        | Expr::Binary { .. }
        | Expr::Comp(_)
        | Expr::Format(_) => false,
        _ => true,
    }
}
