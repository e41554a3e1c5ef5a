//! SD206 generator-device-mismatch: a function takes a generator from its caller, and draws with it on a device of its own choice.

use super::CODE;
use crate::finding::{Finding, Label};
use crate::ir::{
    Arg, ArgKind, Block, Call, CmpOp, Expr, ExprId, FuncKind, Function, Slot, Stmt, UnaryOp, Var,
};
use crate::link::{ClassKey, Resolved};
use crate::rules::check::Context;
use crate::rules::shared::file::File;
use crate::rules::shared::offloading::offloads;
use crate::rules::shared::test_code::in_tests;
use crate::span::{Place, Span};
use crate::sym::Sym;
use crate::words::Words;
use crate::world::World;

static DRAWS: Words = Words::of("draw on the device of a generator");
static BACK: Words = Words::of("bring values to the CPU");
static NUMBERS: Words = Words::of("make numbers");
static DESCRIBES: Words = Words::of("tell the shape or type");

/// The functions of a file that draw with a generator from their caller.
pub(super) fn drawn(cx: &Context<'_>) -> Vec<Finding> {
    let Some(file) = File::of(cx) else { return Vec::new() };
    if in_tests(Place { file: cx.file, span: Span::default() }, cx) {
        return Vec::new();
    }
    let functions = file.ir.functions.iter().filter(|f| f.kind == FuncKind::Function);
    functions.filter_map(|function| with_given(&file, function)).collect()
}

/// `torch.randn(…, generator=generator, device=device)` in a function that chooses the device itself and never checks the generator's
/// device. Its callers may pass a generator on the CPU or on the GPU.
fn with_given(file: &File<'_>, function: &Function) -> Option<Finding> {
    // A quick check: functions have many parameters, but few have a generator.
    let generator = Sym::new("generator");
    let slot = function.params.iter().find(|p| p.name == generator)?.slot;
    let draws: Vec<(ExprId, Span)> = file
        .inside(function)
        .filter_map(|(n, e, at)| {
            let Expr::Call(call) = e else { return None };
            let draws = draws_with(file, file.ir.call(call), slot) && !for_mps(file, at);
            draws.then_some((ExprId(u32::try_from(n).ok()?), at))
        })
        .collect();
    if draws.is_empty() || looks_at(file, function, slot) {
        return None;
    }
    let offloads =
        || function.class.is_some_and(|class| offloads(file, ClassKey { module: file.module, class }));
    let look = Draws { file, function };
    let plain: Vec<(ExprId, Span)> = draws.iter().copied().filter(|&(e, _)| !look.is_by_helper(e)).collect();
    let (draw, at) = if offloads() {
        *plain.first()?
    } else {
        *plain.iter().find(|&&(draw, _)| look.is_where_it_chose(draw) || look.goes_to_given(draw))?
    };
    let message = format!(
        "`{}()` raises if the caller's `generator` is on another device: `{}` does not check `generator.device`",
        drawn_by(file, draw),
        function.name
    );
    let label = "raises if `generator` is on another device";
    let place = |span| Place { file: file.cx.file, span };
    let finding = Finding::new(CODE, World::Cuda, message, Label::new(place(at), label))
        .related(place(function.name_span), "takes the generator of the caller")
        .help("draw with `device=generator.device` if the caller gives a generator, and move the result with `.to(…)`");
    Some(finding)
}

/// The name of the function that a draw calls.
fn drawn_by(file: &File<'_>, draw: ExprId) -> Sym {
    let called = match file.ir.expr(draw) {
        Expr::Call(call) => file.ir.last_name(file.ir.call(call).func),
        _ => None,
    };
    called.unwrap_or_else(|| Sym::new("randn"))
}

/// A function with draws.
struct Draws<'a> {
    file: &'a File<'a>,
    function: &'a Function,
}

