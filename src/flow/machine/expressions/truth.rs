//! Conditions: what a test shows about the machine, the user's flags and other values.

use crate::flow::domain::atom::{Atom, backend, gpus_at_least};
use crate::flow::domain::diagram::{Cond, FALSE, TRUE};
use crate::flow::domain::value::Value;
use crate::flow::machine::expressions::flags::is_flag;
use crate::flow::machine::frame::ObjKind;
use crate::flow::machine::{Interp, Test};
use crate::ir::{CmpOp, Expr, ExprId, ExprList, UnaryOp};
use crate::world::Backend;

impl Interp<'_> {
    /// The condition under which the expression is true.
    pub(crate) fn test(&mut self, e: ExprId) -> Cond {
        let linked = self.linked();
        match linked.ir.expr(e) {
            Expr::And(list) => self.all(list, 0),
            Expr::Or(list) => self.any(list, 0),
            Expr::Unary { op: UnaryOp::Not, operand } => {
                let c = self.test(operand);
                self.d.not(c)
            }
            _ => {
                let v = self.eval(e);
                match self.check_uncalled(e, v) {
                    Some(meant) => meant,
                    None => self.truth(v, e),
                }
            }
        }
    }

    pub(crate) fn all(&mut self, list: ExprList, from: usize) -> Cond {
        let linked = self.linked();
        let Some(&first) = linked.ir.list(list).get(from) else { return TRUE };
        let cond = self.test(first);
        if cond == FALSE {
            return FALSE;
        }
        let before = self.path;
        self.path = self.d.and(before, cond);
        let rest = if self.path == FALSE { FALSE } else { self.all(list, from + 1) };
        self.path = before;
        self.d.and(cond, rest)
    }

    pub(crate) fn any(&mut self, list: ExprList, from: usize) -> Cond {
        let linked = self.linked();
        let Some(&first) = linked.ir.list(list).get(from) else { return FALSE };
        let cond = self.test(first);
        if cond == TRUE {
            return TRUE;
        }
        let before = self.path;
        let not = self.d.not(cond);
        self.path = self.d.and(before, not);
        let rest = if self.path == FALSE { FALSE } else { self.any(list, from + 1) };
        self.path = before;
        self.d.or(cond, rest)
    }

    /// The condition under which a value is true. `e` is the test.
    pub(crate) fn truth(&mut self, v: Value, e: ExprId) -> Cond {
        match v {
            Value::Bool(c) => c,
            Value::None => FALSE,
            Value::Int(i) => constant(i != 0),
            Value::Str(s, _) => constant(!s.as_str().is_empty()),
            // `config.use_cuda` of a file that is not found: the name shows a flag.
            Value::External(path) if is_flag(path) => {
                let outer = self.outside_name(path);
                self.flag(Test::Truth(Value::Outer(outer)), outer, "", e)
            }
            Value::Device(_)
            | Value::External(_)
            | Value::Closure(_)
            | Value::Bound(_)
            | Value::Class(_)
            | Value::Module(_)
            | Value::Slice => TRUE,
            Value::Seq(id) => constant(!self.t.seqs.get(id.0).is_empty()),
            Value::Object(id) => match (self.obj(id).kind, self.own(id)) {
                (ObjKind::List { .. } | ObjKind::Dict { .. }, Value::Seq(s)) => {
                    constant(!self.t.seqs.get(s.0).is_empty())
                }
                (ObjKind::List { .. } | ObjKind::Dict { .. }, _) => self.unknown_test(e),
                _ => TRUE,
            },
            Value::Outer(o) if o == self.known.device_count => self.d.atom(gpus_at_least(1)),
            Value::Outer(o) => {
                let test = self.asked_by_name(o).unwrap_or(Test::Truth(v));
                let answer = self.flag(test, o, "", e);
                // `is_xpu_available()`: the name states what the function checks, for any implementation.
                let text = &self.t.get_outer(o).text;
                match named_kind(text).filter(|_| text.contains("available")) {
                    Some(kind) => {
                        let there = self.available(kind);
                        self.d.and(answer, there)
                    }
                    None => answer,
                }
            }
            // `a < b` and `a > b` give equal tensors here, but are two tests.
            Value::Tensor(_) => match self.linked().ir.expr(e) {
                Expr::Compare { op, .. } => self.named_test(Test::Compare(40 + op as u8, v, Value::None), e),
                _ => self.named_test(Test::Truth(v), e),
            },
            Value::Choice(_) => {
                let b = self.each(v, &mut |i, v| Value::Bool(i.truth(v, e)));
                match b {
                    Value::Bool(c) => c,
                    _ => self.unknown_test(e),
                }
            }
            Value::Absent | Value::Unknown | Value::Host(_) | Value::Many(_) => self.unknown_test(e),
        }
    }

    /// A condition that equals no other, except for the same expression in the same pass.
    pub(crate) fn unknown_test(&mut self, e: ExprId) -> Cond {
        let test = Test::Expr(self.here().module, e, self.frame, self.run.pass);
        if !self.tests.atoms.contains_key(&test)
            && let Some(text) = self.asked_of(self.here().module, e)
        {
            let settable = !text.starts_with('…');
            let atom = Atom::Flag { text, about_devices: true, settable, default: None };
            let atom = self.atoms.add(atom);
            self.d.keep(atom);
            self.note_test(test, atom);
        }
        self.named_test(test, e)
    }

    pub(crate) fn named_test(&mut self, test: Test, e: ExprId) -> Cond {
        let atom = match self.tests.atoms.get(&test) {
            Some(&atom) => atom,
            None => {
                let place = self.place(e);
                let atom = self.atoms.add(Atom::Opaque { place });
                self.note_test(test, atom);
                atom
            }
        };
        self.d.atom(atom)
    }

    /// A new condition that no finding may depend on: "an exception was raised", "one of several".
    pub(crate) fn raised_atom(&mut self) -> Cond {
        let atom = self.atoms.add(Atom::Raised);
        self.d.atom(atom)
    }

    /// The condition that a handler of a `try` was reached. `unraised` is the path on which the body completes.
    pub(crate) fn caught_atom(&mut self, unraised: Cond) -> Cond {
        let atom = self.atoms.add(Atom::Caught);
        self.tests.unraised.insert(atom, unraised);
        self.d.atom(atom)
    }

    /// The condition that a back end is available. `None` is CUDA.
    pub(crate) fn available(&mut self, b: Option<Backend>) -> Cond {
        self.d.atom(b.map_or(gpus_at_least(1), backend))
    }
}

