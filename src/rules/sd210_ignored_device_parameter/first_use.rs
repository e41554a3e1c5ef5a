//! SD210 ignored-device-parameter: selects findings about methods of a class that read `self.device` although parts are offloaded. Each use
//! of the object reports the method that it reaches first. Methods that this one calls on the same object, or that run later, have the same
//! cause.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::{Finding, Label, Role, Silenced};
use crate::flow::conditions;
use crate::ir::{ClassId, CmpOp, Expr, ExprId, FuncId, FuncKind, Stmt};
use crate::rules::shared::file::File;
use crate::span::{Place, Span};
use crate::sym::Sym;

/// A finding of a function, and the object whose device it reads: `self`, `self.vae`.
pub(super) struct Asked {
    pub(super) function: FuncId,
    pub(super) owner: String,
    pub(super) finding: Finding,
}

/// The findings to report for all such functions of a file.
pub(super) fn told(file: &File<'_>, asked: Vec<Asked>) -> Vec<Finding> {
    let silence = &file.cx.program.silence;
    let is_silenced = |a: &Asked| silence.of(&a.finding) == Silenced::Everything;
    // A suppressed finding takes no other places.
    let (silenced, asked): (Vec<Asked>, Vec<Asked>) = asked.into_iter().partition(is_silenced);
    let mut told: Vec<Finding> = silenced.into_iter().map(|a| a.finding).collect();
    let mut calls = BTreeMap::new();
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
        if group.len() < 2 {
            told.extend(group.into_iter().map(|a| a.finding));
            continue;
        }
        let calls = calls.entry(class).or_insert_with(|| Calls::of(file, class));
        told.extend(Uses { file, class, calls, group: &group }.told());
    }
    told
}

/// A finding that a use of the object reaches: its index, and whether the use has reached another finding before.
type Come = (usize, bool);

/// The tests on the way to a place, each with the outcome that it needs.
type Conditions = BTreeSet<(ExprId, bool)>;

/// The calls that the methods of a class make on the same object, in the order of the text.
struct Calls {
    by: BTreeMap<FuncId, Vec<(Span, FuncId)>>,
    /// The methods that no other method calls.
    roots: Vec<FuncId>,
}

impl Calls {
    fn of(file: &File<'_>, class: ClassId) -> Self {
        let methods = &file.ir.class(class).methods;
        // Of two methods with the same name, the last one counts.
        let named: BTreeMap<Sym, FuncId> = methods.iter().copied().collect();
        let called_by = |f: FuncId| {
            let calls = file.inside(file.ir.function(f)).filter_map(|(_, e, at)| match e {
                Expr::Call(id) => Some((at, file.own_attribute(file.ir.call(id).func)?)),
                _ => None,
            });
            calls.filter_map(|(at, name)| Some((at, *named.get(&name)?))).collect()
        };
        let by: BTreeMap<FuncId, Vec<(Span, FuncId)>> =
            methods.iter().map(|&(_, f)| (f, called_by(f))).collect();
        let others = by.iter().flat_map(|(&f, calls)| calls.iter().map(move |&(_, to)| (f, to)));
        let called: BTreeSet<FuncId> = others.filter(|(f, to)| f != to).map(|(_, to)| to).collect();
        let roots = methods.iter().map(|&(_, f)| f).filter(|f| !called.contains(f)).collect();
        Self { by, roots }
    }
}

struct Uses<'a> {
    file: &'a File<'a>,
    class: ClassId,
    calls: &'a Calls,
    group: &'a [Asked],
}

