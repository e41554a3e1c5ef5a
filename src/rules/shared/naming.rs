//! Names in helps: expressions that have the same meaning at the place of the corrected code.

use crate::flow::event::{DeviceName, Gives, Operand};
use crate::flow::is_module_class;
use crate::flow::value::Reason;
use crate::ir::{ArgKind, Block, Call, Expr, ExprId, FuncId, FuncKind, Function, Module, Slot, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Resolved};
use crate::rules::check::Context;
use crate::span::{Place, Span};
use crate::words::Words;

static ASKED_OF_INPUT: Words = Words::of("asked of an input");

/// The length of the longest text that a help repeats.
const MAX_TEXT: usize = 60;
/// The length of the longest line in a help.
const MAX_LINE: usize = 110;

/// A place for corrected code.
pub struct Spot<'a> {
    cx: &'a Context<'a>,
    module: ModIdx,
    ir: &'a Module,
    at: Place,
}

impl<'a> Spot<'a> {
    /// A spot at this place; `None` if the file is not part of the program.
    pub fn new(cx: &'a Context<'a>, at: Place) -> Option<Self> {
        let module = cx.program.module_of(at.file)?;
        Some(Self { cx, module, ir: &cx.program.get(module).ir, at })
    }

    /// An expression for the device of one side, as it can be written here: `hidden.device`, `args.device`,
    /// `next(self.parameters()).device`.
    pub fn device(&self, side: &Operand) -> Option<String> {
        let expression = || self.name(side.place);
        match side.gives {
            Gives::Tensor => expression().map(|name| format!("{name}.device")),
            Gives::Module => expression().map(|name| device_of_module(&name)),
            Gives::Tensors | Gives::Other => None,
        }
        .or_else(|| self.outside(side))
        .or_else(|| self.own_module(side))
    }

    /// The same for the device to which `stray` moves. `None` if that would be its own: `x.to(x.device)`.
    pub fn device_for(&self, stray: &Operand, other: &Operand) -> Option<String> {
        let own = format!("{}.device", self.cx.sources.text(stray.place));
        self.device(other).filter(|device| *device != own)
    }

    /// The path of the PyTorch function that is called here.
    pub fn function(&self) -> Option<String> {
        let is_call =
            |n: &usize| self.ir.expr_spans[*n] == self.at.span && matches!(self.ir.exprs[*n], Expr::Call(_));
        let Expr::Call(id) = self.ir.exprs[(0..self.ir.exprs.len()).find(is_call)?] else { return None };
        match self.cx.program.resolve_expr(self.module, self.ir.call(id).func) {
            Some(Resolved::External(path)) => {
                Some(path.as_str().to_owned()).filter(|path| path.starts_with("torch."))
            }
            _ => None,
        }
    }

    /// The call whose result is the receiver of the method here, and the path of its function.
    pub fn made_of(&self) -> Option<String> {
        let is_call =
            |n: &usize| self.ir.expr_spans[*n] == self.at.span && matches!(self.ir.exprs[*n], Expr::Call(_));
        let Expr::Call(id) = self.ir.exprs[(0..self.ir.exprs.len()).find(is_call)?] else { return None };
        let Expr::Attr { base, .. } = self.ir.expr(self.ir.call(id).func) else { return None };
        Self { at: Place { span: self.ir.span(base), ..self.at }, ..*self }.function()
    }

    /// The expression at a place of the same file, if it is a name or a chain of attributes that has the same meaning here.
    pub fn name(&self, of: Place) -> Option<String> {
        if of.file != self.at.file {
            return None;
        }
        let chain = |n: &usize| {
            self.ir.expr_spans[*n] == of.span && matches!(self.ir.exprs[*n], Expr::Var(_) | Expr::Attr { .. })
        };
        let n = (0..self.ir.exprs.len()).find(chain)?;
        let e = ExprId(u32::try_from(n).ok()?);
        self.means_the_same(e).then(|| self.cx.sources.text(of).to_owned()).filter(|text| is_short(text))
    }

    fn means_the_same(&self, e: ExprId) -> bool {
        match self.ir.expr(e) {
            Expr::Attr { base, .. } => self.means_the_same(base),
            Expr::Var(Var::Local(slot)) => {
                let around = self.ir.function_around(e);
                self.has(around, slot, self.ir.span(e)) && !self.may_be_none(self.ir.function(around), slot)
            }
            Expr::Var(Var::Global(slot)) => self.has(FuncId(0), slot, self.ir.span(e)),
            _ => false,
        }
    }

    /// Is it a parameter with the default `None`, outside of all branches that test it?
    fn may_be_none(&self, function: &Function, slot: Slot) -> bool {
        let optional = |p: &crate::ir::Param| p.default.is_some_and(|d| self.ir.expr(d) == Expr::None);
        let var = Expr::Var(Var::Local(slot));
        let tested = |s: &Stmt| {
            let Stmt::If { test, then, orelse } = *s else { return false };
            let here = |block: Block| {
                self.ir.block(block).iter().any(|&s| self.ir.stmt_span(s).contains(self.at.span))
            };
            self.ir.exprs_in(test).any(|n| self.ir.exprs[n] == var) && (here(then) || here(orelse))
        };
        function.params.iter().any(|p| p.slot == slot && optional(p)) && !self.ir.stmts.iter().any(tested)
    }

