//! Messages about an operation on two devices: "`x + noise` raises if `x` is on a GPU: `noise` is on the CPU".

use crate::flow::event::{DeviceName, Event, Gives, Meeting, Operand};
use crate::flow::value::Reason;
use crate::ir::{ArgKind, Expr, ExprId, Module, Stmt};
use crate::link::Resolved;
use crate::rules::check::Context;
use crate::rules::shared::meetings::mismatch;
use crate::rules::shared::naming::is_short;
use crate::span::{Place, Span};
use crate::words::Words;
use crate::world::{Backend, World};

static OPERATORS: Words = Words::of("operators between values");
static COMPARISONS: Words = Words::of("comparisons that end like an assignment");

/// The length of the longest operand that a message repeats.
pub const MAX_OPERAND: usize = 50;
/// The length of the longest operation that a message repeats.
const MAX_OPERATION: usize = 60;

/// The message of an operation that raises: which operation, and where both sides are.
pub fn raises(event: &Event, cx: &Context<'_>) -> Option<String> {
    let (_, what, stray, other) = mismatch(event)?;
    let operation = operation(what, event.place, cx);
    let sides = [stray, other].map(|side| Side::of(side, event, cx));
    Some(sentence(&operation, &sides, event))
}

/// "`a + b` raises if `b` is on a GPU: `a` is on the CPU"
pub fn sentence(operation: &str, sides: &[Side<'_>; 2], event: &Event) -> String {
    let condition = condition(sides, event);
    let places = places(sides);
    let condition = condition.map_or_else(String::new, |condition| format!(" {condition}"));
    let colon = if places.is_empty() { "" } else { ": " };
    format!("{operation} raises{condition}{colon}{places}")
}

/// The label at an operation that raises, without a condition.
pub const RAISES_HERE: &str = "raises here";

/// "raises here if `x` is on a GPU", the label at the operation
pub fn raises_here(event: &Event, cx: &Context<'_>) -> String {
    let sides = mismatch(event).map(|(_, _, stray, other)| [stray, other].map(|s| Side::of(s, event, cx)));
    match sides.and_then(|sides| condition(&sides, event)) {
        Some(condition) => format!("{RAISES_HERE} {condition}"),
        None => RAISES_HERE.to_owned(),
    }
}

/// One side of a meeting, with its name.
pub struct Side<'a> {
    name: Option<String>,
    several: bool,
    /// Whether it is the argument `device=…`.
    is_argument: bool,
    place: Place,
    device: &'a DeviceName,
    /// Whether the outside value is a device, and not a value on a device.
    is_device: bool,
}

impl<'a> Side<'a> {
    /// A side named by the text of its expression.
    pub fn of(side: &'a Operand, event: &Event, cx: &Context<'_>) -> Self {
        let own = Some(side.place).filter(|&place| place != event.place);
        let own = own.and_then(|place| quoted(place, MAX_OPERAND, cx).or_else(|| shortened(place, cx)));
        let name = own
            .or_else(|| called(side, event, cx))
            .or_else(|| assigned(side, event, cx))
            .or_else(|| creation(side, event, cx));
        Self {
            several: side.gives == Gives::Tensors || is_display(side.place, cx),
            is_argument: is_device_argument(side.place, cx),
            ..Self::named(side, name)
        }
    }

    /// A side with another name, in backquotes.
    pub fn named(side: &'a Operand, name: Option<String>) -> Self {
        Self {
            name,
            several: side.gives == Gives::Tensors,
            is_argument: false,
            place: side.place,
            device: &side.device,
            is_device: side.symbol.as_ref().is_some_and(|symbol| symbol.names),
        }
    }

    /// The outside value that decides the device: "`x`", "the module".
    fn decider(&self) -> Option<String> {
        match self.device {
            DeviceName::Known(_) => None,
            DeviceName::Varies(of) if is_short(of) => Some(format!("`{of}`")),
            DeviceName::Varies(_) => Some("the argument".to_owned()),
            DeviceName::WithModule => Some("the module".to_owned()),
        }
    }

