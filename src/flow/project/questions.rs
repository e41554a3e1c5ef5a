//! Queries about a function, answered with the project's call graph: one short fact each.

use rustc_hash::FxHashSet;

use crate::flow::project::call_graph::{CallGraph, Kind, Mention, Node, Route};
use crate::flow::project::context::{Context, Fact, Verdict};
use crate::flow::project::facts::{
    chooses_before, is_in_constructor, is_repeated, is_run_at_once, is_without_gradients,
};
use crate::flow::project::first_process::is_in_first_process;
use crate::flow::project::mps_checks::is_off_mps;
use crate::flow::query::nodes::{Target, function_at, outermost};
use crate::ir::{ArgKind, Call, CallId, ExprId, Function, Module};
use crate::link::{ModIdx, Program};
use crate::span::Place;
use crate::sym::Sym;
use crate::words::Words;

/// Functions that run their argument once, in this process or in another one.
static STARTERS: Words = Words::of("start a function");

/// Whether Python or PyTorch calls the function without its name.
pub fn is_implicit(function: &Function) -> bool {
    let name = function.name.as_str();
    name.starts_with("__") || matches!(name, "forward" | "backward")
}

/// The call paths in a project to its functions.
#[derive(Clone, Copy)]
pub struct Paths<'a> {
    pub(crate) program: &'a Program,
    pub(crate) graph: &'a CallGraph,
    /// Whether other projects also call its functions: it is a package for installation.
    pub(crate) shared: bool,
}

impl<'a> Paths<'a> {
    /// Uses this call graph. `shared`: whether the project is a package for installation.
    pub fn of(program: &'a Program, graph: &'a CallGraph, shared: bool) -> Self {
        Self { program, graph, shared }
    }

    /// Whether the project is a package for installation.
    pub fn is_shared(&self) -> bool {
        self.shared
    }

    /// Whether the function is only called without gradients.
    pub fn without_gradients(&self, target: Target) -> bool {
        self.whenever(target, &|m, e| is_without_gradients(self.ir(m), e))
    }

    /// Whether the process selects its GPU before it calls the function.
    pub fn after_choice(&self, target: Target) -> bool {
        self.whenever(target, &|m, e| chooses_before(self.ir(m), e))
    }

    /// Whether only the process with the global rank 0 reaches the place.
    pub fn in_first_process(&self, place: Place) -> bool {
        function_at(self.program, place).is_some_and(|target| {
            let first = |m: ModIdx, at| is_in_first_process(self.ir(m), at);
            first(target.0, place.span) || self.whenever(target, &|m, e| first(m, self.ir(m).span(e)))
        })
    }

    /// Whether the function is only called from constructors. Code that creates a module moves it afterwards.
    pub fn while_making(&self, target: Target) -> bool {
        self.whenever(target, &|m, e| is_in_constructor(self.ir(m), e))
    }

    /// Whether the function is only called after a test that excludes MPS. Functions that are `open` may have unknown callers.
    pub fn off_mps(&self, target: Target, open: &dyn Fn(Target) -> bool) -> bool {
        let at = |m: ModIdx, e: ExprId| is_off_mps(self.ir(m), self.ir(m).span(e));
        self.holds(target, open, &|_, mention| called_where(mention, &at))
    }

    /// Whether `at` holds at all calls of the function, or of its callers.
    pub(crate) fn whenever(&self, target: Target, at: &dyn Fn(ModIdx, ExprId) -> bool) -> bool {
        self.holds(target, &|_| false, &|_, mention| called_where(mention, at))
    }

    /// Whether the code at the place runs once: neither it nor any call on the path to it is in a loop. In a package for installation,
    /// calls from another file may be repeated by other projects.
    pub fn run_once(&self, place: Place) -> bool {
        let Some((m, f)) = function_at(self.program, place) else { return false };
        let ir = self.ir(m);
        ir.functions_around(place.span).next() == Some(f)
            && !is_repeated(ir, place.span)
            && self.holds((m, f), &|_| false, &|of, mention| self.called_once(of, mention))
    }

    fn called_once(&self, of: Node, mention: &Mention) -> Verdict {
        let (ir, e) = (self.ir(mention.module), mention.expr);
        let called = match mention.kind {
            Kind::Call(_) => true,
            _ => ir.call_given(e).is_some_and(|call| started_by(ir, ir.call(call)) == Some(e)),
        };
        let foreign = self.shared && !matches!(of, Node::Function(m, _) if m == mention.module);
        if !called || foreign || is_repeated(ir, ir.span(e)) || !is_run_at_once(ir, e) {
            return Verdict::Fails;
        }
        if ir.function_around(e).0 == 0 { Verdict::Holds } else { Verdict::Inherited }
    }

    /// The names of functions on paths to these functions. A file that calls one of them contains one of these names.
    pub fn names(&self, targets: &[Target]) -> FxHashSet<Sym> {
        let (mut open, mut names) = (targets.to_vec(), FxHashSet::default());
        while let Some((m, f)) = open.pop() {
            let function = self.ir(m).function(f);
            if names.insert(function.name) && !is_implicit(function) {
                let mentions = self.graph.named_like(self.program, (m, f));
                let around =
                    mentions.filter_map(|at| Some((at.module, outermost(self.ir(at.module), at.expr)?)));
                open.extend(around);
            }
        }
        names
    }

    /// The calls of a function; `None` if it is also used as a value.
    pub(crate) fn calls(&self, (m, f): Target) -> Option<Vec<(ModIdx, CallId)>> {
        let node = Node::Function(m, f);
        let others =
            self.graph.mentions(self.program, node, Route::Called).filter(|&(_, by)| by != Some(node));
        others.map(|(mention, _)| mention.call()).collect()
    }

    fn ir(&self, m: ModIdx) -> &'a Module {
        &self.program.get(m).ir
    }

    fn holds(
        &self,
        (m, f): Target,
        open: &dyn Fn(Target) -> bool,
        at: &dyn Fn(Node, &Mention) -> Verdict,
    ) -> bool {
        let of = |node: Node| match node {
            Node::Function(m, f) if is_implicit(self.ir(m).function(f)) || open((m, f)) => Verdict::Fails,
            Node::Function(..) => Verdict::Inherited,
            _ => Verdict::Fails,
        };
        let fact = Fact { route: Route::Called, at, of: &of };
        Context::always(self.program, self.graph, Node::Function(m, f), &fact)
    }
}

/// The verdict at a mention. A function that is used as a value may be called anywhere.
fn called_where(mention: &Mention, at: &dyn Fn(ModIdx, ExprId) -> bool) -> Verdict {
    match mention.kind {
        Kind::Call(_) if at(mention.module, mention.expr) => Verdict::Holds,
        Kind::Call(_) => Verdict::Inherited,
        _ => Verdict::Fails,
    }
}

/// The function that a call starts: `spawn(work, …)`, `Process(target=work)`
fn started_by(ir: &Module, call: Call<'_>) -> Option<ExprId> {
    ir.last_name(call.func).filter(|name| STARTERS.has(name.as_str()))?;
    let target = |k: ArgKind| matches!(k, ArgKind::Keyword(name) if matches!(name.as_str(), "target" | "fn"));
    let named = call.args.iter().find(|a| target(a.kind));
    named.or_else(|| call.args.first().filter(|a| a.kind == ArgKind::Positional)).map(|a| a.value)
}
