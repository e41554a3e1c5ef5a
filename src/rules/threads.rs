//! SD406, of threads: each starts with GPU 0 as its current device, whatever the one that starts it has chosen.
//!
//! `torch.cuda.set_device` is the thread's that calls it (`cudaSetDevice` is). What a new thread asks for its current device, or
//! sends there by leaving the index out, is then on GPU 0 in every process. Told only where the project chooses devices, and of
//! what the thread runs as far as calls can be followed.

use rustc_hash::FxHashSet;

use super::Context;
use super::file::{File, is_self};
use crate::finding::{Code, Finding, Label};
use crate::ir::{Arg, ArgKind, Call, Expr, ExprId, FuncId, FuncKind, Module, Stmt};
use crate::link::{ClassKey, ModIdx, Resolved};
use crate::span::{Place, Span};
use crate::sym::Sym;
use crate::world::World;

/// So many functions are followed from where a thread starts.
const MAX_FUNCTIONS: usize = 24;

/// What starts one thread, and what starts several, with the position of an initializer.
const THREAD: &str = "threading.Thread";
const POOLS: &[(&str, usize)] = &[
    ("concurrent.futures.ThreadPoolExecutor", 2),
    ("concurrent.futures.thread.ThreadPoolExecutor", 2),
    ("multiprocessing.pool.ThreadPool", 1),
];
/// Methods of a pool that are given what to run.
const SUBMITS: &[&str] =
    &["submit", "map", "apply", "apply_async", "map_async", "imap", "imap_unordered", "starmap"];

/// SD406 missing-set-device, of threads
pub(super) fn started(cx: &Context<'_>) -> Vec<Finding> {
    let Some(file) = File::of(cx) else { return Vec::new() };
    let threads = ["Thread", "ThreadPoolExecutor", "ThreadPool"].map(Sym::new);
    let speaks = |name: Sym| {
        file.ir.has_attribute(name)
            || file.ir.functions.first().is_some_and(|module| module.slots.contains(&name))
    };
    if !threads.into_iter().any(speaks) || super::in_tests(Place { file: cx.file, span: Span::default() }, cx)
    {
        return Vec::new();
    }
    let calls = (0u32..).zip(file.ir.exprs.iter()).filter_map(|(n, e)| match *e {
        Expr::Call(id) => Some((ExprId(n), file.ir.call(id))),
        _ => None,
    });
    let started: Vec<Started> = calls.filter_map(|(at, call)| file.starts(at, call)).collect();
    if started.is_empty() || !file.project_chooses() {
        return Vec::new();
    }
    started.into_iter().filter_map(|s| file.on_first_gpu(&s)).collect()
}

/// Where threads are made, and what one of them runs first.
struct Started {
    at: ExprId,
    runs: (ModIdx, FuncId),
}

