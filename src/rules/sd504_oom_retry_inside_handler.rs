//! SD504 oom-retry-inside-handler: a retry inside the handler of an out-of-memory error.

use crate::finding::{Code, Finding, Label};
use crate::ir::{Block, Call, Expr, ExprId, Function, Handler, Module, Stmt, Var};
use crate::link::Resolved;
use crate::rules::check::{Check, Context};
use crate::rules::shared::code::quoted;
use crate::rules::shared::file::File;
use crate::span::{Place, Span};
use crate::torch::{self, Kind};
use crate::words::Words;
use crate::world::World;

static BROAD: Words = Words::of("may catch out-of-memory errors");
static IDLE: Words = Words::of("functions that do no work on a device");
static IDLE_IN_TORCH: Words = Words::of("methods that do little work on a device");
static PROGRESS: Words = Words::of("report progress");
static IDLE_MODULES: Words = Words::of("modules that do no work on a device");
static MANAGES_DEVICES: Words = Words::of("modules that manage devices");

pub(super) const CODE: Code = Code(504);
pub(super) struct Rule;

impl Check for Rule {
    fn on_file(&mut self, cx: &Context<'_>) -> Vec<Finding> {
        retried(cx)
    }
}

/// SD504 oom-retry-inside-handler
fn retried(cx: &Context<'_>) -> Vec<Finding> {
    let Some(file) = File::of(cx) else { return Vec::new() };
    let ir = file.ir;
    let mut found = Vec::new();
    for stmt in &ir.stmts {
        let Stmt::Try { body, handlers, .. } = stmt else { continue };
        let handlers = ir.handlers(*handlers);
        if !handlers.iter().any(|h| file.handles_oom(h)) {
            continue;
        }
        // The first statement that does work runs out of memory; the later ones depend on it.
        let Some(tried) = ir.block(*body).iter().map(|&s| ir.stmt_span(s)).find(|&at| file.has_work(at))
        else {
            continue;
        };
        for handler in handlers {
            if let Some(call) = file.retry(tried, handler) {
                found.push(file.retry_finding(call, handler));
            }
        }
    }
    found
}

