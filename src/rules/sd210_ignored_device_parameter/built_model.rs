//! SD210 ignored-device-parameter: a function takes a device, constructs a model and returns it without a move.

use crate::finding::Finding;
use crate::flow::is_module_class;
use crate::ir::{ArgKind, Expr, ExprId, Function, Module, Param, Slot, Stmt, Var};
use crate::link::{ModIdx, Resolved};
use crate::rules::shared::code::quotable;
use crate::rules::shared::file::File;
use crate::sym::Sym;
use crate::torch::{self, State};

/// Names of functions that move a model, or that leave the move to other code.
const MOVES: &[&str] = &["to", "cuda", "cpu", "to_empty", "to_device", "prepare", "DataParallel"];

/// SD210 for `def load_model(config, device): model = build(config); …; return model`. Also if the device is only the target of a load: the
/// loaded weights are copied to the model's device.
pub(super) fn left_where_made(file: &File<'_>, function: &Function, param: &Param) -> Option<Finding> {
    let private = function.name.as_str().starts_with('_');
    if param.name.as_str() != "device"
        || private
        || moves(file.ir, function)
        || is_handed_over(file, function)
    {
        return None;
    }
    let uses: Vec<ExprId> = uses(file, function, param).collect();
    if !uses.iter().all(|&e| says_where_to_load(file, function, e)) {
        return None;
    }
    let maker = Maker { file, module: file.module, function, depth: 0 };
    let given_back: Vec<_> = returned(file.ir, function).into_iter().map(|e| maker.made(e)).collect();
    let at = match &*given_back {
        &[made] => made?,
        // A caller that passes the target of a load expects the model there too.
        _ if !uses.is_empty() => given_back.iter().find_map(|&made| made)?,
        _ => return None,
    };
    let (name, given) = (function.name, param.name);
    let message = if uses.is_empty() {
        format!("`{name}` does not use its parameter `{given}`: this model is made on the CPU")
    } else {
        format!("`{name}` loads the weights to `{given}`, but returns this model on the CPU")
    };
    let at = file.ir.span(at);
    let found = file.parameter_finding(at, message, "on the CPU", function.name_span);
    let moved = quotable(format!("{}.to({given})", file.text_of(at)));
    let moved = moved.unwrap_or_else(|| format!(".to({given})"));
    Some(found.help(format!("move the model: `{moved}`")))
}

/// The places where the function names its parameter.
fn uses<'a>(
    file: &'a File<'_>,
    function: &'a Function,
    param: &'a Param,
) -> impl Iterator<Item = ExprId> + 'a {
    (function.exprs.start..function.exprs.end).map(ExprId).filter(|&e| match file.ir.expr(e) {
        Expr::Var(Var::Local(slot) | Var::Enclosing { slot, .. }) => slot == param.slot,
        Expr::Var(Var::Unbound(name)) => matches!(name.as_str(), "locals" | "super" | "__class__"),
        _ => false,
    })
}

/// `torch.load(path, map_location=device)`
fn says_where_to_load(file: &File<'_>, function: &Function, e: ExprId) -> bool {
    file.inside(function).any(|(_, call, _)| {
        let Expr::Call(id) = call else { return false };
        let call = file.ir.call(id);
        let loads = match file.cx.program.resolve_expr(file.module, call.func) {
            Some(Resolved::External(path)) => {
                matches!(
                    path.as_str(),
                    "torch.load" | "torch.hub.load_state_dict_from_url" | "torch.utils.model_zoo.load_url"
                )
            }
            // A method of Lightning, also on a class of the project.
            _ => file.ir.last_name(call.func).is_some_and(|name| name.as_str() == "load_from_checkpoint"),
        };
        loads
            && call.args.iter().enumerate().any(|(n, a)| {
                a.value == e
                    && match a.kind {
                        ArgKind::Keyword(name) => name.as_str() == "map_location",
                        _ => n == 1,
                    }
            })
    })
}

/// Does the function move anything, or leave the move to other code?
fn moves(ir: &Module, function: &Function) -> bool {
    ir.exprs[ir.exprs_of(function)].iter().any(|e| match *e {
        Expr::Attr { name, .. } => MOVES.contains(&name.as_str()),
        _ => false,
    })
}

/// The values that it returns.
fn returned(ir: &Module, function: &Function) -> Vec<ExprId> {
    let stmts = ir.stmts[ir.stmts_of(function)].iter();
    stmts.filter_map(|s| if let Stmt::Return(Some(e)) = *s { Some(e) } else { None }).collect()
}