impl File<'_> {
    fn starts(&self, at: ExprId, call: Call<'_>) -> Option<Started> {
        let Some(Resolved::External(path)) = self.cx.program.resolve_expr(self.module, call.func) else {
            return None;
        };
        if path.as_str() == THREAD {
            let target = keyword(call, "target").or_else(|| positional(call, 1))?;
            return Some(Started { at, runs: self.function_of(target)? });
        }
        let &(_, position) = POOLS.iter().find(|(name, _)| *name == path.as_str())?;
        let prepared = keyword(call, "initializer").is_some()
            || positional(call, position).is_some()
            || call.args.iter().any(|a| !matches!(a.kind, ArgKind::Positional | ArgKind::Keyword(_)));
        let pool = if prepared { None } else { self.named(at) }?;
        let given = |c: Call<'_>| match self.ir.expr(c.func) {
            Expr::Attr { base, name } if SUBMITS.contains(&name.as_str()) && self.is_kept(pool, base) => {
                self.function_of(positional(c, 0)?)
            }
            _ => None,
        };
        Some(Started { at, runs: self.ir.calls().find_map(given)? })
    }

    /// Is it the same variable of one function, or the same attribute of objects of one class?
    fn is_kept(&self, pool: ExprId, e: ExprId) -> bool {
        let [a, b] = [pool, e].map(|e| self.ir.function_around(e));
        let same = match self.own_attribute(e) {
            Some(_) => self.ir.function(a).class == self.ir.function(b).class,
            None => a == b,
        };
        same && self.ir.names_the_same(pool, e)
    }

    /// What the value is kept in: a variable, or an attribute of the object.
    fn named(&self, value: ExprId) -> Option<ExprId> {
        self.ir.stmts.iter().find_map(|s| match s {
            Stmt::Assign { targets, value: v } if *v == value => match *self.ir.list(*targets) {
                [target] => Some(target),
                _ => None,
            },
            Stmt::With { items, .. } => items.iter().find(|(e, _)| *e == value).and_then(|&(_, name)| name),
            _ => None,
        })
    }

    /// A function of the project, or a method of the object that speaks of it.
    fn function_of(&self, e: ExprId) -> Option<(ModIdx, FuncId)> {
        function_in(self, self.module, self.ir, e)
    }

    /// Does the project choose a device by number anywhere that this file leads to?
    fn project_chooses(&self) -> bool {
        let chooses = Sym::new("set_device");
        let (mut seen, mut open) = (FxHashSet::default(), vec![self.module]);
        while let Some(m) = open.pop() {
            if self.cx.program.get(m).ir.has_attribute(chooses) {
                return true;
            }
            if seen.insert(m) {
                open.extend(self.cx.program.imports(m));
            }
        }
        false
    }

    fn on_first_gpu(&self, started: &Started) -> Option<Finding> {
        let asked = self.asks_for_current(started.runs)?;
        let (m, f) = started.runs;
        let name = self.cx.program.get(m).ir.function(f).name;
        let message = format!(
            "the thread that runs `{name}` starts with GPU 0 as its current device, whatever this one has chosen"
        );
        let at = Place { file: self.cx.file, span: self.ir.span(started.at) };
        let label = Label { place: at, text: "starts on GPU 0".to_owned() };
        let help = "choose in the thread as well: `torch.cuda.set_device(device)` first, or as the pool's `initializer`";
        let mut finding = Finding::new(Code(406), World::Cuda, message, label).help(help);
        if asked != at {
            finding = finding.related(asked, "the current device is meant here");
        }
        Some(finding)
    }

    /// Where what the thread runs asks for the current device, if nothing on the way chooses one.
    fn asks_for_current(&self, first: (ModIdx, FuncId)) -> Option<Place> {
        let program = self.cx.program;
        let (mut seen, mut next, mut asked) = (vec![first], 0, None);
        while let Some(&(m, f)) = seen.get(next) {
            next += 1;
            let ir = &program.get(m).ir;
            for n in ir.exprs_of(ir.function(f)) {
                let Expr::Call(id) = ir.exprs[n] else { continue };
                let call = ir.call(id);
                if chooses(ir, call) {
                    return None;
                }
                match program.resolve_expr(m, call.func) {
                    Some(Resolved::External(path)) if path.as_str() == "torch.cuda.current_device" => {
                        asked = asked.or(Some(Place { file: ir.file, span: ir.expr_spans[n] }));
                    }
                    _ => {
                        if let Some(called) = function_in(self, m, ir, call.func)
                            && seen.len() < MAX_FUNCTIONS
                            && !seen.contains(&called)
                        {
                            seen.push(called);
                        }
                    }
                }
            }
        }
        asked
    }
}

/// `torch.cuda.set_device(n)`, `torch.cuda.device(n)`, `torch.cuda.stream(s)`: from there on another device is the current one.
fn chooses(ir: &Module, call: Call<'_>) -> bool {
    let named = ir.last_name(call.func).is_some_and(|name| match name.as_str() {
        "set_device" => true,
        "device" | "stream" | "device_of" => !call.args.is_empty(),
        _ => false,
    });
    // `torch.device("cuda:1")` names one, and chooses nothing.
    let names = matches!(ir.expr(call.func), Expr::Attr { base, .. }
        if ir.last_name(base).is_some_and(|n| n.as_str() == "torch"));
    named && !names
}

/// The function of the project that an expression names: by import, or a method of the object of the method that speaks of it.
fn function_in(file: &File<'_>, m: ModIdx, ir: &Module, e: ExprId) -> Option<(ModIdx, FuncId)> {
    let program = file.cx.program;
    match ir.expr(e) {
        Expr::Attr { base, name } if is_self(ir, base) => {
            let class = ir.function(ir.function_around(e)).class?;
            program.find_method(ClassKey { module: m, class }, name)
        }
        _ => match program.resolve_expr(m, e) {
            Some(Resolved::Function(m, f)) => Some((m, f)),
            Some(_) => None,
            // A function that is defined where it is used.
            None => {
                let (around, name) = (ir.function_around(e), ir.variable_of(e)?);
                let own = (0u32..).zip(&ir.functions).find(|(_, f)| {
                    f.parent == Some(around) && f.name == name && f.kind == FuncKind::Function
                })?;
                Some((m, FuncId(own.0)))
            }
        },
    }
}

fn keyword(call: Call<'_>, name: &str) -> Option<ExprId> {
    let is_it = |a: &&Arg| matches!(a.kind, ArgKind::Keyword(k) if k.as_str() == name);
    call.args.iter().find(is_it).map(|a| a.value)
}

fn positional(call: Call<'_>, n: usize) -> Option<ExprId> {
    call.args.get(n).filter(|a| a.kind == ArgKind::Positional).map(|a| a.value)
}
