//! Corrected code for help texts: one call or one assignment, as it should be written.

use crate::flow::event::{DeviceName, Gives, Operand};
use crate::ir::{ArgKind, Call, Expr, ExprId, Module, Stmt};
use crate::link::{ModIdx, Resolved};
use crate::rules::check::Context;
use crate::rules::shared::naming::{Spot, is_short};
use crate::span::{Place, Span};
use crate::sym::Sym;

/// Longer code is not quoted.
const MAX_CODE: usize = 100;

/// A call as the source has it.
pub struct Written<'a> {
    cx: &'a Context<'a>,
    module: ModIdx,
    ir: &'a Module,
    place: Place,
    call: Call<'a>,
}

impl<'a> Written<'a> {
    /// The call at a place.
    pub fn at(cx: &'a Context<'a>, place: Place) -> Option<Self> {
        let (module, ir, e) = expression(cx, place, |e| matches!(e, Expr::Call(_)))?;
        let Expr::Call(id) = ir.expr(e) else { return None };
        Some(Self { cx, module, ir, place, call: ir.call(id) })
    }

    /// The text of a part of the call.
    pub fn text(&self, e: ExprId) -> &'a str {
        self.cx.sources.text(Place { span: self.ir.span(e), ..self.place })
    }

    /// The path of the external function that is called.
    pub fn path(&self) -> Option<Sym> {
        match self.cx.program.resolve_expr(self.module, self.call.func) {
            Some(Resolved::External(path)) => Some(path),
            _ => None,
        }
    }

    /// The value of a keyword argument.
    pub fn keyword(&self, name: &str) -> Option<ExprId> {
        let arg = self.call.args.iter().find(|a| matches!(a.kind, ArgKind::Keyword(k) if k.as_str() == name));
        arg.map(|a| a.value)
    }

    /// The first argument, if it is a positional one.
    pub fn first(&self) -> Option<ExprId> {
        self.call.args.first().filter(|a| a.kind == ArgKind::Positional).map(|a| a.value)
    }

    /// The only argument, if it is a positional one.
    pub fn only(&self) -> Option<ExprId> {
        self.first().filter(|_| self.call.args.len() == 1)
    }

    /// The expression that the method is called on, and the method.
    pub fn method(&self) -> Option<(ExprId, Sym)> {
        match self.ir.expr(self.call.func) {
            Expr::Attr { base, name } => Some((base, name)),
            _ => None,
        }
    }

    /// The place of a part of the call.
    pub fn place_of(&self, e: ExprId) -> Place {
        Place { span: self.ir.span(e), ..self.place }
    }

    /// A part of the call.
    pub fn expr(&self, e: ExprId) -> Expr {
        self.ir.expr(e)
    }

    /// The text of the called function.
    pub fn callee(&self) -> &'a str {
        self.text(self.call.func)
    }

    /// The arguments with their parentheses.
    pub fn arguments(&self) -> &'a str {
        self.cx.sources.text(Place { span: self.call.paren, ..self.place })
    }

    /// The call with one more argument, `device=device`.
    pub fn with(&self, argument: &str) -> Option<String> {
        let bare = self.only().is_some_and(|e| matches!(self.ir.expr(e), Expr::Comp(_)))
            && !self.arguments().starts_with("([");
        let inner = self.cx.sources.text(self.place).strip_suffix(')').filter(|_| !bare)?;
        let inner = inner.trim_end_matches([',', ' ']);
        let comma = if inner.ends_with('(') { "" } else { ", " };
        quotable(format!("{inner}{comma}{argument})"))
    }

    /// The call with another text in place of one of its parts.
    pub fn replaced(&self, part: Span, text: &str) -> Option<String> {
        let whole = self.place.span;
        if !whole.contains(part) {
            return None;
        }
        let source = self.cx.sources.text(self.place);
        let (from, to) = ((part.start - whole.start) as usize, (part.end - whole.start) as usize);
        quotable(format!("{}{text}{}", source.get(..from)?, source.get(to..)?))
    }
}

/// The code, if a help text can quote it: one line that is not too long.
pub fn quotable(code: String) -> Option<String> {
    (!code.is_empty() && code.len() <= MAX_CODE && !code.contains(['\n', '`'])).then_some(code)
}

/// The text at a place, if a message can quote it.
pub fn short_text<'a>(cx: &'a Context<'_>, place: Place) -> Option<&'a str> {
    Some(cx.sources.text(place)).filter(|text| is_short(text) && !text.contains('`'))
}

/// The text at a place, if it is a variable, an attribute or an element of one and a message can quote it.
pub fn variable<'a>(cx: &'a Context<'_>, place: Place) -> Option<&'a str> {
    let is_name = |e: &Expr| matches!(e, Expr::Var(_) | Expr::Attr { .. } | Expr::Index { .. });
    expression(cx, place, is_name).and_then(|_| short_text(cx, place))
}

/// What an assignment to the target at this place, or an assignment that is this statement, assigns: the target, the value and its text.
pub fn assigned<'a>(cx: &'a Context<'_>, at: Place) -> Option<(&'a str, Expr, &'a str)> {
    let ir = &cx.program.get(cx.program.module_of(at.file)?).ir;
    let text = |e: ExprId| cx.sources.text(Place { span: ir.span(e), ..at });
    ir.stmts.iter().zip(&ir.stmt_spans).find_map(|(stmt, &span)| {
        let (target, value) = match *stmt {
            Stmt::Assign { targets, value } => match ir.list(targets) {
                &[target] => (target, value),
                _ => return None,
            },
            Stmt::AnnAssign { target, value: Some(value), .. } => (target, value),
            _ => return None,
        };
        let is_it = ir.span(target) == at.span || span == at.span;
        is_it.then(|| (text(target), ir.expr(value), text(value)))
    })
}

/// The device of the module whose method is around this place: of an input, or of the module's parameters. Nothing in the constructor.
pub fn module_device(cx: &Context<'_>, at: Place) -> Option<String> {
    let ir = &cx.program.get(cx.program.module_of(at.file)?).ir;
    if ir.function_at(at.span)?.name.as_str() == "__init__" {
        return None;
    }
    let side = Operand {
        place: at,
        device: DeviceName::WithModule,
        chain: Vec::new(),
        of_module: false,
        gives: Gives::Other,
        symbol: None,
    };
    Spot::new(cx, at)?.device(&side)
}

fn expression<'a>(
    cx: &'a Context<'_>,
    place: Place,
    is_it: impl Fn(&Expr) -> bool,
) -> Option<(ModIdx, &'a Module, ExprId)> {
    let module = cx.program.module_of(place.file)?;
    let ir = &cx.program.get(module).ir;
    let n = (0..ir.exprs.len()).find(|&n| ir.expr_spans[n] == place.span && is_it(&ir.exprs[n]))?;
    Some((module, ir, ExprId(u32::try_from(n).ok()?)))
}