impl File<'_> {
    fn retry_finding(&self, call: Span, handler: &Handler) -> Finding {
        let at = |span| Place { file: self.cx.file, span };
        let label = Label::new(at(call), "retries while the exception is alive");
        let retry = quoted(self.cx, at(call), "this call");
        let message = format!(
            "{retry} runs inside the `except` block, where the exception keeps the tensors of the failed call alive"
        );
        Finding::new(CODE, World::Cuda, message, label)
            .related(at(handler.head), "the exception is alive until this block ends")
            .help(format!("set a flag in the `except` block, and put {retry} after the block"))
    }

    /// The call in the handler that repeats a call of the `try` body.
    fn retry(&self, tried: Span, handler: &Handler) -> Option<Span> {
        if !self.handles_oom(handler) || self.goes_to_the_host(handler.body) {
            return None;
        }
        let ir = self.ir;
        let within = |spans: &[Span], span: Span| spans.iter().any(|s| s.contains(span));
        let body: Vec<Span> = ir.block(handler.body).iter().map(|&s| ir.stmt_span(s)).collect();
        let inner: Vec<Span> = self.handlers_in(tried).collect();
        let first: Vec<ExprId> = self
            .calls()
            .filter(|&(_, at)| tried.contains(at) && !within(&inner, at))
            .map(|(call, _)| call.func)
            .collect();
        let function = self.function_around(handler.span);
        // Calls before the test of the error clean up.
        let known = self.asked(handler).map_or(handler.head.end, |at| at.end);
        self.calls()
            .filter(|&(_, at)| at.start >= known && within(&body, at) && !self.deferred(at, handler.span))
            .find(|&(call, _)| {
                self.works(call.func)
                    && !self.leaves_no_frame(call.func)
                    && !self.takes_the_error(call, handler)
                    && (first.iter().any(|&f| same(ir, f, call.func)) || self.recurses(call.func, function))
            })
            .map(|(_, at)| at)
    }

    fn has_work(&self, span: Span) -> bool {
        self.calls().any(|(call, at)| span.contains(at) && self.works(call.func))
    }

    fn calls(&self) -> impl Iterator<Item = (Call<'_>, Span)> {
        self.ir.exprs.iter().zip(&self.ir.expr_spans).filter_map(|(e, &at)| match *e {
            Expr::Call(c) => Some((self.ir.call(c), at)),
            _ => None,
        })
    }

    /// Does the handler catch out-of-memory errors by their class, or test for them?
    fn handles_oom(&self, handler: &Handler) -> bool {
        let Some(types) = handler.types else { return false };
        let names = self.caught(types);
        if names.contains(&"OutOfMemoryError") {
            return true;
        }
        let broad = names.iter().any(|n| BROAD.has(n));
        broad && self.asked(handler).is_some()
    }

    /// The place where the handler first tests for an out-of-memory error.
    fn asked(&self, handler: &Handler) -> Option<Span> {
        let asks = |e: &Expr| match *e {
            Expr::Str(s) => s.as_str().to_ascii_lowercase().contains("out of memory"),
            Expr::Call(c) => self.last_name(self.ir.call(c).func).is_some_and(names_oom),
            _ => false,
        };
        // All of it is in one function, and files have many handlers.
        let around = self.ir.function(self.ir.function_around(handler.types?));
        let asking = self.inside(around).filter(|(_, e, at)| handler.span.contains(*at) && asks(e));
        asking.map(|(_, _, at)| at).min_by_key(|at| at.start)
    }

    /// The handlers of the `try` statements in there.
    fn handlers_in(&self, outer: Span) -> impl Iterator<Item = Span> {
        let all = self.ir.stmts.iter().filter_map(|stmt| match *stmt {
            Stmt::Try { handlers, .. } => Some(self.ir.handlers(handlers)),
            _ => None,
        });
        all.flatten().map(|h| h.span).filter(move |&at| outer.contains(at))
    }

    /// `buffer.resize_(n)`, `torch.empty(n)`: a callable that is not written in Python has no frame in the traceback.
    fn leaves_no_frame(&self, callee: ExprId) -> bool {
        if let Some(Resolved::External(path)) = self.cx.program.resolve_expr(self.module, callee) {
            return torch::function(path)
                .is_some_and(|op| matches!(op.kind, Kind::Factory | Kind::FactoryLike));
        }
        matches!(self.ir.expr(callee), Expr::Attr { name, .. }
            if name.as_str().ends_with('_') && torch::method(name).is_some())
    }

    /// Does the call get the exception of the handler? Then it tests or reports it.
    fn takes_the_error(&self, call: Call<'_>, handler: &Handler) -> bool {
        let error = |e| matches!(self.ir.expr(e), Expr::Var(v) if Some(v) == handler.name);
        call.args.iter().any(|a| error(a.value))
    }

    fn caught(&self, types: ExprId) -> Vec<&'static str> {
        match self.ir.expr(types) {
            Expr::Tuple(list) => self.ir.list(list).iter().filter_map(|&e| self.last_name(e)).collect(),
            _ => self.last_name(types).into_iter().collect(),
        }
    }

    fn last_name(&self, e: ExprId) -> Option<&'static str> {
        match self.ir.expr(e) {
            Expr::Attr { name, .. } => Some(name.as_str()),
            Expr::Var(Var::Unbound(n)) => Some(n.as_str()),
            Expr::Var(_) => match self.cx.program.resolve_expr(self.module, e) {
                Some(Resolved::External(p)) => p.as_str().rsplit('.').next(),
                Some(Resolved::Function(m, f)) => Some(self.cx.program.get(m).ir.function(f).name.as_str()),
                _ => None,
            },
            _ => None,
        }
    }

    /// A retry on the CPU needs no device memory.
    fn goes_to_the_host(&self, body: Block) -> bool {
        let ir = self.ir;
        let spans: Vec<Span> = ir.block(body).iter().map(|&s| ir.stmt_span(s)).collect();
        ir.exprs.iter().zip(&ir.expr_spans).any(|(e, &at)| {
            spans.iter().any(|s| s.contains(at))
                && match *e {
                    Expr::Attr { name, .. } => name.as_str() == "cpu",
                    Expr::Str(s) => s.as_str() == "cpu",
                    _ => false,
                }
        })
    }

    /// May the callable do work on a device? Functions that log, wait or clean up do not.
    fn works(&self, callee: ExprId) -> bool {
        let idle = |name: &str| IDLE.has(name) || IDLE_IN_TORCH.has(name) || PROGRESS.has(name);
        if self.last_name(callee).is_some_and(idle) {
            return false;
        }
        match self.cx.program.resolve_expr(self.module, callee) {
            Some(Resolved::External(path)) => {
                let text = path.as_str();
                !IDLE_MODULES.starts(text) && !MANAGES_DEVICES.starts(text)
            }
            Some(Resolved::Class(_)) => false,
            _ => true,
        }
    }

    /// The function around calls itself, by its name, in a file or in another function, or through `self`.
    fn recurses(&self, callee: ExprId, function: Option<&Function>) -> bool {
        let Some(function) = function else { return false };
        match self.ir.expr(callee) {
            Expr::Attr { base, name } => {
                function.class.is_some()
                    && name == function.name
                    && matches!(self.ir.expr(base), Expr::Var(Var::Local(0)))
            }
            // `self(picture)` calls `__call__`, and of a module also `forward`.
            Expr::Var(Var::Local(0)) if function.class.is_some() => {
                matches!(function.name.as_str(), "__call__" | "forward")
            }
            Expr::Var(Var::Enclosing { .. }) => self.nested(callee).is_some_and(|f| f.span == function.span),
            Expr::Var(_) => match self.cx.program.resolve_expr(self.module, callee) {
                Some(Resolved::Function(m, f)) => {
                    m == self.module && self.ir.function(f).span == function.span
                }
                _ => false,
            },
            _ => false,
        }
    }

    /// The nested function with the name of the callee.
    fn nested(&self, callee: ExprId) -> Option<&Function> {
        let ir = self.ir;
        let Expr::Var(Var::Enclosing { depth, slot }) = ir.expr(callee) else { return None };
        let around = ir.function_around(callee);
        let owner = (0..depth).try_fold(around, |f, _| ir.function(f).parent)?;
        let mut named = ir.stmts.iter().filter_map(|s| match *s {
            Stmt::Def(f, Var::Local(n)) if n == slot && ir.function(f).parent == Some(owner) => Some(f),
            _ => None,
        });
        match (named.next(), named.next()) {
            (Some(f), None) => Some(ir.function(f)),
            _ => None,
        }
    }

    fn function_around(&self, span: Span) -> Option<&Function> {
        self.ir
            .functions
            .iter()
            .filter(|f| f.parent.is_some() && f.span.contains(span))
            .max_by_key(|f| f.span.start)
    }

    /// Is it in a function or lambda that the handler only defines?
    fn deferred(&self, at: Span, handler: Span) -> bool {
        self.ir
            .functions
            .iter()
            .any(|f| f.parent.is_some() && handler.contains(f.span) && f.span.contains(at))
    }
}

/// Are two expressions the same names and attributes?
fn same(ir: &Module, a: ExprId, b: ExprId) -> bool {
    match (ir.expr(a), ir.expr(b)) {
        (Expr::Var(x), Expr::Var(y)) => x == y,
        (Expr::Attr { base: x, name: n }, Expr::Attr { base: y, name: m }) => n == m && same(ir, x, y),
        _ => false,
    }
}

/// `is_oom_error`, `isOOM`, `OOMError`; not `poison_room`.
fn names_oom(name: &str) -> bool {
    name.contains("OOM") || name.split('_').any(|word| word.eq_ignore_ascii_case("oom"))
}
