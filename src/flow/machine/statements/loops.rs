//! Loops and comprehensions: two passes over a body show what one round leaves for the next.

use crate::flow::domain::atom::Atom;
use crate::flow::domain::diagram::{Cond, FALSE, TRUE};
use crate::flow::domain::store::{Changes, Mark};
use crate::flow::domain::value::{ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::frame::LoopFrame;
use crate::ir::{Block, Expr, ExprId, Stmt, Var};
use crate::span::Span;

/// The maximum number of states that are kept separately at `break` and `continue`.
const MAX_LEAVES: usize = 6;

/// Loops nested deeper than this get one pass.
const TWO_PASS_DEPTH: usize = 2;
/// The maximum number of rounds of a counting `while` loop that are interpreted one by one.
const MAX_COUNTED: usize = 5;

impl<'p> Interp<'p> {
    pub(crate) fn for_loop(&mut self, target: ExprId, iter: ExprId, body: Block, orelse: Block) {
        let iterable = self.eval(iter);
        let runs = self.runs(iter);
        self.branch(
            runs,
            &mut |i| {
                i.for_each(target, iter, iterable, body, orelse);
                Value::Absent
            },
            &mut |i| {
                i.block(orelse);
                Value::Absent
            },
        );
    }

    /// The condition under which the loop has a round. `range(torch.cuda.device_count())` has elements only if there
    /// are GPUs. Other loops are assumed to have a round.
    pub(crate) fn runs(&mut self, iter: ExprId) -> Cond {
        let ir = &self.linked().ir;
        let Expr::Call(id) = ir.expr(iter) else { return TRUE };
        let call = ir.call(id);
        let [arg] = call.args else { return TRUE };
        if !matches!(ir.expr(call.func), Expr::Var(Var::Unbound(n)) if n.as_str() == "range")
            || matches!(ir.expr(arg.value), Expr::Int(_))
        {
            return TRUE;
        }
        self.run.muted += 1;
        let n = self.eval(arg.value);
        self.run.muted -= 1;
        if n == Value::Outer(self.known.device_count) { self.at_least(1) } else { TRUE }
    }

    fn for_each(&mut self, target: ExprId, iter: ExprId, iterable: Value, body: Block, orelse: Block) {
        let before = self.path;
        let (exact, sure) = self.rounds(iterable, target, iter);
        let deep = self.here().loops.len() >= TWO_PASS_DEPTH;
        let most = if let Iteration::Exact(items) = &exact { self.most_rounds(items) } else { 0 };
        let unrolled = matches!(&exact, Iteration::Exact(items) if items.len() <= most);
        let open = matches!(exact, Iteration::Any(_));
        self.here_mut().loops.push(LoopFrame { exact: unrolled, open, ..LoopFrame::default() });
        match exact {
            // A short literal sequence is unrolled: `for m in (encoder, decoder): m.to(device)`.
            Iteration::Exact(items) => {
                for item in items.iter().take(most) {
                    if !self.live() {
                        break;
                    }
                    let item = self.next_round(*item);
                    self.one_pass(&mut |i| {
                        i.assign(target, item);
                        i.block(body);
                    });
                }
            }
            Iteration::Any(item) => {
                let passes = if deep { 1 } else { 2 };
                let start = self.store.mark();
                let mut first = Changes::new();
                for pass in 0..passes {
                    if !self.live() {
                        break;
                    }
                    let item = if pass > 0 { self.next_item(iterable, item, iter) } else { item };
                    let item = self.next_round(item);
                    self.drawn_anew(item);
                    self.one_pass(&mut |i| {
                        i.assign(target, item);
                        i.block(body);
                    });
                    self.settle(start, pass, &mut first);
                }
            }
        }
        self.all_replaced(target, iter, body);
        self.end_loop(before, orelse, &End { endless: false, sure });
    }

    pub(crate) fn while_loop(&mut self, test: ExprId, body: Block, orelse: Block) {
        let before = self.path;
        let passes = if self.here().loops.len() >= TWO_PASS_DEPTH { 1 } else { 2 };
        self.here_mut().loops.push(LoopFrame::default());
        let (mut endless, mut sure) = (true, false);
        let start = self.store.mark();
        let mut first = Changes::new();
        let counted = passes > 1 && self.is_counted(test);
        for pass in 0..if counted { MAX_COUNTED } else { passes } {
            if !self.live() {
                break;
            }
            let cond = self.test(test);
            // Rounds after the first two are interpreted only if they certainly happen.
            if pass > 1 && cond != TRUE {
                break;
            }
            endless &= cond == TRUE;
            // `n = 0`, `while n < 3`: the first round is certain.
            sure |= pass == 0 && cond == TRUE;
            let inside = self.d.and(self.path, cond);
            if inside == FALSE {
                break;
            }
            self.path = inside;
            self.one_pass(&mut |i| i.block(body));
            if pass == 0 || !(counted && self.live() && self.has_known_end(test)) {
                self.settle(start, pass, &mut first);
            }
        }
        if endless && self.live() && self.is_left_later(test, body) {
            self.forget_rounds(start);
            self.one_pass(&mut |i| i.block(body));
            if self.here().loops.last().is_some_and(|l| l.breaks.is_empty()) {
                self.here_mut().loops.pop();
                self.path = FALSE;
                return;
            }
        }
        self.end_loop(before, orelse, &End { endless, sure });
    }

    /// Makes the variables unknown that the loop writes, for later rounds.
    fn forget_rounds(&mut self, start: Mark) {
        let unknown = self.unknown_device();
        for (cell, value) in self.store.changes(start) {
            let forgotten = match value {
                Value::Device(_) => Value::Device(unknown),
                _ => Value::Unknown,
            };
            self.store.set(cell, forgotten);
        }
    }

    /// Whether the loop is a `while True:` with a `break` that no interpreted round has reached.
    fn is_left_later(&self, test: ExprId, body: Block) -> bool {
        let ir = &self.linked().ir;
        let Some(&last) = ir.block(body).last() else { return false };
        let (start, end) = (ir.span(test).start, ir.stmt_span(last).end);
        let inside = |at: Span| start < at.start && at.end <= end;
        let stmts = || ir.stmts.iter().zip(&ir.stmt_spans).filter(|&(_, &at)| inside(at));
        let of_inner = |at: Span| {
            stmts().any(|(s, inner)| matches!(s, Stmt::For { .. } | Stmt::While { .. }) && inner.contains(at))
        };
        let unbroken = self.here().loops.last().is_some_and(|l| l.breaks.is_empty());
        unbroken
            && !ir.function(self.here().func).is_generator
            && stmts().any(|(s, &at)| matches!(s, Stmt::Break) && !of_inner(at))
    }

    /// Whether the loop has so few rounds that each can be interpreted: `while n < 3`.
    fn is_counted(&self, test: ExprId) -> bool {
        let ir = &self.linked().ir;
        let few =
            |e: ExprId| matches!(ir.expr(e), Expr::Int(n) if { n.0 }.unsigned_abs() < MAX_COUNTED as u64);
        matches!(ir.expr(test), Expr::Compare { left, right, .. } if few(left) || few(right))
    }

    /// Whether it is known at this point whether there is another round.
    fn has_known_end(&mut self, test: ExprId) -> bool {
        self.run.muted += 1;
        let cond = self.test(test);
        self.run.muted -= 1;
        cond == TRUE || cond == FALSE
    }

    /// Two rounds stand for any number of rounds. If the second restores a value from before the first, as in a swap,
    /// the value after the loop is either of the two.
    fn settle(&mut self, start: Mark, pass: usize, first: &mut Changes) {
        if pass == 0 {
            *first = self.store.changes(start);
            return;
        }
        for &(cell, once) in &*first {
            let (was, twice) = (self.store.at(start, cell), self.store.get(cell));
            if was == twice && once != twice && was != Value::Absent {
                let either = self.blend(twice, once);
                self.store.set(cell, either);
            }
        }
    }

    fn one_pass(&mut self, body: &mut dyn FnMut(&mut Self)) {
        self.run.pass += 1;
        let (start, branches) = (self.store.mark(), self.here().branches);
        let (cells, objects) = (self.store.len(), self.objects.len());
        if let Some(l) = self.here_mut().loops.last_mut() {
            l.start = Some(start);
            l.rounds += 1;
            l.objects = objects;
            if l.entered.is_none() {
                (l.entered, l.cells) = (Some(start), cells);
            }
            l.branches = branches;
        }
        body(self);
        let continues =
            self.here_mut().loops.last_mut().map(|l| std::mem::take(&mut l.continues)).unwrap_or_default();
        self.join_exits(start, continues);
    }

    /// Whether the number of times that this call changes its list is known: once in each round, if the same round has
    /// made the list. A list in an attribute or container may be from another round.
    pub(crate) fn is_gone_through(&self, id: ObjId, call: ExprId) -> bool {
        let ir = &self.linked().ir;
        let own = || match ir.expr(call) {
            Expr::Call(c) => {
                matches!(ir.expr(ir.call(c).func), Expr::Attr { base, .. } if matches!(ir.expr(base), Expr::Var(_)))
            }
            _ => false,
        };
        self.here().loops.iter().all(|l| l.exact || id.0 as usize >= l.objects && own())
    }

    /// Joins the current state with the states of earlier exits, all relative to the mark.
    pub(crate) fn join_exits(
        &mut self,
        start: crate::flow::domain::store::Mark,
        exits: Vec<(crate::flow::domain::diagram::Cond, crate::flow::domain::store::Changes)>,
    ) {
        for (path, changes) in exits {
            let now = self.store.take(start);
            if self.path == FALSE {
                self.apply(&changes);
                self.path = path;
            } else {
                self.merge(path, &changes, &now);
                self.path = self.d.or(self.path, path);
            }
        }
    }

    /// Handles `break` and `continue`.
    pub(crate) fn leave_loop(&mut self, is_break: bool) {
        let path = self.path;
        self.path = FALSE;
        let Some(start) = self.here().loops.last().and_then(|l| l.start) else { return };
        let changes = self.store.changes(start);
        if let Some(l) = self.here_mut().loops.last_mut() {
            // The limit keeps pathological loops cheap. Further states hardly differ.
            let list = if is_break { &mut l.breaks } else { &mut l.continues };
            if list.len() < MAX_LEAVES {
                list.push((path, changes));
            }
        }
    }

    fn end_loop(&mut self, before: crate::flow::domain::diagram::Cond, orelse: Block, end: &End) {
        let Some(frame) = self.here_mut().loops.pop() else { return };
        let caught = if frame.breaks.is_empty() { self.what_was_caught() } else { TRUE };
        // `while True` ends only by `break`, so the condition on the machine at the `break` holds after the loop.
        let breaks = &frame.breaks;
        if end.endless && !breaks.is_empty() && breaks.len() < MAX_LEAVES {
            let mut left = FALSE;
            for &(path, _) in breaks {
                left = self.d.or(left, path);
            }
            let left = self.d.what_raises(left);
            self.path = self.d.and(before, left);
        } else if orelse != Block::default() && frame.exact && !breaks.is_empty() {
            self.exhausted_or_broken(before, orelse, frame.breaks);
            return;
        } else if end.sure && breaks.is_empty() {
            // The condition on the machine at the end of a round holds after the loop. A round that never ends leaves
            // no state.
            let ended = self.d.what_raises(self.path);
            self.path = self.d.and(before, ended);
        } else if self.path == FALSE {
            // A loop that always leaves the function may have no round.
            self.path = if !frame.breaks.is_empty() {
                before
            } else {
                let ran = self.raised_atom();
                self.d.and(before, ran)
            };
        } else {
            // The outcome of the last test or of the iterator is not kept: conditions inside are per pass.
            self.path = before;
        }
        self.path = self.d.and(self.path, caught);
        for (_, changes) in frame.breaks.into_iter().take(1) {
            let broke = self.raised_atom();
            self.merge(broke, &changes, &Vec::new());
        }
        if self.live() && orelse != Block::default() {
            self.block(orelse);
        }
    }

    /// The condition for machines on which a `try` on this path has always raised. There, variables of its body stay
    /// unset after the loop as well. Machines on which the path does not end are not restricted.
    fn what_was_caught(&mut self) -> Cond {
        let mut said = Vec::new();
        self.d.support(self.path, &mut said);
        said.retain(|&atom| matches!(self.atoms.get(atom), Atom::Caught));
        let mut caught = TRUE;
        for atom in said {
            let Some(&unraised) = self.tests.unraised.get(&atom) else { continue };
            let (goes_well, raised) = (self.d.machine(unraised), self.d.atom(atom));
            let either = self.d.or(goes_well, raised);
            caught = self.d.and(caught, either);
        }
        if caught == TRUE {
            return TRUE;
        }
        let machine = self.d.machine(self.path);
        let elsewhere = self.d.not(machine);
        self.d.or(caught, elsewhere)
    }

    /// Handles the end of a loop with known rounds: `else` runs only if no round ended by `break`.
    fn exhausted_or_broken(
        &mut self,
        before: crate::flow::domain::diagram::Cond,
        orelse: Block,
        breaks: Vec<(crate::flow::domain::diagram::Cond, crate::flow::domain::store::Changes)>,
    ) {
        let mark = self.store.mark();
        if self.live() {
            self.block(orelse);
        }
        let ended = !self.live();
        if ended {
            self.store.take(mark);
        }
        self.path = before;
        if ended && breaks.len() < MAX_LEAVES {
            // The condition on the machine at the `break` then holds after the loop.
            let left = breaks.iter().fold(FALSE, |left, &(path, _)| self.d.or(left, path));
            let left = self.d.what_raises(left);
            self.path = self.d.and(before, left);
        }
        for (_, changes) in breaks.into_iter().take(1) {
            if ended {
                self.apply(&changes);
            } else {
                let broke = self.raised_atom();
                self.merge(broke, &changes, &Vec::new());
            }
        }
    }
}

/// How a loop ends.
struct End {
    /// Whether it ends only by `break`.
    pub(crate) endless: bool,
    /// Whether it certainly has a round.
    pub(crate) sure: bool,
}

/// The items of a loop.
pub(crate) enum Iteration {
    /// Exactly these items.
    Exact(Vec<Value>),
    /// Any number of items like this one.
    Any(Value),
}
