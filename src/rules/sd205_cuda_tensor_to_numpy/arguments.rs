//! SD205 cuda-tensor-to-numpy: an argument whose device the function uses, and which it then converts to NumPy.
//!
//! A function that converts its argument to NumPy usually gets a CPU tensor. The argument may be on any device if the function makes
//! tensors on its device, or if a method that does so passes it on.

use super::CODE;
use crate::finding::{Finding, Label};
use crate::ir::{ArgKind, Block, Call, Expr, ExprId, FuncId, FuncKind, Function, Slot, Stmt, Var};
use crate::link::{ModIdx, Resolved};
use crate::rules::check::Context;
use crate::rules::shared::file::File;
use crate::rules::shared::naming::is_short;
use crate::rules::shared::test_code::in_tests;
use crate::span::{Place, Span};
use crate::sym::Sym;
use crate::words::Words;
use crate::world::World;

static TYPE_ERRORS: Words = Words::of("catch type errors");
static HARMLESS: Words = Words::of("ask nothing about devices");
static IN_TESTS: Words = Words::of("tell a device in a test");
static BY_DEVICE: Words = Words::of("depend on the device of a tensor");
static TO_HOST: Words = Words::of("may bring a tensor to the CPU");

/// SD205 cuda-tensor-to-numpy, about arguments
pub(super) fn to_numpy(cx: &Context<'_>) -> Vec<Finding> {
    let Some(file) = File::of(cx) else { return Vec::new() };
    let asked = ["numpy", "device"].map(Sym::new).into_iter().all(|name| file.ir.has_attribute(name));
    let here = Place { file: cx.file, span: Span::default() };
    if !asked || in_tests(here, cx) {
        return Vec::new();
    }
    let functions = file.ir.functions.iter().filter(|f| f.kind == FuncKind::Function);
    functions.filter_map(|f| file.hands_followed_to_numpy(f)).collect()
}

