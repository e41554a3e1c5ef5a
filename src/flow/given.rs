//! Which calls in other files give a function its arguments.
//!
//! A function that is interpreted for itself has outside things for its parameters. Calls in its own file say what it is
//! really given (`interp/callers.rs`); here are those in the project's other files. One that hands on what its own
//! function is given leaves the parameter open.

use rustc_hash::{FxHashMap, FxHashSet};

use super::behind::{Imported, Node, imported, named};
use crate::ir::{ArgKind, Call, CallId, Expr, ExprId, FuncId, FuncKind, Function, Module, Var};
use crate::link::{ModIdx, Program};
use crate::sym::Sym;

/// A function of the project.
pub type Target = (ModIdx, FuncId);

/// Where functions are called from other files.
#[derive(Debug, Default)]
pub struct Calls {
    sites: FxHashMap<Target, Vec<(ModIdx, CallId)>>,
}

impl Calls {
    /// Looks for calls of `targets` in these files of the program.
    pub fn of(program: &Program, files: &[ModIdx], targets: &FxHashSet<Target>) -> Self {
        let mut search =
            Search { program, imported: imported(program, files), targets, calls: Self::default() };
        for &m in files {
            search.file(m);
        }
        search.calls
    }

    /// The other files that call the function, if all of these calls give something of their own for this parameter (by
    /// its position in the signature), be it that nothing is known of that.
    pub fn deciding(&self, program: &Program, target: Target, index: u16) -> Vec<ModIdx> {
        let Some(sites) = self.sites.get(&target) else { return Vec::new() };
        let callee = program.get(target.0).ir.function(target.1);
        let open = sites.iter().any(|&(m, call)| {
            let ir = &program.get(m).ir;
            let call = ir.call(call);
            let unpacks = call.args.iter().any(|a| matches!(a.kind, ArgKind::Star | ArgKind::DoubleStar));
            unpacks || hands_on(ir, call, callee, usize::from(index))
        });
        if open {
            return Vec::new();
        }
        let mut files: Vec<ModIdx> = sites.iter().map(|&(m, _)| m).collect();
        files.sort_unstable();
        files.dedup();
        files
    }
}

struct Search<'a> {
    program: &'a Program,
    imported: Imported,
    targets: &'a FxHashSet<Target>,
    calls: Calls,
}

impl Search<'_> {
    fn file(&mut self, m: ModIdx) {
        let ir = &self.program.get(m).ir;
        for (n, call) in ir.calls.iter().enumerate() {
            let around = ir.function_around(call.func);
            let id = CallId(u32::try_from(n).unwrap_or(u32::MAX));
            if let Some(target) = self.called(m, around, call.func)
                && target.0 != m
            {
                self.calls.sites.entry(target).or_default().push((m, id));
            }
        }
    }

    /// The function that the call is of. A method of what nobody knows is not followed where it is called, so such a call
    /// decides nothing.
    fn called(&self, m: ModIdx, around: FuncId, func: ExprId) -> Option<Target> {
        let target = match named(self.program, &self.imported, m, around, func)? {
            Node::Function(m, f) => (m, f),
            Node::Class(key) => self.program.find_method(key, Sym::new("__init__"))?,
        };
        self.targets.contains(&target).then_some(target)
    }
}

/// Does its name say that it is there for its own file alone?
pub(super) fn is_private(function: &Function) -> bool {
    let name = function.name.as_str();
    name.starts_with('_') && !name.starts_with("__")
}

/// Does the call give for this parameter what the function around it is given, or a part of that?
pub(super) fn hands_on(ir: &Module, call: &Call, callee: &Function, index: usize) -> bool {
    let Some(param) = callee.params.get(index) else { return false };
    let bound = callee.class.is_some() && callee.params.first().is_some_and(|p| p.name.as_str() == "self");
    let positional = call
        .args
        .iter()
        .filter(|a| a.kind == ArgKind::Positional)
        .nth(index - usize::from(bound && index > 0));
    let by_name = call.args.iter().find(|a| a.kind == ArgKind::Keyword(param.name));
    let Some(arg) = by_name.or(positional) else { return false };
    let Some(slot) = root(ir, arg.value) else { return false };
    let around = ir
        .functions
        .iter()
        .filter(|f| f.kind == FuncKind::Function && f.span.contains(call.paren))
        .max_by_key(|f| f.span.start);
    around.is_some_and(|f| {
        !is_private(f) && f.params.iter().any(|p| p.slot == slot && p.name.as_str() != "self")
    })
}

/// The variable that the expression is, or that it begins with: `graph` of `graph.to(x.device)`.
fn root(ir: &Module, e: ExprId) -> Option<u16> {
    match ir.expr(e) {
        Expr::Var(Var::Local(slot)) => Some(slot),
        Expr::Attr { base, name } if !matches!(name.as_str(), "cpu" | "numpy" | "tolist" | "item") => {
            root(ir, base)
        }
        Expr::Call(id) if matches!(ir.expr(ir.call(id).func), Expr::Attr { .. }) => {
            root(ir, ir.call(id).func)
        }
        _ => None,
    }
}
