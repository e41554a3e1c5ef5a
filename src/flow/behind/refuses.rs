//! Where functions refuse to go on without CUDA.

use rustc_hash::FxHashMap;

use super::{MOVE, Node, named};
use crate::ir::{
    Arg, ArgKind, Block, Call, Expr, ExprId, FuncId, FuncKind, Import, Module, Stmt, StmtId, UnaryOp, Var,
};
use crate::link::{ModIdx, Program, Resolved, Target};
use crate::span::Span;
use crate::sym::Sym;
use crate::torch::{self, Accelerator, Without};

/// How often calls of what refuses are followed.
const MAX_ROUNDS: usize = 4;

/// How a function refuses to go on without CUDA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// Whoever calls it.
    Always,
    /// Unless the caller gives something for this parameter.
    Unless(Sym),
}

/// A refusal within a function: from where on it holds, and whether callers are held up, too.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) after: u32,
    pub(super) refusal: Option<Refusal>,
}

/// The first refusal of each function.
pub(super) type Points = FxHashMap<(ModIdx, FuncId), Point>;

/// Looks for the first refusal of each function of these files, and of the files' bodies.
pub(super) fn points(program: &Program, files: &[ModIdx], uses: bool) -> Points {
    let mut points = Points::default();
    for _ in 0..MAX_ROUNDS {
        let before = points.len();
        for &m in files {
            let ir = &program.get(m).ir;
            for n in 0..ir.functions.len() {
                let f = FuncId(u32::try_from(n).unwrap_or(u32::MAX));
                if points.contains_key(&(m, f)) {
                    continue;
                }
                let refuses = Refuses { program, module: m, func: f, known: &points, uses };
                if let Some(point) = refuses.block(ir.function(f).body) {
                    points.insert((m, f), point);
                }
            }
        }
        if points.len() == before {
            break;
        }
    }
    points
}

/// Can the file not be imported without CUDA?
pub(super) fn at_import(points: &Points, m: ModIdx) -> bool {
    points.get(&(m, FuncId(0))).is_some_and(|p| p.refusal == Some(Refusal::Always))
}

/// The places of a file that come after a refusal, to the end of its block, and the branches for machines with CUDA; all
/// functions of a file that cannot be imported without it.
pub(super) fn there(program: &Program, m: ModIdx, known: &Points, uses: bool) -> Vec<Span> {
    let ir = &program.get(m).ir;
    let mut found = Vec::new();
    for (n, function) in ir.functions.iter().enumerate() {
        let func = FuncId(u32::try_from(n).unwrap_or(u32::MAX));
        if function.kind == FuncKind::Function && at_import(known, m) {
            found.push(function.span);
        } else {
            // A script that needs CUDA says so itself; what it works with has its own reasons.
            let uses = uses && func != FuncId(0);
            Refuses { program, module: m, func, known, uses }.there(function.body, &mut found);
        }
    }
    found
}

/// The look for a refusal in one function.
struct Refuses<'a> {
    program: &'a Program,
    module: ModIdx,
    func: FuncId,
    known: &'a Points,
    /// A constructor that needs CUDA refuses as well, and so does the body of a class or file.
    uses: bool,
}