impl Draws<'_> {
    /// Is the draw a call of a helper, not of PyTorch itself? A helper gets both the generator and the device. It may draw on the CPU for a
    /// tensor on the GPU, but not the reverse.
    fn is_by_helper(&self, draw: ExprId) -> bool {
        let Expr::Call(call) = self.file.ir.expr(draw) else { return false };
        !draws_itself(self.file, self.file.ir.call(call))
    }

    fn device_of(&self, draw: ExprId) -> Option<ExprId> {
        let Expr::Call(call) = self.file.ir.expr(draw) else { return None };
        let device = |a: &&Arg| matches!(a.kind, ArgKind::Keyword(k) if k.as_str() == "device");
        self.file.ir.call(call).args.iter().find(device).map(|a| a.value)
    }

    /// Does the function draw on a device that it chose by the machine's hardware, or on the device of a tensor that it created there? The
    /// caller does not know this device.
    fn is_where_it_chose(&self, draw: ExprId) -> bool {
        let ir = self.file.ir;
        let Some(device) = self.device_of(draw) else { return false };
        match ir.expr(device) {
            Expr::Var(Var::Local(s)) => self.chosen(draw).is_some_and(|(_, chosen)| s == chosen),
            Expr::Attr { base, name } if name.as_str() == "device" => match ir.expr(base) {
                Expr::Var(Var::Local(s)) => self
                    .chosen(draw)
                    .is_some_and(|(n, chosen)| self.taken_there(n, chosen, draw).contains(&s)),
                _ => false,
            },
            _ => false,
        }
    }

    /// The statement that chooses a device by the machine's hardware, and its variable. `None` if the function assigns the variable again
    /// before the draw.
    fn chosen(&self, draw: ExprId) -> Option<(usize, Slot)> {
        let (ir, before) = (self.file.ir, self.file.ir.span(draw).start);
        let (at, slot) = ir.stmts_of(self.function).find_map(|n| {
            let Stmt::Assign { targets, value } = ir.stmts[n] else { return None };
            let &[target] = ir.list(targets) else { return None };
            let Expr::Var(Var::Local(slot)) = ir.expr(target) else { return None };
            self.chooses(value).then_some((n, slot))
        })?;
        let set_again = |n: usize| {
            n != at && ir.stmt_spans[n].start < before && binds(self.file, &ir.stmts[n], Var::Local(slot))
        };
        (!ir.stmts_of(self.function).any(set_again)).then_some((at, slot))
    }

    /// `"cuda" if torch.cuda.is_available() else "cpu"`
    fn chooses(&self, value: ExprId) -> bool {
        let ir = self.file.ir;
        ir.exprs_in(value).any(|n| {
            let Expr::IfElse(choice) = ir.exprs[n] else { return false };
            let choice = ir.if_else(choice);
            let asks =
                |n: usize| matches!(ir.exprs[n], Expr::Attr { name, .. } if name.as_str() == "is_available");
            let names = |n: usize| matches!(ir.exprs[n], Expr::Str(s) if s.as_str().starts_with("cuda"));
            ir.exprs_in(choice.test).any(asks)
                && [choice.then, choice.orelse].into_iter().any(|e| ir.exprs_in(e).any(names))
        })
    }

    /// The variables that the function has moved to the chosen device before the draw, or that it created there or from tensors there.
    fn taken_there(&self, chosen_at: usize, chosen: Slot, draw: ExprId) -> Vec<Slot> {
        let (ir, before) = (self.file.ir, self.file.ir.span(draw).start);
        let mut there = vec![chosen];
        for n in ir.stmts_of(self.function) {
            let Stmt::Assign { targets, value } = ir.stmts[n] else { continue };
            if n == chosen_at || ir.stmt_spans[n].end > before {
                continue;
            }
            let goes = self.is_there(value, &there);
            for &target in ir.list(targets) {
                for e in ir.exprs_in(target) {
                    let Expr::Var(Var::Local(slot)) = ir.exprs[e] else { continue };
                    there.retain(|&s| s != slot);
                    if goes {
                        there.push(slot);
                    }
                }
            }
        }
        // The variable with the device itself is not a tensor.
        there.retain(|&s| s != chosen);
        there
    }

    /// Is the value created from a tensor in `there`, other than from its shape, and not moved back?
    fn is_there(&self, value: ExprId, there: &[Slot]) -> bool {
        let ir = self.file.ir;
        let back = ir.exprs_in(value).any(|n| match ir.exprs[n] {
            Expr::Attr { name, .. } => BACK.has(name.as_str()),
            Expr::Var(Var::Unbound(name)) => NUMBERS.has(name.as_str()),
            Expr::Str(place) => place.as_str() == "cpu",
            _ => false,
        });
        let of_shape = |n: usize| {
            ir.exprs_in(value).any(|m| {
                matches!(ir.exprs[m], Expr::Attr { base, name } if base.0 as usize == n
                    && DESCRIBES.has(name.as_str()))
            })
        };
        !back
            && ir.exprs_in(value).any(|n| match ir.exprs[n] {
                Expr::Var(Var::Local(s)) => there.contains(&s) && !of_shape(n),
                _ => false,
            })
    }

    /// Does the call draw on the CPU, because it has no `device=`, and then move the result to the device of an argument:
    /// `torch.randn(…, generator=generator).to(x.device)`?
    fn goes_to_given(&self, draw: ExprId) -> bool {
        let ir = self.file.ir;
        let Expr::Call(call) = ir.expr(draw) else { return false };
        let placed = |a: &Arg| match a.kind {
            ArgKind::Keyword(k) => matches!(k.as_str(), "device" | "out"),
            ArgKind::Positional => false,
            _ => true,
        };
        if ir.call(call).args.iter().any(placed) {
            return false;
        }
        self.file.inside(self.function).any(|(_, e, _)| {
            let Expr::Call(moved) = e else { return false };
            let moved = ir.call(moved);
            let of_draw = matches!(ir.expr(moved.func), Expr::Attr { base, name } if base == draw && name.as_str() == "to");
            of_draw && moved.args.first().is_some_and(|a| self.is_of_given(a.value))
        })
    }

    /// Is it `x.device` of a parameter, or a variable with this value?
    fn is_of_given(&self, device: ExprId) -> bool {
        let ir = self.file.ir;
        let given = |n: usize| match ir.exprs[n] {
            Expr::Attr { base, name } if name.as_str() == "device" => {
                matches!(ir.expr(base), Expr::Var(Var::Local(s)) if self.is_parameter(s))
            }
            _ => false,
        };
        let Expr::Var(own @ Var::Local(_)) = ir.expr(device) else { return ir.exprs_in(device).any(given) };
        ir.stmts[ir.stmts_of(self.function)].iter().any(|s| match *s {
            Stmt::Assign { targets, value } => {
                ir.list(targets).iter().any(|&t| ir.expr(t) == Expr::Var(own))
                    && ir.exprs_in(value).any(given)
            }
            _ => false,
        })
    }

    fn is_parameter(&self, slot: Slot) -> bool {
        self.function.params.iter().any(|p| p.slot == slot && p.name.as_str() != "self")
    }
}

