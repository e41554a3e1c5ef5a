//! SD406 missing-set-device: a new thread starts with GPU 0 as its current device.
//!
//! `torch.cuda.set_device` changes the current device of one thread, as `cudaSetDevice` does. The current device of a new thread is
//! GPU 0 in every process. The rule reports it only if the project chooses another device, and if the thread asks for the current
//! device in functions that calls lead to.

use rustc_hash::FxHashSet;

use super::CODE;
use crate::assumption::Assumption;
use crate::finding::{Finding, Label};
use crate::ir::{Arg, ArgKind, Block, Call, Expr, ExprId, FuncId, FuncKind, Function, Module, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Resolved};
use crate::rules::check::Context;
use crate::rules::shared::calls::CallAt;
use crate::rules::shared::file::{File, is_self};
use crate::rules::shared::test_code::in_tests;
use crate::span::{Place, Span};
use crate::sym::Sym;
use crate::words::Words;
use crate::world::World;

/// The largest number of functions that the rule follows from the start of a thread.
const MAX_FUNCTIONS: usize = 24;

/// The class of a single thread; and next, the classes of thread pools with the position of their initializer.
const THREAD: &str = "threading.Thread";
const POOLS: &[(&str, usize)] = &[
    ("concurrent.futures.ThreadPoolExecutor", 2),
    ("concurrent.futures.thread.ThreadPoolExecutor", 2),
    ("multiprocessing.pool.ThreadPool", 1),
];

static SUBMITS: Words = Words::of("run a function in a pool");
static THREADS: Words = Words::of("classes that start threads");
static CHOICES: Words = Words::of("choose the GPU of a thread");
static FOR_A_BLOCK: Words = Words::of("change the device for a block");

/// SD406 missing-set-device, of threads
pub(super) fn started(cx: &Context<'_>) -> Vec<Finding> {
    let Some(file) = File::of(cx) else { return Vec::new() };
    let mut threads = THREADS.all().iter().map(|name| Sym::new(name));
    let speaks = |name: Sym| {
        file.ir.has_attribute(name)
            || file.ir.functions.first().is_some_and(|module| module.slots.contains(&name))
    };
    if !threads.any(speaks) || in_tests(Place { file: cx.file, span: Span::default() }, cx) {
        return Vec::new();
    }
    let calls = (0u32..).zip(file.ir.exprs.iter()).filter_map(|(n, e)| match *e {
        Expr::Call(id) => Some((ExprId(n), file.ir.call(id))),
        _ => None,
    });
    let started: Vec<Started> = calls.filter_map(|(at, call)| file.starts(at, call)).collect();
    if started.is_empty() || !file.project_chooses(&started) {
        return Vec::new();
    }
    started.into_iter().filter_map(|s| file.on_first_gpu(&s)).collect()
}