impl Uses<'_> {
    fn told(&self) -> Vec<Finding> {
        let mut findings: Vec<Finding> = self.group.iter().map(|a| a.finding.clone()).collect();
        let places: Vec<Place> = findings.iter().map(|f| f.primary.place).collect();
        // Which findings a use reaches at all, and which ones a use reaches first.
        let (mut reached, mut first) = (vec![false; places.len()], vec![false; places.len()]);
        for &root in &self.calls.roots {
            let order = self.with_makers(root);
            let Some(&(leads, _)) = order.first() else { continue };
            for (n, late) in order {
                reached[n] = true;
                first[n] |= !late;
                if late && !findings[leads].related.iter().any(|l| l.place == places[n]) {
                    let role = Role::Repeated { through: Vec::new() };
                    let label = Label { role, ..Label::new(places[n], "asked for here, too") };
                    findings[leads].related.push(label);
                }
            }
        }
        let told = findings.into_iter().enumerate();
        told.filter(|&(n, _)| first[n] || !reached[n]).map(|(_, finding)| finding).collect()
    }

    /// The findings that a use reaches if it begins with this method. If the method needs state that another method creates, that one runs
    /// first.
    fn with_makers(&self, root: FuncId) -> Vec<Come> {
        let mut walked = BTreeMap::new();
        let mut order = match self.maker(root) {
            Some(maker) => self.order(maker, &mut walked),
            None => Vec::new(),
        };
        let before = !order.is_empty();
        for (n, late) in self.order(root, &mut walked) {
            if order.iter().all(|&(m, _)| m != n) {
                order.push((n, late || before));
            }
        }
        order
    }

    /// The findings that the method reaches, in order. `walked`: the results for other methods; empty for methods that are being walked.
    fn order(&self, f: FuncId, walked: &mut BTreeMap<FuncId, Vec<Come>>) -> Vec<Come> {
        if let Some(known) = walked.get(&f) {
            return known.clone();
        }
        walked.insert(f, Vec::new());
        let own = self.group.iter().enumerate().filter(|(_, a)| a.function == f);
        let mut steps: Vec<(Span, Vec<Come>)> =
            own.map(|(n, a)| (a.finding.primary.place.span, vec![(n, false)])).collect();
        let calls = self.calls.by.get(&f).into_iter().flatten();
        steps.extend(calls.map(|&(at, callee)| (at, self.order(callee, walked))));
        steps.sort_by_key(|(at, _)| at.start);
        let mut order: Vec<Come> = Vec::new();
        let mut passed: BTreeSet<Conditions> = BTreeSet::new();
        for (at, come) in steps.into_iter().filter(|(_, come)| !come.is_empty()) {
            let here: Conditions = conditions(self.file.ir, at).into_iter().collect();
            let after = passed.iter().any(|before| before.is_subset(&here));
            for (n, late) in come {
                if order.iter().all(|&(m, _)| m != n) {
                    order.push((n, late || after));
                }
            }
            pass(&mut passed, here);
        }
        walked.insert(f, order.clone());
        order
    }

    /// `if self.steps is None: raise …`: the only method other than the constructor that assigns a value to the attribute.
    fn maker(&self, f: FuncId) -> Option<FuncId> {
        let ir = self.file.ir;
        let wanted = ir.block(ir.function(f).body).iter().find_map(|&s| {
            let Stmt::If { test, then, .. } = *ir.stmt(s) else { return None };
            let Expr::Compare { op: CmpOp::Is, left, right } = ir.expr(test) else { return None };
            let raises = matches!(ir.stmt(*ir.block(then).last()?), Stmt::Raise { .. });
            (raises && ir.expr(right) == Expr::None).then(|| self.file.own_attribute(left))?
        })?;
        let sets = |g: &FuncId| {
            ir.stmts[ir.stmts_of(ir.function(*g))].iter().any(|s| match *s {
                Stmt::Assign { targets, value } => {
                    ir.expr(value) != Expr::None
                        && ir.list(targets).iter().any(|&t| self.file.own_attribute(t) == Some(wanted))
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

/// Adds the conditions of a place that the method passes. One of two branches is always taken, so together they only depend on their common
/// conditions.
fn pass(passed: &mut BTreeSet<Conditions>, here: Conditions) {
    let mut open = vec![here];
    while let Some(next) = open.pop() {
        if passed.contains(&next) {
            continue;
        }
        for &(test, outcome) in &next {
            let mut other = next.clone();
            other.remove(&(test, outcome));
            let both = other.clone();
            other.insert((test, !outcome));
            if passed.contains(&other) {
                open.push(both);
            }
        }
        passed.insert(next);
    }
}
