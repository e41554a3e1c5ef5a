//! Functions that a program runs once: their only calls are at the top of scripts, or in functions of which the same holds, and
//! outside of loops.
//!
//! Like [`NamedCalls`], by name: what anybody in the project calls under the name of the function counts as a call of it. What
//! nobody calls is there for others, who may call it as often as they like, and so is what is handed over.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::project::calls_by_name::{NamedCalls, function_at, outermost};
use crate::flow::query::nodes::Target;
use crate::ir::{ArgKind, Call, CallId, Expr, ExprId, FuncId, Module, Stmt, StmtId};
use crate::link::{ModIdx, Program, Resolved};
use crate::span::{Place, Span};
use crate::sym::Sym;

/// So many functions around one another are followed.
const MAX_HANDS: u32 = 4;
/// What runs the function that it is given once, in this process or in another.
const STARTERS: &[&str] = &["spawn", "start_processes", "Process", "Fire", "launch"];
/// Methods that are called without a word.
const UNSPOKEN: &[&str] = &["forward", "backward"];

/// Calls, by the names of functions.
type Sites = FxHashMap<Sym, Vec<(ModIdx, CallId)>>;

/// Who calls functions of some names.
#[derive(Debug)]
pub struct CalledOnce {
    calls: NamedCalls,
    /// Where starters are given functions, by their names.
    started: Sites,
    /// Where functions are handed over to others, by their names.
    handed: FxHashMap<Sym, Vec<(ModIdx, ExprId)>>,
    /// Only calls in a function's own file count: others will call it, too.
    shared: bool,
}

impl CalledOnce {
    /// Looks for calls of these names in these files. What is `shared` is made to be installed.
    pub fn of(program: &Program, files: &[ModIdx], names: &FxHashSet<Sym>, shared: bool) -> Self {
        let mut wanted = names.clone();
        loop {
            let calls = NamedCalls::of(program, files, &wanted);
            wanted = calls.names(program).union(&wanted).copied().collect();
            let started = started(program, files, &wanted);
            // Who starts a function is called by somebody as well.
            let starters: Vec<Sym> =
                started.values().flatten().filter_map(|&at| around(program, at)).collect();
            if starters.iter().all(|name| wanted.contains(name)) {
                let handed = handed(program, files, &wanted, &started);
                return Self { calls, started, handed, shared };
            }
            wanted.extend(starters);
        }
    }

    /// The names of functions that matter.
    pub fn names(&self, program: &Program) -> FxHashSet<Sym> {
        self.calls.names(program)
    }

    /// Does what stands at the place run once? Not in a loop, nor in what runs more often.
    pub fn holds(&self, program: &Program, place: Place) -> bool {
        let Some((m, f)) = function_at(program, place) else { return false };
        let ir = &program.get(m).ir;
        let inner = ir.functions.iter().any(|g| {
            ir.function(f).span.contains(g.span)
                && g.span != ir.function(f).span
                && g.span.contains(place.span)
        });
        !inner && !is_repeated(ir, place.span) && self.runs_once(program, (m, f), MAX_HANDS)
    }

    fn runs_once(&self, program: &Program, (m, f): Target, hands: u32) -> bool {
        let function = program.get(m).ir.function(f);
        let name = function.name;
        let special = name.as_str().starts_with("__") || UNSPOKEN.contains(&name.as_str());
        let meant = |at: ModIdx, e: ExprId| !is_namesake(program, at, e, (m, f));
        let handed = || self.handed.get(&name).is_some_and(|all| all.iter().any(|&(at, e)| meant(at, e)));
        if special || handed() {
            return false;
        }
        // What calls itself has been called by somebody else; and what is in another package is another function.
        let another = |&&(at, call): &&(ModIdx, CallId)| {
            let ir = &program.get(at).ir;
            let site = ir.call(call).func;
            let itself = at == m && function.span.contains(ir.span(site));
            let foreign =
                matches!(program.resolve_expr(at, site), Some(Resolved::External(path)) if !is_starter(path));
            let started = started_by(ir, ir.call(call)).filter(|&e| ir.last_name(e) == Some(name));
            !itself && !foreign && meant(at, started.unwrap_or(site))
        };
        let sites = [&self.calls.sites, &self.started].into_iter().filter_map(|s| s.get(&name)).flatten();
        let mut sites = sites.filter(another);
        sites.clone().next().is_some()
            && sites.all(|&(at, call)| {
                (at == m || !self.shared) && self.is_passed_once(program, (at, call), (m, f), hands)
            })
    }

