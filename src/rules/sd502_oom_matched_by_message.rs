//! SD502 oom-matched-by-message: the program recognises an out-of-memory error by the text of its message.
//!
//! Only the text of an exception counts that may be an out-of-memory error: one that a broad handler has caught, or one that a helper
//! function gets. Log files and reports may contain "out of memory".

use crate::finding::{Code, Finding, Label};
use crate::ir::{ArgKind, Call, CmpOp, Expr, ExprId, Function, Handler, IfElse, Module, Stmt, Var};
use crate::link::ModIdx;
use crate::remedy::Remedy;
use crate::rules::check::{Check, Context};
use crate::rules::shared::code::quoted;
use crate::span::{Place, Span};
use crate::sym::{Answers, Sym};
use crate::words::Words;
use crate::world::World;

static IN_A_TEXT: Words = Words::of("look for a text");
static BY_PATTERN: Words = Words::of("look for a pattern");
static ASKS_FOR_CLASS: Words = Words::of("ask for a class");
static AS_TEXT: Words = Words::of("make a text of an object");
static TEXT_OF_ERROR: Words = Words::of("text of an exception");
static BROAD: Words = Words::of("may catch out-of-memory errors");
static ERROR_NAMES: Words = Words::of("names of exceptions");

pub(super) const CODE: Code = Code(502);
pub(super) struct Rule;

impl Check for Rule {
    fn on_file(&mut self, cx: &Context<'_>) -> Vec<Finding> {
        matched_by_message(cx)
    }
}

/// How far a text is followed through variables and methods.
const MAX_DEPTH: u32 = 6;

/// The beginning of the text on MPS, in lower case: "MPS backend out of memory (MPS allocated: …". It is a plain `RuntimeError`
/// (aten/src/ATen/mps/MPSAllocator.mm).
const ON_MPS: &str = "mps backend out of memory";

/// SD502 oom-matched-by-message
fn matched_by_message(cx: &Context<'_>) -> Vec<Finding> {
    let Some(module) = cx.program.module_of(cx.file) else { return Vec::new() };
    let ir = &cx.program.get(module).ir;
    let mut found = Vec::new();
    if !ir.strings.iter().any(|&s| speaks_of_oom(s)) {
        return found;
    }
    for (n, expr) in ir.exprs.iter().enumerate() {
        let Some((words, text)) = comparison(ir, *expr) else { continue };
        let span = ir.expr_spans[n];
        let texts = Texts { cx, module, ir, function: function_around(ir, span) };
        let mut sought = Vec::new();
        texts.words(words, 0, &mut sought);
        sought.retain(|&s| speaks_of_oom(s));
        // Only the message identifies the error there.
        let only_told_so = |&s: &Sym| {
            let words = s.as_str().to_ascii_lowercase();
            ON_MPS.contains(words.trim()) && (words.contains("mps") || cx.program.mentions_mps(module))
        };
        if sought.is_empty()
            || sought.iter().any(only_told_so)
            || !texts.is_message(text, 0)
            || asks_for_class(ir, span)
        {
            continue;
        }
        let label = Label::new(Place { file: cx.file, span }, "compares the text of the exception");
        let place = Place { file: cx.file, span };
        let message = format!(
            "{} recognises an out-of-memory error by its text, which differs between PyTorch versions and back ends",
            quoted(cx, place, "this comparison")
        );
        let f = Finding::new(CODE, World::Always, message, label);
        let remedy = Remedy::AskClass(f.primary.place);
        let help =
            "catch `torch.OutOfMemoryError` instead (before PyTorch 2.5: `torch.cuda.OutOfMemoryError`)";
        found.push(f.help(help).remedy([remedy]));
    }
    found
}

/// The string literals in the expression: one, or those of a list.
fn texts_in(ir: &Module, e: ExprId, found: &mut Vec<Sym>) {
    match ir.expr(e) {
        Expr::Str(s) => found.push(s),
        Expr::List(items) | Expr::Tuple(items) | Expr::Set(items) => {
            ir.list(items).iter().for_each(|&e| texts_in(ir, e, found));
        }
        _ => {}
    }
}