impl Refuses<'_> {
    fn ir(&self) -> &Module {
        &self.program.get(self.module).ir
    }

    /// The first statement of the block that is not passed without CUDA.
    fn block(&self, block: Block) -> Option<Point> {
        self.ir().block(block).iter().find_map(|&s| self.stmt(s))
    }

    fn stmt(&self, s: StmtId) -> Option<Point> {
        let after = self.ir().stmt_span(s).end;
        let point = |refusal| Some(Point { after, refusal });
        match *self.ir().stmt(s) {
            Stmt::Assert { test, .. } if self.asks(test) => point(Some(Refusal::Always)),
            Stmt::Expr(e) | Stmt::Assign { value: e, .. } | Stmt::Return(Some(e))
                if self.calls_refusal(e) || self.uses(e) =>
            {
                point(Some(Refusal::Always))
            }
            Stmt::Import(names) if self.ir().imported(names).iter().any(|i| self.imports_refusal(i)) => {
                point(Some(Refusal::Always))
            }
            // Its body runs where it stands.
            Stmt::Class(class, _) => {
                let func = self.ir().class(class).body;
                let body = Refuses { func, ..*self }.block(self.ir().function(func).body);
                body.and_then(|p| point(p.refusal))
            }
            Stmt::With { ref items, body } => {
                let entered = items.iter().any(|&(e, _)| self.calls_refusal(e));
                if entered { point(Some(Refusal::Always)) } else { self.block(body) }
            }
            Stmt::If { test, then, orelse } => {
                let left = match self.ir().expr(test) {
                    Expr::Unary { op: UnaryOp::Not, operand } if self.asks(operand) => self.leaves(then),
                    _ if self.asks(test) => self.leaves(orelse),
                    // Who imports the file does not come to it.
                    _ if self.is_script(test) => {
                        return self.block(then).map(|p| Point { refusal: None, ..p });
                    }
                    _ => None,
                };
                match left {
                    Some(for_callers) => point(for_callers.then_some(Refusal::Always)),
                    None => self.by_default(test).and_then(|param| {
                        let inner = self.block(then)?;
                        (inner.refusal == Some(Refusal::Always))
                            .then_some(Point { after, refusal: Some(Refusal::Unless(param)) })
                    }),
                }
            }
            _ => None,
        }
    }

    /// Adds the places of the block, and of those in it, that are only reached where CUDA is.
    fn there(&self, block: Block, found: &mut Vec<Span>) {
        let ir = self.ir();
        let statements = ir.block(block);
        let Some(&last) = statements.last() else { return };
        for &s in statements {
            for inner in blocks(ir, ir.stmt(s)) {
                self.there(inner, found);
            }
            if let Stmt::If { test, then, orelse } = *ir.stmt(s) {
                let branch = match ir.expr(test) {
                    Expr::Unary { op: UnaryOp::Not, operand } => self.asks(operand).then_some(orelse),
                    _ => self.asks(test).then_some(then),
                };
                found.extend(branch.and_then(|b| {
                    let (first, last) = (ir.block(b).first()?, ir.block(b).last()?);
                    Some(Span { start: ir.stmt_span(*first).start, end: ir.stmt_span(*last).end })
                }));
            }
            // What comes after the branch of a script still does.
            if let Some(point) = self.stmt(s) {
                found.push(Span { start: point.after, end: ir.stmt_span(last).end });
                return;
            }
        }
    }

    /// Does the block leave the function? With `true`, its caller does not go on either.
    fn leaves(&self, block: Block) -> Option<bool> {
        let &last = self.ir().block(block).last()?;
        match *self.ir().stmt(last) {
            Stmt::Raise { .. } => Some(true),
            Stmt::Return(_) => Some(false),
            Stmt::Expr(e) => self.exits(e).then_some(true),
            _ => None,
        }
    }

    fn exits(&self, e: ExprId) -> bool {
        let Expr::Call(call) = self.ir().expr(e) else { return false };
        matches!(self.program.resolve_expr(self.module, self.ir().call(call).func),
            Some(Resolved::External(path)) if matches!(path.as_str(), "sys.exit" | "os._exit" | "builtins.exit" | "builtins.quit"))
    }

    /// `__name__ == "__main__"`
    fn is_script(&self, e: ExprId) -> bool {
        matches!(self.ir().expr(e), Expr::Compare { left, .. }
            if matches!(self.ir().expr(left), Expr::Var(Var::Unbound(name)) if name.as_str() == "__name__"))
    }

    /// Is it true only where CUDA is?
    fn asks(&self, e: ExprId) -> bool {
        match self.ir().expr(e) {
            Expr::And(list) => self.ir().list(list).iter().any(|&part| self.asks(part)),
            Expr::Call(call) => matches!(self.program.resolve_expr(self.module, self.ir().call(call).func),
                Some(Resolved::External(path)) if path.as_str() == "torch.cuda.is_available"),
            _ => false,
        }
    }

    /// Is it a parameter, or not one, so that the branch is taken unless the caller says otherwise?
    fn by_default(&self, test: ExprId) -> Option<Sym> {
        let (e, wanted) = match self.ir().expr(test) {
            Expr::Unary { op: UnaryOp::Not, operand } => (operand, false),
            _ => (test, true),
        };
        let Expr::Var(Var::Local(slot)) = self.ir().expr(e) else { return None };
        let param = self.ir().function(self.func).params.iter().find(|p| p.slot == slot)?;
        let default = self.ir().expr(param.default?);
        (default == if wanted { Expr::True } else { Expr::False }).then_some(param.name)
    }

    /// A call of something that does not come back without CUDA.
    fn calls_refusal(&self, e: ExprId) -> bool {
        let Expr::Call(id) = self.ir().expr(e) else { return false };
        let call = self.ir().call(id);
        let callee = match named(self.program, self.module, call.func) {
            Some(Node::Function(m, f)) => Some((m, f)),
            Some(Node::Class(key)) => self.program.find_method(key, Sym::new("__init__")),
            None => None,
        };
        let Some((m, f)) = callee else { return false };
        match self.known.get(&(m, f)).and_then(|p| p.refusal) {
            Some(Refusal::Always) => true,
            Some(Refusal::Unless(param)) => !gives(&self.program.get(m).ir, f, call, param),
            None => false,
        }
    }

    /// An import of a file of which the body does not go on without CUDA.
    fn imports_refusal(&self, import: &Import) -> bool {
        let targets = &self.program.get(self.module).targets;
        match targets.get(&(import.level, import.module, import.name)) {
            Some(&(Target::Module(m) | Target::Member(m, _))) => at_import(self.known, m),
            _ => false,
        }
    }

    /// Is it the constructor of a class, or the body of a class or file: something that others cannot be without?
    fn is_constructor(&self) -> bool {
        let function = self.ir().function(self.func);
        match function.kind {
            FuncKind::Module | FuncKind::ClassBody => true,
            FuncKind::Function => function.class.is_some() && function.name.as_str() == "__init__",
            FuncKind::Lambda => false,
        }
    }

    /// Does evaluating the expression need CUDA, whatever comes of its tests?
    fn uses(&self, e: ExprId) -> bool {
        let ir = self.ir();
        self.uses
            && self.is_constructor()
            && match ir.expr(e) {
                Expr::Call(id) => {
                    let call = ir.call(id);
                    self.is_use(call) || self.uses(call.func) || call.args.iter().any(|a| self.uses(a.value))
                }
                Expr::Attr { base, .. } | Expr::Unary { operand: base, .. } | Expr::Index { base, .. } => {
                    self.uses(base)
                }
                Expr::Binary { left, right, .. } => self.uses(left) || self.uses(right),
                Expr::Tuple(list) | Expr::List(list) | Expr::Dict(list) => {
                    ir.list(list).iter().any(|&x| self.uses(x))
                }
                _ => false,
            }
    }

    /// `x.cuda()`, `x.to("cuda")`, `torch.cuda.current_device()`
    fn is_use(&self, call: Call<'_>) -> bool {
        let ir = self.ir();
        match (ir.expr(call.func), self.program.resolve_expr(self.module, call.func)) {
            (_, Some(Resolved::External(path))) => {
                torch::call(path).and_then(|f| f.accelerator).is_some_and(|a| {
                    a.accelerator == Accelerator::Cuda
                        && a.without == Without::Raises
                        && !a.none_is_harmless
                        && !a.context
                })
            }
            (Expr::Attr { name, .. }, None) if name.as_str() == MOVE => true,
            (Expr::Attr { name, .. }, None) if name.as_str() == "to" => call.args.first().is_some_and(
                |a| matches!(ir.expr(a.value), Expr::Str(text) if text.as_str().starts_with(MOVE)),
            ),
            _ => false,
        }
    }
}

