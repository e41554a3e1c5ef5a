//! Programs that know of no GPU but the current one: there a bare `.cuda()` is where everything else is.
//!
//! Whatever the project moves must go to `cuda`, to the first GPU, to the one that `set_device` has chosen, or to where something
//! else is. What a variable, an attribute or a parameter stands for is looked up by its name, in all files.

use std::cell::RefCell;

use rustc_hash::{FxHashMap, FxHashSet};

use super::behind::MOVE;
use super::nodes::{Node, named};
use crate::ir::{ArgKind, Call, Expr, ExprId, Module, Stmt, Whole};
use crate::link::{ClassKey, ModIdx, Program, Resolved};
use crate::sym::Sym;

/// Options by which users choose a GPU have one of these in their names.
const WORDS: &[&str] = &["cuda", "gpu", "device", "accel"];
/// A device that is put together out of more than so many others is anything.
const MAX_DEPTH: u32 = 6;

/// What a project says of its devices.
pub struct OneGpu<'a> {
    program: &'a Program,
    files: &'a [ModIdx],
    /// The names of what `torch.cuda.set_device` is given.
    chosen: FxHashSet<Sym>,
    /// All text, among which are the options that users may give.
    texts: FxHashSet<Sym>,
    /// Names that stand for the current GPU, as far as that has been looked up.
    known: RefCell<FxHashMap<Sym, bool>>,
    alone: bool,
}

impl<'a> OneGpu<'a> {
    /// Looks at these files.
    pub fn of(program: &'a Program, files: &'a [ModIdx]) -> Self {
        let texts = files.iter().flat_map(|&m| &program.get(m).ir.exprs);
        let texts = texts.filter_map(|e| if let Expr::Str(text) = *e { Some(text) } else { None }).collect();
        let (chosen, known) = (FxHashSet::default(), RefCell::default());
        let mut this = Self { program, files, chosen, texts, known, alone: false };
        for &m in files {
            let ir = &program.get(m).ir;
            let given = ir.calls().filter(|call| this.is_of(m, call.func, "torch.cuda.set_device"));
            let names: Vec<Sym> =
                given.filter_map(|call| this.name_of(m, call.args.first()?.value)).collect();
            this.chosen.extend(names);
        }
        let (mut some, mut others) = (false, false);
        for &m in files {
            for call in program.get(m).ir.calls() {
                if let Some(device) = this.placed(m, call) {
                    some = true;
                    others |= device.is_some_and(|e| !this.is_current(m, e, MAX_DEPTH))
                        || this.is_optional(m, call.func);
                }
            }
        }
        this.alone = some && !others;
        this
    }

    /// Does the project make such modules, and never put anything on another GPU?
    pub fn holds(&self, class: ClassKey) -> bool {
        self.alone && self.files.iter().any(|&m| self.makes(m, class))
    }

    fn makes(&self, m: ModIdx, class: ClassKey) -> bool {
        self.program.get(m).ir.calls().any(|call| match named(self.program, m, call.func) {
            Some(Node::Class(key)) => self.program.class(key).mro.contains(&class),
            _ => false,
        })
    }

    /// Where the call moves something, or lets everything go: nothing if it says no device; `None` if it does neither.
    fn placed(&self, m: ModIdx, call: Call<'_>) -> Option<Option<ExprId>> {
        let ir = &self.program.get(m).ir;
        let first = || {
            let named = |k: ArgKind| matches!(k, ArgKind::Keyword(name) if name.as_str() == "device");
            call.args.iter().find(|a| a.kind == ArgKind::Positional || named(a.kind)).map(|a| a.value)
        };
        match self.program.resolve_expr(m, call.func) {
            Some(Resolved::External(path)) => {
                let sets = matches!(path.as_str(), "torch.cuda.device" | "torch.set_default_device");
                sets.then(first)
            }
            None => match ir.expr(call.func) {
                Expr::Attr { name, .. } if name.as_str() == MOVE || name.as_str() == "to" => Some(first()),
                _ => None,
            },
            Some(_) => None,
        }
    }

    /// Is the place in a branch that users take if they want a GPU? Then there are modules on the CPU, too.
    fn is_optional(&self, m: ModIdx, e: ExprId) -> bool {
        let ir = &self.program.get(m).ir;
        let at = ir.span(e);
        let wanted = |test: ExprId| {
            ir.exprs_in(test).any(|n| {
                let part = ExprId(u32::try_from(n).unwrap_or(u32::MAX));
                let name = ir.last_name(part).filter(|_| !self.is_availability(m, part, MAX_DEPTH));
                name.is_some_and(|name| WORDS.iter().any(|word| name.as_str().contains(word)))
            })
        };
        ir.stmts.iter().zip(&ir.stmt_spans).any(|(s, span)| match *s {
            Stmt::If { test, .. } => span.contains(at) && !ir.span(test).contains(at) && wanted(test),
            _ => false,
        })
    }

