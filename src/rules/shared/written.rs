//! The source code at a place, for messages and helps.

use crate::ir::{ArgKind, Call, Expr, ExprId, Module};
use crate::link::{ModIdx, Resolved};
use crate::rules::check::Context;
use crate::rules::shared::naming::is_short;
use crate::span::{Place, Span};
use crate::world::{Backend, World};

/// A help does not repeat a longer line.
const MAX_LINE: usize = 110;

/// The code at a place, if it is short.
pub fn text<'a>(cx: &'a Context<'_>, place: Place) -> Option<&'a str> {
    Some(cx.sources.text(place)).filter(|text| is_short(text) && !text.contains('`'))
}

/// The code at a place in backticks, or other words if the code is long.
pub fn quoted(cx: &Context<'_>, place: Place, otherwise: &str) -> String {
    text(cx, place).map_or_else(|| otherwise.to_owned(), |text| format!("`{text}`"))
}

/// The line of a place, with other code at that place. Gives nothing for a long line and for a part of a longer expression.
pub fn line_with(cx: &Context<'_>, place: Place, new: &str) -> Option<String> {
    let source = cx.sources.get(place.file).text();
    let (from, to) = (place.span.start as usize, place.span.end as usize);
    let start = source.get(..from)?.rfind('\n').map_or(0, |n| n + 1);
    let rest = source.get(to..)?.lines().next().unwrap_or_default();
    let rest = rest.find("  #").map_or(rest, |comment| &rest[..comment]);
    let whole = format!("{}{new}{rest}", source.get(start..from)?);
    let line = whole.trim().trim_end_matches(',');
    let closed = [('(', ')'), ('[', ']'), ('{', '}')]
        .into_iter()
        .all(|(open, close)| line.matches(open).count() == line.matches(close).count());
    (closed && line.len() <= MAX_LINE && !line.contains(['\n', '`'])).then(|| line.to_owned())
}

/// Is the expression at a place a whole argument, value or item? Then a conditional expression can replace it.
pub fn stands_alone(cx: &Context<'_>, place: Place) -> bool {
    let source = cx.sources.get(place.file).text();
    let before = source.get(..place.span.start as usize).unwrap_or_default().trim_end_matches(' ');
    let after = source.get(place.span.end as usize..).unwrap_or_default().trim_start_matches(' ');
    let compares = ["==", "!=", "<=", ">="].into_iter().any(|op| before.ends_with(op));
    before.ends_with(['(', '[', ',', '='])
        && !compares
        && (after.is_empty() || after.starts_with([')', ']', ',', '\n', '\r', '#']))
}

/// The expression in parentheses where an operator makes them necessary: a method can be called on it.
pub fn operand(cx: &Context<'_>, place: Place) -> Option<String> {
    let code = text(cx, place)?;
    let module = cx.program.module_of(place.file)?;
    let ir = &cx.program.get(module).ir;
    let n = ir.expr_spans.iter().rposition(|at| *at == place.span)?;
    let plain = matches!(ir.exprs[n], Expr::Var(_) | Expr::Attr { .. } | Expr::Call(_) | Expr::Index { .. });
    Some(if plain { code.to_owned() } else { format!("({code})") })
}

/// The function that waits for the device of a world.
pub const fn synchronize(world: World) -> &'static str {
    match world {
        World::With(Backend::Mps) => "torch.mps.synchronize()",
        World::With(Backend::Xpu) => "torch.xpu.synchronize()",
        World::With(_) => "torch.accelerator.synchronize()",
        _ => "torch.cuda.synchronize()",
    }
}

/// A call in the source.
pub struct CallAt<'a> {
    cx: &'a Context<'a>,
    module: ModIdx,
    ir: &'a Module,
    call: Call<'a>,
    /// The place of the call.
    pub place: Place,
}

