//! The attributes that methods assign.

use crate::ir::{Block, Expr, ExprId, FuncId, Function, Module, Stmt, Var};
use crate::link::ModIdx;
use crate::reads;
use crate::sym::Sym;

/// For each function of a file, a list of names.
pub(crate) type Lists = Vec<Box<[Sym]>>;

/// The attributes that methods assign.
#[derive(Debug, Default)]
pub struct Assigned {
    /// For each file and function, the names of the attributes that its statements assign, nested blocks included.
    attributes: Vec<Lists>,
    /// The same, but only attributes of the method's receiver.
    own: Vec<Lists>,
}

impl Assigned {
    /// Combines the results of [`of_file`] for every file, in order.
    pub(crate) fn of(files: Vec<(Lists, Lists)>) -> Self {
        let (attributes, own) = files.into_iter().unzip();
        Self { attributes, own }
    }

    /// The names of the attributes that a method assigns, on any object.
    pub fn by(&self, module: ModIdx, func: FuncId) -> &[Sym] {
        reads::note(module.0);
        self.attributes.get(module.0 as usize).and_then(|m| m.get(func.0 as usize)).map_or(&[], |names| names)
    }

    /// The names of the attributes that a method assigns on its receiver.
    pub fn to_self(&self, module: ModIdx, func: FuncId) -> &[Sym] {
        reads::note(module.0);
        self.own.get(module.0 as usize).and_then(|m| m.get(func.0 as usize)).map_or(&[], |names| names)
    }
}

/// For every method of a file: the names of the attributes that it assigns, and those on its receiver.
pub(crate) fn of_file(ir: &Module) -> (Lists, Lists) {
    let of_function = |f: &Function| {
        let mut names = Names::default();
        if f.class.is_some() {
            let receiver = f.params.first().map(|p| Expr::Var(Var::Local(p.slot)));
            collect(ir, f.body, receiver, &mut names);
        }
        (names.all.into_boxed_slice(), names.own.into_boxed_slice())
    };
    ir.functions.iter().map(of_function).unzip()
}

/// Names of attributes, in order of first assignment.
#[derive(Default)]
struct Names {
    all: Vec<Sym>,
    /// Those on the method's receiver.
    own: Vec<Sym>,
}

impl Names {
    fn target(&mut self, ir: &Module, t: ExprId, receiver: Option<Expr>) {
        let Expr::Attr { base, name } = ir.expr(t) else { return };
        if !self.all.contains(&name) {
            self.all.push(name);
        }
        if Some(ir.expr(base)) == receiver && !self.own.contains(&name) {
            self.own.push(name);
        }
    }
}

fn collect(ir: &Module, block: Block, receiver: Option<Expr>, names: &mut Names) {
    let statements = ir.block(block);
    for &s in statements {
        match ir.stmt(s) {
            Stmt::Assign { targets, .. } => {
                ir.list(*targets).iter().for_each(|&t| names.target(ir, t, receiver))
            }
            Stmt::AugAssign { target, .. } | Stmt::AnnAssign { target, value: Some(_), .. } => {
                names.target(ir, *target, receiver)
            }
            _ => {}
        }
    }
    let mut below = |block: Block| collect(ir, block, receiver, names);
    for &s in statements {
        match ir.stmt(s) {
            Stmt::If { then, orelse, .. } => [*then, *orelse].into_iter().for_each(&mut below),
            Stmt::For { body, orelse, .. } | Stmt::While { body, orelse, .. } => {
                [*body, *orelse].into_iter().for_each(&mut below)
            }
            Stmt::With { body, .. } => below(*body),
            Stmt::Try { body, handlers, orelse, finally } => {
                [*body, *orelse, *finally].into_iter().for_each(&mut below);
                ir.handlers(*handlers).iter().for_each(|h| below(h.body));
            }
            _ => {}
        }
    }
}
