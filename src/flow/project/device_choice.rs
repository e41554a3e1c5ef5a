//! Whether a project leaves a choice between CUDA and another device.
//!
//! It does if one of its files does one of the following:
//!
//! - test for CUDA and place a value accordingly,
//! - name the CPU where a device is chosen,
//! - move a module on one of two paths only,
//! - use the text of an option as a device.
//!
//! An assertion, a message, a seed, or a result that is moved to the CPU is no choice.

mod options;

use std::ops::Range;

use self::options::Options;
use crate::ir::{ArgKind, Block, Call, CmpOp, Expr, ExprId, Module, Stmt, Whole};
use crate::link::{ModIdx, Program, Resolved};
use crate::sym::Sym;
use crate::torch::{self, Without};
use crate::words::Words;

/// Methods of `torch.nn.Module` that tensors do not have (<https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html>).
static OF_MODULES: Words = Words::of("methods of modules");

/// Arguments for the device of results, files or a region of code, not of the whole program.
const NOT_WHERE_IT_RUNS: [&str; 2] = ["map_location", "device_type"];

/// Whether these files leave a choice.
pub fn leave_choice(program: &Program, files: &[ModIdx]) -> bool {
    let mut options = Options::default();
    files.iter().any(|&m| {
        options.add(program, m);
        File { program, module: m, ir: &program.get(m).ir }.leaves_choice()
    }) || options.name_devices()
}

/// One file.
#[derive(Clone, Copy)]
struct File<'a> {
    program: &'a Program,
    module: ModIdx,
    ir: &'a Module,
}