/// The words and the text of a comparison: `words in text`, `text.startswith(words)`, `re.search(words, text)`.
fn comparison(ir: &Module, expr: Expr) -> Option<(ExprId, ExprId)> {
    match expr {
        Expr::Compare { op: CmpOp::In | CmpOp::NotIn, left, right } => Some((left, right)),
        Expr::Call(c) => {
            let call = ir.call(c);
            let Expr::Attr { base, name } = ir.expr(call.func) else { return None };
            match (name.as_str(), call.args) {
                (name, [words, ..]) if IN_A_TEXT.has(name) => Some((words.value, base)),
                (name, [words, text, ..]) if BY_PATTERN.has(name) => Some((words.value, text.value)),
                _ => None,
            }
        }
        _ => None,
    }
}

thread_local! {
    static OOM: Answers = const { Answers::new() };
}

fn speaks_of_oom(words: Sym) -> bool {
    OOM.with(|known| known.ask(words, |text| text.to_ascii_lowercase().contains("out of memory")))
}

/// Does the code also test the class, so that the words are for errors of other classes? It may do so in an earlier handler of the same
/// `try`, by `isinstance(e, torch.OutOfMemoryError) or …`, or before in the same function.
fn asks_for_class(ir: &Module, words: Span) -> bool {
    let names_class = |e: ExprId| {
        ir.exprs[ir.exprs_in(e)].iter().any(|x| match *x {
            Expr::Attr { name, .. } | Expr::Var(Var::Unbound(name)) => name.as_str() == "OutOfMemoryError",
            _ => false,
        })
    };
    let by_handler = ir.stmts.iter().any(|s| {
        let Stmt::Try { handlers, .. } = *s else { return false };
        let handlers = ir.handlers(handlers);
        let of =
            handlers.iter().position(|h| ir.block(h.body).iter().any(|&s| ir.stmt_span(s).contains(words)));
        of.is_some_and(|n| handlers[..n].iter().any(|h| h.types.is_some_and(names_class)))
    });
    by_handler
        || asks_before(ir, words)
        || ir.exprs.iter().zip(&ir.expr_spans).any(|(e, at)| match *e {
            Expr::Or(list) if at.contains(words) => {
                let classes = |&e: &ExprId| matches!(ir.expr(e), Expr::Call(_)) && names_class(e);
                ir.list(list).iter().any(classes)
            }
            _ => false,
        })
}

/// Does the function test the class before, or in the same expression, perhaps by its name: `isinstance(e, torch.OutOfMemoryError)`,
/// `getattr(torch, "OutOfMemoryError", None)`, `type(e).__name__ == "OutOfMemoryError"`?
fn asks_before(ir: &Module, words: Span) -> bool {
    let Some(function) = function_around(ir, words).filter(|f| f.parent.is_some()) else { return false };
    let class = |e: ExprId| match ir.expr(e) {
        Expr::Attr { name, .. } | Expr::Var(Var::Unbound(name)) | Expr::Str(name) => {
            name.as_str() == "OutOfMemoryError"
        }
        _ => false,
    };
    let named = |e: ExprId| {
        class(e) || matches!(ir.expr(e), Expr::Tuple(list) if ir.list(list).iter().any(|&e| class(e)))
    };
    ir.exprs_of(function).any(|n| match ir.exprs[n] {
        Expr::Call(c) => {
            let call = ir.call(c);
            let asks = |f: Sym| ASKS_FOR_CLASS.has(f.as_str());
            matches!(ir.expr(call.func), Expr::Var(Var::Unbound(f)) if asks(f))
                && ir.expr_spans[n].start < words.start
                && call.args.get(1).is_some_and(|a| named(a.value))
        }
        Expr::Compare { op: CmpOp::Eq | CmpOp::In, left, right } => named(left) || named(right),
        _ => false,
    })
}

/// The innermost function around a place.
fn function_around(ir: &Module, span: Span) -> Option<&Function> {
    ir.functions.iter().filter(|f| f.span.contains(span)).max_by_key(|f| f.span.start)
}

/// The texts and names in one function.
struct Texts<'a> {
    cx: &'a Context<'a>,
    module: ModIdx,
    ir: &'a Module,
    function: Option<&'a Function>,
}