    /// Does the program come to a call of the function once?
    fn is_passed_once(&self, program: &Program, (m, call): (ModIdx, CallId), of: Target, hands: u32) -> bool {
        let ir = &program.get(m).ir;
        let site = ir.call(call).func;
        if is_repeated(ir, ir.span(site)) {
            return false;
        }
        let around = ir.function_around(site);
        around == FuncId(0)
            || hands > 0
                && outermost(ir, site) == Some(around)
                && (m, around) != of
                && self.runs_once(program, (m, around), hands - 1)
    }
}

/// `torch.multiprocessing.spawn`, by its whole name or the last part of it.
fn is_starter(path: Sym) -> bool {
    path.as_str().rsplit('.').next().is_some_and(|name| STARTERS.contains(&name))
}

/// The calls that start functions of these names.
fn started(program: &Program, files: &[ModIdx], names: &FxHashSet<Sym>) -> Sites {
    let mut found = Sites::default();
    for &m in files {
        let ir = &program.get(m).ir;
        for (n, call) in (0..).zip(ir.calls()) {
            let name = started_by(ir, call).and_then(|e| ir.last_name(e));
            if let Some(name) = name.filter(|name| names.contains(name)) {
                found.entry(name).or_default().push((m, CallId(n)));
            }
        }
    }
    found
}

/// Does a name mean another function of the same name, which its own file defines or imports? Every script has its `main`.
fn is_namesake(program: &Program, at: ModIdx, name: ExprId, target: Target) -> bool {
    matches!(program.resolve_expr(at, name), Some(Resolved::Function(m, f)) if (m, f) != target)
}

/// Where one of these names is mentioned that is neither called nor started there.
fn handed(
    program: &Program,
    files: &[ModIdx],
    names: &FxHashSet<Sym>,
    started: &Sites,
) -> FxHashMap<Sym, Vec<(ModIdx, ExprId)>> {
    let mut found: FxHashMap<Sym, Vec<(ModIdx, ExprId)>> = FxHashMap::default();
    for &m in files {
        let ir = &program.get(m).ir;
        let starts = started.values().flatten().filter(|(at, _)| *at == m);
        let started = starts.filter_map(|&(_, call)| started_by(ir, ir.call(call)));
        let run: FxHashSet<ExprId> = ir.calls().map(|call| call.func).chain(started).collect();
        let mentioned = (0..).zip(&ir.exprs).map(|(n, _)| ExprId(n)).filter(|e| !run.contains(e));
        for e in mentioned {
            if let Some(name) = ir.last_name(e).filter(|name| names.contains(name)) {
                found.entry(name).or_default().push((m, e));
            }
        }
    }
    found
}

/// The name of the function that a call is in.
fn around(program: &Program, (m, call): (ModIdx, CallId)) -> Option<Sym> {
    let ir = &program.get(m).ir;
    Some(ir.function(outermost(ir, ir.call(call).func)?).name)
}

/// The function that a call starts: `spawn(work, …)`, `Process(target=work)`
fn started_by(ir: &Module, call: Call<'_>) -> Option<ExprId> {
    ir.last_name(call.func).filter(|&name| is_starter(name))?;
    let target = |k: ArgKind| matches!(k, ArgKind::Keyword(name) if matches!(name.as_str(), "target" | "fn"));
    let named = call.args.iter().find(|a| target(a.kind));
    named.or_else(|| call.args.first().filter(|a| a.kind == ArgKind::Positional)).map(|a| a.value)
}

/// Is the place in a loop of the function that it is in?
fn is_repeated(ir: &Module, at: Span) -> bool {
    let looped = ir.stmts.iter().enumerate().any(|(n, s)| {
        let loops = matches!(s, Stmt::For { .. } | Stmt::While { .. });
        loops && ir.stmt_span(StmtId(u32::try_from(n).unwrap_or(u32::MAX))).contains(at)
    });
    looped
        || ir
            .exprs
            .iter()
            .zip(&ir.expr_spans)
            .any(|(e, span)| matches!(e, Expr::Comp(_)) && span.contains(at))
}
