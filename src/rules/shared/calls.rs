//! A call in the source, for messages and helps: its parts, and the call with another argument.

use crate::ir::{ArgKind, Call, Expr, ExprId, Module};
use crate::link::{ModIdx, Resolved};
use crate::rules::check::Context;
use crate::rules::shared::code::{expression, quotable, text};
use crate::span::{Place, Span};
use crate::sym::Sym;
use crate::world::{Backend, World};

/// The function that waits for the device of this world.
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
    /// The call at this place; `None` if there is none.
    pub fn new(cx: &'a Context<'a>, place: Place) -> Option<Self> {
        let (module, ir, e) = expression(cx, place, |e| matches!(e, Expr::Call(_)))?;
        let Expr::Call(id) = ir.expr(e) else { return None };
        Some(Self { cx, module, ir, call: ir.call(id), place })
    }

    /// The text of a part of the call.
    pub fn text(&self, e: ExprId) -> &'a str {
        self.cx.sources.text(Place { span: self.ir.span(e), ..self.place })
    }

    /// The path of the external function that is called: `torch.zeros`.
    pub fn path(&self) -> Option<Sym> {
        match self.cx.program.resolve_expr(self.module, self.call.func)? {
            Resolved::External(path) => Some(path),
            _ => None,
        }
    }

    /// The path as text.
    pub fn function(&self) -> Option<&'static str> {
        self.path().map(|path| path.as_str())
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

    /// The expression whose attribute is called, and the name of the attribute.
    pub fn attribute(&self) -> Option<(ExprId, Sym)> {
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

    /// The rest of a longer chain of calls that begins with this call.
    pub fn rest_of(&self, chain: Place) -> &'a str {
        self.cx.sources.text(Place { span: Span::new(self.place.span.end, chain.span.end), ..chain })
    }
}
