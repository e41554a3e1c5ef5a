//! Processes: environment variables that select GPUs, ranks, process groups, workers.

use crate::flow::domain::diagram::{Cond, FALSE, TRUE};
use crate::flow::domain::store::Cell;
use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::ir::{Expr, ExprId};
use crate::link::{Resolved, Target};
use crate::span::{Place, Span};
use crate::sym::Sym;
use crate::torch;

/// The environment variables that CUDA reads once, during its initialisation.
pub(crate) const READ_ONCE: &[&str] = &["CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"];
pub(crate) const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";
/// Environment variables with the number of a process among those of all machines.
pub(crate) const GLOBAL_RANKS: &[&str] = &["RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"];
/// Prefixes of functions and classes that start other processes, for which the environment may be meant.
const STARTS_PROCESSES: &[&str] = &[
    "subprocess.",
    "os.system",
    "os.popen",
    "os.exec",
    "os.spawn",
    "os.posix_spawn",
    "os.fork",
    "pty.spawn",
    "pty.fork",
    "asyncio.create_subprocess_",
    "multiprocessing.Pool",
    "torch.multiprocessing.start_processes",
    "concurrent.futures.ProcessPoolExecutor",
];
/// Last names of functions that start processes, on any object: `context.Process(…)`, `billiard.Popen(…)`.
const STARTERS: &[&str] = &["Popen", "Process", "spawn", "check_call", "check_output"];

impl Interp<'_> {
    /// Looks at the arguments of any call: one that needs an accelerator, or a tensor for a collective.
    pub(crate) fn observe_call(&mut self, path: Sym, args: &Args) {
        if args.keyword("accelerator").is_some() {
            self.refuses_without(path, args);
        }
        let text = path.as_str();
        if !text.starts_with("torch.distributed.") || names_group(args) {
            return;
        }
        for arg in torch::call(path).map(|fact| &*fact.collective).unwrap_or_default() {
            if let Some((v, at)) = args.get(usize::from(arg.position), arg.name.as_str()) {
                self.check_collective(v, at, text);
            }
        }
    }

    /// Does the function, or the whole file for its body, name a function that starts other processes?
    pub(crate) fn starts_processes(&self) -> bool {
        let ir = &self.linked().ir;
        let span = ir.function(self.here().func).span;
        let whole = self.here().func.0 == 0;
        (0..).map(ExprId).zip(ir.exprs.iter().zip(&ir.expr_spans)).any(|(e, (expr, &at))| {
            (whole || span.contains(at))
                && matches!(expr, Expr::Attr { .. } | Expr::Var(_))
                && match self.program.resolve_expr(self.here().module, e) {
                    Some(Resolved::External(path)) => starts_process(path.as_str()),
                    _ => ir.last_name(e).is_some_and(|name| STARTERS.contains(&name.as_str())),
                }
        })
    }

    /// This place initialises CUDA where the condition holds.
    pub(crate) fn initialises(&mut self, cond: Cond, place: Place) {
        if self.run.muted > 0 {
            return;
        }
        let there = self.available(None);
        let now = self.d.and(self.path, cond);
        let now = self.d.and(now, there);
        if now == FALSE {
            return;
        }
        let before = match self.store.get(self.devices.ready) {
            Value::Bool(c) => c,
            _ => FALSE,
        };
        let ready = self.d.or(before, now);
        self.store.set(self.devices.ready, Value::Bool(ready));
        self.devices.ready_at.get_or_insert(place);
    }

    /// The program imports a project file. All uses of CUDA in its body, or in what it imports, have happened now.
    pub(crate) fn imports(&mut self, target: Target, at: Span) {
        let (Target::Module(m) | Target::Member(m, _)) = target else { return };
        let file = self.linked().ir.file;
        if self.relevance.imports.touches_cuda(m) {
            let place = Place { file, span: at };
            self.initialises(TRUE, place);
            self.devices.imported.get_or_insert(place);
        }
    }

    /// The interpretation of a file's body has ended. Its functions run later, after the file's imports initialised CUDA. But for what the
    /// rest of the body did, the order is unknown.
    pub(crate) fn body_ended(&mut self) {
        self.store.set(self.devices.visible, Value::Absent);
        self.devices.ready_at = self.devices.imported;
        self.devices.visible_at = None;
        self.devices.in_time.clear();
        let ready = match self.devices.imported {
            Some(_) => Value::Bool(self.available(None)),
            None => Value::Absent,
        };
        self.store.set(self.devices.ready, ready);
    }

    /// Allocates the cells of this file's state.
    pub(crate) fn process_cells(store: &mut crate::flow::domain::store::Store) -> [Cell; 5] {
        let first = store.alloc(5);
        [0, 1, 2, 3, 4].map(|n| Cell(first.0 + n))
    }
}

/// Does the function or class with this path start other processes?
fn starts_process(path: &str) -> bool {
    let last = path.rsplit('.').next().unwrap_or(path);
    STARTERS.contains(&last) || STARTS_PROCESSES.iter().any(|known| path.starts_with(known))
}

/// Does the call name a process group: `all_reduce(x, ReduceOp.SUM, group)`?
fn names_group(args: &Args) -> bool {
    let other = |v| matches!(v, Value::External(_) | Value::Int(_) | Value::Bool(_) | Value::None);
    args.keyword("group").is_some() || args.positional.iter().skip(2).any(|&(v, _)| !other(v))
}
