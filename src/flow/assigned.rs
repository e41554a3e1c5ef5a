//! Which attributes methods assign.

use rayon::prelude::*;

use crate::ir::{Block, Expr, ExprId, FuncId, Module, Stmt};
use crate::link::{ModIdx, Program};
use crate::sym::Sym;

/// For each file and function, the names of the attributes that its statements assign, nested blocks included.
#[derive(Debug, Default)]
pub struct Assigned(Vec<Vec<Box<[Sym]>>>);

impl Assigned {
    /// Looks at every method of the program, on the current thread pool.
    pub fn of(program: &Program) -> Self {
        let of_file = |ir: &Module| {
            let of_function = |f: &crate::ir::Function| {
                let mut names = Vec::new();
                if f.class.is_some() {
                    collect(ir, f.body, &mut names);
                }
                names.into_boxed_slice()
            };
            ir.functions.iter().map(of_function).collect()
        };
        Self(program.modules.par_iter().map(|m| of_file(&m.ir)).collect())
    }

    /// The names that a method assigns.
    pub fn by(&self, module: ModIdx, func: FuncId) -> &[Sym] {
        self.0.get(module.0 as usize).and_then(|m| m.get(func.0 as usize)).map_or(&[], |names| names)
    }
}

fn collect(ir: &Module, block: Block, names: &mut Vec<Sym>) {
    let mut target = |t: ExprId| {
        if let Expr::Attr { name, .. } = ir.expr(t)
            && !names.contains(&name)
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
        collect(ir, block, names);
    }
}
