//! The outline of a file: the names that it binds at its top level, and where it mentions names.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::{Block, ClassId, Expr, ExprId, FuncKind, Module, Stmt, Var};
use crate::span::Span;
use crate::sym::Sym;

/// The names that a file binds at its top level, and its mentions.
#[derive(Default)]
pub(super) struct Outline {
    /// The bindings of each name.
    pub(super) bound: FxHashMap<Sym, Vec<Bound>>,
    /// The indices of the star imports.
    pub(super) stars: Vec<usize>,
    /// The mentions, sorted by position.
    mentions: Vec<(u32, Mention)>,
}

#[derive(Clone, Copy)]
pub(super) enum Bound {
    /// Bound by a statement with this span.
    Part(Span),
    Class(ClassId),
    /// Bound by the import with this index.
    Import(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mention {
    Name(Sym),
    Attribute(Sym),
    /// The import with this index, inside a function.
    Import(usize),
}

impl Outline {
    /// The outline of a file.
    pub(super) fn of(ir: &Module) -> Self {
        let mut outline = Self::default();
        let Some(body) = ir.functions.first() else { return outline };
        outline.block(ir, body.body);
        // Local variables of functions are not names of the file.
        let mut inside = ir.functions.iter().skip(1).filter(|f| f.kind == FuncKind::Function).peekable();
        let mut until = 0;
        for (n, (&e, at)) in ir.exprs.iter().zip(&ir.expr_spans).enumerate() {
            while let Some(f) = inside.next_if(|f| f.exprs.start as usize <= n) {
                until = until.max(f.exprs.end as usize);
            }
            let slot = |slot: u16| body.slots.get(usize::from(slot)).copied();
            let mention = match e {
                Expr::Var(Var::Global(s)) => slot(s).map(Mention::Name),
                Expr::Var(Var::Local(s)) if n >= until => slot(s).map(Mention::Name),
                Expr::Var(Var::Unbound(name)) => Some(Mention::Name(name)),
                Expr::Attr { name, .. } => Some(Mention::Attribute(name)),
                _ => None,
            };
            outline.mentions.extend(mention.map(|mention| (at.start, mention)));
        }
        for (stmt, at) in ir.stmts.iter().zip(&ir.stmt_spans) {
            if let Stmt::Import(list) = *stmt {
                let numbers = list.start as usize..(list.start + list.len) as usize;
                outline.mentions.extend(numbers.map(|n| (at.start, Mention::Import(n))));
            }
        }
        outline.mentions.sort_unstable();
        outline
    }

    /// The indices of top-level imports that the file itself does not mention: it has them for other files.
    pub(super) fn offered(&self) -> FxHashSet<usize> {
        let names = self
            .mentions
            .iter()
            .filter_map(|m| if let Mention::Name(name) = m.1 { Some(name) } else { None });
        let names: FxHashSet<Sym> = names.collect();
        let others = self.bound.iter().filter(|(name, _)| !names.contains(name));
        let imports = others
            .flat_map(|(_, bound)| bound)
            .filter_map(|b| if let Bound::Import(n) = *b { Some(n) } else { None });
        imports.chain(self.stars.iter().copied()).collect()
    }

    /// What a part of the file mentions.
    pub(super) fn within(&self, part: Span) -> &[(u32, Mention)] {
        let from = self.mentions.partition_point(|m| m.0 < part.start);
        let to = self.mentions.partition_point(|m| m.0 < part.end);
        self.mentions.get(from..to).unwrap_or_default()
    }

    fn block(&mut self, ir: &Module, block: Block) {
        let name = |var: Var| match var {
            Var::Local(slot) => ir.functions.first().and_then(|f| f.slots.get(usize::from(slot))).copied(),
            _ => None,
        };
        for &id in ir.block(block) {
            let part = Bound::Part(ir.stmt_span(id));
            match ir.stmt(id) {
                Stmt::Def(f, var) => self.bind(name(*var), Bound::Part(ir.function(*f).span)),
                Stmt::Class(c, var) => self.bind(name(*var), Bound::Class(*c)),
                Stmt::Import(list) => {
                    for (n, import) in ir.imported(*list).iter().enumerate() {
                        let n = list.start as usize + n;
                        match import.target {
                            Some(var) => self.bind(name(var), Bound::Import(n)),
                            None => self.stars.push(n),
                        }
                    }
                }
                Stmt::Assign { targets, .. } => {
                    ir.list(*targets).iter().for_each(|&t| self.target(ir, t, part))
                }
                Stmt::AnnAssign { target, .. } | Stmt::AugAssign { target, .. } => {
                    self.target(ir, *target, part)
                }
                stmt => {
                    if let Stmt::For { target, .. } = stmt {
                        self.target(ir, *target, part);
                    }
                    for inner in crate::flow::blocks(ir, stmt) {
                        self.block(ir, inner);
                    }
                }
            }
        }
    }

    fn target(&mut self, ir: &Module, target: ExprId, part: Bound) {
        match ir.expr(target) {
            Expr::Var(Var::Local(slot)) => {
                let name = ir.functions.first().and_then(|f| f.slots.get(usize::from(slot))).copied();
                self.bind(name, part);
            }
            // `TABLE["key"] = function`
            Expr::Index { base, .. } | Expr::Attr { base, .. } | Expr::Star(base) => {
                self.target(ir, base, part)
            }
            Expr::Tuple(list) | Expr::List(list) => {
                ir.list(list).iter().for_each(|&t| self.target(ir, t, part))
            }
            _ => {}
        }
    }

    fn bind(&mut self, name: Option<Sym>, bound: Bound) {
        if let Some(name) = name {
            self.bound.entry(name).or_default().push(bound);
        }
    }
}
