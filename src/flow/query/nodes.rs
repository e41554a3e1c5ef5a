//! The functions and classes that code mentions. A class stands for everything in it.

use crate::ir::{Expr, ExprId, FuncId, FuncKind, Module};
use crate::link::{ClassKey, ModIdx, Program, Resolved};
use crate::span::Place;

/// A function of the project.
pub type Target = (ModIdx, FuncId);

/// What code mentions: a function of a file, or a class.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Node {
    Function(ModIdx, FuncId),
    Class(ClassKey),
}

/// The outermost function around the function, or the class that it is a method of; `None` for a file's body.
pub(crate) fn node_of(ir: &Module, module: ModIdx, mut f: FuncId) -> Option<Node> {
    let mut node = None;
    while f != FuncId(0) {
        let function = ir.function(f);
        node = Some(match (function.kind, function.class) {
            (FuncKind::ClassBody, Some(class)) => Node::Class(ClassKey { module, class }),
            _ => Node::Function(module, f),
        });
        f = function.parent?;
    }
    node
}

/// The function or class of the project that a name refers to.
pub(crate) fn node(resolved: Resolved) -> Option<Node> {
    match resolved {
        Resolved::Function(m, f) => Some(Node::Function(m, f)),
        Resolved::Class(key) => Some(Node::Class(key)),
        Resolved::Module(_) | Resolved::Variable(..) | Resolved::External(_) => None,
    }
}

/// The function or class of the project that an expression refers to.
pub(crate) fn named(program: &Program, m: ModIdx, e: ExprId) -> Option<Node> {
    match program.get(m).ir.expr(e) {
        Expr::Var(_) | Expr::Attr { .. } => node(program.resolve_expr(m, e)?),
        _ => None,
    }
}

/// The innermost named function around a place.
pub fn function_at(program: &Program, place: Place) -> Option<Target> {
    let m = program.module_of(place.file)?;
    let ir = &program.get(m).ir;
    let around = ir.functions_around(place.span).filter(|&f| ir.function(f).kind == FuncKind::Function);
    Some((m, around.last()?))
}

/// The outermost named function around an expression; `None` for a file's body.
pub(crate) fn outermost(ir: &Module, e: ExprId) -> Option<FuncId> {
    let (mut f, mut found) = (ir.function_around(e), None);
    while f != FuncId(0) {
        if ir.function(f).kind == FuncKind::Function {
            found = Some(f);
        }
        f = ir.function(f).parent?;
    }
    found
}