    /// Is the function's variable bound here, to the same value as at that use?
    fn has(&self, func: FuncId, slot: Slot, used: Span) -> bool {
        let function = self.ir.function(func);
        let inside = func == FuncId(0) || function.span.contains(self.at.span);
        let own = func == FuncId(0) || function.kind == FuncKind::Function;
        if !inside || !own {
            return false;
        }
        let bound: Vec<Span> = self.bindings(function, slot);
        // The functions of a file run after its body.
        let later = func == FuncId(0) && self.ir.function_at(self.at.span).is_some();
        let here = self.at.span;
        let given = function.params.iter().any(|p| p.slot == slot);
        let before = |at: &&Span| at.end <= here.start && self.leads_here(**at);
        let again = |at: &Span| {
            at.start >= here.start && at.end <= used.start && !at.contains(here)
                || at.contains(here) && at.end <= used.start
        };
        (given || later || bound.iter().any(|at| before(&at))) && !bound.iter().any(again)
    }

    /// The statements that bind a function's variable. For a loop or a `with`, only the head.
    fn bindings(&self, function: &Function, slot: Slot) -> Vec<Span> {
        let global = function.span == self.ir.functions[0].span;
        let named = |n: usize| {
            self.ir.exprs[n] == Expr::Var(Var::Local(slot))
                || global && self.ir.exprs[n] == Expr::Var(Var::Global(slot))
        };
        // A value has a lower index than its target.
        let within = |t: ExprId, n: usize| self.ir.span(t).contains(self.ir.expr_spans[n]);
        let is_it = |t: ExprId| self.ir.exprs_in(t).any(|n| within(t, n) && named(n));
        let plain =
            |t: ExprId| !matches!(self.ir.expr(t), Expr::Attr { .. } | Expr::Index { .. }) && is_it(t);
        let binds = |n: usize| {
            let whole = self.ir.stmt_spans[n];
            match self.ir.stmts[n] {
                Stmt::Assign { targets, .. } => {
                    self.ir.list(targets).iter().any(|&t| plain(t)).then_some(whole)
                }
                Stmt::AugAssign { target, .. } | Stmt::AnnAssign { target, value: Some(_), .. } => {
                    plain(target).then_some(whole)
                }
                Stmt::For { target, .. } => plain(target).then(|| self.ir.span(target)),
                Stmt::With { ref items, .. } => {
                    items.iter().filter_map(|&(_, t)| t).find(|&t| plain(t)).map(|t| self.ir.span(t))
                }
                _ => None,
            }
        };
        self.ir.stmts_of(function).filter_map(binds).collect()
    }

    /// Is this place in every block that contains the binding?
    fn leads_here(&self, binding: Span) -> bool {
        self.ir.stmts.iter().all(|s| {
            blocks(self.ir, s).into_iter().flatten().all(|block| {
                let within = self.extent(block);
                within.is_none_or(|within| !within.contains(binding) || within.contains(self.at.span))
            })
        })
    }

    fn extent(&self, block: Block) -> Option<Span> {
        let stmts = self.ir.block(block);
        let (first, last) = (stmts.first()?, stmts.last()?);
        Some(Span { start: self.ir.stmt_span(*first).start, end: self.ir.stmt_span(*last).end })
    }

    /// The device of the module, if this place and the other one are in methods of the same module class.
    pub fn same_module(&self, other: Place) -> Option<String> {
        let class = |at: Place| self.ir.function_at(at.span)?.class.filter(|_| at.file == self.at.file);
        let class = class(self.at).filter(|&own| class(other) == Some(own))?;
        let key = ClassKey { module: self.module, class };
        let receiver = self.ir.function_at(self.at.span)?.params.first()?;
        is_module_class(self.cx.program, key).then(|| device_of_module(receiver.name.as_str()))
    }

    /// The name of the outside value that decides the device: `args.device`, `x`.
    fn outside(&self, side: &Operand) -> Option<String> {
        let symbol = side.symbol.as_ref()?;
        let text = symbol.text.as_str();
        let root = text.split('.').next()?;
        let plain = text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.')) && !text.is_empty();
        if !plain || !self.is_given(root) || !self.is_in_function_of(side.place) {
            return None;
        }
        if symbol.names {
            return Some(text.to_owned());
        }
        // A module has no `.device` like a tensor.
        if self.is_receiver_of_module(text) {
            return None;
        }
        let called =
            |call: Call<'_>| self.cx.sources.text(Place { span: self.ir.span(call.func), ..self.at }) == text;
        Some(if self.ir.calls().any(called) { device_of_module(text) } else { format!("{text}.device") })
    }

    /// Whether the place is in the function around: elsewhere, a parameter of the same name is another one.
    fn is_in_function_of(&self, place: Place) -> bool {
        let around = |span: Span| self.ir.function_at(span).map(|function| function.name_span);
        place.file == self.at.file && around(place.span) == around(self.at.span)
    }

