//! Modules that have nothing to move, by the text alone: `nn.CrossEntropyLoss().cuda()` needs no CUDA.

use super::refuses::Refuses;
use crate::ir::{Arg, ArgKind, Expr, ExprId, FuncId, Module, Param, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Program, Resolved};
use crate::sym::Sym;
use crate::torch::{self, State};
use crate::work::spend;

/// How deep what is made of such modules is looked into.
const MAX_NESTING: u32 = 4;

impl Refuses<'_> {
    /// Is it a module that has neither parameters nor buffers, or a variable that holds one?
    pub(super) fn is_weightless(&self, e: ExprId) -> bool {
        self.holds_weightless(e, MAX_NESTING)
    }

    fn holds_weightless(&self, e: ExprId, depth: u32) -> bool {
        spend(1);
        let ir = self.ir();
        let Some(depth) = depth.checked_sub(1) else { return false };
        match ir.expr(e) {
            Expr::Call(id) => {
                let (func, args) = (ir.call(id).func, &ir.call(id).args);
                match (self.program.resolve_expr(self.module, func), ir.expr(func)) {
                    // It has what it is given.
                    (Some(Resolved::External(path)), _)
                        if torch::module(path).is_some_and(torch::ModuleOp::is_container) =>
                    {
                        !args.is_empty() && args.iter().all(|a| self.holds_weightless(a.value, depth))
                    }
                    (Some(Resolved::External(path)), _) => is_weightless_module(path),
                    (Some(Resolved::Class(key)), _) => {
                        is_weightless_class(self.program, key, &Made::with(ir, args, &|_| false), depth)
                    }
                    // `nn.ReLU().to(device)`
                    (None, Expr::Attr { base, .. }) => self.holds_weightless(base, depth),
                    _ => false,
                }
            }
            // What an attribute holds, another function may have put there.
            Expr::Attr { .. } => self.is_given(e, None, depth),
            Expr::Var(_) => self.is_given(e, Some(self.func), depth),
            _ => false,
        }
    }

    /// Does a statement put such a module there, of that function or of any? That is asked of each variable once, however many
    /// statements set it.
    fn is_given(&self, to: ExprId, within: Option<FuncId>, depth: u32) -> bool {
        let ir = self.ir();
        let stmts = within.map_or(0..ir.stmts.len(), |f| ir.stmts_of(ir.function(f)));
        let mut set = ir.settings_in(to, stmts).peekable();
        let Some(first) = set.peek() else { return false };
        let asked = (within, first.target, depth);
        if let Some(&known) = self.memo.weightless.borrow().get(&asked) {
            return known;
        }
        // What it is given of its own says nothing new.
        self.memo.weightless.borrow_mut().insert(asked, false);
        let given = set.any(|s| {
            s.value.is_some_and(|value| {
                let func = within.unwrap_or_else(|| ir.function_around(value));
                Refuses { func, ..*self }.holds_weightless(value, depth)
            })
        });
        self.memo.weightless.borrow_mut().insert(asked, given);
        given
    }
}

/// A module of PyTorch without a state. A loss may be given weights, but rarely is.
fn is_weightless_module(path: Sym) -> bool {
    torch::module(path).is_some_and(|op| match op.state {
        State::No => !op.is_container(),
        State::Sometimes => op.name.as_str().ends_with("Loss"),
        State::Yes | State::Unknown => false,
    })
}

/// Is it no module for certain?
fn is_plain(e: Expr) -> bool {
    matches!(e, Expr::Int(_) | Expr::Float(_) | Expr::Str(_) | Expr::True | Expr::False)
}

/// PyTorch's functions, and those of other libraries, that make no modules, parameters or buffers.
fn makes_no_module(path: Sym) -> bool {
    let path = path.as_str();
    let of_torch = path.starts_with("torch.")
        && (!path.starts_with("torch.nn.") || path.starts_with("torch.nn.functional."))
        && !["torch.load", "torch.hub.", "torch.jit."].iter().any(|p| path.starts_with(p));
    of_torch || ["builtins.", "numpy.", "math."].iter().any(|p| path.starts_with(p))
}