/// May the call give something for this parameter?
fn gives(ir: &Module, f: FuncId, call: Call<'_>, param: Sym) -> bool {
    let at = ir.function(f).params.iter().position(|p| p.name == param).unwrap_or(0);
    let positional = call.args.iter().filter(|a| a.kind == ArgKind::Positional).count();
    positional > at
        || call.args.iter().any(|a: &Arg| match a.kind {
            ArgKind::Keyword(name) => name == param,
            ArgKind::Star | ArgKind::DoubleStar => true,
            ArgKind::Positional => false,
        })
}

/// The blocks of a statement that belong to the same function.
fn blocks(ir: &Module, s: &Stmt) -> Vec<Block> {
    match s {
        Stmt::If { then, orelse, .. } => vec![*then, *orelse],
        Stmt::While { body, orelse, .. } | Stmt::For { body, orelse, .. } => vec![*body, *orelse],
        Stmt::With { body, .. } => vec![*body],
        Stmt::Try { body, handlers, orelse, finally } => {
            let handled = ir.handlers(*handlers).iter().map(|h| h.body);
            [*body, *orelse, *finally].into_iter().chain(handled).collect()
        }
        Stmt::Match { cases, .. } => cases.iter().map(|c| c.body).collect(),
        _ => Vec::new(),
    }
}
