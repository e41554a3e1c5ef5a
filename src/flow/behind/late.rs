//! Instances that are made before a function refuses to go on without CUDA, and used after it.
//!
//! `model = Model(); model.set(optimizer)`, then `if not torch.cuda.is_available(): raise …`, then `model.train()`: what is not
//! called before the refusal only runs where CUDA is, as far as this function goes.

use rustc_hash::{FxHashMap, FxHashSet};

use super::refuses::Points;
use crate::flow::nodes::{Node, named};
use crate::ir::{Expr, ExprId, FuncId, Module, Slot, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Program};
use crate::span::Span;
use crate::sym::Sym;

/// Classes with such instances.
#[derive(Debug, Default)]
pub(super) struct Late {
    /// The mentions that make them.
    mentions: FxHashSet<(ModIdx, ExprId)>,
    /// What of them may be called before.
    called: FxHashMap<ClassKey, FxHashSet<Sym>>,
}

impl Late {
    /// Those of these files that functions make before they refuse.
    pub(super) fn of(program: &Program, files: &[ModIdx], points: &Points) -> Self {
        let mut late = Self::default();
        for (&(m, f), point) in points {
            // A file's own variables may be read anywhere.
            if f != FuncId(0) && files.contains(&m) {
                late.made(program, m, f, point.after);
            }
        }
        for (&class, names) in &mut late.called {
            close(program, class, names);
        }
        late
    }

    fn made(&mut self, program: &Program, m: ModIdx, f: FuncId, until: u32) {
        let ir = &program.get(m).ir;
        let whole = ir.function(f).span;
        // What its other branches do comes after the question.
        let refuses = ir.block(ir.function(f).body).iter().find(|&&s| ir.stmt_span(s).end == until);
        let Some(&refuses) = refuses else { return };
        if let Stmt::Assign { value, .. } = *ir.stmt(refuses) {
            self.made_and_moved(program, m, value);
        }
        let until = ir.stmt_span(refuses).start;
        for (s, &at) in ir.stmts.iter().zip(&ir.stmt_spans) {
            let Stmt::Assign { targets, value } = *s else { continue };
            if !whole.contains(at) || at.end > until {
                continue;
            }
            let (&[target], Expr::Call(call)) = (ir.list(targets), ir.expr(value)) else { continue };
            let (Expr::Var(Var::Local(slot)), func) = (ir.expr(target), ir.call(call).func) else { continue };
            let Some(Node::Class(class)) = named(program, m, func) else { continue };
            if ir.function_around(value) != f {
                continue;
            }
            if let Some(names) = read_between(ir, f, slot, Span::new(at.end, until)) {
                self.mentions.insert((m, func));
                self.called.entry(class).or_default().extend(names);
            }
        }
    }

    /// `model = Model().to("cuda")`: what is called on the way to what needs CUDA comes before it.
    fn made_and_moved(&mut self, program: &Program, m: ModIdx, moved: ExprId) {
        let ir = &program.get(m).ir;
        let (mut at, mut names) = (moved, Vec::new());
        while let Expr::Call(call) = ir.expr(at) {
            let func = ir.call(call).func;
            if let Some(Node::Class(class)) = named(program, m, func) {
                if !names.is_empty() {
                    self.mentions.insert((m, func));
                    self.called.entry(class).or_default().extend(names);
                }
                return;
            }
            let Expr::Attr { base, name } = ir.expr(func) else { return };
            names.push(name);
            at = base;
        }
    }

    /// Is an instance made here that is used later?
    pub(super) fn is_made_at(&self, m: ModIdx, e: ExprId) -> bool {
        self.mentions.contains(&(m, e))
    }

    /// Is the class one of them?
    pub(super) fn holds(&self, class: ClassKey) -> bool {
        self.called.contains_key(&class)
    }

    /// The classes, each with the names of what may be called before.
    pub(super) fn classes(&self) -> impl Iterator<Item = (ClassKey, &FxHashSet<Sym>)> {
        self.called.iter().map(|(&class, names)| (class, names))
    }
}

/// The attributes of the variable that are read within this stretch of the function; nothing if more may happen to what it holds.
fn read_between(ir: &Module, f: FuncId, slot: Slot, stretch: Span) -> Option<Vec<Sym>> {
    let range = ir.function(f).exprs.start as usize..ir.function(f).exprs.end as usize;
    let attributes: FxHashMap<ExprId, Sym> = ir.exprs[range.clone()]
        .iter()
        .filter_map(|e| if let Expr::Attr { base, name } = *e { Some((base, name)) } else { None })
        .collect();
    let mut names = Vec::new();
    for n in range {
        let e = ExprId(u32::try_from(n).unwrap_or(u32::MAX));
        let inside = stretch.contains(ir.span(e));
        match ir.expr(e) {
            Expr::Var(Var::Local(s)) if s == slot && inside && ir.function_around(e) == f => {
                names.push(*attributes.get(&e)?);
            }
            // What functions in it do, they may do at any time.
            Expr::Var(Var::Enclosing { .. }) => return None,
            _ => {}
        }
    }
    Some(names)
}

/// Adds what the constructor and the methods of these names may call on the same object.
fn close(program: &Program, class: ClassKey, names: &mut FxHashSet<Sym>) {
    let mut open: Vec<Sym> = names.iter().copied().chain([Sym::new("__init__")]).collect();
    while let Some(name) = open.pop() {
        let Some((m, f)) = program.find_method(class, name) else { continue };
        let ir = &program.get(m).ir;
        let whole = ir.function(f).span;
        for (e, &at) in ir.exprs.iter().zip(&ir.expr_spans) {
            if let Expr::Attr { name, .. } = *e
                && whole.contains(at)
                && names.insert(name)
            {
                open.push(name);
            }
        }
    }
}