impl File<'_> {
    fn hands_followed_to_numpy(&self, function: &Function) -> Option<Finding> {
        let (slot, at) = self.inside(function).find_map(|(n, e, at)| {
            let Expr::Call(call) = e else { return None };
            let call = self.ir.call(call);
            // A nested function numbers its variables separately.
            let around = self.ir.function_around(ExprId(u32::try_from(n).ok()?));
            if self.ir.function(around).span != function.span {
                return None;
            }
            let Expr::Attr { base, name } = self.ir.expr(call.func) else { return None };
            let slot = self.plainly(base)?;
            let param = function.params.iter().any(|p| p.slot == slot && p.name.as_str() != "self");
            (name.as_str() == "numpy" && call.args.is_empty() && param).then_some((slot, at))
        })?;
        if self.is_set_before(function, slot, at) || self.is_checked(function, slot, at) {
            return None;
        }
        let (position, param) = function.params.iter().enumerate().find(|(_, p)| p.slot == slot)?;
        let followed =
            self.followed_here(function, slot, at).or_else(|| self.followed_by_caller(function, position))?;
        let param = param.name;
        let text = self.cx.sources.text(Place { file: self.cx.file, span: at });
        let call = if is_short(text) { text.to_owned() } else { format!("{param}.numpy()") };
        let message = format!("`{call}` raises if `{param}` is on a GPU: NumPy reads only CPU memory");
        let place = |span| Place { file: self.cx.file, span };
        let label = Label::new(place(at), "raises `TypeError` for a tensor on a GPU");
        Some(
            Finding::new(CODE, World::Cuda, message, label)
                .related(place(followed), "here the code uses its device, so it can be on a GPU")
                .help(format!(
                    "copy it to the CPU first: `{}`",
                    call.replacen(".numpy()", ".cpu().numpy()", 1)
                )),
        )
    }

    /// The variable in an expression that is a variable, perhaps detached.
    fn plainly(&self, e: ExprId) -> Option<Slot> {
        match self.ir.expr(e) {
            Expr::Var(Var::Local(slot)) => Some(slot),
            Expr::Call(call) => match self.ir.expr(self.ir.call(call).func) {
                Expr::Attr { base, name } if name.as_str() == "detach" => self.plainly(base),
                _ => None,
            },
            _ => None,
        }
    }

    fn is_set_before(&self, function: &Function, slot: Slot, at: Span) -> bool {
        let by_statement =
            self.ir.stmts_of(function).any(|n| self.ir.stmt_spans[n].start < at.start && self.sets(n, slot));
        by_statement
            || self.inside(function).any(|(_, e, place)| {
                matches!(e, Expr::Walrus(w) if place.start < at.start && self.ir.walrus(w).target == Var::Local(slot))
            })
    }

    fn sets(&self, stmt: usize, slot: Slot) -> bool {
        let binds = |t: ExprId| self.ir.binds(t, Var::Local(slot));
        match &self.ir.stmts[stmt] {
            Stmt::Assign { targets, .. } => self.ir.list(*targets).iter().any(|&t| binds(t)),
            Stmt::AnnAssign { target, value: Some(_), .. } | Stmt::For { target, .. } => binds(*target),
            Stmt::With { items, .. } => items.iter().any(|&(_, t)| t.is_some_and(binds)),
            _ => false,
        }
    }

    /// Does the function check the variable's device, or catch the error?
    fn is_checked(&self, function: &Function, slot: Slot, at: Span) -> bool {
        let tested = |n: usize| match &self.ir.stmts[n] {
            Stmt::If { test, .. } | Stmt::While { test, .. } | Stmt::Assert { test, .. } => {
                self.tells_where(*test, slot)
            }
            Stmt::Try { body, handlers, .. } => {
                let around = self.ir.block(*body).iter().any(|&s| self.ir.stmt_span(s).contains(at));
                around
                    && self
                        .ir
                        .handlers(*handlers)
                        .iter()
                        .any(|h| h.types.is_none_or(|t| self.takes_type_errors(t)))
            }
            _ => false,
        };
        self.asks_where(function, slot)
            || self.ir.stmts_of(function).any(tested)
            || self.inside(function).any(|(_, e, _)| {
                matches!(e, Expr::IfElse(choice) if self.tells_where(self.ir.if_else(choice).test, slot))
            })
    }

    fn takes_type_errors(&self, types: ExprId) -> bool {
        let one = |n: usize| match self.ir.exprs[n] {
            Expr::Var(Var::Unbound(name)) => TYPE_ERRORS.has(name.as_str()),
            _ => false,
        };
        self.ir.exprs_in(types).any(one)
    }

    /// Does a test mention devices, or ask something unknown about the variable?
    fn tells_where(&self, test: ExprId, slot: Slot) -> bool {
        self.ir.exprs_in(test).any(|n| match self.ir.exprs[n] {
            Expr::Attr { name, .. } => IN_TESTS.has(name.as_str()),
            Expr::Str(s) => s.as_str() == "cpu" || s.as_str().starts_with("cuda"),
            Expr::Call(call) => {
                let call = self.ir.call(call);
                let known = HARMLESS.all().iter().any(|name| self.ir.is_builtin(call.func, name))
                    || matches!(self.cx.program.resolve_expr(self.module, call.func),
                        Some(Resolved::External(path)) if path.as_str().starts_with("torch."));
                !known && call.args.iter().any(|a| self.ir.expr(a.value) == Expr::Var(Var::Local(slot)))
            }
            _ => false,
        })
    }

    /// Does the function read the variable's device for anything other than creating a tensor there?
    fn asks_where(&self, function: &Function, slot: Slot) -> bool {
        let own = Expr::Var(Var::Local(slot));
        let of_it = |e: ExprId, what: &[&str]| {
            matches!(self.ir.expr(e), Expr::Attr { base, name }
                if what.contains(&name.as_str()) && self.ir.expr(base) == own)
        };
        self.inside(function).any(|(n, e, _)| match e {
            Expr::Attr { base, .. } => {
                let n = ExprId(u32::try_from(n).unwrap_or(u32::MAX));
                of_it(n, BY_DEVICE.all()) || of_it(base, &["device"])
            }
            Expr::Compare { left, right, .. } => of_it(left, &["device"]) || of_it(right, &["device"]),
            _ => false,
        })
    }

    /// The places where the function creates a tensor on the device of the variable.
    fn made_where_it_is(&self, function: &Function, slot: Slot) -> impl Iterator<Item = Span> {
        let device = move |e: ExprId| {
            matches!(self.ir.expr(e), Expr::Attr { base, name }
                if name.as_str() == "device" && self.ir.expr(base) == Expr::Var(Var::Local(slot)))
        };
        self.inside(function).filter_map(move |(_, e, at)| {
            let Expr::Call(call) = e else { return None };
            let mut args = self.ir.call(call).args.iter();
            let placed = args
                .any(|a| matches!(a.kind, ArgKind::Keyword(k) if k.as_str() == "device") && device(a.value));
            placed.then_some(at)
        })
    }

    /// A place where the function itself creates a tensor on the device of its argument, while the variable still has the argument.
    fn followed_here(&self, function: &Function, slot: Slot, at: Span) -> Option<Span> {
        self.made_where_it_is(function, slot)
            .find(|&made| made.start < at.start || !self.is_set_before(function, slot, made))
    }

    /// A place where another method creates a tensor on the device of the value that it then passes to this method as the argument.
    fn followed_by_caller(&self, function: &Function, position: usize) -> Option<Span> {
        let class = function.class?;
        let others =
            self.ir.functions.iter().filter(|f| f.class == Some(class) && f.kind == FuncKind::Function);
        others.filter(|f| f.span != function.span).find_map(|f| {
            self.inside(f).find_map(|(_, e, at)| {
                let Expr::Call(call) = e else { return None };
                let call = self.ir.call(call);
                let named = self.ir.last_name(call.func) == Some(function.name);
                let (m, callee) = if named { self.own_method(f, call) } else { None }?;
                let is_it = m == self.module && self.ir.function(callee).span == function.span;
                let given = if is_it { given(call, function, position) } else { None }?;
                let Expr::Var(Var::Local(slot)) = self.ir.expr(given) else { return None };
                let made = self.made_where_it_is(f, slot).find(|made| made.start < at.start)?;
                let stays = !self.is_checked(f, slot, at) && self.is_kept_between(f, slot, made, at);
                stays.then_some(made)
            })
        })
    }

    /// Is the variable still on the same device? It is unchanged, or a call that takes it and other tensors returned all of them.
    fn is_kept_between(&self, function: &Function, slot: Slot, made: Span, at: Span) -> bool {
        self.ir.stmts_of(function).all(|n| {
            let place = self.ir.stmt_spans[n];
            let between = made.start < place.start && place.start < at.start && !place.contains(at);
            !between
                || !self.sets(n, slot)
                || self.is_on_other_branch(function, place, at)
                || self.comes_back(n)
        })
    }

    /// Are the two places on different branches?
    fn is_on_other_branch(&self, function: &Function, place: Span, at: Span) -> bool {
        let covers = |block: Block, span: Span| {
            self.ir.block(block).iter().any(|&s| self.ir.stmt_span(s).contains(span))
        };
        self.ir.stmts_of(function).any(|n| match self.ir.stmts[n] {
            Stmt::If { then, orelse, .. } => covers(then, place) && covers(orelse, at),
            _ => false,
        })
    }

    /// `a, b = f(a, b, …)`: a function that returns as many tensors as it takes keeps their device, unless its body names the CPU.
    fn comes_back(&self, stmt: usize) -> bool {
        let Stmt::Assign { targets, value } = self.ir.stmts[stmt] else { return false };
        let (&[target], Expr::Call(call)) = (self.ir.list(targets), self.ir.expr(value)) else {
            return false;
        };
        let (Expr::Tuple(names), call) = (self.ir.expr(target), self.ir.call(call)) else { return false };
        let is_given = |&name: &ExprId| {
            matches!(self.ir.expr(name), Expr::Var(_))
                && call.args.iter().any(|a| self.ir.expr(a.value) == self.ir.expr(name))
        };
        self.ir.list(names).iter().all(is_given)
            && match self.cx.program.resolve_expr(self.module, call.func) {
                Some(Resolved::External(_)) => true,
                Some(Resolved::Function(m, f)) => !self.speaks_of_host(m, f),
                _ => false,
            }
    }

    fn speaks_of_host(&self, m: ModIdx, f: FuncId) -> bool {
        let ir = &self.cx.program.get(m).ir;
        ir.exprs_of(ir.function(f)).any(|n| match ir.exprs[n] {
            Expr::Attr { name, .. } => TO_HOST.has(name.as_str()),
            Expr::Str(s) => s.as_str() == "cpu",
            _ => false,
        })
    }
}

/// The argument that a call on the same object passes for the parameter at a position.
fn given(call: Call<'_>, method: &Function, position: usize) -> Option<ExprId> {
    let name = method.params.get(position)?.name;
    let named = call.args.iter().find(|a| a.kind == ArgKind::Keyword(name));
    let in_order = || call.args.get(position.checked_sub(1)?).filter(|a| a.kind == ArgKind::Positional);
    let before = call.args.iter().take(position).all(|a| a.kind != ArgKind::Star);
    named.or_else(in_order).filter(|_| before).map(|a| a.value)
}
