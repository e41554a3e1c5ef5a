//! Of the methods of a class that ask `self.device` where parts are offloaded, those are told that a use of the object comes to
//! first: what they call of the same object, and what goes on after them, has the same cause.

use super::super::file::{File, is_self};
use crate::finding::Finding;
use crate::flow::conditions;
use crate::ir::{ClassId, CmpOp, Expr, ExprId, FuncId, FuncKind, Stmt};
use crate::span::{Place, Span};
use crate::sym::Sym;

/// A finding of a function, and what it says is asked for the device: `self`, `self.vae`.
pub(super) struct Asked {
    pub(super) function: FuncId,
    pub(super) owner: String,
    pub(super) finding: Finding,
}

/// What is told of all that the functions of a file ask.
pub(super) fn told(file: &File<'_>, asked: Vec<Asked>) -> Vec<Finding> {
    let mut told = Vec::new();
    let mut open: Vec<Option<Asked>> = asked.into_iter().map(Some).collect();
    while let Some(n) = open.iter().position(Option::is_some) {
        let Some(first) = open[n].take() else { continue };
        let Some(class) = file.ir.function(first.function).class else {
            told.push(first.finding);
            continue;
        };
        let alike = |other: &Asked| {
            other.owner == first.owner && file.ir.function(other.function).class == Some(class)
        };
        let mut group: Vec<Asked> = Vec::new();
        for other in &mut open[n..] {
            if other.as_ref().is_some_and(alike) {
                group.extend(other.take());
            }
        }
        group.insert(0, first);
        told.extend(Uses { file, class, group: &group }.told());
    }
    told
}

/// One place in the order in which a use of the object comes to them: the number of a finding, and whether another one has come
/// before it.
type Come = (usize, bool);

struct Uses<'a> {
    file: &'a File<'a>,
    class: ClassId,
    group: &'a [Asked],
}

impl Uses<'_> {
    fn told(&self) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self.group.iter().map(|a| a.finding.clone()).collect();
        if findings.len() < 2 {
            return findings;
        }
        let places: Vec<Place> = findings.iter().map(|f| f.primary.place).collect();
        // Those that are come to at all, and of these the ones that some use comes to first.
        let (mut reached, mut first) = (vec![false; places.len()], vec![false; places.len()]);
        for root in self.roots() {
            let order = self.with_makers(root);
            let Some(&(leads, _)) = order.first() else { continue };
            for (n, late) in order {
                reached[n] = true;
                first[n] |= !late;
                if late && !findings[leads].related.iter().any(|l| l.place == places[n]) {
                    findings[leads] = findings[leads].clone().related(places[n], "asked for here, too");
                }
            }
        }
        let told = findings.into_iter().enumerate();
        told.filter(|&(n, _)| first[n] || !reached[n]).map(|(_, finding)| finding).collect()
    }

    /// The methods that no other one calls.
    fn roots(&self) -> Vec<FuncId> {
        let methods = &self.file.ir.class(self.class).methods;
        let called: Vec<(FuncId, FuncId)> = methods
            .iter()
            .flat_map(|&(_, f)| self.calls(f).into_iter().map(move |(_, callee)| (f, callee)))
            .collect();
        let is_called = |f: FuncId| called.iter().any(|&(from, to)| to == f && from != f);
        methods.iter().map(|&(_, f)| f).filter(|&f| !is_called(f)).collect()
    }

    /// What a use that begins with the method comes to, after what has made the state that it does not go on without.
    fn with_makers(&self, root: FuncId) -> Vec<Come> {
        let mut order = match self.maker(root) {
            Some(maker) => self.order(maker, &mut Vec::new()),
            None => Vec::new(),
        };
        let before = !order.is_empty();
        for (n, late) in self.order(root, &mut Vec::new()) {
            if order.iter().all(|&(m, _)| m != n) {
                order.push((n, late || before));
            }
        }
        order
    }

    /// What the method comes to, in order.
    fn order(&self, f: FuncId, around: &mut Vec<FuncId>) -> Vec<Come> {
        if around.contains(&f) {
            return Vec::new();
        }
        around.push(f);
        let own = self.group.iter().enumerate().filter(|(_, a)| a.function == f);
        let mut steps: Vec<(Span, Vec<Come>)> =
            own.map(|(n, a)| (a.finding.primary.place.span, vec![(n, false)])).collect();
        steps.extend(self.calls(f).into_iter().map(|(at, callee)| (at, self.order(callee, around))));
        around.pop();
        steps.sort_by_key(|(at, _)| at.start);
        let mut order: Vec<Come> = Vec::new();
        let mut passed: Vec<Span> = Vec::new();
        for (at, come) in steps.into_iter().filter(|(_, come)| !come.is_empty()) {
            let after = passed.iter().any(|&before| !self.exclude_each_other(before, at));
            for (n, late) in come {
                if order.iter().all(|&(m, _)| m != n) {
                    order.push((n, late || after));
                }
            }
            passed.push(at);
        }
        order
    }

    /// Are the places in two branches of which only one is taken?
    fn exclude_each_other(&self, a: Span, b: Span) -> bool {
        let ir = self.file.ir;
        let other = conditions(ir, b);
        conditions(ir, a).into_iter().any(|(test, outcome)| other.contains(&(test, !outcome)))
    }

    /// The methods of the same object that the method calls, each with its place.
    fn calls(&self, f: FuncId) -> Vec<(Span, FuncId)> {
        let ir = self.file.ir;
        let inside = self.file.inside(ir.function(f));
        let calls = inside.filter_map(|(_, e, at)| match e {
            Expr::Call(id) => Some((at, self.own_attribute(ir.call(id).func)?)),
            _ => None,
        });
        calls.filter_map(|(at, name)| Some((at, self.method(name)?))).collect()
    }

    fn method(&self, name: Sym) -> Option<FuncId> {
        let methods = &self.file.ir.class(self.class).methods;
        methods.iter().rev().find(|&&(n, _)| n == name).map(|&(_, f)| f)
    }

    /// The name in `self.name`.
    fn own_attribute(&self, e: ExprId) -> Option<Sym> {
        match self.file.ir.expr(e) {
            Expr::Attr { base, name } if is_self(self.file.ir, base) => Some(name),
            _ => None,
        }
    }

    /// `if self.steps is None: raise …`: the only method that sets it to something, besides the constructor.
    fn maker(&self, f: FuncId) -> Option<FuncId> {
        let ir = self.file.ir;
        let wanted = ir.block(ir.function(f).body).iter().find_map(|&s| {
            let Stmt::If { test, then, .. } = *ir.stmt(s) else { return None };
            let Expr::Compare { op: CmpOp::Is, left, right } = ir.expr(test) else { return None };
            let raises = matches!(ir.stmt(*ir.block(then).last()?), Stmt::Raise { .. });
            (raises && ir.expr(right) == Expr::None).then(|| self.own_attribute(left))?
        })?;
        let sets = |g: &FuncId| {
            ir.stmts[ir.stmts_of(ir.function(*g))].iter().any(|s| match *s {
                Stmt::Assign { targets, value } => {
                    ir.expr(value) != Expr::None
                        && ir.list(targets).iter().any(|&t| self.own_attribute(t) == Some(wanted))
                }
                _ => false,
            })
        };
        let methods = ir.class(self.class).methods.iter().map(|&(_, g)| g);
        let is_method = |g: &FuncId| ir.function(*g).kind == FuncKind::Function && *g != f;
        let mut makers = methods.filter(is_method).filter(sets);
        match (makers.next(), makers.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        }
    }
}
