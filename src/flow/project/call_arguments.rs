//! Calls in other files that pass a function its arguments.
//!
//! A function that is interpreted on its own has outside values for its parameters. Calls in its own file determine its real arguments
//! (`flow/machine/arguments/callers.rs`). This module finds the calls in the project's other files. If a call passes on a parameter of
//! its own function, the calls of that function decide.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::flow::project::CallGraph;
use crate::flow::project::call_graph::Mention;
use crate::flow::project::data_loading::HostSide;
use crate::flow::project::method_calls::{gives_host, through_object, unknown_makes};
use crate::flow::query::nodes::Target;
use crate::ir::{ArgKind, Call, CallId, Expr, ExprId, FuncId, FuncKind, Function, Module, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Program, Resolved};
use crate::sym::Sym;
use crate::torch::ResultRule;
use crate::words::Words;

/// Methods whose result is not on the device of the tensor.
static TO_HOST: Words = Words::of("bring values to the CPU");

/// The maximum number of functions that pass an argument on before it arrives.
pub(crate) const MAX_HANDS: u32 = 3;

/// A call of a function.
#[derive(Debug, Clone, Copy)]
struct Site {
    module: ModIdx,
    call: CallId,
    /// Whether the callee is a method that is called on an object of a known class.
    through_object: bool,
}

/// The call sites of functions.
#[derive(Debug, Default)]
pub struct Calls {
    sites: FxHashMap<Target, Vec<Site>>,
    /// The possible classes of the receivers of method calls, and of objects that are called. Many methods share one name.
    classes: FxHashMap<(ModIdx, CallId, Sym), Vec<ClassKey>>,
}

impl Calls {
    /// Adds the calls of these functions in the files of the call graph, which must be the same each time.
    pub fn add(&mut self, program: &Program, graph: &CallGraph, targets: &FxHashSet<Target>) {
        for &target in targets {
            let sites = self.sites_of(program, graph, target);
            if !sites.is_empty() {
                self.sites.insert(target, sites);
            }
        }
    }

    /// The calls of a function, including a static method's calls through its class. Method calls on unknown objects are excluded: the
    /// interpreter does not follow them, so they decide nothing.
    fn sites_of(&mut self, program: &Program, graph: &CallGraph, target: Target) -> Vec<Site> {
        let name = program.get(target.0).ir.function(target.1).name;
        let site = |(module, call), through_object| Site { module, call, through_object };
        let mut sites: Vec<Site> = graph.calls(program, target).map(|at| site(at, false)).collect();
        if name.as_str() == "__init__" {
            sites.extend(graph.constructions(program, target).map(|at| site(at, false)));
            return sites;
        }
        let names = FxHashSet::from_iter([name]);
        let itself = name.as_str() == "__call__";
        let anywhere = graph.files().iter().filter(|_| itself).flat_map(|&m| {
            let calls = program.get(m).ir.calls().len();
            (0..u32::try_from(calls).unwrap_or(u32::MAX)).map(move |n| (m, CallId(n)))
        });
        let named = graph.named_like(program, target).filter_map(Mention::call).filter(|_| !itself);
        for (m, call) in named.chain(anywhere) {
            if sites.iter().any(|known| (known.module, known.call) == (m, call)) {
                continue;
            }
            let func = program.get(m).ir.call(call).func;
            let by_class = program.method_of_class(m, func) == Some(target);
            let classes = self.classes.entry((m, call, name));
            let classes = classes.or_insert_with(|| {
                let (classes, method) = through_object(program, m, program.get(m).ir.call(call), &names);
                if method == name { classes } else { Vec::new() }
            });
            if by_class || classes.iter().any(|&class| program.find_method(class, name) == Some(target)) {
                sites.push(site((m, call), !by_class));
            }
        }
        sites
    }

    /// The functions that pass one of their parameters on to a target. Their callers decide as well.
    pub fn handing_on(&self, program: &Program) -> FxHashSet<Target> {
        let mut found = FxHashSet::default();
        for (target, sites) in &self.sites {
            let callee = program.get(target.0).ir.function(target.1);
            for &Site { module: m, call, .. } in sites {
                let ir = &program.get(m).ir;
                let indices = 0..callee.params.len();
                let hands =
                    indices.into_iter().find_map(|n| handed_far(program, m, ir.call(call), callee, n));
                found.extend(hands.map(|(f, _)| (m, f)).filter(|f| !self.sites.contains_key(f)));
            }
        }
        found
    }

