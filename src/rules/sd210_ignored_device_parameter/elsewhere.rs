//! SD210 ignored-device-parameter: a function creates, loads or moves something to another device than its parameter.

use super::IGNORES_CALLER;
use crate::finding::Finding;
use crate::ir::{ArgKind, Call, CallId, Expr, ExprId, Function, Whole};
use crate::link::Resolved;
use crate::rules::sd105_load_without_map_location::CODE as LOAD;
use crate::rules::shared::calls::CallAt;
use crate::rules::shared::code::quotable;
use crate::rules::shared::file::File;
use crate::span::{Place, Span};
use crate::sym::Sym;
use crate::torch;
use crate::words::Words;

pub(super) static PLAIN_DEVICES: Words = Words::of("plain device strings");
static SAME_ANYWHERE: Words = Words::of("tell what is the same on each device");

/// The message for a factory without `device=`.
const MADE: &str = "this tensor is made on the CPU";

/// The message for a load, which is a finding of SD105.
const LOADED: &str = "this loads to the device that the file was saved from";

impl File<'_> {
    /// A load to another device. A method that overrides another one need not create or move anything, but what it loads should go to its
    /// parameter.
    pub(super) fn loaded_elsewhere(&self, function: &Function, param: Sym) -> Option<Finding> {
        self.made_elsewhere(function, param).filter(|finding| finding.code == LOAD)
    }

    /// What the function creates, loads or moves to another device.
    pub(super) fn made_elsewhere(&self, function: &Function, param: Sym) -> Option<Finding> {
        let (call, what) = self.inside(function).find_map(|(_, e, at)| {
            let Expr::Call(c) = e else { return None };
            self.elsewhere(self.ir.call(c), param)
                .filter(|_| {
                    !self.stays_on_host(c, at) && !self.is_sent_on(at) && !self.is_taken_along(function, at)
                })
                .map(|what| (at, what))
        })?;
        let message = format!("`{}` does not use its parameter `{param}`: {what}", function.name);
        let mut finding = self.parameter_finding(call, message, IGNORES_CALLER, function.name_span);
        if what == LOADED {
            finding.code = LOAD;
        }
        let help = self.to_parameter(call, param, what);
        Some(finding.help(help))
    }

    /// The help: the call with the parameter as its device.
    fn to_parameter(&self, call: Span, param: Sym, what: &str) -> String {
        let written = CallAt::new(self.cx, Place { file: self.cx.file, span: call });
        let code = written.and_then(|w| match what {
            LOADED => w.with(&format!("map_location={param}")),
            MADE => w.with(&format!("device={param}")),
            _ => w.attribute().and_then(|(base, _)| quotable(format!("{}.to({param})", w.text(base)))),
        });
        match code {
            Some(code) => format!("use the parameter: `{code}`"),
            None => format!("use the parameter `{param}` here"),
        }
    }

    /// Is the tensor empty, or does the code only read a value from it that is not a tensor?
    fn stays_on_host(&self, call: CallId, at: Span) -> bool {
        let empty = match self.ir.call(call).args.first().map(|a| self.ir.expr(a.value)) {
            Some(Expr::Int(Whole(0))) => true,
            Some(Expr::List(list) | Expr::Tuple(list)) => list.len == 0,
            _ => false,
        };
        empty
            || self.ir.exprs.iter().any(|e| match *e {
                Expr::Attr { base, name } => self.ir.span(base) == at && SAME_ANYWHERE.has(name.as_str()),
                _ => false,
            })
    }

    /// `torch.zeros(n).cuda()`: the device of the factory does not matter.
    fn is_sent_on(&self, at: Span) -> bool {
        self.ir.exprs.iter().any(|e| {
            matches!(*e, Expr::Attr { base, name } if self.ir.span(base) == at && matches!(name.as_str(), "cuda" | "to"))
        })
    }

    fn elsewhere(&self, call: Call<'_>, param: Sym) -> Option<&'static str> {
        let literal = |e: ExprId| matches!(self.ir.expr(e), Expr::Str(s) if PLAIN_DEVICES.has(s.as_str()));
        if let Expr::Attr { name, .. } = self.ir.expr(call.func) {
            match name.as_str() {
                // Code that chooses the current GPU defines what `.cuda()` means.
                "cuda" if call.args.is_empty() && !self.ir.has_attribute(Sym::new("set_device")) => {
                    return Some("this goes to the current GPU");
                }
                "to" if call.args.len() == 1 && literal(call.args[0].value) => {
                    return Some("this goes to a hard-coded device");
                }
                _ => {}
            }
        }
        let Some(Resolved::External(path)) = self.cx.program.resolve_expr(self.module, call.func) else {
            return None;
        };
        if self.loads_to_where_it_was(call, param) {
            return Some(LOADED);
        }
        let op = torch::function(path)?;
        let plain = op.kind == torch::Kind::Factory && op.accepts.device && op.honours_default;
        (param.as_str() == "device" && plain && !has_keyword(call, "device") && !has_keyword(call, "out"))
            .then_some(MADE)
    }

    /// Does the call load something that should go to this parameter, without naming a device?
    pub(super) fn loads_to_where_it_was(&self, call: Call<'_>, param: Sym) -> bool {
        let Some(Resolved::External(path)) = self.cx.program.resolve_expr(self.module, call.func) else {
            return false;
        };
        let positional = call.args.iter().filter(|a| a.kind == ArgKind::Positional).count();
        let loads = match path.as_str() {
            "torch.load" | "torch.jit.load" => positional == 1,
            // A URL, and the folder for the download. Published weights are usually saved from the CPU, and a device that is never read
            // need not be meant for them.
            "torch.hub.load_state_dict_from_url" | "torch.utils.model_zoo.load_url" => {
                (1..=2).contains(&positional) && param.as_str() == "map_location"
            }
            _ => false,
        };
        loads && !has_keyword(call, "map_location")
    }
}

/// Can the call have an argument with this name?
fn has_keyword(call: Call<'_>, name: &str) -> bool {
    call.args.iter().any(|a| match a.kind {
        ArgKind::Keyword(k) => k.as_str() == name,
        ArgKind::DoubleStar => true,
        _ => false,
    })
}