impl File<'_> {
    fn leaves_choice(self) -> bool {
        let cpu = |e: ExprId| matches!(self.ir.expr(e), Expr::Str(s) if matches!(s.as_str(), "cpu" | "gloo"));
        let exprs = || (0..self.ir.exprs.len()).map(id);
        exprs().any(|e| cpu(e) && self.is_choice(e))
            || self.ir.stmts.iter().any(|stmt| self.chooses(stmt))
            || exprs().any(|e| self.is_default(e))
    }

    /// Whether the expression names the CPU as one of several devices, and not as the destination of a result.
    fn is_choice(self, cpu: ExprId) -> bool {
        let Some(around) = self.ir.parent(cpu) else { return !self.is_constant(cpu) };
        let Expr::Call(call) = self.ir.expr(around) else { return true };
        let call = self.ir.call(call);
        let Some(arg) = call.args.iter().find(|arg| arg.value == cpu) else { return true };
        match self.external(call.func) {
            Some(path) if path.as_str() == "torch.device" => return self.is_choice(around),
            // `torch.zeros(3, device="cpu")`, `torch.load(file, "cpu")`
            Some(path) if torch::is_library(path.as_str().split('.').next().unwrap_or_default()) => {
                return false;
            }
            _ => {}
        }
        match arg.kind {
            ArgKind::Keyword(name) => !NOT_WHERE_IT_RUNS.contains(&name.as_str()),
            _ => !matches!(self.ir.expr(call.func), Expr::Attr { name, .. } if name.as_str() == "to"),
        }
    }

    /// Whether the value is a constant: `self.host = torch.device("cpu")`, and no other assignment in the file
    fn is_constant(self, value: ExprId) -> bool {
        let assigned = self.ir.stmts.iter().find_map(|stmt| match *stmt {
            Stmt::Assign { targets, value: v } if v == value => Some(targets),
            _ => None,
        });
        let Some(targets) = assigned else { return false };
        self.ir.list(targets).iter().all(|&target| self.ir.settings(target).nth(1).is_none())
    }

    /// Whether a statement chooses by a test for CUDA, or moves a module on one of two paths only.
    fn chooses(self, stmt: &Stmt) -> bool {
        match *stmt {
            Stmt::If { test, then, orelse } => {
                let arms = [then, orelse];
                let chooses =
                    || arms.iter().any(|&arm| self.places(arm)) && !arms.iter().any(|&arm| self.refuses(arm));
                self.asks(test) && chooses() || self.moves_a_module_sometimes(test, then, orelse)
            }
            Stmt::Assign { targets, value } => {
                self.asks(value)
                    || self.ir.list(targets).iter().any(|&target| self.is_moved_sometimes(target, value))
            }
            Stmt::AnnAssign { value: Some(value), .. } | Stmt::Return(Some(value)) => self.asks(value),
            // `print(torch.cuda.is_available())` reports the answer; `Trainer(cuda=torch.cuda.is_available())` uses it.
            Stmt::Expr(e) => {
                let Expr::Call(call) = self.ir.expr(e) else { return false };
                let keyword = |kind| matches!(kind, ArgKind::Keyword(_));
                self.ir.call(call).args.iter().any(|arg| keyword(arg.kind) && self.asks(arg.value))
            }
            _ => false,
        }
    }

    /// `def f(cuda=torch.cuda.is_available())`, or an object of a class for several accelerators
    fn is_default(self, e: ExprId) -> bool {
        let Expr::Call(call) = self.ir.expr(e) else { return false };
        let call = self.ir.call(call);
        match self.external(call.func) {
            Some(path) if without(path) == Some(Without::Availability) => {
                let functions = &self.ir.functions;
                functions.iter().any(|f| f.params.iter().any(|p| p.default == Some(e)))
            }
            Some(path) => torch::call(path).is_some_and(|fact| fact.chooses_device),
            None => false,
        }
    }

    /// Whether the expression tests for an accelerator.
    fn asks(self, e: ExprId) -> bool {
        self.within(e).any(|e| {
            let Expr::Call(call) = self.ir.expr(e) else { return false };
            match self.external(self.ir.call(call).func).and_then(without) {
                Some(Without::Availability) => true,
                Some(Without::Count) => self.is_compared_with_none(e),
                _ => false,
            }
        })
    }

    /// Whether a count is compared with 0, or used as a truth value.
    fn is_compared_with_none(self, count: ExprId) -> bool {
        let Some(around) = self.ir.parent(count) else { return false };
        match self.ir.expr(around) {
            Expr::Compare { left, op, right } => match self.ir.expr(if left == count { right } else { left })
            {
                Expr::Int(Whole(0)) => true,
                Expr::Int(Whole(1)) => matches!(op, CmpOp::GtE | CmpOp::Lt),
                _ => false,
            },
            Expr::And(_) | Expr::Or(_) | Expr::Unary { .. } => true,
            Expr::IfElse(choice) => self.ir.if_else(choice).test == count,
            _ => false,
        }
    }

    /// Whether the block places a value, or sets a flag that says where.
    fn places(self, block: Block) -> bool {
        self.ir.block(block).iter().any(|&s| {
            let span = self.ir.stmt_span(s);
            let all = self.ir.expr_spans.iter().enumerate();
            let placed = all.filter(|(_, at)| span.contains(**at)).any(|(n, _)| self.names_device(id(n)));
            placed || self.sets_flag(self.ir.stmt(s))
        })
    }

    /// `x.cuda()`, `x.to(…)`, `"cuda"`, `"cpu"`
    fn names_device(self, e: ExprId) -> bool {
        match self.ir.expr(e) {
            Expr::Str(s) => s.as_str().starts_with("cuda") || s.as_str() == "cpu",
            Expr::Call(call) => {
                let func = self.ir.call(call).func;
                matches!(self.ir.expr(func), Expr::Attr { name, .. } if matches!(name.as_str(), "cuda" | "to"))
            }
            _ => false,
        }
    }

    /// `use_cuda = False`, and not `torch.backends.cudnn.benchmark = True`
    fn sets_flag(self, stmt: &Stmt) -> bool {
        let Stmt::Assign { targets, value } = *stmt else { return false };
        let own = |&target: &ExprId| self.external(target).is_none();
        matches!(self.ir.expr(value), Expr::True | Expr::False | Expr::None)
            && self.ir.list(targets).iter().all(own)
    }

    /// `if flag: model.cuda()`, where the model is used either way
    fn moves_a_module_sometimes(self, test: ExprId, then: Block, orelse: Block) -> bool {
        [(then, orelse), (orelse, then)].into_iter().any(|(arm, other)| {
            if self.leaves(arm) || self.leaves(other) {
                return false;
            }
            let elsewhere = self.moved(other);
            self.moved(arm).into_iter().any(|target| {
                !elsewhere.iter().any(|&other| self.ir.names_the_same(other, target))
                    && !self.ir.asks_about(test, target)
                    && self.is_module(target)
            })
        })
    }

    /// `model = model.cuda() if flag else model`
    fn is_moved_sometimes(self, target: ExprId, value: ExprId) -> bool {
        let Expr::IfElse(choice) = self.ir.expr(value) else { return false };
        let choice = self.ir.if_else(choice);
        self.moves(choice.then) != self.moves(choice.orelse)
            && !self.ir.asks_about(choice.test, target)
            && self.is_module(target)
    }

    /// The targets that the block moves to CUDA on every path through it.
    fn moved(self, block: Block) -> Vec<ExprId> {
        let mut all = Vec::new();
        for &s in self.ir.block(block) {
            match *self.ir.stmt(s) {
                Stmt::Assign { targets, value } if self.moves(value) => all.extend(self.ir.list(targets)),
                // Only a module is moved in place.
                Stmt::Expr(e) if self.is_move(e) => all.extend(self.base(e)),
                Stmt::If { then, orelse, .. } => {
                    let other = self.moved(orelse);
                    let both = |t: &ExprId| other.iter().any(|&o| self.ir.names_the_same(o, *t));
                    all.extend(self.moved(then).into_iter().filter(both));
                }
                Stmt::With { body, .. } => all.extend(self.moved(body)),
                _ => {}
            }
        }
        all
    }

    fn moves(self, e: ExprId) -> bool {
        self.within(e).any(|e| self.is_move(e))
    }

    /// `x.cuda()`, `x.to("cuda")`
    fn is_move(self, e: ExprId) -> bool {
        let Expr::Call(call) = self.ir.expr(e) else { return false };
        let Call { func, args, .. } = self.ir.call(call);
        let Expr::Attr { name, .. } = self.ir.expr(func) else { return false };
        let cuda = |e| matches!(self.ir.expr(e), Expr::Str(s) if s.as_str().starts_with("cuda"));
        self.external(func).is_none()
            && (name.as_str() == "cuda"
                || name.as_str() == "to" && args.first().is_some_and(|arg| self.within(arg.value).any(cuda)))
    }

    /// The receiver of a method call.
    fn base(self, call: ExprId) -> Option<ExprId> {
        let Expr::Call(call) = self.ir.expr(call) else { return None };
        let Expr::Attr { base, .. } = self.ir.expr(self.ir.call(call).func) else { return None };
        Some(base)
    }

    /// Whether the file calls the value, uses a method that only modules have, or moves the value in place.
    fn is_module(self, named: ExprId) -> bool {
        self.ir.calls().any(|call| match self.ir.expr(call.func) {
            Expr::Attr { base, name } if self.ir.names_the_same(base, named) => OF_MODULES.has(name.as_str()),
            _ => self.ir.names_the_same(call.func, named),
        }) || self.ir.stmts.iter().any(|stmt| {
            matches!(*stmt, Stmt::Expr(e) if self.is_move(e)
                && self.base(e).is_some_and(|base| self.ir.names_the_same(base, named)))
        })
    }

    /// Whether control leaves the block without reaching the next statement.
    fn leaves(self, block: Block) -> bool {
        self.ir.block(block).last().is_some_and(|&s| {
            matches!(self.ir.stmt(s), Stmt::Return(_) | Stmt::Raise { .. } | Stmt::Continue | Stmt::Break)
        })
    }

    /// Whether the block raises, or exits the program.
    fn refuses(self, block: Block) -> bool {
        let ends = |func: ExprId| {
            self.ir.is_builtin(func, "exit")
                || self.external(func).is_some_and(|path| path.as_str() == "sys.exit")
        };
        self.ir.block(block).last().is_some_and(|&s| match *self.ir.stmt(s) {
            Stmt::Raise { .. } => true,
            Stmt::Expr(e) => matches!(self.ir.expr(e), Expr::Call(call) if ends(self.ir.call(call).func)),
            _ => false,
        })
    }

    /// The dotted name of an expression that refers to code outside the project.
    fn external(self, e: ExprId) -> Option<Sym> {
        match self.program.resolve_expr(self.module, e)? {
            Resolved::External(path) => Some(path),
            _ => None,
        }
    }

    fn within(self, e: ExprId) -> impl Iterator<Item = ExprId> {
        let all: Range<usize> = self.ir.exprs_in(e);
        all.map(id)
    }
}

/// What the function does without its accelerator.
fn without(path: Sym) -> Option<Without> {
    torch::call(path)?.accelerator.map(|call| call.without)
}

fn id(n: usize) -> ExprId {
    ExprId(u32::try_from(n).unwrap_or(u32::MAX))
}
