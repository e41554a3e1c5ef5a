//! Options whose text is used as a device: the user of the program chooses with them.
//!
//! Names are followed, not objects. `--where` is used as a device if a variable or attribute called `where` is passed where a device is
//! expected. An assignment to such a name counts as well.

use rustc_hash::FxHashSet;

use crate::ir::{ArgKind, Call, Expr, ExprId, FuncKind, Module, Stmt};
use crate::link::{ModIdx, Program, Resolved};
use crate::sym::Sym;
use crate::words::Words;

/// Arguments of an option that does not take one text.
static NOT_ONE_TEXT: Words = Words::of("options without one text");

/// What the files say about options and devices.
#[derive(Default)]
pub(super) struct Options {
    /// The names under which the texts of options are stored.
    texts: FxHashSet<Sym>,
    /// The names that are passed where a device is expected.
    devices: FxHashSet<Sym>,
    /// Assignments between names: (target, source).
    assigned: Vec<(Sym, Sym)>,
    /// Whether an entry of a configuration is used as a device: `x.to(config["device"])`.
    configured: bool,
}

impl Options {
    /// Adds the facts of a file.
    pub(super) fn add(&mut self, program: &Program, module: ModIdx) {
        let ir = &program.get(module).ir;
        for call in ir.calls() {
            self.texts.extend(option(ir, call));
            for device in devices(program, module, call) {
                self.configured |= is_entry(ir, device);
                self.devices.extend(ir.last_name(device));
            }
        }
        for stmt in &ir.stmts {
            let Stmt::Assign { targets, value } = *stmt else { continue };
            if let Some(from) = ir.last_name(value) {
                let named = ir.list(targets).iter().filter_map(|&t| ir.last_name(t));
                self.assigned.extend(named.map(|to| (to, from)));
            }
        }
        self.texts.extend(fields(ir));
    }

    /// Whether the text of an option is used as a device.
    pub(super) fn name_devices(mut self) -> bool {
        // A fixpoint: each round adds a name, or is the last.
        loop {
            let known = self.devices.len();
            for &(to, from) in &self.assigned {
                if self.devices.contains(&to) {
                    self.devices.insert(from);
                }
            }
            if self.devices.len() == known {
                break;
            }
        }
        self.configured || !self.texts.is_disjoint(&self.devices)
    }
}

/// The name under which `argparse` and `click` store the text of an option: <https://docs.python.org/3/library/argparse.html#dest>. Flags
/// and numbers are not texts.
fn option(ir: &Module, call: Call<'_>) -> Option<Sym> {
    let text = |e: ExprId| match ir.expr(e) {
        Expr::Str(s) => Some(s),
        _ => None,
    };
    let names =
        call.args.iter().filter(|arg| arg.kind == ArgKind::Positional).filter_map(|arg| text(arg.value));
    let name = names.filter_map(|name| name.as_str().strip_prefix("--")).next()?;
    let keyword = |wanted: &str| {
        let arg =
            call.args.iter().find(|arg| matches!(arg.kind, ArgKind::Keyword(k) if k.as_str() == wanted));
        arg.map(|arg| arg.value)
    };
    let number = keyword("type").is_some_and(|t| ir.is_builtin(t, "int") || ir.is_builtin(t, "bool"))
        || keyword("default").is_some_and(|d| matches!(ir.expr(d), Expr::Int(_) | Expr::True | Expr::False));
    let flag = NOT_ONE_TEXT.all().iter().any(|name| keyword(name).is_some());
    let only_cuda = keyword("choices").is_some_and(|choices| {
        let (Expr::List(list) | Expr::Tuple(list)) = ir.expr(choices) else { return false };
        ir.list(list).iter().all(|&e| text(e).is_some_and(|s| s.as_str().starts_with("cuda")))
    });
    if number || flag || only_cuda {
        return None;
    }
    keyword("dest").and_then(text).or_else(|| Some(Sym::new(&name.replace('-', "_"))))
}

/// The arguments that the call uses as devices: `x.to(here)`, `torch.device(here)`, `f(device=here)`.
fn devices(program: &Program, module: ModIdx, call: Call<'_>) -> Vec<ExprId> {
    let ir = &program.get(module).ir;
    let first = || call.args.first().filter(|arg| arg.kind == ArgKind::Positional).map(|arg| arg.value);
    let external = program.resolve_expr(module, call.func);
    let is_device = matches!(external, Some(Resolved::External(path)) if path.as_str() == "torch.device");
    let is_move = matches!(ir.expr(call.func), Expr::Attr { name, .. } if name.as_str() == "to");
    let keyword = |kind: ArgKind| matches!(kind, ArgKind::Keyword(name) if name.as_str() == "device");
    let named = call.args.iter().filter(|arg| keyword(arg.kind)).map(|arg| arg.value);
    named.chain(first().filter(|_| is_device || is_move)).collect()
}

/// `config["device"]`
fn is_entry(ir: &Module, e: ExprId) -> bool {
    matches!(ir.expr(e), Expr::Index { index, .. } if matches!(ir.expr(index), Expr::Str(_)))
}

/// The fields of data classes that hold a text: `device: str = "cuda"`. Argument parsers that use such classes make options of them.
fn fields(ir: &Module) -> Vec<Sym> {
    let bodies = ir.functions.iter().filter(|f| f.kind == FuncKind::ClassBody);
    let stmts = bodies.flat_map(|f| &ir.stmts[ir.stmts_of(f)]);
    let field = |stmt: &Stmt| match *stmt {
        Stmt::AnnAssign { target, value: Some(value), .. } if matches!(ir.expr(value), Expr::Str(_)) => {
            ir.variable_of(target)
        }
        _ => None,
    };
    stmts.filter_map(field).collect()
}