    /// Is it a parameter of the function around that the function never assigns, and that is not `None` here?
    fn is_given(&self, name: &str) -> bool {
        let Some(function) = self.ir.function_at(self.at.span) else { return false };
        let param = function.params.iter().find(|p| p.name.as_str() == name);
        param.is_some_and(|p| {
            self.bindings(function, p.slot).is_empty() && !self.may_be_none(function, p.slot)
        })
    }

    /// Is it the module to which this method belongs?
    fn is_receiver_of_module(&self, name: &str) -> bool {
        let Some(function) = self.ir.function_at(self.at.span) else { return false };
        let receiver = function.params.first().is_some_and(|p| p.name.as_str() == name);
        let class = function.class.map(|class| ClassKey { module: self.module, class });
        receiver && class.is_some_and(|class| is_module_class(self.cx.program, class))
    }

    /// In a method of a module: the device of an input that is used like a tensor, or of the module's own parameters.
    fn own_module(&self, side: &Operand) -> Option<String> {
        if side.device != DeviceName::WithModule {
            return None;
        }
        let function = self.ir.function_at(self.at.span)?;
        let class = ClassKey { module: self.module, class: function.class? };
        let unbound =
            |&d: &ExprId| ["staticmethod", "classmethod"].iter().any(|name| self.ir.is_builtin(d, name));
        if self.ir.list(function.decorators).iter().any(unbound) {
            return None;
        }
        let receiver = function.params.first().filter(|_| is_module_class(self.cx.program, class))?;
        let asked = |slot: Slot| {
            let var = Expr::Var(Var::Local(slot));
            self.ir.exprs.iter().zip(&self.ir.expr_spans).any(|(e, at)| {
                function.span.contains(*at)
                    && matches!(*e, Expr::Attr { base, name }
                        if self.ir.expr(base) == var && ASKED_OF_INPUT.has(name.as_str()))
            })
        };
        let inputs = function.params.iter().skip(1);
        let input = inputs.filter(|p| self.bindings(function, p.slot).is_empty()).find(|p| asked(p.slot));
        Some(match input {
            Some(input) => format!("{}.device", input.name),
            None => device_of_module(receiver.name.as_str()),
        })
    }

    /// The line at this place, corrected so that the result of its call is on that device; `None` if one line is not enough.
    pub fn corrected(&self, how: Reason, device: &str) -> Option<String> {
        let is_call =
            |n: &usize| self.ir.expr_spans[*n] == self.at.span && matches!(self.ir.exprs[*n], Expr::Call(_));
        let Expr::Call(id) = self.ir.exprs[(0..self.ir.exprs.len()).find(is_call)?] else { return None };
        let call = self.ir.call(id);
        let external = self.cx.program.resolve_expr(self.module, call.func);
        // Distributions take no `device=`.
        let factory = |path: &str| path.starts_with("torch.") && !path.starts_with("torch.distributions.");
        if !matches!(external, Some(Resolved::External(path)) if factory(path.as_str())) {
            return None;
        }
        let text = self.cx.sources.text(self.at);
        let new = match how {
            Reason::Default => {
                let spread = |kind: ArgKind| !matches!(kind, ArgKind::Positional | ArgKind::Keyword(_));
                let inner = text.strip_suffix(')').filter(|_| !call.args.iter().any(|a| spread(a.kind)))?;
                let comma = if inner.ends_with('(') { "" } else { ", " };
                format!("{}{comma}device={device})", inner.trim_end_matches([',', ' ']))
            }
            _ => format!("{text}.to({device})"),
        };
        let source = self.cx.sources.get(self.at.file).text();
        let (from, to) = (self.at.span.start as usize, self.at.span.end as usize);
        let start = source.get(..from)?.rfind('\n').map_or(0, |n| n + 1);
        let end = source.get(to..)?.find('\n').map_or(source.len(), |n| to + n);
        let rest = source.get(to..end)?;
        let comment = rest.find("  #").filter(|_| !rest.contains(['"', '\'']));
        let rest = &rest[..comment.unwrap_or(rest.len())];
        let whole = format!("{}{new}{rest}", source.get(start..from)?);
        let line = whole.trim().to_owned();
        (!text.contains('\n') && line.len() <= MAX_LINE).then_some(line)
    }
}

/// The blocks of a compound statement that may not run.
fn blocks(ir: &Module, s: &Stmt) -> [Option<Block>; 2] {
    let _ = ir;
    match *s {
        Stmt::If { then, orelse, .. } => [Some(then), Some(orelse)],
        Stmt::While { body, orelse, .. } | Stmt::For { body, orelse, .. } => [Some(body), Some(orelse)],
        Stmt::Try { body, orelse, .. } => [Some(body), Some(orelse)],
        _ => [None, None],
    }
}

/// A module has no `.device` of its own.
fn device_of_module(name: &str) -> String {
    format!("next({name}.parameters()).device")
}

/// Is it one line that is not too long?
pub fn is_short(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_TEXT && !text.contains('\n')
}