impl<'a> CallAt<'a> {
    /// Gives nothing if there is no call at this place.
    pub fn new(cx: &'a Context<'a>, place: Place) -> Option<Self> {
        let module = cx.program.module_of(place.file)?;
        let ir = &cx.program.get(module).ir;
        let call = ir.exprs.iter().zip(&ir.expr_spans).find_map(|(e, at)| match *e {
            Expr::Call(id) if *at == place.span => Some(ir.call(id)),
            _ => None,
        })?;
        Some(Self { cx, module, ir, call, place })
    }

    fn place_of(&self, e: ExprId) -> Place {
        Place { span: self.ir.span(e), ..self.place }
    }

    /// The path of the function of a library: `torch.zeros`.
    pub fn function(&self) -> Option<&'static str> {
        match self.cx.program.resolve_expr(self.module, self.call.func)? {
            Resolved::External(path) => Some(path.as_str()),
            _ => None,
        }
    }

    /// The name of the method.
    pub fn method(&self) -> Option<&'static str> {
        match self.ir.expr(self.call.func) {
            Expr::Attr { name, .. } if self.function().is_none() => Some(name.as_str()),
            _ => None,
        }
    }

    /// The object of a method call.
    pub fn receiver(&self) -> Option<Place> {
        match self.ir.expr(self.call.func) {
            Expr::Attr { base, .. } if self.function().is_none() => Some(self.place_of(base)),
            _ => None,
        }
    }

    /// The argument with this keyword, or else the one at this position.
    pub fn argument(&self, position: usize, keyword: &str) -> Option<Place> {
        let named =
            self.call.args.iter().find(|a| matches!(a.kind, ArgKind::Keyword(k) if k.as_str() == keyword));
        let by_position = || self.call.args.get(position).filter(|a| a.kind == ArgKind::Positional);
        named.or_else(by_position).map(|a| self.place_of(a.value))
    }

    /// The device of a transfer, as an expression: `x.device`, `"cuda"`.
    pub fn target(&self) -> Option<String> {
        let code = |place: Place| text(self.cx, place);
        match self.method()? {
            "cuda" => match self.argument(0, "device") {
                None => Some("\"cuda\"".to_owned()),
                Some(index) => {
                    let index = code(index)?;
                    let number = index.bytes().all(|b| b.is_ascii_digit());
                    Some(if number { format!("\"cuda:{index}\"") } else { index.to_owned() })
                }
            },
            "type_as" => Some(format!("{}.device", code(self.argument(0, "other")?)?)),
            "to" => {
                let named = self.argument(usize::MAX, "device").and_then(code);
                let plain = |text: &&str| {
                    let text = text.to_ascii_lowercase();
                    text.ends_with("device")
                        || text == "dev"
                        || text.contains("device(")
                        || text.contains("cuda")
                        || text.starts_with(['"', '\''])
                };
                let device = named.or_else(|| self.argument(0, "device").and_then(code).filter(plain))?;
                Some(device.to_owned())
            }
            _ => None,
        }
    }

    /// The device of a transfer in a sentence.
    pub fn target_in_words(&self) -> String {
        self.target().map_or_else(
            || "the device".to_owned(),
            |device| format!("`{}`", device.trim_matches(['"', '\''])),
        )
    }

    /// The call with one more keyword argument.
    pub fn with_argument(&self, keyword: &str, value: &str) -> Option<String> {
        let plain = |kind: ArgKind| match kind {
            ArgKind::Positional => true,
            ArgKind::Keyword(k) => k.as_str() != keyword,
            _ => false,
        };
        let inner = self.cx.sources.text(self.place).strip_suffix(')')?;
        if inner.contains('\n') || !self.call.args.iter().all(|a| plain(a.kind)) {
            return None;
        }
        let comma = if self.call.args.is_empty() { "" } else { ", " };
        Some(format!("{}{comma}{keyword}={value})", inner.trim_end_matches([',', ' '])))
    }

    /// The code after this call, in a longer chain of calls that begins with it.
    pub fn rest_of(&self, chain: Place) -> &'a str {
        self.cx.sources.text(Place { span: Span::new(self.place.span.end, chain.span.end), ..chain })
    }
}
