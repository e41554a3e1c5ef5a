//! Literal URLs: a file at such a URL is published, and the same for everyone.
//!
//! The URL may be concatenated, formatted, or an entry of a table.

use crate::flow::domain::value::{FrameId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::query::call_sites::argument;
use crate::ir::{Call, Expr, ExprId, Module, Var};
use crate::link::{ModIdx, Program, Resolved};
use crate::torch;

/// The maximum number of steps to follow from an expression to a literal.
const MAX_STEPS: u32 = 12;

/// An expression and its position: in a function that is being interpreted, or at the top level of a file.
#[derive(Clone, Copy)]
pub(crate) struct Written {
    pub(crate) module: ModIdx,
    pub(crate) frame: Option<FrameId>,
    pub(crate) e: ExprId,
}

impl Interp<'_> {
    /// Does the call read a file at a literal URL? If such a file had been saved on a GPU, it would have failed for the first user
    /// without one.
    pub(crate) fn is_published(&mut self, args: &Args) -> bool {
        let address = args.get(0, "url").or_else(|| args.get(0, "f"));
        address.is_some_and(|(v, e)| {
            let known = matches!(v, Value::Str(s, _) if is_web(s.as_str()));
            known || self.is_written_address(e)
        })
    }

    /// Is the value a URL, or does it begin with one?
    pub(crate) fn is_address(&mut self, v: Value, e: ExprId) -> bool {
        if let Value::Str(s, _) = v {
            return is_web(s.as_str());
        }
        let ir = &self.linked().ir;
        let whole = match ir.expr(e) {
            Expr::Var(var) => self.given_before(var, e).unwrap_or(e),
            _ => e,
        };
        ir.exprs_in(whole).any(|n| matches!(ir.exprs[n], Expr::Str(s) if is_web(s.as_str())))
            || self.is_written_address(e)
    }

    fn is_written_address(&mut self, e: ExprId) -> bool {
        self.begins_with_address(self.written_here(e), MAX_STEPS)
    }

    pub(crate) fn written_here(&self, e: ExprId) -> Written {
        Written { module: self.here().module, frame: Some(self.frame), e }
    }

    /// Does the string begin with a URL, whatever its other parts are?
    fn begins_with_address(&mut self, at: Written, steps: u32) -> bool {
        let Some(steps) = steps.checked_sub(1) else { return false };
        let linked = self.program.get(at.module);
        let ir = &linked.ir;
        let mut part = |e: ExprId| self.begins_with_address(Written { e, ..at }, steps);
        match ir.expr(at.e) {
            // An empty string is no URL at all, and names no file.
            Expr::Str(s) => is_web(s.as_str()) || s.as_str().is_empty(),
            Expr::Format(list) => ir.list(list).first().is_some_and(|&first| part(first)),
            Expr::Binary { left, .. } => part(left),
            Expr::IfElse(id) => part(ir.if_else(id).then) && part(ir.if_else(id).orelse),
            Expr::Index { .. } => self.is_in_table(at, steps),
            Expr::Call(id) => self.call_gives_address(at, ir.call(id), steps),
            Expr::Attr { .. } => self.known_text(at).is_some_and(|text| is_web(&text)),
            Expr::Var(_) => self.bound_to(at).is_some_and(|given| self.begins_with_address(given, steps)),
            _ => false,
        }
    }

    /// Is the result of a call a URL: `address.format(name)`, `urljoin(address, name)`, `addresses.get(name)`?
    fn call_gives_address(&mut self, at: Written, call: Call<'_>, steps: u32) -> bool {
        let ir = &self.program.get(at.module).ir;
        if let Some(id) = published_as(self.program, at.module, call) {
            return self.is_written_down(Written { e: id, ..at }, steps);
        }
        let first = call.args.first().map(|a| Written { e: a.value, ..at });
        match ir.expr(call.func) {
            Expr::Attr { base, name } => match name.as_str() {
                "format" | "replace" | "strip" | "rstrip" => {
                    self.begins_with_address(Written { e: base, ..at }, steps)
                }
                "get" => self.is_in_table(at, steps),
                "join" | "urljoin" => first.is_some_and(|first| self.begins_with_address(first, steps)),
                _ => false,
            },
            Expr::Var(_) => {
                let known = self.program.resolve_expr(at.module, call.func);
                let joins = matches!(known, Some(Resolved::External(path))
                    if matches!(path.as_str(), "urllib.parse.urljoin" | "os.path.join" | "builtins.str" | "pathlib.Path"));
                joins && first.is_some_and(|first| self.begins_with_address(first, steps))
            }
            _ => false,
        }
    }

    /// Is it a string literal, or a variable with such a value?
    fn is_written_down(&self, at: Written, steps: u32) -> bool {
        let Some(steps) = steps.checked_sub(1) else { return false };
        match self.program.get(at.module).ir.expr(at.e) {
            Expr::Str(_) => true,
            Expr::Var(_) => self.bound_to(at).is_some_and(|given| self.is_written_down(given, steps)),
            // `cached_download(hf_hub_url("someone/voices", name))`
            Expr::Call(id) => published_as(self.program, at.module, self.program.get(at.module).ir.call(id))
                .is_some_and(|e| self.is_written_down(Written { e, ..at }, steps)),
            _ => false,
        }
    }

    /// Is it `TABLE[name]` or `TABLE[name]["url"]`, where a literal table at the top level of a file contains URLs?
    fn is_in_table(&mut self, at: Written, steps: u32) -> bool {
        let mut whole = at;
        // Follow the index expressions down to the table.
        for _ in 0..MAX_STEPS {
            let ir = &self.program.get(whole.module).ir;
            whole.e = match ir.expr(whole.e) {
                Expr::Index { base, .. } => base,
                Expr::Call(id) => match ir.expr(ir.call(id).func) {
                    Expr::Attr { base, name } if name.as_str() == "get" => base,
                    _ => break,
                },
                Expr::Var(_) => match self.bound_to(whole) {
                    Some(given) => {
                        whole = given;
                        continue;
                    }
                    None => break,
                },
                _ => break,
            };
        }
        let ir = &self.program.get(whole.module).ir;
        match ir.expr(whole.e) {
            Expr::Dict(_) | Expr::Comp(_) => self.are_addresses(whole, steps),
            // `table = others if more else few`
            Expr::IfElse(id) => {
                let either = ir.if_else(id);
                [either.then, either.orelse].into_iter().all(|e| {
                    let part = Written { e, ..whole };
                    let part = self.bound_to(part).unwrap_or(part);
                    self.are_addresses(part, steps)
                })
            }
            _ => false,
        }
    }

    /// Are all values of a table URLs? `None` as a value means that there is no file.
    fn are_addresses(&mut self, table: Written, steps: u32) -> bool {
        let Some(steps) = steps.checked_sub(1) else { return false };
        let ir = &self.program.get(table.module).ir;
        let values: Vec<ExprId> = match ir.expr(table.e) {
            Expr::Dict(list) => ir.list(list).iter().skip(1).step_by(2).copied().collect(),
            Expr::Comp(id) => ir.comp(id).value.into_iter().collect(),
            _ => Vec::new(),
        };
        let mut values = values.into_iter().filter(|&v| ir.expr(v) != Expr::None).peekable();
        values.peek().is_some()
            && values.all(|e| {
                let value = Written { e, ..table };
                match ir.expr(e) {
                    Expr::Dict(_) | Expr::Comp(_) => self.are_addresses(value, steps),
                    _ => self.begins_with_address(value, steps),
                }
            })
    }

    /// The known string value of an expression such as `self.address`. `None` unless its function is the current one.
    fn known_text(&mut self, at: Written) -> Option<String> {
        if at.frame != Some(self.frame) {
            return None;
        }
        self.run.muted += 1;
        let v = self.eval(at.e);
        self.run.muted -= 1;
        match v {
            Value::Str(s, _) => Some(s.to_string()),
            _ => None,
        }
    }

    /// The value of a variable: the last assignment in its function, the argument of the call, or the only assignment at the top level.
    fn bound_to(&self, at: Written) -> Option<Written> {
        let Expr::Var(var) = self.program.get(at.module).ir.expr(at.e) else { return None };
        let local = at.frame.filter(|_| matches!(var, Var::Local(_)));
        if let Some(frame) = local.map(|f| &self.frames[f.0 as usize]).filter(|frame| frame.func.0 != 0) {
            let given = self.given_before_in(at.module, frame.func, var, at.e);
            return given.map(|e| Written { e, ..at }).or_else(|| self.given_by_caller(at, var));
        }
        let (module, e) = self.program.bound_to(at.module, at.e)?;
        Some(Written { module, frame: None, e })
    }

    /// The argument of the call for a parameter that the function does not assign to.
    pub(crate) fn given_by_caller(&self, at: Written, var: Var) -> Option<Written> {
        let frame = &self.frames[at.frame?.0 as usize];
        let ir = &self.program.get(at.module).ir;
        let Var::Local(slot) = var else { return None };
        let position = ir.function(frame.func).params.iter().position(|p| p.slot == slot)?;
        let name = ir.function(frame.func).params[position].name;
        let (site, caller) = (frame.site?, frame.caller?);
        let module = self.program.module_of(site.file)?;
        let call = call_at(&self.program.get(module).ir, site.span)?;
        let bound = usize::from(frame.receiver != Value::Unknown && frame.class.is_some());
        let e = crate::flow::query::call_sites::argument(call, position.checked_sub(bound)?, name)?;
        (self.frames[caller.0 as usize].module == module).then_some(Written {
            module,
            frame: Some(caller),
            e,
        })
    }
}

/// The call with this span.
fn call_at(ir: &Module, at: crate::span::Span) -> Option<Call<'_>> {
    let is_it = |(e, span): (&Expr, &crate::span::Span)| match *e {
        Expr::Call(id) if *span == at => Some(id),
        _ => None,
    };
    ir.exprs.iter().zip(&ir.expr_spans).find_map(is_it).map(|id| ir.call(id))
}

fn is_web(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

/// `hf_hub_download("someone/voices", "encoder.pth")`: the argument with the name of the published file or repository.
fn published_as(program: &Program, m: ModIdx, call: Call<'_>) -> Option<ExprId> {
    let Some(Resolved::External(path)) = program.resolve_expr(m, call.func) else { return None };
    let id = torch::call(path)?.published_as?;
    argument(call, usize::from(id.position), id.name)
}
