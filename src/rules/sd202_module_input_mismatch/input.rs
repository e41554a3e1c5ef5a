//! SD202 module-input-mismatch: which argument of a module's call is on another device than the module, and which of the two to move.

use crate::flow::argument;
use crate::flow::event::{Entered, Event, Gives, Operand};
use crate::ir::{ArgKind, Call, Expr, ExprId, Module};
use crate::remedy::Remedy;
use crate::rules::check::Context;
use crate::rules::shared::meeting_words::{Side, is_function, layer, sentence};
use crate::rules::shared::naming::{Spot, is_short};
use crate::span::{Place, Span};
use crate::words::Words;

static OPERATORS: Words = Words::of("operators that need parentheses");

/// A module and its input, by their names at the call.
pub(super) struct Input {
    /// The callee, as in the source.
    module: Option<String>,
    /// The argument in words, and its code at the call.
    argument: Option<(String, Option<String>)>,
    /// The place of the argument, if it is a tensor.
    tensor: Option<Place>,
    /// Whether the module is on the wrong device.
    module_strays: bool,
}

impl Input {
    /// The two sides of a call at this place; `None` if it is not known which side is the module.
    pub(super) fn of(
        site: Place,
        entered: Option<Entered>,
        (stray, other): (&Operand, &Operand),
        cx: &Context<'_>,
    ) -> Option<Self> {
        let spot = Spot::new(cx, site)?;
        let ir = &cx.program.get(cx.program.module_of(site.file)?).ir;
        let call = call_at(ir, site.span)?;
        let func = ir.span(call.func);
        let is_module = |side: &Operand| match entered {
            Some(_) => side.of_module,
            None => side.place == site || side.place.file == site.file && side.place.span == func,
        };
        let module_strays = match (is_module(stray), is_module(other)) {
            (true, false) => true,
            (false, true) => false,
            _ => return None,
        };
        let given = if module_strays { other } else { stray };
        let value = match entered {
            Some(entered) => {
                parameter_in(cx, entered.forward, given.place).and_then(|(at, name)| argument(call, at, name))
            }
            None => call
                .args
                .iter()
                .map(|a| a.value)
                .find(|&v| given.place.file == site.file && ir.span(v).contains(given.place.span)),
        };
        let text = |span: Span| cx.sources.text(Place { span, ..site }).to_owned();
        let argument = value.map(|value| {
            let keyword = call.args.iter().find(|a| a.value == value).and_then(|a| match a.kind {
                ArgKind::Keyword(name) => Some(name),
                _ => None,
            });
            let said = match (keyword, text(ir.span(value))) {
                (_, text) if is_short(&text) && !text.contains('`') => format!("`{text}`"),
                (Some(name), _) => format!("its argument `{name}`"),
                _ => format!("its {} argument", ordinal(&call, value)),
            };
            (said, spot.name(Place { span: ir.span(value), ..site }))
        });
        let exports = is_function(Place { span: func, ..site }, cx);
        Some(Self {
            module: called_module(site, cx),
            argument: argument.filter(|_| !exports),
            tensor: value
                .filter(|_| given.gives == Gives::Tensor && !exports)
                .map(|v| Place { span: ir.span(v), ..site }),
            module_strays,
        })
    }

    /// The message: the call raises an error, and where both sides are. `what` is the module's class.
    pub(super) fn message(
        &self,
        call: &str,
        what: &str,
        (stray, other): (&Operand, &Operand),
        event: &Event,
    ) -> String {
        let module = self.module.clone().unwrap_or_else(|| what.to_owned());
        let argument = self.argument.as_ref().map_or("its input", |(said, _)| said).to_owned();
        let (of_stray, of_other) = if self.module_strays { (module, argument) } else { (argument, module) };
        let sides = [Side::named(stray, Some(of_stray)), Side::named(other, Some(of_other))];
        sentence(call, &sides, event)
    }

    /// The remedy that moves the argument to the module's device.
    pub(super) fn remedy(&self) -> Option<Remedy> {
        let module = self.module_name().filter(|module| is_name(module) && !self.module_strays)?;
        let device = format!("next({module}.parameters()).device");
        Some(Remedy::Move { operand: self.tensor?, device })
    }

    /// The help: which side to move, and to which device.
    pub(super) fn help(&self) -> String {
        let name = self.argument.as_ref().and_then(|(_, name)| name.clone());
        let said = self.argument.as_ref().map_or("its input", |(said, _)| said);
        let module = self.module_name();
        match (self.module_strays, module, name) {
            (true, Some(module), Some(x)) => format!("move the module: `{module}.to({x}.device)`"),
            (true, Some(module), None) => format!("move `{module}` to the device of {said}"),
            (true, None, _) => "move the module to the device of its input".to_owned(),
            (false, Some(module), Some(x)) => {
                format!("move the input: `{x}.to(next({module}.parameters()).device)`")
            }
            (false, Some(module), None) if is_postfix(said) => {
                format!("move the input: `{}.to(next({module}.parameters()).device)`", said.trim_matches('`'))
            }
            (false, Some(module), None) => format!("move {said} to the device of `{module}`"),
            (false, None, _) => "move the input to the device of the module".to_owned(),
        }
    }

    fn module_name(&self) -> Option<&str> {
        self.module.as_deref()?.strip_prefix('`')?.strip_suffix('`')
    }
}

/// The callee in backquotes.
pub(super) fn called_module(site: Place, cx: &Context<'_>) -> Option<String> {
    let ir = &cx.program.get(cx.program.module_of(site.file)?).ir;
    let call = call_at(ir, site.span)?;
    Some(layer(Place { span: ir.span(call.func), ..site }, cx))
}

/// Can a method be called on the code without parentheses?
fn is_postfix(said: &str) -> bool {
    let code = said.trim_matches('`');
    let outside = code.split(['(', '[']).next().unwrap_or_default();
    said.starts_with('`') && code.ends_with([')', ']']) && !outside.is_empty() && !OPERATORS.is_part_of(code)
}

fn is_name(text: &str) -> bool {
    text.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'))
}

fn call_at(ir: &Module, at: Span) -> Option<Call<'_>> {
    let n = (0..ir.exprs.len()).find(|&n| ir.expr_spans[n] == at && matches!(ir.exprs[n], Expr::Call(_)))?;
    match ir.exprs[n] {
        Expr::Call(id) => Some(ir.call(id)),
        _ => None,
    }
}

/// The parameter of a method that an expression in it begins with: its position without the receiver, and its name.
fn parameter_in(cx: &Context<'_>, method: Place, of: Place) -> Option<(usize, crate::sym::Sym)> {
    let ir = &cx.program.get(cx.program.module_of(method.file)?).ir;
    let function = ir.functions.iter().find(|f| f.span == method.span)?;
    if of.file != method.file || !method.span.contains(of.span) {
        return None;
    }
    let text = cx.sources.text(of);
    let at = function.params.iter().position(|p| p.name.as_str() == text)?;
    Some((at.checked_sub(1)?, function.params[at].name))
}

fn ordinal(call: &Call<'_>, value: ExprId) -> &'static str {
    match call.args.iter().position(|a| a.value == value) {
        Some(0) => "first",
        Some(1) => "second",
        Some(2) => "third",
        _ => "last",
    }
}
