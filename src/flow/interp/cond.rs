//! Conditions: what a test says about the machine, the user's flags and everything else.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::super::atom::{Atom, backend, gpus_at_least};
use super::super::diagram::{Cond, FALSE, TRUE};
use super::super::value::{OuterId, Value};
use super::{Interp, ObjKind, Test};
use crate::ir::{Expr, ExprId, ExprList, UnaryOp};
use crate::world::Backend;

impl Interp<'_> {
    /// The condition under which the expression is true.
    pub(super) fn test(&mut self, e: ExprId) -> Cond {
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

    pub(super) fn all(&mut self, list: ExprList, from: usize) -> Cond {
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

    pub(super) fn any(&mut self, list: ExprList, from: usize) -> Cond {
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

    /// The condition under which a value is true. `e` is where it is asked.
    pub(super) fn truth(&mut self, v: Value, e: ExprId) -> Cond {
        match v {
            Value::Bool(c) => c,
            Value::None => FALSE,
            Value::Int(i) => constant(i != 0),
            Value::Str(s, _) => constant(!s.as_str().is_empty()),
            Value::Device(_)
            | Value::External(_)
            | Value::Closure(_)
            | Value::Bound(_)
            | Value::Class(_)
            | Value::Module(_)
            | Value::Slice => TRUE,
            Value::Seq(id) => constant(!self.seq_items(id).is_empty()),
            Value::Object(id) => match (self.obj(id).kind, self.own(id)) {
                (ObjKind::List { .. } | ObjKind::Dict { .. }, Value::Seq(s)) => {
                    constant(!self.seq_items(s).is_empty())
                }
                (ObjKind::List { .. } | ObjKind::Dict { .. }, _) => self.unknown_test(e),
                _ => TRUE,
            },
            Value::Outer(o) if o == self.known.device_count => self.d.atom(gpus_at_least(1)),
            Value::Outer(o) => self.flag(Test::Truth(v), o, "", e),
            Value::Tensor(_) => self.named_test(Test::Truth(v), e),
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

    /// A condition that nothing else is known to be equal to, but the same expression in the same pass.
    pub(super) fn unknown_test(&mut self, e: ExprId) -> Cond {
        let test = Test::Expr(self.here().module, e, self.frame, self.pass);
        self.named_test(test, e)
    }

    pub(super) fn named_test(&mut self, test: Test, e: ExprId) -> Cond {
        let atom = match self.tests.get(&test) {
            Some(&atom) => atom,
            None => {
                let place = self.place(e);
                let atom = self.atoms.add(Atom::Opaque { place });
                self.tests.insert(test, atom);
                atom
            }
        };
        self.d.atom(atom)
    }

    /// The truth of a test on an outside thing: a flag that the caller or the user decides.
    pub(super) fn flag(&mut self, test: Test, outer: OuterId, suffix: &str, e: ExprId) -> Cond {
        let atom = match self.tests.get(&test) {
            Some(&atom) => atom,
            None => {
                let known = self.t.get_outer(outer);
                let atom = if known.text.is_empty() {
                    Atom::Opaque { place: self.place(e) }
                } else {
                    let default = known.default.and_then(|v| by_default(test, v));
                    let text = [known.text.as_str(), suffix].concat();
                    let about_devices = speaks_of_devices(&text) || self.annotated_for_devices(outer);
                    Atom::Flag { text, about_devices, default }
                };
                let atom = self.atoms.add(atom);
                self.tests.insert(test, atom);
                atom
            }
        };
        self.d.atom(atom)
    }

    /// `stream: torch.cuda.Stream | None`: who gives one has the device.
    pub(super) fn annotated_for_devices(&self, o: OuterId) -> bool {
        let super::OuterKey::Param { module, func, index } = self.t.get_outer(o).key else { return false };
        let ir = &self.program.get(module).ir;
        let param = ir.function(func).params.get(usize::from(index));
        param.and_then(|p| p.annotation).is_some_and(|a| names_device_object(ir, a))
    }

    /// A condition of its own, which no finding may depend on: "an exception was raised", "one of several".
    pub(super) fn raised_atom(&mut self) -> Cond {
        let atom = self.atoms.add(Atom::Raised);
        self.d.atom(atom)
    }

    /// The condition that a back end is available; CUDA for none.
    pub(super) fn available(&mut self, b: Option<Backend>) -> Cond {
        self.d.atom(b.map_or(gpus_at_least(1), backend))
    }
}

/// The outcome of a test on an option, if the user leaves it at its default.
pub(super) fn by_default(test: Test, default: Value) -> Option<bool> {
    match (test, default) {
        (Test::Truth(_), Value::Bool(c)) if c == TRUE || c == FALSE => Some(c == TRUE),
        (Test::Truth(_), Value::Int(n)) => Some(n != 0),
        (Test::Truth(_), Value::Str(s, _)) => Some(!s.as_str().is_empty()),
        (Test::Truth(_), Value::None) => Some(false),
        (Test::Compare(0, _, Value::Str(a, _)), Value::Str(b, _)) => Some(a == b),
        (Test::Compare(0, _, Value::Int(a)), Value::Int(b)) => Some(a == b),
        (Test::Compare(0, _, Value::None), v) => match v {
            Value::None => Some(true),
            Value::Int(_) | Value::Str(..) | Value::Bool(_) => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Does an annotation name a stream, an event or a graph of an accelerator?
pub(super) fn names_device_object(ir: &crate::ir::Module, e: ExprId) -> bool {
    match ir.expr(e) {
        Expr::Attr { base, name } => {
            matches!(name.as_str(), "Stream" | "Event" | "CUDAGraph") || names_device_object(ir, base)
        }
        Expr::Index { index, .. } => names_device_object(ir, index),
        Expr::Tuple(list) => ir.list(list).iter().any(|&x| names_device_object(ir, x)),
        Expr::Binary { left, right, .. } => names_device_object(ir, left) || names_device_object(ir, right),
        _ => false,
    }
}

/// Words that speak of devices. Looked for all at once: most flags are asked about and speak of something else.
static DEVICE_WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let words = [
        "cuda",
        "gpu",
        "device",
        "cpu",
        "accel",
        "mps",
        "xpu",
        "npu",
        "hpu",
        "tpu",
        "nccl",
        "distributed",
        "ddp",
        "rank",
        "parallel",
        "backend",
        "available",
        "xla",
        "mlu",
        "musa",
        "neuron",
        "offload",
        "pin",
        "amp",
        "fp16",
        "half",
        "triton",
        "hardware",
        "platform",
    ];
    AhoCorasick::builder().ascii_case_insensitive(true).build(words).ok()
});

/// Does a flag's name speak of devices? Then whoever sets it decides where things go.
pub(super) fn speaks_of_devices(text: &str) -> bool {
    DEVICE_WORDS.as_ref().is_some_and(|words| words.is_match(text))
}

pub(super) const fn constant(b: bool) -> Cond {
    if b { TRUE } else { FALSE }
}