/// The call that starts threads, and the function that one of them runs first.
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
            Expr::Attr { base, name } if SUBMITS.has(name.as_str()) && self.is_kept(pool, base) => {
                self.function_of(positional(c, 0)?)
            }
            _ => None,
        };
        Some(Started { at, runs: self.ir.calls().find_map(given)? })
    }

    /// Are both the same variable of one function, or the same attribute of objects of one class?
    fn is_kept(&self, pool: ExprId, e: ExprId) -> bool {
        let [a, b] = [pool, e].map(|e| self.ir.function_around(e));
        let same = match self.own_attribute(e) {
            Some(_) => self.ir.function(a).class == self.ir.function(b).class,
            None => a == b,
        };
        same && self.ir.names_the_same(pool, e)
    }

    /// The variable or attribute that stores the value.
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

    /// A function of the project, or a method of the same object.
    fn function_of(&self, e: ExprId) -> Option<(ModIdx, FuncId)> {
        function_in(self, self.module, self.ir, e)
    }

    /// Do this file and its imports choose a device other than the first one, outside the functions that the threads run?
    fn project_chooses(&self, started: &[Started]) -> bool {
        let (mut seen, mut open) = (FxHashSet::default(), vec![self.module]);
        while let Some(m) = open.pop() {
            if self.module_chooses(m, started) {
                return true;
            }
            if seen.insert(m) {
                open.extend(self.cx.program.imports(m));
            }
        }
        false
    }

    fn module_chooses(&self, m: ModIdx, started: &[Started]) -> bool {
        let ir = &self.cx.program.get(m).ir;
        let speaks = |name: &&str| {
            let last = Sym::new(name.rsplit('.').next().unwrap_or(name));
            ir.has_attribute(last) || ir.functions.first().is_some_and(|f| f.slots.contains(&last))
        };
        CHOICES.all().iter().any(speaks)
            && ir.calls().any(|call| {
                let chooses = matches!(self.cx.program.resolve_expr(m, call.func),
                    Some(Resolved::External(path)) if CHOICES.has(path.as_str()));
                let device = || positional(call, 0).or_else(|| keyword(call, "device"));
                let around = (m, ir.function_around(call.func));
                chooses
                    && device().is_some_and(|e| !is_first(ir, e))
                    && !started.iter().any(|s| s.runs == around)
            })
    }

    fn on_first_gpu(&self, started: &Started) -> Option<Finding> {
        let asked = self.asks_for_current(started.runs)?;
        let (m, f) = started.runs;
        let name = self.cx.program.get(m).ir.function(f).name;
        let message = format!(
            "the thread that runs `{name}` starts on GPU 0: `torch.cuda.set_device()` in another thread does not change that"
        );
        let at = Place { file: self.cx.file, span: self.ir.span(started.at) };
        let label = Label::new(at, "the current device of a new thread is GPU 0");
        let is_pool =
            CallAt::new(self.cx, at).and_then(|call| call.function()).is_some_and(|path| path != THREAD);
        let help = if is_pool {
            "choose the GPU in each thread: `initializer=torch.cuda.set_device, initargs=(device,)`"
                .to_owned()
        } else {
            format!("call `torch.cuda.set_device(device)` at the beginning of `{name}`")
        };
        let mut finding =
            Finding::new(CODE, World::Cuda, message, label).help(help).assume([Assumption::NoGpuChosen]);
        if asked != at {
            finding = finding.related(asked, "asks for the current device");
        }
        Some(finding)
    }

    /// The place where the thread asks for the current device, if no function that it runs chooses one.
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
                if hangs_on_argument(ir, ir.function(f), ir.expr_spans[n]) {
                    continue;
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

/// Is it a constant that names the first GPU?
fn is_first(ir: &Module, device: ExprId) -> bool {
    match ir.expr(device) {
        Expr::Int(n) => n.0 == 0,
        Expr::Str(s) => matches!(s.as_str(), "cuda" | "cuda:0"),
        Expr::Call(call) => positional(ir.call(call), 0).is_some_and(|e| match ir.expr(e) {
            Expr::Str(s) if s.as_str() == "cuda" => {
                positional(ir.call(call), 1).is_none_or(|e| is_first(ir, e))
            }
            _ => is_first(ir, e),
        }),
        _ => false,
    }
}

/// Does it depend on an argument: `if device is None: device = torch.cuda.current_device()`? The arguments are not known.
fn hangs_on_argument(ir: &Module, function: &Function, at: Span) -> bool {
    let of_argument = |test: ExprId| {
        ir.exprs_in(test).any(|n| match ir.exprs[n] {
            Expr::Var(Var::Local(s)) => {
                function.params.iter().any(|p| p.slot == s && p.name.as_str() != "self")
            }
            _ => false,
        })
    };
    let leaves = |then: Block| {
        ir.block(then).last().is_some_and(|&s| matches!(ir.stmt(s), Stmt::Return(_) | Stmt::Raise { .. }))
    };
    let by_statement = ir.stmts_of(function).any(|n| match ir.stmts[n] {
        Stmt::If { test, then, .. } => {
            let whole = ir.stmt_spans[n];
            (whole.contains(at) || whole.end <= at.start && leaves(then)) && of_argument(test)
        }
        Stmt::While { test, .. } => ir.stmt_spans[n].contains(at) && of_argument(test),
        _ => false,
    });
    by_statement
        || ir.exprs_of(function).any(|n| {
            let tested = |e: ExprId| ir.span(e) != at && !ir.span(e).contains(at) && of_argument(e);
            ir.expr_spans[n].contains(at)
                && match ir.exprs[n] {
                    Expr::IfElse(choice) => of_argument(ir.if_else(choice).test),
                    Expr::And(parts) | Expr::Or(parts) => ir.list(parts).iter().any(|&e| tested(e)),
                    _ => false,
                }
        })
}

/// `torch.cuda.set_device(n)`, `torch.accelerator.set_device_index(n)`, `torch.cuda.device(n)`, `torch.cuda.stream(s)`: does the call
/// change the current device?
fn chooses(ir: &Module, call: Call<'_>) -> bool {
    let named = ir.last_name(call.func).is_some_and(|name| match name.as_str() {
        name if FOR_A_BLOCK.has(name) => !call.args.is_empty(),
        other => other.contains("set_device") || other.contains("setDevice"),
    });
    // `torch.device("cuda:1")` only names a device.
    let names = matches!(ir.expr(call.func), Expr::Attr { base, .. }
        if ir.last_name(base).is_some_and(|n| n.as_str() == "torch"));
    named && !names
}

/// The function of the project that an expression names, or the method of the same object.
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
            // A function that is defined in the same function.
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
