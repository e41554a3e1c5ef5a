//! Places in functions of a project, and the calls that lead to these functions.

use crate::flow::project::CallGraph;
use crate::flow::query::nodes::Target;
use crate::ir::{ArgKind, Call, CallId, Expr, ExprId, FuncId, FuncKind, Function, Module, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Program};
use crate::sym::Sym;

/// A function of a project. With `via`: only in the context of this call, which the given caller makes.
#[derive(Clone, Copy)]
pub(crate) struct Site<'s> {
    pub(crate) module: ModIdx,
    pub(crate) func: FuncId,
    pub(crate) via: Option<(&'s Site<'s>, CallId)>,
}

impl<'s> Site<'s> {
    /// The function in the context of any caller.
    pub(crate) fn of(module: ModIdx, func: FuncId) -> Self {
        Self { module, func, via: None }
    }

    /// The argument that the call passes for the parameter `var`.
    pub(crate) fn argument(&self, program: &Program, var: Var) -> Option<(Site<'s>, ExprId)> {
        let (caller, call) = self.via?;
        let Var::Local(slot) = var else { return None };
        let function = program.get(self.module).ir.function(self.func);
        let at = function.params.iter().position(|p| p.slot == slot)?;
        let ir = &program.get(caller.module).ir;
        Some((*caller, given_for(function, at, ir, ir.call(call))?))
    }
}

/// The argument for the parameter with this position and name.
pub fn argument(call: Call<'_>, at: usize, name: Sym) -> Option<ExprId> {
    let keyword = call.args.iter().find(|a| a.kind == ArgKind::Keyword(name));
    let spread = call.args.iter().take(at + 1).any(|a| a.kind == ArgKind::Star);
    let positional = || call.args.get(at).filter(|a| a.kind == ArgKind::Positional && !spread);
    keyword.or_else(positional).map(|a| a.value)
}

/// The argument that a call passes for the parameter at this position of its callee. For a method's first parameter, that is the object
/// before the dot.
pub(crate) fn given_for(function: &Function, at: usize, ir: &Module, call: Call<'_>) -> Option<ExprId> {
    let bound = match ir.expr(call.func) {
        Expr::Attr { base, .. } if has_receiver(function) => {
            if at == 0 {
                return Some(base);
            }
            1
        }
        _ => 0,
    };
    argument(call, at - bound, function.params.get(at)?.name)
}

/// Whether the function's first parameter is the receiver.
fn has_receiver(function: &Function) -> bool {
    let first = function.params.first().map(|p| p.name);
    function.class.is_some() && first.is_some_and(|name| matches!(name.as_str(), "self" | "cls"))
}

/// The method that a call on the object itself runs: `self.collect()`
pub(crate) fn own_method(
    program: &Program,
    module: ModIdx,
    mut func: FuncId,
    callee: ExprId,
) -> Option<(ModIdx, FuncId)> {
    let ir = &program.get(module).ir;
    let Expr::Attr { base, name } = ir.expr(callee) else { return None };
    let mut depth = 0;
    loop {
        let function = ir.function(func);
        if function.kind == FuncKind::Function
            && let Some(class) = function.class
        {
            let slot = function.params.first()?.slot;
            let receiver = match depth {
                0 => Var::Local(slot),
                depth => Var::Enclosing { depth, slot },
            };
            let own = ir.expr(base) == Expr::Var(receiver);
            return own.then(|| program.find_method(ClassKey { module, class }, name)).flatten();
        }
        func = function.parent?;
        // `Var::Enclosing` limits the nesting depth.
        depth = depth.checked_add(1)?;
    }
}

/// The maximum number of calls of one function that are considered.
pub(crate) const MAX_CALLERS: usize = 16;
/// The maximum number of values of one variable that are considered.
const MAX_ASSIGNED: usize = 4;

/// The calls of a function of the project, each with its caller.
pub(crate) fn calls<'a>(
    program: &'a Program,
    graph: &'a CallGraph,
    target: Target,
) -> impl Iterator<Item = (Site<'static>, CallId)> + 'a {
    graph.calls(program, target).map(|(m, call)| {
        let ir = &program.get(m).ir;
        (Site::of(m, ir.function_around(ir.call(call).func)), call)
    })
}

/// Calls that lead to a function, innermost first: each is in the function that the next one calls.
pub(crate) type Chain = Vec<(Site<'static>, CallId)>;

/// Calls `then` with the place `at` in the context of this chain of calls.
pub(crate) fn through(at: Site<'static>, chain: &[(Site<'static>, CallId)], then: &mut dyn FnMut(&Site<'_>)) {
    fn down(
        at: Site<'static>,
        chain: &[(Site<'static>, CallId)],
        above: Option<&Site<'_>>,
        then: &mut dyn FnMut(&Site<'_>),
    ) {
        let Some((&(caller, call), rest)) = chain.split_last() else {
            return then(above.unwrap_or(&at));
        };
        let caller = match above {
            Some(above) => *above,
            None => caller,
        };
        let callee = rest.last().map_or(at, |&(site, _)| site);
        down(at, rest, Some(&Site { via: Some((&caller, call)), ..callee }), then);
    }
    down(at, chain, None, then);
}

/// The values that a function's variable is assigned. They include the context managers that `with` binds to it, and the elements of a
/// literal that a loop assigns to it.
pub(crate) fn assigned(ir: &Module, func: FuncId, var: Var) -> Vec<ExprId> {
    let within = |e: ExprId| ir.function_around(e) == func;
    let is_it = |t: ExprId| ir.expr(t) == Expr::Var(var) && within(t);
    let mut values = Vec::new();
    for stmt in &ir.stmts[stmts(ir, func)] {
        match stmt {
            Stmt::Assign { targets, value } if ir.list(*targets).iter().any(|&t| is_it(t)) => {
                values.push(*value)
            }
            Stmt::AnnAssign { target, value: Some(value), .. } if is_it(*target) => values.push(*value),
            Stmt::For { target, iter, .. } if is_it(*target) => {
                if let Expr::List(list) | Expr::Tuple(list) = ir.expr(*iter) {
                    values.extend(ir.list(list));
                }
            }
            Stmt::With { items, .. } => {
                values.extend(items.iter().filter(|(_, t)| t.is_some_and(is_it)).map(|&(e, _)| e));
            }
            _ => {}
        }
    }
    values.truncate(MAX_ASSIGNED);
    values
}

/// The numbers of a function's statements.
fn stmts(ir: &Module, func: FuncId) -> std::ops::Range<usize> {
    if func == FuncId(0) { 0..ir.stmts.len() } else { ir.stmts_of(ir.function(func)) }
}