fn draws_with(file: &File<'_>, call: Call<'_>, slot: Slot) -> bool {
    let given = call.args.iter().any(|a| {
        matches!(a.kind, ArgKind::Keyword(k) if k.as_str() == "generator")
            && file.ir.expr(a.value) == Expr::Var(Var::Local(slot))
    });
    let helper = || file.ir.last_name(call.func).is_some_and(|name| name.as_str().starts_with("rand"));
    given && (draws_itself(file, call) || helper())
}

/// Is it a call of PyTorch's own function?
fn draws_itself(file: &File<'_>, call: Call<'_>) -> bool {
    matches!(file.cx.program.resolve_expr(file.module, call.func),
        Some(Resolved::External(path)) if DRAWS.has(path.as_str()))
}

/// Does it only run if a test has found Apple's device? There is no CUDA on such a machine.
fn for_mps(file: &File<'_>, at: Span) -> bool {
    let ir = file.ir;
    let says = |e: ExprId| matches!(ir.expr(e), Expr::Str(s) if s.as_str() == "mps");
    let covers = |then: Block| ir.block(then).iter().any(|&s| ir.stmt_span(s).contains(at));
    ir.stmts.iter().any(|s| match *s {
        Stmt::If { test, then, .. } => {
            matches!(ir.expr(test), Expr::Compare { op: CmpOp::Eq, left, right } if says(left) || says(right))
                && covers(then)
        }
        _ => false,
    })
}

/// Does the function read the generator's device, or replace the generator?
fn looks_at(file: &File<'_>, function: &Function, slot: Slot) -> bool {
    let own = Expr::Var(Var::Local(slot));
    let asks = file.inside(function).any(|(_, e, _)| match e {
        Expr::Attr { base, name } => name.as_str() == "device" && file.ir.expr(base) == own,
        _ => false,
    });
    asks || file.ir.stmts_of(function).any(|n| {
        let stmt = &file.ir.stmts[n];
        binds(file, stmt, Var::Local(slot)) && !only_without(file, function, slot, file.ir.stmt_spans[n])
    })
}

/// Does the statement assign the variable?
fn binds(file: &File<'_>, stmt: &Stmt, var: Var) -> bool {
    match stmt {
        Stmt::Assign { targets, .. } => file.ir.list(*targets).iter().any(|&t| file.ir.binds(t, var)),
        Stmt::AnnAssign { target, value: Some(_), .. }
        | Stmt::AugAssign { target, .. }
        | Stmt::For { target, .. } => file.ir.binds(*target, var),
        Stmt::With { items, .. } => items.iter().any(|&(_, t)| t.is_some_and(|t| file.ir.binds(t, var))),
        _ => false,
    }
}

/// Does it only run if the caller passed no generator: `if generator is None: generator = torch.Generator(device=device)`? Then the
/// caller's generator is never replaced.
fn only_without(file: &File<'_>, function: &Function, slot: Slot, at: Span) -> bool {
    let ir = file.ir;
    let own = |e: ExprId| ir.expr(e) == Expr::Var(Var::Local(slot));
    let covers = |block: Block| ir.block(block).iter().any(|&s| ir.stmt_span(s).contains(at));
    ir.stmts_of(function).any(|n| {
        let Stmt::If { test, then, orelse } = ir.stmts[n] else { return false };
        match ir.expr(test) {
            Expr::Compare { op: CmpOp::Is, left, right } if own(left) && ir.expr(right) == Expr::None => {
                covers(then)
            }
            Expr::Compare { op: CmpOp::IsNot, left, right } if own(left) && ir.expr(right) == Expr::None => {
                covers(orelse)
            }
            Expr::Unary { op: UnaryOp::Not, operand } if own(operand) => covers(then),
            _ => own(test) && covers(orelse),
        }
    })
}
