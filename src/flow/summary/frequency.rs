//! How often a program executes the code that is being interpreted.

use crate::flow::domain::event::Frequency;
use crate::flow::machine::Interp;
use crate::flow::machine::frame::Frame;
use crate::ir::{Expr, ExprId, FuncId, Function, Module, Stmt};
use crate::span::Place;
use crate::words::Words;

impl Interp<'_> {
    /// The frequency of a place in the current function, according to the loops and functions on the path to it. A constructor runs once
    /// for an object: its loops iterate over the object's parts.
    pub(crate) fn frequency(&self, place: Place) -> Frequency {
        let (mut often, mut at, mut here) = (None, Some(self.frame), place);
        let mut outermost = self.frame;
        // Whether a function on the path has loops that do not contain the place. Then the place prepares for these loops.
        let mut prepares = false;
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            // The file's body does not call a function that is interpreted on its own.
            if self.run.symbolic && frame.func == FuncId(0) {
                break;
            }
            if self.is_set_up(frame) {
                (often, prepares) = (Some(Frequency::Once), false);
            } else {
                let more = self.in_frame(frame, here, &mut prepares);
                often = if more.is_some() { often.max(more) } else { often };
            }
            (here, outermost, at) = (frame.site.unwrap_or(here), f, frame.caller);
        }
        often.unwrap_or_else(|| match self.of_entry(&self.frames[outermost.0 as usize]) {
            Frequency::Once => Frequency::Once,
            _ if prepares => Frequency::EveryEpoch,
            often => often,
        })
    }

    /// The frequency that this activation's function determines itself; `None` if its callers decide.
    fn in_frame(&self, frame: &Frame, place: Place, prepares: &mut bool) -> Option<Frequency> {
        let ir = &self.program.get(frame.module).ir;
        let body = frame.func == FuncId(0);
        let function = ir.function(frame.func);
        let whole = body || place.file != ir.file;
        let own = || ir.loops().iter().copied().filter(|(_, span)| whole || function.span.contains(*span));
        let innermost = own().filter(|(_, at)| at.contains(place.span)).max_by_key(|(_, at)| at.start);
        let again = innermost.is_some() || !frame.loops.is_empty();
        let often = innermost.map(|(l, at)| {
            let nested = *prepares || own().any(|(_, other)| other != at && at.contains(other));
            if nested && ir.stmts.get(l).is_some_and(|l| counts(ir, l)) {
                Frequency::EveryEpoch
            } else {
                Frequency::EveryStep
            }
        });
        // A comprehension is a loop as well.
        let often = often.or_else(|| again.then_some(Frequency::EveryStep));
        let called = matches!(function.name.as_str(), "forward" | "__call__");
        *prepares |= !body && !again && !called && own().next().is_some();
        // A function with a training loop executes the code before the loop once.
        if body || *prepares {
            return often;
        }
        // A single call in the visible program is only one of many possible calls.
        let module = frame.class.is_some_and(|class| self.is_module_class(class));
        let method = module.then_some(Frequency::EveryCall);
        often.or(method)
    }

    /// Whether the function is a constructor, a test, or called only by constructors.
    fn is_set_up(&self, frame: &Frame) -> bool {
        let name = self.program.get(frame.module).ir.function(frame.func).name;
        frame.func != FuncId(0)
            && (self.sets_up(name, frame.module, frame.func) || name.as_str().starts_with("test"))
    }

    /// The frequency of the entry point itself, if nothing on the path repeats.
    fn of_entry(&self, frame: &Frame) -> Frequency {
        let function = self.program.get(frame.module).ir.function(frame.func);
        match function.class {
            _ if frame.func == FuncId(0) || is_main(function) => Frequency::Once,
            Some(_) => Frequency::EveryCall,
            None => Frequency::Unknown,
        }
    }
}

/// Names of main functions.
static MAIN: Words = Words::of("main functions");

/// Whether the function is a program's main function: `def main()`.
fn is_main(function: &Function) -> bool {
    function.class.is_none() && MAIN.has(function.name.as_str())
}

/// Whether the loop counts and does not iterate over data: `for epoch in range(epochs)`, `while step < last`.
fn counts(ir: &Module, stmt: &Stmt) -> bool {
    let range = |n: usize| {
        let e = ExprId(u32::try_from(n).unwrap_or(u32::MAX));
        let Expr::Call(call) = ir.expr(e) else { return false };
        ir.last_name(ir.call(call).func).is_some_and(|name| matches!(name.as_str(), "range" | "trange"))
    };
    match *stmt {
        Stmt::For { iter, .. } => ir.exprs_in(iter).any(range),
        _ => true,
    }
}