/// What something is made with: which of its arguments are no modules for certain.
#[derive(Default)]
struct Made {
    positional: Vec<bool>,
    keywords: Vec<(Sym, bool)>,
}

impl Made {
    /// Of the arguments of a call in that file, where some of the variables are known to hold no modules.
    fn with(ir: &Module, args: &[Arg], known: &dyn Fn(ExprId) -> bool) -> Self {
        let plain = |a: &Arg| is_plain(ir.expr(a.value)) || known(a.value);
        let is_positional = |a: &&Arg| a.kind == ArgKind::Positional;
        let keyword = |a: &Arg| match a.kind {
            ArgKind::Keyword(name) => Some((name, plain(a))),
            _ => None,
        };
        Self {
            positional: args.iter().take_while(is_positional).map(plain).collect(),
            keywords: args.iter().filter_map(keyword).collect(),
        }
    }

    /// Of a constructor's parameter, counted with `self`; nothing if it is not given.
    fn is_plain(&self, n: usize, name: Sym) -> Option<bool> {
        let named = || self.keywords.iter().find(|(k, _)| *k == name).map(|&(_, plain)| plain);
        n.checked_sub(1).and_then(|n| self.positional.get(n).copied()).or_else(named)
    }
}

/// A class of the project whose constructors make nothing but such modules, if it is made with these arguments.
fn is_weightless_class(program: &Program, key: ClassKey, made: &Made, depth: u32) -> bool {
    let info = program.class(key);
    let plain =
        |&path: &Sym| path.as_str() == "torch.nn.Module" || is_weightless_module(torch::canonical(path));
    if info.unknown_base || !info.externals.iter().all(plain) {
        return false;
    }
    let init = Sym::new("__init__");
    let mut own;
    let mut made = made;
    for &k in &info.mro {
        let Some(f) = program.own_method(k, init) else { continue };
        let Some(next) = makes_weightless(program, (k.module, f), made, depth) else { return false };
        own = next;
        made = &own;
    }
    true
}

/// Does a constructor make nothing but such modules? Then what the next one up is given.
fn makes_weightless(program: &Program, (m, f): (ModIdx, FuncId), made: &Made, depth: u32) -> Option<Made> {
    let ir = &program.get(m).ir;
    let function = ir.function(f);
    let param = |value: ExprId| {
        let is_it = |p: &Param| ir.expr(value) == Expr::Var(Var::Local(p.slot));
        let n = function.params.iter().position(is_it)?;
        let param = &function.params[n];
        let default = || param.default.is_some_and(|d| is_plain(ir.expr(d)));
        Some(made.is_plain(n, param.name).unwrap_or_else(default))
    };
    let known = |value: ExprId| param(value) == Some(true);
    // What a constructor is given may be a module.
    let keeps = |s: &Stmt| matches!(*s, Stmt::Assign { value, .. } if param(value) == Some(false));
    spend(function.exprs.len());
    if ir.stmts[ir.stmts_of(function)].iter().any(keeps) {
        return None;
    }
    let mut next = Made::default();
    let calls = ir.exprs[ir.exprs_of(function)].iter();
    let calls = calls.filter_map(|e| if let Expr::Call(id) = *e { Some(ir.call(id)) } else { None });
    for call in calls {
        let fine = match (program.resolve_expr(m, call.func), ir.expr(call.func)) {
            (Some(Resolved::External(path)), _) => makes_no_module(path) || is_weightless_module(path),
            (Some(Resolved::Class(key)), _) => {
                let made = Made::with(ir, call.args, &known);
                depth > 0 && is_weightless_class(program, key, &made, depth.saturating_sub(1))
            }
            (None, Expr::Attr { base, name }) if name.as_str() == "__init__" => {
                // `Base.__init__(self, …)`
                let of_class = !matches!(ir.expr(base), Expr::Call(_));
                next = Made::with(ir, call.args.get(usize::from(of_class)..).unwrap_or_default(), &known);
                true
            }
            (None, Expr::Var(Var::Unbound(name))) => name.as_str() == "super",
            _ => false,
        };
        if !fine {
            return None;
        }
    }
    Some(next)
}