    /// The files whose calls determine the argument for this parameter (by its position in the signature).
    ///
    /// `None` if some call leaves the argument open. Each call must pass a value of its own; that value may be unknown. If a call passes
    /// on a parameter of its own function, the result contains the files that call this function. The result is empty if all arguments
    /// are on the host.
    ///
    /// `side` is set for projects other than libraries. Then arguments that functions on the host side pass through objects are on the
    /// host as well. A library's methods are also called through objects elsewhere.
    pub fn deciding(
        &self,
        program: &Program,
        side: Option<&HostSide>,
        target: Target,
        index: u16,
    ) -> Option<Vec<ModIdx>> {
        let mut decision = Decision { calls: self, program, side, files: Vec::new() };
        if !decision.is_made(target, usize::from(index), MAX_HANDS) {
            return None;
        }
        let mut files = decision.files;
        files.sort_unstable();
        files.dedup();
        Some(files)
    }
}

/// The state of the query which calls decide a parameter.
struct Decision<'a> {
    calls: &'a Calls,
    program: &'a Program,
    side: Option<&'a HostSide>,
    /// The files whose calls pass a value of their own.
    files: Vec<ModIdx>,
}

impl Decision<'_> {
    /// Adds the files. False if a call leaves the argument open, or if there is no call.
    fn is_made(&mut self, target: Target, index: usize, hands: u32) -> bool {
        let Some(sites) = self.calls.sites.get(&target) else { return false };
        let mut some = false;
        for &site in sites {
            // The calls in the function's own file have been analyzed already, and leave the argument open.
            let looked_at = hands == MAX_HANDS && site.module == target.0;
            let decided = self.decides(site, target, index, hands);
            if !decided && !looked_at {
                return false;
            }
            some |= decided;
        }
        some
    }

    /// Whether the call passes a value of its own.
    fn decides(&mut self, site: Site, target: Target, index: usize, hands: u32) -> bool {
        if self.gives_host(site, target, index) {
            return true;
        }
        // Objects of a library's classes also occur in other projects.
        if site.through_object && self.side.is_none() {
            return false;
        }
        let ir = &self.program.get(site.module).ir;
        let call = ir.call(site.call);
        if call.args.iter().any(|a| matches!(a.kind, ArgKind::Star | ArgKind::DoubleStar)) {
            return false;
        }
        let callee = self.program.get(target.0).ir.function(target.1);
        if let Some((f, param)) = handed_far(self.program, site.module, call, callee, index) {
            return hands > 0 && self.is_made((site.module, f), param, hands - 1);
        }
        // The result of an unknown module is on that module's device, which this file does not determine.
        let given = argument(call, callee, index);
        if site.through_object && given.is_none_or(|g| unknown_makes(self.program, site.module, g)) {
            return false;
        }
        let looked_at = hands == MAX_HANDS && site.module == target.0;
        self.files.extend((!looked_at).then_some(site.module));
        !looked_at
    }

    /// Whether the call passes, through an object, a value on the host.
    fn gives_host(&self, site: Site, target: Target, index: usize) -> bool {
        let callee = self.program.get(target.0).ir.function(target.1);
        let ir = &self.program.get(site.module).ir;
        let call = ir.call(site.call);
        let around = (site.module, ir.function_around(call.func));
        site.through_object
            && callee.params.get(index).is_some_and(|param| {
                // Data preparation works on the host only.
                self.side.is_some_and(|side| side.contains(self.program, around))
                    || gives_host(self.program, site.module, call, index, param.name)
            })
    }
}

