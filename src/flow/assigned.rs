//! Which attributes methods assign.

use rayon::prelude::*;

use crate::ir::{Block, Expr, ExprId, FuncId, Module, Stmt, Var};
use crate::link::{ModIdx, Program};
use crate::sym::Sym;

/// What functions assign besides their own variables.
#[derive(Debug, Default)]
pub struct Assigned {
    /// For each file and function, the names of the attributes that its statements assign, nested blocks included.
    attributes: Vec<Vec<Box<[Sym]>>>,
    /// The same, of the object that a method belongs to alone.
    own: Vec<Vec<Box<[Sym]>>>,
}

impl Assigned {
    /// Looks at every method of the program, on the current thread pool.
    pub fn of(program: &Program) -> Self {
        let of_file = |ir: &Module, own: bool| {
            let of_function = |f: &crate::ir::Function| {
                let mut names = Vec::new();
                let receiver = f.params.first().map(|p| Expr::Var(Var::Local(p.slot)));
                if f.class.is_some() {
                    collect(ir, f.body, &|base| !own || Some(ir.expr(base)) == receiver, &mut names);
                }
                names.into_boxed_slice()
            };
            ir.functions.iter().map(of_function).collect()
        };
        Self {
            attributes: program.modules.par_iter().map(|m| of_file(&m.ir, false)).collect(),
            own: program.modules.par_iter().map(|m| of_file(&m.ir, true)).collect(),
        }
    }

    /// The names that a method assigns.
    pub fn by(&self, module: ModIdx, func: FuncId) -> &[Sym] {
        self.attributes.get(module.0 as usize).and_then(|m| m.get(func.0 as usize)).map_or(&[], |names| names)
    }

    /// The names that a method assigns to attributes of its own object.
    pub fn to_self(&self, module: ModIdx, func: FuncId) -> &[Sym] {
        self.own.get(module.0 as usize).and_then(|m| m.get(func.0 as usize)).map_or(&[], |names| names)
    }
}

fn collect(ir: &Module, block: Block, of: &dyn Fn(ExprId) -> bool, names: &mut Vec<Sym>) {
    let mut target = |t: ExprId| {
        if let Expr::Attr { base, name } = ir.expr(t)
            && !names.contains(&name)
            && of(base)
        {
            names.push(name);
        }
    };
    let mut inner = Vec::new();
    for &s in ir.block(block) {
        match ir.stmt(s) {
            Stmt::Assign { targets, .. } => ir.list(*targets).iter().for_each(|&t| target(t)),
            Stmt::AugAssign { target: t, .. } | Stmt::AnnAssign { target: t, value: Some(_), .. } => {
                target(*t)
            }
            Stmt::If { then, orelse, .. } => inner.extend([*then, *orelse]),
            Stmt::For { body, orelse, .. } | Stmt::While { body, orelse, .. } => {
                inner.extend([*body, *orelse])
            }
            Stmt::With { body, .. } => inner.push(*body),
            Stmt::Try { body, handlers, orelse, finally } => {
                inner.extend([*body, *orelse, *finally]);
                inner.extend(handlers.iter().map(|h| h.body));
            }
            _ => {}
        }
    }
    for block in inner {
        collect(ir, block, of, names);
    }
}