/// Does its file use the function as a value, as in `register("add", build_add)`? Then all registered functions must have its parameters.
fn is_handed_over(file: &File<'_>, function: &Function) -> bool {
    let ir = file.ir;
    // To find out which variable a name is takes longer than to compare numbers.
    let is_it = |&(_, name): &(usize, &Sym)| *name == function.name;
    let all = ir.functions.iter().flat_map(|f| f.slots.iter().enumerate());
    let slots: Vec<usize> = all.filter(is_it).map(|(slot, _)| slot).collect();
    (0..).map(ExprId).zip(&ir.exprs).any(|(e, &expr)| match expr {
        Expr::Str(text) => text == function.name,
        Expr::Var(Var::Local(slot) | Var::Global(slot)) => {
            slots.contains(&usize::from(slot))
                && ir.variable_of(e) == Some(function.name)
                && !ir.calls().any(|call| call.func == e)
                && matches!(file.cx.program.resolve_expr(file.module, e), Some(Resolved::Function(..)))
        }
        Expr::Var(Var::Unbound(name)) => {
            name == function.name
                && !ir.calls().any(|call| call.func == e)
                && matches!(file.cx.program.resolve_expr(file.module, e), Some(Resolved::Function(..)))
        }
        _ => false,
    })
}

/// A function that constructs modules, with its file.
struct Maker<'a> {
    file: &'a File<'a>,
    module: ModIdx,
    function: &'a Function,
    depth: u32,
}

impl<'a> Maker<'a> {
    fn ir(&self) -> &'a Module {
        &self.file.cx.program.get(self.module).ir
    }

    /// The call that constructs this module. If there are several, the last one.
    fn made(&self, e: ExprId) -> Option<ExprId> {
        let ir = self.ir();
        match ir.expr(e) {
            Expr::Var(Var::Local(slot)) => {
                let values = self.assigned(slot);
                let builds = !values.is_empty() && values.iter().all(|&v| self.builds(v));
                values.last().copied().filter(|_| builds)
            }
            // `model.eval()`
            Expr::Call(id) => match ir.expr(ir.call(id).func) {
                Expr::Attr { base, name } if matches!(name.as_str(), "eval" | "train" | "requires_grad_") => {
                    self.made(base)
                }
                _ => self.builds(e).then_some(e),
            },
            _ => None,
        }
    }

    /// The values that the function assigns to a variable.
    fn assigned(&self, slot: Slot) -> Vec<ExprId> {
        let ir = self.ir();
        let is_it = |&t: &ExprId| ir.expr(t) == Expr::Var(Var::Local(slot));
        let stmts = ir.stmts[ir.stmts_of(self.function)].iter();
        stmts
            .filter_map(|s| match *s {
                Stmt::Assign { targets, value } if ir.list(targets).iter().any(is_it) => Some(value),
                Stmt::AnnAssign { target, value: Some(value), .. } if is_it(&target) => Some(value),
                _ => None,
            })
            .collect()
    }

    /// Does the call construct a module with weights, directly or through a function that does only that?
    fn builds(&self, e: ExprId) -> bool {
        let (program, ir) = (self.file.cx.program, self.ir());
        let Expr::Call(id) = ir.expr(e) else { return false };
        match program.resolve_expr(self.module, ir.call(id).func) {
            Some(Resolved::Class(key)) => {
                let info = program.class(key);
                let moved = |&path: &Sym| torch::base_class(path).is_some_and(|b| b.moves_for_user);
                let moves_itself = program.find_method(key, Sym::new("__init__")).is_some_and(|(m, f)| {
                    let ir = &program.get(m).ir;
                    moves(ir, ir.function(f))
                });
                !info.unknown_base
                    && is_module_class(program, key)
                    && !info.externals.iter().any(moved)
                    && !moves_itself
            }
            Some(Resolved::External(path)) => {
                torch::module(path).is_some_and(|op| op.state != State::No) && !ir.call(id).args.is_empty()
            }
            Some(Resolved::Function(module, f)) if self.depth == 0 => {
                let ir = &program.get(module).ir;
                let function = ir.function(f);
                let inner = Maker { file: self.file, module, function, depth: 1 };
                let given_back = returned(ir, function);
                !moves(ir, function)
                    && !given_back.is_empty()
                    && given_back.into_iter().all(|e| inner.made(e).is_some())
            }
            _ => false,
        }
    }
}
