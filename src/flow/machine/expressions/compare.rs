//! Comparisons of values, devices, counts and amounts.

use crate::flow::domain::atom::{Atom, gpus_at_least};
use crate::flow::domain::diagram::{Cond, Dd, FALSE, TRUE};
use crate::flow::domain::value::{Device, Host, Value};
use crate::flow::machine::expressions::truth::{ORDERED, constant, in_order, named_kind};
use crate::flow::machine::frame::ObjKind;
use crate::flow::machine::{Interp, Test};
use crate::flow::models::devices::from_values::parse_device;
use crate::flow::query::flag_words::speaks_of_devices;
use crate::ir::{CmpOp, ExprId};
use crate::sym::Sym;

/// Whether two values are equal, if both are constants.
fn same_constant(a: Value, b: Value) -> Option<bool> {
    match (a, b) {
        (Value::Int(x), Value::Int(y)) => Some(x == y),
        (Value::Str(x, _), Value::Str(y, _)) | (Value::External(x), Value::External(y)) => Some(x == y),
        (Value::None, Value::None) => Some(true),
        _ => None,
    }
}

impl Interp<'_> {
    /// The value of `left op right`.
    pub(crate) fn compare(&mut self, op: CmpOp, left: Value, right: Value, e: ExprId) -> Value {
        let cond = match op {
            CmpOp::Eq | CmpOp::Is => {
                let c = self.equal(left, right, e);
                self.ranks_compared((left, right), c, e);
                c
            }
            CmpOp::NotEq | CmpOp::IsNot => {
                let c = self.equal(left, right, e);
                self.ranks_compared((left, right), c, e);
                self.d.not(c)
            }
            CmpOp::In | CmpOp::NotIn => {
                let c = self.contains(right, left, e);
                if op == CmpOp::In { c } else { self.d.not(c) }
            }
            CmpOp::Lt | CmpOp::LtE | CmpOp::Gt | CmpOp::GtE => self.order(op, left, right, e),
        };
        if matches!((left, right), (Value::Tensor(_), _) | (_, Value::Tensor(_)))
            && !matches!(op, CmpOp::Is | CmpOp::IsNot | CmpOp::In | CmpOp::NotIn)
        {
            return Value::Unknown;
        }
        Value::Bool(cond)
    }

    /// The condition that has the first outcome where `c` holds and the second elsewhere.
    fn either(&mut self, c: Cond, there: bool, elsewhere: bool) -> Cond {
        match (there, elsewhere) {
            (true, false) => c,
            (false, true) => self.d.not(c),
            (same, _) => constant(same),
        }
    }

    /// The condition of `a == b` and `a is b`.
    pub(crate) fn equal(&mut self, a: Value, b: Value, e: ExprId) -> Cond {
        if let Some(c) = self.device_equal(a, b, e).or_else(|| self.device_equal(b, a, e)) {
            return c;
        }
        if let Some(same) = same_constant(a, b) {
            return constant(same);
        }
        match (a, b) {
            (Value::Choice(_), _) => self.choice_equal(a, b, e),
            (_, Value::Choice(_)) => self.equal(b, a, e),
            (Value::Bool(x), Value::Bool(y)) => {
                let not = self.d.not(y);
                self.d.ite(x, y, not).unwrap_or_else(|| self.unknown_test(e))
            }
            (Value::Bool(c), Value::Int(n)) | (Value::Int(n), Value::Bool(c)) => {
                self.either(c, n == 1, n == 0)
            }
            // A device number is -1 on the CPU. A comparison with another number implies a GPU.
            (Value::Device(d), v) | (v, Value::Device(d))
                if self.is_device_number(d) && !matches!(v, Value::Device(_)) =>
            {
                self.device_number_equal(d, v, e)
            }
            (Value::Outer(o), v) | (v, Value::Outer(o)) => self.outer_equal(o, v, e),
            (
                Value::None,
                Value::Tensor(_)
                | Value::Object(_)
                | Value::Int(_)
                | Value::Str(..)
                | Value::Device(_)
                | Value::Closure(_)
                | Value::Class(_)
                | Value::External(_)
                | Value::Seq(_)
                | Value::Host(_)
                | Value::Bool(_),
            ) => FALSE,
            (x, Value::None) if x != Value::None && !matches!(x, Value::Unknown | Value::Absent) => {
                self.equal(b, a, e)
            }
            // A device never equals a number. Only the result of `get_device()` does.
            (Value::Device(d), Value::Int(_)) | (Value::Int(_), Value::Device(d)) if self.is_no_number(d) => {
                FALSE
            }
            (Value::External(path), Value::Str(s, _)) | (Value::Str(s, _), Value::External(path))
                if crate::flow::models::python::operating_system::is_platform(path) =>
            {
                self.on_platform(s.as_str())
            }
            // A process has only one global rank.
            (rank @ Value::Host(Host::Rank), n @ Value::Int(_))
            | (n @ Value::Int(_), rank @ Value::Host(Host::Rank)) => {
                self.named_test(Test::Compare(0, rank, n), e)
            }
            (Value::Object(x), Value::Object(y)) if x == y => TRUE,
            (Value::Seq(x), Value::Seq(y)) => match (self.numbers_in(x), self.numbers_in(y)) {
                (Some(x), Some(y)) => constant(x == y),
                _ => self.unknown_test(e),
            },
            // `kind == "MULTI_GPU"`, for any `kind`: a decision about devices.
            (v, Value::Str(s, _)) | (Value::Str(s, _), v) if speaks_of_devices(s.as_str()) => {
                self.decided(v, s, e)
            }
            _ => self.unknown_test(e),
        }
    }

    /// The same for a value with several alternatives.
    fn choice_equal(&mut self, a: Value, b: Value, e: ExprId) -> Cond {
        match (self.each(a, &mut |i, v| Value::Bool(i.equal(v, b, e))), b) {
            (Value::Bool(c), _) => c,
            (_, Value::Str(s, _)) if speaks_of_devices(s.as_str()) => self.decided(a, s, e),
            _ => self.unknown_test(e),
        }
    }

    /// The same for a device number.
    fn device_number_equal(&mut self, d: Dd, v: Value, e: ExprId) -> Cond {
        let cuda = self.is_device(d, Device::Cuda(None), e);
        if matches!(v, Value::Int(..0)) {
            return self.d.not(cuda);
        }
        let same = self.unknown_test(e);
        self.d.and(same, cuda)
    }

    /// The numbers of a tuple that holds only numbers.
    fn numbers_in(&self, s: crate::flow::domain::value::SeqId) -> Option<Vec<i64>> {
        let number = |&v: &Value| if let Value::Int(n) = v { Some(n) } else { None };
        self.seq_items(s).iter().map(number).collect()
    }

    /// Whether the value is a `torch.device` or a device name. Values that a caller may pass as numbers are excluded.
    fn is_no_number(&self, d: Dd) -> bool {
        let named =
            |device| matches!(device, Device::Cpu | Device::Cuda(_) | Device::Meta | Device::Other(_));
        !self.is_text(d) && self.device_leaves(d).into_iter().all(|(_, device, _)| named(device))
    }

    /// The condition of a comparison with a string that refers to devices: some code has decided about devices. If the
    /// string names an accelerator, the condition implies that accelerator.
    fn decided(&mut self, v: Value, text: Sym, e: ExprId) -> Cond {
        let test = if matches!(v, Value::Unknown | Value::Absent | Value::Choice(_)) {
            Test::Expr(self.here().module, e, self.frame, self.run.pass)
        } else {
            Test::Compare(30, v, Value::Str(text, crate::flow::domain::value::NO_ORIGIN))
        };
        let atom = match self.tests.atoms.get(&test) {
            Some(&atom) => atom,
            None => {
                let flag = format!("… == {:?}", text.as_str());
                let atom = self.atoms.add(Atom::Flag {
                    text: flag,
                    about_devices: true,
                    settable: false,
                    default: None,
                });
                self.note_test(test, atom);
                atom
            }
        };
        let decided = self.d.atom(atom);
        match named_kind(text.as_str()) {
            Some(kind) => {
                let there = self.available(kind);
                self.d.and(decided, there)
            }
            None => decided,
        }
    }

    pub(crate) fn as_cond(&mut self, v: Value, e: ExprId) -> Cond {
        match v {
            Value::Bool(c) => c,
            _ => self.unknown_test(e),
        }
    }

    pub(crate) fn order(&mut self, op: CmpOp, a: Value, b: Value, e: ExprId) -> Cond {
        match (a, b) {
            (Value::Host(Host::Memory), _) | (_, Value::Host(Host::Memory)) => {
                let test = Test::Expr(self.here().module, e, self.frame, self.run.pass);
                let atom = match self.tests.atoms.get(&test) {
                    Some(&atom) => atom,
                    None => {
                        let atom = self.atoms.add(Atom::Memory);
                        self.note_test(test, atom);
                        atom
                    }
                };
                let enough = self.d.atom(atom);
                // No memory is in use on a missing device.
                if matches!((a, op, b), (_, CmpOp::Gt, Value::Int(0..)) | (_, CmpOp::GtE, Value::Int(1..))) {
                    let there = self.available(None);
                    return self.d.and(enough, there);
                }
                enough
            }
            (Value::Int(x), Value::Int(y)) => constant(in_order(op, x, y)),
            // A Boolean is a number, 0 or 1.
            (Value::Bool(c), Value::Int(n)) => self.either(c, in_order(op, 1, n), in_order(op, 0, n)),
            // `capability < (8, 0)`, after `capability = (0, 0)`
            (Value::Choice(_), Value::Seq(_)) => {
                let r = self.each(a, &mut |i, v| Value::Bool(i.order(op, v, b, e)));
                self.as_cond(r, e)
            }
            (Value::Seq(x), Value::Seq(y)) => match (self.numbers_in(x), self.numbers_in(y)) {
                (Some(x), Some(y)) => constant(in_order(op, x, y)),
                _ => self.unknown_test(e),
            },
            // `get_device()` on a path with a GPU, and -1 on others.
            (Value::Choice(_), Value::Int(_))
                if self.values_of(a).iter().any(|v| matches!(v, Value::Device(_))) =>
            {
                let r = self.each(a, &mut |i, v| Value::Bool(i.order(op, v, b, e)));
                self.as_cond(r, e)
            }
            (Value::Outer(o), Value::Int(n)) if o == self.known.device_count => self.count_order(op, n),
            (Value::Int(n), Value::Outer(o)) if o == self.known.device_count => {
                self.count_order(flipped(op), n)
            }
            // A device index from `get_device()` is -1 on the CPU.
            (Value::Device(d), Value::Int(n)) if n <= 0 => {
                let cuda = self.is_device(d, Device::Cuda(None), e);
                if matches!(op, CmpOp::Gt | CmpOp::GtE) { cuda } else { self.d.not(cuda) }
            }
            (Value::Outer(o), Value::Outer(p)) if o == p => constant(matches!(op, CmpOp::LtE | CmpOp::GtE)),
            // `wanted <= torch.cuda.device_count()`
            (_, Value::Outer(o)) if o == self.known.device_count => self.order(flipped(op), b, a, e),
            (Value::Outer(o), v) => {
                let sign = match op {
                    CmpOp::Lt => " <",
                    CmpOp::LtE => " <=",
                    CmpOp::Gt => " >",
                    _ => " >=",
                };
                let suffix = match v {
                    Value::Int(i) => format!("{sign} {i}"),
                    _ => sign.to_owned(),
                };
                let c = self.flag(Test::Compare(ORDERED + op as u8, Value::Outer(o), v), o, &suffix, e);
                if o == self.known.device_count { self.enough_gpus(op, c) } else { c }
            }
            (Value::Choice(_), _) => {
                let c = self.each(a, &mut |i, v| Value::Bool(i.order(op, v, b, e)));
                self.as_cond(c, e)
            }
            _ => self.unknown_test(e),
        }
    }

    /// The condition of a comparison of the number of GPUs with an unknown number: the program wants at least one GPU.
    fn enough_gpus(&mut self, op: CmpOp, c: Cond) -> Cond {
        let some = self.at_least(1);
        if matches!(op, CmpOp::Gt | CmpOp::GtE) {
            return self.d.and(c, some);
        }
        let none = self.d.not(some);
        self.d.or(c, none)
    }

    pub(crate) fn count_order(&mut self, op: CmpOp, n: i64) -> Cond {
        let at_least = |i: &mut Self, n: i64| match u32::try_from(n) {
            Ok(0) | Err(_) => TRUE,
            Ok(n) => i.d.atom(gpus_at_least(n)),
        };
        match op {
            CmpOp::Gt => at_least(self, n + 1),
            CmpOp::GtE => at_least(self, n),
            CmpOp::Lt => {
                let c = at_least(self, n);
                self.d.not(c)
            }
            _ => {
                let c = at_least(self, n + 1);
                self.d.not(c)
            }
        }
    }

    /// The condition of `item in container`.
    pub(crate) fn contains(&mut self, container: Value, item: Value, e: ExprId) -> Cond {
        match (container, item) {
            // `"cuda" in str(device)`
            (Value::Device(_), Value::Str(s, _)) => {
                if let (Value::Device(d), Some(wanted)) = (container, parse_device(s.as_str())) {
                    return self.is_device(d, wanted, e);
                }
                self.unknown_test(e)
            }
            (Value::Str(text, _), Value::Str(s, _)) => constant(text.as_str().contains(s.as_str())),
            (Value::Seq(id), item) => {
                let mut cond = FALSE;
                for v in self.seq_items(id) {
                    let c = self.equal(item, v, e);
                    cond = self.d.or(cond, c);
                }
                cond
            }
            (Value::Object(id), item) => match (self.obj(id).kind, self.own(id)) {
                (ObjKind::List { .. }, content @ Value::Seq(_)) => self.contains(content, item, e),
                (ObjKind::Dict { .. }, Value::Seq(s)) => {
                    let keys: Vec<Value> = self.seq_items(s).iter().step_by(2).copied().collect();
                    let keys = self.seq(&keys);
                    self.contains(keys, item, e)
                }
                (ObjKind::Dict { .. }, content @ Value::Choice(_)) => {
                    let r = self.each(content, &mut |i, c| {
                        let Value::Seq(s) = c else { return Value::Unknown };
                        let keys: Vec<Value> = i.seq_items(s).iter().step_by(2).copied().collect();
                        let keys = i.seq(&keys);
                        Value::Bool(i.contains(keys, item, e))
                    });
                    self.as_cond(r, e)
                }
                (ObjKind::List { .. } | ObjKind::Dict { .. }, _) => {
                    self.has_key(id, item, e).unwrap_or_else(|| self.unknown_test(e))
                }
                _ => self.unknown_test(e),
            },
            // The user or the launcher decides the environment.
            (Value::External(path), Value::Str(s, _)) if path.as_str() == "os.environ" => {
                let outer = self.outside_name(path);
                let text = format!(" has {:?}", s.as_str());
                let key = Value::Str(s, crate::flow::domain::value::NO_ORIGIN);
                let given = self.flag(Test::Compare(9, Value::Outer(outer), key), outer, &text, e);
                let put = self.has_put(s);
                self.d.or(put, given)
            }
            (Value::Outer(o), Value::Str(s, _)) => self.has_outside(o, s, e),
            (Value::Many(_), _) => match self.asked_for_keys(e) {
                Some(dict) => self.contains(dict, item, e),
                None => self.unknown_test(e),
            },
            (Value::Choice(_), item) => {
                let r = self.each(container, &mut |i, c| Value::Bool(i.contains(c, item, e)));
                self.as_cond(r, e)
            }
            _ => self.unknown_test(e),
        }
    }
}

/// The test `hasattr(v, name)`.
pub(crate) fn has_test(v: Value, name: Sym) -> Test {
    Test::Compare(21, v, Value::Str(name, crate::flow::domain::value::NO_ORIGIN))
}

/// The same comparison with its operands swapped.
const fn flipped(op: CmpOp) -> CmpOp {
    match op {
        CmpOp::Lt => CmpOp::Gt,
        CmpOp::LtE => CmpOp::GtE,
        CmpOp::Gt => CmpOp::Lt,
        _ => CmpOp::LtE,
    }
}