/// If the call passes a parameter of its own function, or a part of one, for this parameter: the function and the position of its
/// parameter.
pub(crate) fn handed_on(
    ir: &Module,
    call: Call<'_>,
    callee: &Function,
    index: usize,
) -> Option<(FuncId, usize)> {
    let slot = root(ir, argument(call, callee, index)?)?;
    let (id, around) = function_of(ir, call)?;
    let given = around.params.iter().position(|p| p.slot == slot && p.name.as_str() != "self");
    given.filter(|_| !around.is_private()).map(|given| (id, given))
}

/// The same, also through PyTorch functions and through variables that hold the parameter on some paths. The function's own analysis
/// covers the other paths.
fn handed_far(
    program: &Program,
    m: ModIdx,
    call: Call<'_>,
    callee: &Function,
    index: usize,
) -> Option<(FuncId, usize)> {
    let ir = &program.get(m).ir;
    let (id, around) = function_of(ir, call)?;
    let given = parameter(program, m, around, argument(call, callee, index)?, true)?;
    (!around.is_private()).then_some((id, given))
}

/// The argument for the parameter at this position of the signature.
fn argument(call: Call<'_>, callee: &Function, index: usize) -> Option<ExprId> {
    let param = callee.params.get(index)?;
    let receiver = callee.params.first().is_some_and(|p| matches!(p.name.as_str(), "self" | "cls"));
    let bound = callee.class.is_some() && receiver;
    let positional = call
        .args
        .iter()
        .filter(|a| a.kind == ArgKind::Positional)
        .nth(index - usize::from(bound && index > 0));
    let by_name = call.args.iter().find(|a| a.kind == ArgKind::Keyword(param.name));
    Some(by_name.or(positional)?.value)
}

/// The function around the call.
fn function_of<'a>(ir: &'a Module, call: Call<'_>) -> Option<(FuncId, &'a Function)> {
    let mut id = ir.function_around(call.func);
    while ir.function(id).kind != FuncKind::Function {
        id = ir.function(id).parent?;
    }
    Some((id, ir.function(id)))
}

/// Whether the PyTorch function's result is on the device of its argument.
fn stays(path: Sym) -> bool {
    let there = |op: &crate::torch::Op| matches!(op.result, ResultRule::Follows | ResultRule::Receiver);
    crate::torch::function(path).is_some_and(there)
}

/// The position of the parameter that the expression is, is a part of, or is computed from by PyTorch. With `held`, also the parameter
/// that the variable is assigned somewhere.
fn parameter(program: &Program, m: ModIdx, around: &Function, e: ExprId, held: bool) -> Option<usize> {
    let ir = &program.get(m).ir;
    match ir.expr(e) {
        Expr::Var(Var::Local(slot)) => {
            let given = around.params.iter().position(|p| p.slot == slot);
            if given.is_some() || !held {
                return given.filter(|&n| around.params[n].name.as_str() != "self");
            }
            ir.stmts[ir.stmts_of(around)].iter().find_map(|s| match *s {
                Stmt::Assign { targets, value }
                    if ir.list(targets).iter().any(|&t| ir.names_the_same(t, e))
                        && !matches!(ir.expr(value), Expr::Call(_)) =>
                {
                    parameter(program, m, around, value, false)
                }
                _ => None,
            })
        }
        Expr::Attr { base, name } if !TO_HOST.has(name.as_str()) => parameter(program, m, around, base, held),
        Expr::Index { base, .. } => parameter(program, m, around, base, held),
        Expr::Call(id) => {
            let call = ir.call(id);
            match program.resolve_expr(m, call.func) {
                Some(Resolved::External(path)) if stays(path) => {
                    call.args.iter().find_map(|a| parameter(program, m, around, a.value, held))
                }
                None if matches!(ir.expr(call.func), Expr::Attr { .. }) => {
                    parameter(program, m, around, call.func, held)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// The variable at the root of the expression: `graph` of `graph.to(x.device)`.
fn root(ir: &Module, e: ExprId) -> Option<u16> {
    match ir.expr(e) {
        Expr::Var(Var::Local(slot)) => Some(slot),
        Expr::Attr { base, name } if !TO_HOST.has(name.as_str()) => root(ir, base),
        Expr::Call(id) if matches!(ir.expr(ir.call(id).func), Expr::Attr { .. }) => {
            root(ir, ir.call(id).func)
        }
        _ => None,
    }
}
