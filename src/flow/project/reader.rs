//! The mentions in a file: the edges of the call graph that begin there.

use rustc_hash::FxHashMap;

use crate::flow::project::call_graph::{Kind, Mention, Node};
use crate::flow::query::nodes::node;
use crate::ir::{CallId, ClassId, Expr, ExprId, ExprSet, FuncId, Module, Slot, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Program, Resolved};
use crate::sym::Sym;
use crate::work::spend;

/// The mentions in the file by names that resolve.
pub(super) fn mentions(program: &Program, m: ModIdx) -> Vec<(Node, Mention)> {
    let mut reader = Reader::of(program, m);
    reader.names();
    reader.bases();
    reader.found
}

/// The attributes of unresolved objects in a file that have the name of a method.
pub(super) fn attributes(program: &Program, m: ModIdx) -> Vec<(Sym, Mention)> {
    let ir = &program.get(m).ir;
    let called = called(ir);
    let mut found = Vec::new();
    for e in exprs(ir) {
        let Expr::Attr { name, .. } = ir.expr(e) else { continue };
        if program.names_method(name) && !ir.silent().contains(e) && program.resolve_expr(m, e).is_none() {
            let kind = called[e.0 as usize].map_or(Kind::Reference, Kind::Call);
            found.push((name, Mention { module: m, expr: e, kind }));
        }
    }
    found
}

fn exprs(ir: &Module) -> impl Iterator<Item = ExprId> {
    spend(ir.exprs.len());
    (0..u32::try_from(ir.exprs.len()).unwrap_or(u32::MAX)).map(ExprId)
}

/// For each expression, the call that has it as its callee.
fn called(ir: &Module) -> Vec<Option<CallId>> {
    let mut called = vec![None; ir.exprs.len()];
    for (n, call) in (0..).zip(ir.calls()) {
        called[call.func.0 as usize] = Some(CallId(n));
    }
    called
}

struct Reader<'a> {
    program: &'a Program,
    module: ModIdx,
    ir: &'a Module,
    found: Vec<(Node, Mention)>,
}

impl<'a> Reader<'a> {
    fn of(program: &'a Program, module: ModIdx) -> Self {
        Self { program, module, ir: &program.get(module).ir, found: Vec::new() }
    }

    /// Collects names and dotted names in all expressions.
    fn names(&mut self) {
        let (ir, m) = (self.ir, self.module);
        let (skipped, called) = (self.skipped(), called(ir));
        let (entries, several) = (entries(ir), self.program.bound_by_several(m));
        for e in exprs(ir) {
            let (Expr::Var(_) | Expr::Attr { .. }) = ir.expr(e) else { continue };
            if skipped.contains(e) {
                continue;
            }
            let first = self.meant(e);
            // Code that reads the table runs an object in it. A function call in the table's definition is run by the file.
            let kind = match (called[e.0 as usize], entries.get(&e)) {
                (Some(call), None) => Kind::Call(call),
                (Some(call), _) if matches!(first, Some(Node::Function(..))) => Kind::Call(call),
                (_, Some(&slot)) => Kind::Entry(slot),
                (None, None) => Kind::Reference,
            };
            let mention = Mention { module: m, expr: e, kind };
            self.found.extend(first.map(|node| (node, mention)));
            if !several.is_empty() {
                let others = self.program.other_imports(m, e, &several).into_iter().filter_map(node);
                let others = others.map(Node::from).filter(|&other| Some(other) != first);
                self.found.extend(others.map(|node| (node, mention)));
            }
        }
    }

    /// What a name refers to: a function, a class, or a variable at the top of a file.
    fn meant(&self, e: ExprId) -> Option<Node> {
        let resolved = self.program.resolve_expr(self.module, e)?;
        match resolved {
            Resolved::Variable(m, slot) => Some(Node::Table(m, slot)),
            _ => node(resolved).map(Node::from),
        }
    }

    /// A base class's methods run on instances of its subclasses, so each subclass mentions its bases.
    fn bases(&mut self) {
        for (n, info) in self.program.get(self.module).classes.iter().enumerate() {
            let class = ClassId(u32::try_from(n).unwrap_or(u32::MAX));
            let key = ClassKey { module: self.module, class };
            let mention = Mention { module: self.module, expr: ExprId(0), kind: Kind::Base(class) };
            let bases = info.mro.iter().filter(|&&base| base != key);
            self.found.extend(bases.map(|&base| (Node::Class(base), mention)));
        }
    }

    /// Mentions that run nothing: annotations, targets of assignments, and `Op` in `Op.KINDS` if the class attribute is a literal.
    fn skipped(&self) -> ExprSet {
        let ir = self.ir;
        let mut skipped = ir.silent().clone();
        skipped.extend(assigned(ir).chain(filled(ir)));
        skipped.extend(exprs(ir).filter_map(|e| {
            let Expr::Attr { base, .. } = ir.expr(e) else { return None };
            let (m, value) = self.program.bound_in_class(self.module, e)?;
            let value = self.program.get(m).ir.expr(value);
            let plain = matches!(
                value,
                Expr::Str(_) | Expr::Int(_) | Expr::Tuple(_) | Expr::List(_) | Expr::Set(_) | Expr::Dict(_)
            );
            plain.then_some(base)
        }));
        skipped
    }
}

/// The targets of assignments.
fn assigned(ir: &Module) -> impl Iterator<Item = ExprId> + '_ {
    let targets = |stmt: &Stmt| match *stmt {
        Stmt::Assign { targets, .. } => Some(targets),
        _ => None,
    };
    ir.stmts.iter().filter_map(targets).flat_map(|targets| ir.list(targets).iter().copied())
}

/// `table` of `table[name] = f`.
fn filled(ir: &Module) -> impl Iterator<Item = ExprId> + '_ {
    assigned(ir).filter_map(|t| match ir.expr(t) {
        Expr::Index { base, .. } => Some(base),
        _ => None,
    })
}

/// The tables at the top of a file: for each expression in one, the table's variable. Example: `{"plain": Matcher}`.
pub(crate) fn entries(ir: &Module) -> FxHashMap<ExprId, Slot> {
    let mut found = FxHashMap::default();
    for &s in ir.block(ir.function(FuncId(0)).body) {
        let (target, value) = match *ir.stmt(s) {
            Stmt::Assign { targets, value } => match *ir.list(targets) {
                [target] => (target, value),
                _ => continue,
            },
            Stmt::AnnAssign { target, value: Some(value), .. } => (target, value),
            _ => continue,
        };
        if let (Expr::Var(Var::Local(slot)), Expr::Dict(_) | Expr::List(_) | Expr::Tuple(_)) =
            (ir.expr(target), ir.expr(value))
        {
            found.extend(ir.exprs_in(value).map(|n| (ExprId(u32::try_from(n).unwrap_or(u32::MAX)), slot)));
        }
    }
    found
}