    /// Is it true wherever there is a GPU: `torch.cuda.is_available()`, a part of that, or a variable that is set to nothing else?
    fn is_availability(&self, m: ModIdx, e: ExprId, depth: u32) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        let ir = &self.program.get(m).ir;
        match self.program.resolve_expr(m, e) {
            Some(Resolved::External(path)) => return path.as_str().starts_with("torch.cuda"),
            Some(Resolved::Module(_)) => return true,
            _ => {}
        }
        let Some(name) = ir.last_name(e) else {
            return matches!(ir.expr(e), Expr::Call(id) if self.is_availability(m, ir.call(id).func, depth));
        };
        let is = |e: ExprId| ir.last_name(e) == Some(name);
        let values = given_to(ir, &is, name);
        !values.is_empty() && values.into_iter().all(|v| v.is_some_and(|v| self.is_availability(m, v, depth)))
    }

    fn is_of(&self, m: ModIdx, func: ExprId, wanted: &str) -> bool {
        matches!(self.program.resolve_expr(m, func), Some(Resolved::External(path)) if path.as_str() == wanted)
    }

    /// The name of a variable or attribute, be it made a number or a device.
    fn name_of(&self, m: ModIdx, e: ExprId) -> Option<Sym> {
        let ir = &self.program.get(m).ir;
        match ir.expr(e) {
            Expr::Call(id) => self.name_of(m, ir.call(id).args.first()?.value),
            _ => ir.last_name(e),
        }
    }

    /// Is it the current GPU, or what the rest is told by: where something is, a type, the CPU of a machine without one?
    fn is_current(&self, m: ModIdx, e: ExprId, depth: u32) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        let ir = &self.program.get(m).ir;
        let name = ir.last_name(e);
        if name.is_some_and(|name| self.chosen.contains(&name)) {
            return true;
        }
        let first = self.chosen.is_empty();
        match ir.expr(e) {
            Expr::Str(text) => match text.as_str().split_once(':') {
                Some(("cuda", index)) => index == "0" && first,
                _ => true,
            },
            Expr::Int(Whole(n)) => n == 0 && first,
            Expr::None => true,
            Expr::IfElse(id) => {
                let parts = ir.if_else(id);
                let cpu = [parts.then, parts.orelse].into_iter().any(|e| self.is_cpu(m, e));
                let asks = || match ir.expr(parts.test) {
                    Expr::Call(call) => self.is_of(m, ir.call(call).func, "torch.cuda.is_available"),
                    _ => false,
                };
                (!cpu || asks())
                    && self.is_current(m, parts.then, depth)
                    && self.is_current(m, parts.orelse, depth)
            }
            Expr::Call(id) => {
                let call = ir.call(id);
                match self.program.resolve_expr(m, call.func) {
                    Some(Resolved::External(path)) => match path.as_str() {
                        "torch.cuda.current_device" => true,
                        "torch.device" => call.args.iter().all(|a| self.is_current(m, a.value, depth)),
                        _ => false,
                    },
                    _ => ir.last_name(call.func).is_some_and(|name| name.as_str() == "get_device"),
                }
            }
            Expr::Var(_) | Expr::Attr { .. } => match self.program.resolve_expr(m, e) {
                // `torch.float16`
                Some(Resolved::External(path)) => path.as_str().starts_with("torch."),
                _ => name.is_some_and(|name| self.stands_for_it(name, depth)),
            },
            // `"cuda:{}".format(rank)` and the like of a rank that was chosen.
            Expr::Format(parts) => ir.list(parts).iter().all(|&part| match ir.expr(part) {
                Expr::Str(text) => text.as_str() == "cuda:",
                _ => self.name_of(m, part).is_some_and(|name| self.chosen.contains(&name)),
            }),
            _ => false,
        }
    }

    fn is_cpu(&self, m: ModIdx, e: ExprId) -> bool {
        let ir = &self.program.get(m).ir;
        match ir.expr(e) {
            Expr::Str(text) => text.as_str() == "cpu",
            Expr::Call(id) => ir.call(id).args.first().is_some_and(|a| self.is_cpu(m, a.value)),
            _ => false,
        }
    }

    /// Is all that the project calls so the current GPU? A `device` that it never sets itself is that of a tensor.
    fn stands_for_it(&self, name: Sym, depth: u32) -> bool {
        if let Some(&known) = self.known.borrow().get(&name) {
            return known;
        }
        // What is only set to itself is what else it is set to.
        self.known.borrow_mut().insert(name, true);
        let option = [name.as_str().to_owned(), name.as_str().replace('_', "-")]
            .iter()
            .any(|text| self.texts.contains(&Sym::new(&format!("--{text}"))));
        let mut some = matches!(name.as_str(), "device" | "dtype");
        let mut all = !option;
        for &m in self.files {
            let ir = &self.program.get(m).ir;
            let is = |e: ExprId| ir.last_name(e) == Some(name);
            let values = given_to(ir, &is, name);
            some |= !values.is_empty();
            all = all && values.into_iter().flatten().all(|value| self.is_current(m, value, depth));
            if !all {
                break;
            }
        }
        let known = some && all;
        self.known.borrow_mut().insert(name, known);
        known
    }
}

/// What is given to variables, attributes and parameters of a name; nothing for a parameter of which only calls say what it is.
fn given_to(ir: &Module, is: &dyn Fn(ExprId) -> bool, name: Sym) -> Vec<Option<ExprId>> {
    let mut values = Vec::new();
    for s in &ir.stmts {
        match *s {
            Stmt::Assign { targets, value } if ir.list(targets).iter().any(|&t| is(t)) => {
                values.push(Some(value))
            }
            Stmt::AnnAssign { target, value: Some(value), .. } if is(target) => values.push(Some(value)),
            _ => {}
        }
    }
    let params = ir.functions.iter().flat_map(|f| f.params.iter()).filter(|p| p.name == name);
    values.extend(params.map(|p| p.default));
    let by_name = |k: ArgKind| matches!(k, ArgKind::Keyword(n) if n == name);
    let given = ir.calls().flat_map(|call| call.args.iter()).filter(|a| by_name(a.kind));
    values.extend(given.map(|a| Some(a.value)));
    values
}