    /// Is it `x` or `x.view(-1)`, where `x` decides the device?
    fn is_part_of_decider(&self) -> bool {
        let (Some(name), Some(decider)) = (&self.name, self.decider()) else { return false };
        let decider = decider.trim_matches('`');
        let rest = name.trim_matches('`').strip_prefix(decider);
        rest.is_some_and(|rest| {
            rest.is_empty() || rest.starts_with(['.', '[']) && !OPERATORS.is_part_of(rest)
        })
    }

    /// "on `cuda`"
    fn on(&self) -> String {
        match self.device {
            DeviceName::Varies(of) if self.is_device => format!("on `{of}`"),
            device => format!("on {}", device.in_words()),
        }
    }

    /// "`x` is on `cuda`"; `None` if the condition says that.
    fn clause(&self, is_second: bool) -> Option<String> {
        if !self.is_device && self.is_part_of_decider() {
            return None;
        }
        let place = self.on();
        if self.is_argument {
            return self.name.as_ref().map(|name| format!("{name} is {}", self.device.in_words()));
        }
        let verb = if self.several { "has a tensor" } else { "is" };
        match &self.name {
            Some(name) => Some(format!("{name} {verb} {place}")),
            None if matches!(self.device, DeviceName::Known(_)) => {
                Some(format!("{} tensor is {place}", if is_second { "another" } else { "one" }))
            }
            None => None,
        }
    }
}

/// The layer that is called: `self.linear`.
fn called(side: &Operand, event: &Event, cx: &Context<'_>) -> Option<String> {
    let (Meeting::ModuleInput, ..) = mismatch(event)? else { return None };
    let ir = &cx.program.get(cx.program.module_of(side.place.file)?).ir;
    let Expr::Call(call) = expression(ir, side.place).filter(|_| side.place == event.place)? else {
        return None;
    };
    Some(layer(Place { span: ir.span(ir.call(call).func), ..side.place }, cx))
}

/// A called module, by the text of the callee: `self.linear` also for `self.linear.forward`.
pub fn layer(func: Place, cx: &Context<'_>) -> String {
    let text = quoted(func, MAX_OPERAND, cx).filter(|_| !is_function(func, cx));
    text.map_or_else(|| "the module".to_owned(), |text| text.replace(".forward`", "`"))
}

/// Does a function of a library run the module, as `torch.onnx.export` does?
pub fn is_function(func: Place, cx: &Context<'_>) -> bool {
    let Some(module) = cx.program.module_of(func.file) else { return false };
    let ir = &cx.program.get(module).ir;
    let is_path = |n: &usize| {
        ir.expr_spans[*n] == func.span && matches!(ir.exprs[*n], Expr::Attr { .. } | Expr::Var(_))
    };
    let e = (0..ir.exprs.len()).find(is_path).and_then(|n| u32::try_from(n).ok()).map(ExprId);
    e.is_some_and(|e| matches!(cx.program.resolve_expr(module, e), Some(Resolved::External(_))))
}

/// Is it the argument `device=…` of a call, which decides the device of the result?
pub fn is_device_argument(place: Place, cx: &Context<'_>) -> bool {
    let ir = cx.program.module_of(place.file).map(|module| &cx.program.get(module).ir);
    ir.is_some_and(|ir| {
        ir.calls().flat_map(|call| call.args.iter()).any(|a| {
            matches!(a.kind, ArgKind::Keyword(k) if k.as_str() == "device") && ir.span(a.value) == place.span
        })
    })
}

/// The call that creates the tensor, if it is in the file of the operation: `torch.zeros(3)`.
fn creation(side: &Operand, event: &Event, cx: &Context<'_>) -> Option<String> {
    let step =
        side.chain.last().filter(|step| step.place.file == event.place.file && step.place != event.place)?;
    let makes = matches!(step.reason, Reason::Default | Reason::Host | Reason::Typed | Reason::Made);
    quoted(step.place, MAX_OPERAND, cx).or_else(|| shortened(step.place, cx)).filter(|_| makes)
}