impl Texts<'_> {
    /// The words of the comparison: string literals, or the literals that a variable gets.
    fn words(&self, e: ExprId, depth: u32, found: &mut Vec<Sym>) {
        if depth > MAX_DEPTH {
            return;
        }
        match self.ir.expr(e) {
            Expr::Var(var @ Var::Local(_)) => {
                for e in self.values(var).chain(self.drawn(var)) {
                    self.words(e, depth + 1, found);
                }
            }
            Expr::Var(_) | Expr::Attr { .. } => {
                let program = self.cx.program;
                let bound =
                    program.bound_to(self.module, e).or_else(|| program.bound_in_class(self.module, e));
                if let Some((module, e)) = bound {
                    texts_in(&program.get(module).ir, e, found);
                }
            }
            _ => texts_in(self.ir, e, found),
        }
    }

    /// Is it the message of an exception that may be an out-of-memory error?
    fn is_message(&self, e: ExprId, depth: u32) -> bool {
        if depth > MAX_DEPTH {
            return false;
        }
        let ir = self.ir;
        match ir.expr(e) {
            Expr::Call(c) => {
                let call = ir.call(c);
                let first = call.args.first().map(|a| a.value);
                match ir.expr(call.func) {
                    Expr::Var(Var::Unbound(n)) if AS_TEXT.has(n.as_str()) => {
                        first.is_some_and(|x| self.is_exception(x) || self.is_message(x, depth + 1))
                    }
                    Expr::Attr { name, .. } if name.as_str() == "format_exc" => true,
                    Expr::Attr { base, name } if matches!(name.as_str(), "__str__" | "__repr__") => {
                        self.is_exception(base)
                    }
                    // `" ".join(str(x) for x in e.args)`
                    Expr::Attr { name, .. } if name.as_str() == "join" => {
                        first.is_some_and(|x| self.is_message(x, depth + 1))
                    }
                    Expr::Attr { base, .. } => self.is_message(base, depth + 1),
                    _ => false,
                }
            }
            Expr::Format(parts) => ir.list(parts).iter().any(|&p| self.is_exception(p)),
            Expr::Index { base, .. } => self.is_message(base, depth + 1),
            Expr::Walrus(id) => self.is_message(ir.walrus(id).value, depth + 1),
            Expr::Attr { base, name } => TEXT_OF_ERROR.has(name.as_str()) && self.is_exception(base),
            Expr::IfElse(id) => {
                let IfElse { then, orelse, .. } = ir.if_else(id);
                self.is_message(then, depth + 1) || self.is_message(orelse, depth + 1)
            }
            Expr::Or(list) => ir.list(list).iter().any(|&x| self.is_message(x, depth + 1)),
            Expr::Comp(id) => self.is_message(ir.comp(id).element, depth + 1),
            Expr::Var(var) => self.values(var).chain(self.drawn(var)).any(|x| self.is_message(x, depth + 1)),
            _ => false,
        }
    }

    /// The values that assignments of the function give to a variable.
    fn values(&self, var: Var) -> impl Iterator<Item = ExprId> + '_ {
        let ir = self.ir;
        let inside =
            move |e: ExprId| function_around(ir, ir.span(e)).map(|f| f.span) == self.function.map(|f| f.span);
        ir.stmts.iter().filter_map(move |s| match s {
            Stmt::Assign { targets, value } => {
                let named = ir.list(*targets).iter().any(|&t| ir.expr(t) == Expr::Var(var));
                (named && matches!(var, Var::Local(_)) && inside(*value)).then_some(*value)
            }
            _ => None,
        })
    }

    /// The iterables from which loops and comprehensions of the function take a variable: parts of a message.
    fn drawn(&self, var: Var) -> impl Iterator<Item = ExprId> + '_ {
        let ir = self.ir;
        let inside =
            move |e: ExprId| function_around(ir, ir.span(e)).map(|f| f.span) == self.function.map(|f| f.span);
        let of_comps = ir.comps.iter().flat_map(|c| c.generators.iter().map(|g| (g.target, g.iter)));
        let of_loops = ir.stmts.iter().filter_map(|s| match *s {
            Stmt::For { target, iter, .. } => Some((target, iter)),
            _ => None,
        });
        of_comps
            .chain(of_loops)
            .filter(move |&(target, iter)| ir.expr(target) == Expr::Var(var) && inside(iter))
            .map(|(_, iter)| iter)
    }

    /// Is it an exception that may be an out-of-memory error, among others?
    fn is_exception(&self, e: ExprId) -> bool {
        let Expr::Var(var @ Var::Local(slot)) = self.ir.expr(e) else { return false };
        let place = self.ir.span(e);
        if let Some(handler) = self.handler(var, place) {
            return handler.types.is_none_or(|t| self.is_broad(t)) && !self.pins_before(handler);
        }
        let Some(function) = self.function else { return false };
        function.params.iter().any(|p| p.slot == slot && self.is_error_parameter(function, p))
    }

    /// The innermost handler around the place that binds the variable.
    fn handler(&self, var: Var, place: Span) -> Option<&Handler> {
        let handlers = self.ir.stmts.iter().filter_map(|s| match *s {
            Stmt::Try { handlers, .. } => Some(self.ir.handlers(handlers)),
            _ => None,
        });
        handlers
            .flatten()
            .filter(|h| h.name == Some(var) && h.span.contains(place))
            .max_by_key(|h| h.span.start)
    }

    /// Does the body of the handler's `try` pin memory? PyTorch raises a plain `RuntimeError` if the host cannot pin more.
    fn pins_before(&self, handler: &Handler) -> bool {
        let ir = self.ir;
        let body = ir.stmts.iter().find_map(|s| match *s {
            Stmt::Try { body, handlers, .. } => {
                ir.handlers(handlers).iter().any(|h| h.span == handler.span).then_some(body)
            }
            _ => None,
        });
        let body: Vec<Span> =
            body.map(|b| ir.block(b).iter().map(|&s| ir.stmt_span(s)).collect()).unwrap_or_default();
        let pins = |call: Call<'_>| {
            let named = |name: Sym| matches!(name.as_str(), "pin_memory" | "cudaHostRegister");
            let told = call
                .args
                .iter()
                .any(|a| matches!(a.kind, ArgKind::Keyword(k) if named(k)) && ir.expr(a.value) == Expr::True);
            told || matches!(ir.expr(call.func), Expr::Attr { name, .. } if named(name))
        };
        ir.calls().any(|call| body.iter().any(|s| s.contains(ir.span(call.func))) && pins(call))
    }

    fn is_broad(&self, types: ExprId) -> bool {
        let broad = |e: ExprId| self.last_name(e).is_some_and(|name| BROAD.has(name));
        match self.ir.expr(types) {
            Expr::Tuple(list) => self.ir.list(list).iter().any(|&e| broad(e)),
            _ => broad(types),
        }
    }

    /// A helper's parameter is an error if its annotation, a test of its class or its name says so.
    fn is_error_parameter(&self, function: &Function, param: &crate::ir::Param) -> bool {
        let says =
            |name: Option<&str>| name.is_some_and(|n| n.ends_with("Error") || n.ends_with("Exception"));
        let ir = self.ir;
        if let Some(annotation) = param.annotation {
            return says(self.last_name(annotation));
        }
        let tested = ir.exprs.iter().enumerate().any(|(n, e)| {
            let Expr::Call(c) = *e else { return false };
            let call = ir.call(c);
            matches!(ir.expr(call.func), Expr::Var(Var::Unbound(f)) if f.as_str() == "isinstance")
                && function.span.contains(ir.expr_spans[n])
                && matches!(call.args, [x, class] if ir.expr(x.value) == Expr::Var(Var::Local(param.slot)) && says(self.last_name(class.value)))
        });
        tested || ERROR_NAMES.has(param.name.as_str())
    }

    fn last_name(&self, e: ExprId) -> Option<&'static str> {
        match self.ir.expr(e) {
            Expr::Attr { name, .. } => Some(name.as_str()),
            Expr::Str(s) => Some(s.as_str()),
            Expr::Var(Var::Unbound(n)) => Some(n.as_str()),
            Expr::Var(Var::Global(slot) | Var::Local(slot)) => {
                self.ir.functions.first()?.slots.get(usize::from(slot)).map(|n| n.as_str())
            }
            _ => None,
        }
    }
}