/// The number of the first ordering test in [`Test::Compare`].
pub(crate) const ORDERED: u8 = 2;

/// The outcome of the ordering test with this number for two numbers. `None` if it is no ordering test.
pub(crate) fn ordered<T: PartialOrd>(test: u8, x: T, y: T) -> Option<bool> {
    let ops = [CmpOp::Lt, CmpOp::LtE, CmpOp::Gt, CmpOp::GtE];
    ops.into_iter().find(|&op| test == ORDERED + op as u8).map(|op| in_order(op, x, y))
}

/// Whether the comparison holds between two numbers, or two tuples of numbers.
pub(crate) fn in_order<T: PartialOrd>(op: CmpOp, x: T, y: T) -> bool {
    match op {
        CmpOp::Lt => x < y,
        CmpOp::LtE => x <= y,
        CmpOp::Gt => x > y,
        _ => x >= y,
    }
}

pub(crate) const fn constant(b: bool) -> Cond {
    if b { TRUE } else { FALSE }
}

/// The accelerator in a name such as `"MULTI_XPU"`. The inner `None` is CUDA.
pub(crate) fn named_kind(text: &str) -> Option<Option<crate::world::Backend>> {
    let text = text.to_ascii_lowercase();
    text.split(|c: char| !c.is_ascii_alphanumeric()).find_map(|word| match word {
        "gpu" | "cuda" => Some(None),
        word => crate::world::Backend::from_name(word).map(Some),
    })
}