/// The target of an assignment (`x += y`, `x.grad = y`), or the value that it stores through an index.
fn assigned(side: &Operand, event: &Event, cx: &Context<'_>) -> Option<String> {
    let (_, what, ..) = mismatch(event)?;
    let ir = &cx.program.get(cx.program.module_of(event.place.file)?).ir;
    let named = |part: ExprId| {
        let place = Place { span: ir.span(part), ..event.place };
        quoted(place, MAX_OPERAND, cx).or_else(|| shortened(place, cx))
    };
    match *statement(ir, event.place).filter(|_| side.place == event.place)?.0 {
        Stmt::AugAssign { target, .. } => named(target),
        Stmt::Assign { value, .. } if what == "assignment through an index" => named(value),
        Stmt::Assign { .. } if what == "`.grad =`" && creation(side, event, cx).is_none() => {
            match expression(ir, event.place)? {
                Expr::Attr { base, .. } => named(base),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The value that is assigned to this target.
pub fn value_stored(target: Place, cx: &Context<'_>) -> Option<Place> {
    let ir = &cx.program.get(cx.program.module_of(target.file)?).ir;
    match *statement(ir, target)?.0 {
        Stmt::Assign { value, .. } => Some(Place { span: ir.span(value), ..target }),
        _ => None,
    }
}

/// The assignment with this target.
fn statement(ir: &Module, target: Place) -> Option<(&Stmt, Span)> {
    let of = |s: &&Stmt| match **s {
        Stmt::AugAssign { target: t, .. } => ir.span(t) == target.span,
        Stmt::Assign { targets, .. } => ir.list(targets).iter().any(|&t| ir.span(t) == target.span),
        _ => false,
    };
    ir.stmts.iter().zip(&ir.stmt_spans).find(|(s, _)| of(s)).map(|(s, &at)| (s, at))
}

/// A long call without its arguments: `torch.zeros(…)`.
fn shortened(place: Place, cx: &Context<'_>) -> Option<String> {
    let ir = &cx.program.get(cx.program.module_of(place.file)?).ir;
    let Expr::Call(call) = expression(ir, place)? else { return None };
    let func = cx.sources.text(Place { span: ir.span(ir.call(call).func), ..place });
    (is_short(func) && func.len() <= MAX_OPERAND && !func.contains('`')).then(|| format!("`{func}(…)`"))
}

/// Is it `[a, b]` or `(a, b)`?
fn is_display(place: Place, cx: &Context<'_>) -> bool {
    let ir = cx.program.module_of(place.file).map(|module| &cx.program.get(module).ir);
    matches!(ir.and_then(|ir| expression(ir, place)), Some(Expr::List(_) | Expr::Tuple(_)))
}

/// The devices for which the operation raises, if other code decides the device of a side.
fn condition(sides: &[Side<'_>; 2], event: &Event) -> Option<String> {
    let [a, b] = sides;
    match (a.decider(), b.decider()) {
        (None, None) => None,
        (Some(decider), None) => Some(unless(&decider, a.is_device, b.device, event)),
        (None, Some(decider)) => Some(unless(&decider, b.is_device, a.device, event)),
        (Some(x), Some(y)) if x == y => None,
        (Some(x), Some(y)) if a.is_device == b.is_device => {
            let what = if a.is_device { "are different devices" } else { "are on different devices" };
            Some(format!("if {x} and {y} {what}"))
        }
        (Some(x), Some(y)) if a.is_device => Some(format!("if {y} is not on {x}")),
        (Some(x), Some(y)) => Some(format!("if {x} is not on {y}")),
    }
}

/// "if `x` is on a GPU"
fn unless(decider: &str, is_device: bool, fixed: &DeviceName, event: &Event) -> String {
    let gpus =
        event.bite.world.has_cuda() || matches!(event.bite.world, World::With(Backend::Mps | Backend::Xpu));
    let on = if is_device { "" } else { "on " };
    match fixed {
        DeviceName::Known(name) if name == "cpu" && gpus => format!("if {decider} is {on}a GPU"),
        fixed => format!("if {decider} is not {on}{}", fixed.in_words()),
    }
}

fn places(sides: &[Side<'_>; 2]) -> String {
    let [a, b] = sides;
    let known = |side: &Side<'_>| matches!(side.device, DeviceName::Known(_));
    // Both sides are elements of one list.
    if let (Some(name), true) = (&a.name, a.place == b.place && a.name == b.name) {
        return format!("{name} has a tensor {} and a tensor {}", a.on(), b.on());
    }
    if a.device == b.device && known(a) {
        return match (&a.name, &b.name) {
            (Some(a), Some(b)) => format!("{a} and {b} may be on different GPUs"),
            _ => "two tensors may be on different GPUs".to_owned(),
        };
    }
    let first = a.clause(false);
    let second = b.clause(first.is_some());
    let clauses: Vec<String> = first.into_iter().chain(second).collect();
    clauses.join(", ")
}

/// The operation in backquotes: its text, or its kind if the text is long.
pub fn operation(what: &str, place: Place, cx: &Context<'_>) -> String {
    let sign = what.trim_matches('`');
    let sign = sign.rsplit(' ').next().filter(|_| sign.starts_with('.')).unwrap_or(sign);
    let assigns = sign.ends_with('=') && !COMPARISONS.has(sign);
    let text = cx.sources.text(place);
    let plain = is_short(text) && !text.contains('`');
    let whole = || {
        let ir = &cx.program.get(cx.program.module_of(place.file)?).ir;
        quoted(Place { span: statement(ir, place)?.1, ..place }, MAX_OPERATION, cx)
    };
    if assigns || matches!(what, "assignment through an index" | "`[:] =`") {
        let sign = if assigns && !sign.starts_with('[') { sign } else { "=" };
        return whole().unwrap_or_else(|| {
            if plain { format!("`{text} {sign} …`") } else { "the assignment".to_owned() }
        });
    }
    if plain {
        return format!("`{text}`");
    }
    if let Some(call) = shortened(place, cx) {
        return call;
    }
    match what {
        "indexing" => "the indexing".to_owned(),
        "its call" | "the module" => "the call".to_owned(),
        what => what.to_owned(),
    }
}

/// The text of an expression in backquotes, if it has one line of at most this length.
pub fn quoted(place: Place, longest: usize, cx: &Context<'_>) -> Option<String> {
    let text = cx.sources.text(place);
    (is_short(text) && text.len() <= longest && !text.contains('`')).then(|| format!("`{text}`"))
}

/// The expression with a method call: `(a + b).to(device)`. `None` if it is long or may not be a tensor.
pub fn with_method(side: &Operand, event: &Event, method: &str, cx: &Context<'_>) -> Option<String> {
    let place = side.place;
    let ir = &cx.program.get(cx.program.module_of(place.file)?).ir;
    let text = Some(cx.sources.text(place)).filter(|text| is_short(text) && place != event.place)?;
    let calls = expression(ir, event.place).is_some_and(|e| matches!(e, Expr::Call(_)));
    let plain = !calls || is_element(ir, place, event.place);
    match expression(ir, place)? {
        Expr::Var(_) | Expr::Attr { .. } => (side.gives == Gives::Tensor).then(|| format!("{text}{method}")),
        // The argument of a call may be a list of tensors.
        Expr::Call(_) | Expr::Index { .. } if plain => Some(format!("{text}{method}")),
        Expr::Binary { .. } | Expr::Unary { .. } if plain => Some(format!("({text}){method}")),
        _ => None,
    }
}

/// Is it an element of a list that is written in this call?
fn is_element(ir: &Module, place: Place, call: Place) -> bool {
    ir.exprs.iter().zip(&ir.expr_spans).any(|(e, at)| match *e {
        Expr::List(items) | Expr::Tuple(items) if call.span.contains(*at) => {
            ir.list(items).iter().any(|&item| ir.span(item) == place.span)
        }
        _ => false,
    })
}

fn expression(ir: &Module, at: Place) -> Option<Expr> {
    // An expression has a higher index than its parts.
    (0..ir.exprs.len()).rev().find(|&n| ir.expr_spans[n] == at.span).map(|n| ir.exprs[n])
}
