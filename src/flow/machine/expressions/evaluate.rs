//! Expressions.

use crate::flow::domain::diagram::{FALSE, TRUE};
use crate::flow::domain::dims::Dims;
use crate::flow::domain::value::{Host, NO_ORIGIN, Reason, Value};
use crate::flow::heap::containers::last_of_each_key;
use crate::flow::machine::Interp;
use crate::flow::machine::expressions::truth::constant;
use crate::flow::machine::frame::ObjKind;
use crate::flow::models::devices::from_values::parse_device;
use crate::ir::{BinOp, CmpOp, Expr, ExprId, ExprList, FuncId, IfElse, UnaryOp, Walrus, Whole};
use crate::sym::Sym;
use crate::words::Words;

static KEYS_OF_WEIGHTS: Words = Words::of("keys of weights");

/// The key of an unknown item of a mapping, for `values()`.
pub(crate) const ANY_VALUE: Value = Value::Host(Host::Other);

impl Interp<'_> {
    /// Evaluates an expression, with its effects.
    pub(crate) fn eval(&mut self, e: ExprId) -> Value {
        if !self.step() {
            return Value::Unknown;
        }
        let linked = self.linked();
        match linked.ir.expr(e) {
            Expr::Var(var) => {
                let v = self.read_var(var, e);
                self.as_held(v)
            }
            Expr::Attr { base, name } => {
                let b = self.eval(base);
                self.attr(b, name, e)
            }
            Expr::Call(id) => self.call(id, e),
            Expr::Index { base, index } => {
                let b = self.eval(base);
                let i = self.eval(index);
                let v = self.index(b, i, e, base, index);
                self.as_held(v)
            }
            Expr::Slice(list) => {
                self.eval_all(list);
                Value::Slice
            }
            Expr::Tuple(list) => self.sequence(list),
            Expr::List(list) => {
                let content = self.sequence(list);
                self.true_list(content)
            }
            Expr::Set(list) => {
                let content = self.sequence(list);
                Value::Object(self.object(ObjKind::List { module: false }, None, content))
            }
            Expr::Dict(list) => self.dict(list),
            Expr::Binary { op, left, right } => {
                let a = self.eval(left);
                let b = self.eval(right);
                self.binary(op, a, b, e, left, right)
            }
            Expr::Unary { op: UnaryOp::Not, .. } => Value::Bool(self.test(e)),
            Expr::Unary { op, operand } => self.unary(op, operand),
            Expr::And(list) => self.and_or(list, 0, true),
            Expr::Or(list) => self.and_or(list, 0, false),
            Expr::Compare { op, left, right } => self.comparison(op, left, right, e),
            Expr::IfElse(id) => {
                let IfElse { test, then, orelse } = linked.ir.if_else(id);
                let cond = self.test(test);
                self.branch(cond, &mut |i| i.eval(then), &mut |i| i.eval(orelse))
            }
            literal @ (Expr::Str(_)
            | Expr::Int(_)
            | Expr::Float(_)
            | Expr::Imaginary
            | Expr::True
            | Expr::False
            | Expr::None
            | Expr::Ellipsis) => self.literal(literal, e),
            Expr::Format(list) => self.format(list, e),
            Expr::Lambda(func) => self.lambda(func),
            Expr::Comp(id) => self.comprehension(id, e),
            Expr::Await(x) => self.eval(x),
            Expr::Yield(x) => {
                let v = self.eval(x);
                self.yields(v);
                Value::Unknown
            }
            Expr::YieldFrom(x) => {
                let v = self.eval(x);
                let v = self.some_element(v, x);
                self.yields(v);
                Value::Unknown
            }
            Expr::Star(x) => self.eval(x),
            Expr::Walrus(id) => {
                let Walrus { target, value } = linked.ir.walrus(id);
                let v = self.eval(value);
                self.set_var(target, v);
                v
            }
            Expr::Opaque(list) => {
                self.eval_all(list);
                Value::Unknown
            }
        }
    }

    /// Evaluates the expressions for their effects.
    fn eval_all(&mut self, list: ExprList) {
        let linked = self.linked();
        for &x in linked.ir.list(list) {
            self.eval(x);
        }
    }

    /// The value of a literal. A string that names a device is the origin of that device.
    fn literal(&mut self, literal: Expr, e: ExprId) -> Value {
        match literal {
            Expr::Str(s) if parse_device(s.as_str()).is_some() => {
                let place = self.place(e);
                Value::Str(s, self.origin(place, Reason::Literal, NO_ORIGIN))
            }
            Expr::Str(s) => Value::Str(s, NO_ORIGIN),
            Expr::Int(Whole(i)) => Value::Int(i),
            Expr::Float(_) | Expr::Imaginary => Self::NUMBER,
            Expr::True => Value::Bool(TRUE),
            Expr::False => Value::Bool(FALSE),
            Expr::None => Value::None,
            _ => Value::Slice,
        }
    }

    /// The value of `-x`, `+x` or `~x`.
    fn unary(&mut self, op: UnaryOp, operand: ExprId) -> Value {
        match (op, self.eval(operand)) {
            (UnaryOp::Neg, Value::Int(i)) => Value::Int(i.wrapping_neg()),
            (_, v @ (Value::Tensor(_) | Value::Outer(_))) => v,
            (_, v @ Value::Host(Host::Doubles)) => v,
            (_, v @ Value::Choice(_)) => self.each(v, &mut |_, v| match v {
                Value::Tensor(_) | Value::Outer(_) | Value::Host(Host::Doubles) => v,
                Value::Host(_) => Self::NUMBER,
                _ => Value::Unknown,
            }),
            (_, Value::Host(_)) => Self::NUMBER,
            _ => Value::Unknown,
        }
    }

    /// Evaluates `left op right`, and reports events about the comparison itself.
    fn comparison(&mut self, op: CmpOp, left: ExprId, right: ExprId, e: ExprId) -> Value {
        let a = self.eval(left);
        let b = self.eval(right);
        if self.check_device_compare(op, (a, left), (b, right)) {
            return Value::Bool(constant(op == CmpOp::NotEq));
        }
        self.check_looked_in(op, a, (b, right), e);
        self.compare_each(op, (a, left), (b, right), e)
    }

    /// Joins a yielded value with those before it.
    fn yields(&mut self, v: Value) {
        let yields = self.here().yields;
        let joined = self.blend(yields, v);
        self.here_mut().yields = joined;
    }

    fn sequence(&mut self, list: ExprList) -> Value {
        let linked = self.linked();
        let mut items = Vec::with_capacity(list.len as usize);
        let mut exact = true;
        for &x in linked.ir.list(list) {
            let v = self.eval(x);
            if matches!(linked.ir.expr(x), Expr::Star(_)) {
                let v = self.next_round(v);
                match self.exact_elements(v) {
                    Some(more) => items.extend(more),
                    None => {
                        exact = false;
                        let v = self.some_element(v, x);
                        items.push(v);
                    }
                }
            } else {
                items.push(v);
            }
        }
        if exact { self.seq(&items) } else { self.many_of(&items) }
    }

    fn dict(&mut self, list: ExprList) -> Value {
        let linked = self.linked();
        let mut items = Vec::with_capacity(list.len as usize);
        let mut exact = true;
        for pair in linked.ir.list(list).chunks(2) {
            let &[k, v] = pair else { continue };
            if matches!(linked.ir.expr(k), Expr::Star(_)) {
                let v = self.eval(v);
                match self.dict_items(v) {
                    Some(more) => items.extend(more),
                    None => exact = false,
                }
                continue;
            }
            let key = self.eval(k);
            let value = self.eval(v);
            items.extend([key, value]);
        }
        let content = if exact {
            let items = last_of_each_key(items);
            self.seq(&items)
        } else {
            let values: Vec<Value> =
                items.iter().skip(1).step_by(2).copied().chain([Value::Unknown]).collect();
            self.many_of(&values)
        };
        Value::Object(self.object(ObjKind::Dict { module: false }, None, content))
    }

    fn and_or(&mut self, list: ExprList, from: usize, and: bool) -> Value {
        let linked = self.linked();
        let items = linked.ir.list(list);
        let Some(&first) = items.get(from) else { return Value::Unknown };
        let v = self.eval(first);
        if from + 1 == items.len() {
            return v;
        }
        let meant = self.check_uncalled(first, v);
        let cond = match meant {
            Some(meant) => meant,
            None => self.truth(v, first),
        };
        let short = |end| if meant.is_some() || v == Value::Bool(cond) { Value::Bool(end) } else { v };
        if and {
            // The value is false in any case.
            let short = if v == Value::Unknown { Value::Bool(FALSE) } else { short(FALSE) };
            self.branch(cond, &mut |i| i.and_or(list, from + 1, and), &mut |_| short)
        } else {
            let short = short(TRUE);
            self.branch(cond, &mut |_| short, &mut |i| i.and_or(list, from + 1, and))
        }
    }

    fn lambda(&mut self, func: FuncId) -> Value {
        let (module, frame) = (self.here().module, self.frame);
        self.names.def_paths.insert((module, func), self.path);
        self.captures_defaults(func);
        let nested = (self.here().func != FuncId(0)).then_some(frame);
        self.closure(module, func, nested)
    }

    pub(crate) fn binary(&mut self, op: BinOp, a: Value, b: Value, e: ExprId, l: ExprId, r: ExprId) -> Value {
        let constant = |v| match v {
            Value::External(path) if crate::flow::models::tensors::methods::is_constant(path) => Self::NUMBER,
            v => v,
        };
        let (a, b) = (self.number_if_size(constant(a)), self.number_if_size(constant(b)));
        match (a, b) {
            (Value::Host(Host::Memory), Value::Host(_) | Value::Int(_))
            | (Value::Host(_) | Value::Int(_), Value::Host(Host::Memory)) => Value::Host(Host::Memory),
            (Value::Int(x), Value::Int(y)) => arithmetic(op, x, y),
            // If there are no GPUs, half their number is 0.
            (Value::Outer(o), Value::Int(1..)) if o == self.known.device_count && op == BinOp::FloorDiv => {
                let some = self.at_least(1);
                self.ite(some, Self::NUMBER, Value::Int(0))
            }
            // `rank % torch.cuda.device_count()`
            (_, Value::Outer(o)) if o == self.known.device_count && op == BinOp::Mod => Self::NUMBER,
            (Value::Str(..), _) if let Some(text) = self.text_binary(op, a, b, e) => text,
            (Value::Bool(x), Value::Bool(y)) if op == BinOp::BitAnd => Value::Bool(self.d.and(x, y)),
            (Value::Bool(x), Value::Bool(y)) if op == BinOp::BitOr => Value::Bool(self.d.or(x, y)),
            (Value::Seq(x), Value::Seq(y)) if op == BinOp::Add => {
                let items: Vec<Value> =
                    self.seq_items(x).iter().chain(self.seq_items(y).iter()).copied().collect();
                self.seq(&items)
            }
            (Value::Object(_), _) | (_, Value::Object(_)) => self.object_binary(op, a, b, e),
            (Value::Choice(_), _) => self.each(a, &mut |i, v| i.binary(op, v, b, e, l, r)),
            (_, Value::Choice(_)) => self.each(b, &mut |i, v| i.binary(op, a, v, e, l, r)),
            (Value::Host(Host::Doubles), v) | (v, Value::Host(Host::Doubles))
                if let Some(result) = self.doubles_binary(v, l, r) =>
            {
                result
            }
            // A tensor is not added to a string or formatted into one.
            (Value::Str(..) | Value::Host(Host::Text), Value::Outer(_)) => Self::TEXT,
            (Value::Outer(_), Value::Str(..) | Value::Host(Host::Text)) if op == BinOp::Add => Self::TEXT,
            (Value::Tensor(_) | Value::Outer(_), _) | (_, Value::Tensor(_) | Value::Outer(_)) => {
                self.tensor_binary(op, a, b, e, l, r)
            }
            _ => host_binary(a, b),
        }
    }

    /// The result of an operator with a string on its left, if the result may name a device.
    fn text_binary(&mut self, op: BinOp, text: Value, other: Value, e: ExprId) -> Option<Value> {
        let Value::Str(x, _) = text else { return None };
        match (op, other) {
            // `"cuda:" + str(i)`
            (BinOp::Add, Value::Str(y, _)) => Some(self.joined_text(&format!("{x}{y}"), e)),
            (BinOp::Add, _) if x.as_str() == "cuda:" => {
                self.check_index_meaning(other, e, None);
                Some(self.some_cuda(e))
            }
            (BinOp::Mod, _) => Some(self.percent(x, other, e)),
            // `"cuda" * torch.cuda.is_available()`
            (BinOp::Mul, Value::Bool(c)) => {
                let empty = Value::Str(Sym::new(""), NO_ORIGIN);
                Some(self.ite(c, text, empty))
            }
            _ => None,
        }
    }

    /// The result of an operator on a 64-bit floating-point array and a value that is no tensor.
    fn doubles_binary(&mut self, other: Value, l: ExprId, r: ExprId) -> Option<Value> {
        if self.is_imaginary(l) || self.is_imaginary(r) {
            return Some(Self::ARRAY);
        }
        // The other operand is most likely a number: the result is 64-bit as the array.
        self.never_shown(other).then_some(Self::DOUBLES)
    }

    pub(crate) fn aug_assign(&mut self, target: ExprId, op: BinOp, value: ExprId) {
        let old = self.eval(target);
        let v = self.eval(value);
        if let Value::Object(id) = old
            && matches!(self.obj(id).kind, ObjKind::List { .. })
            && op == BinOp::Add
        {
            self.extend_list(id, v, value);
            return;
        }
        // A counter in a loop has another value in each round, and the number of rounds is unknown.
        let counted = self.here().loops.last().is_some_and(|l| l.open);
        let new = match (old, v) {
            (Value::Int(_), Value::Int(_)) if counted => Self::NUMBER,
            _ => self.augmented(op, old, v, target, value),
        };
        self.assign(target, new);
    }

    /// The dimensions of a value, as far as they are known.
    pub(crate) fn dims(&self, v: Value) -> Dims {
        match v {
            Value::Tensor(id) => self.get_tensor(id).dims,
            _ => Dims::ANY,
        }
    }
}

/// The result of an operator on numbers, arrays and strings of the host.
fn host_binary(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::Host(Host::Doubles), _) | (_, Value::Host(Host::Doubles)) => Interp::DOUBLES,
        (Value::Host(Host::Array), _) | (_, Value::Host(Host::Array)) => Interp::ARRAY,
        (Value::Host(Host::Numbers), _) | (_, Value::Host(Host::Numbers)) => Interp::NUMBERS,
        (Value::Host(Host::Text) | Value::Str(..), _) => Interp::TEXT,
        (
            Value::Host(_) | Value::Int(_) | Value::Bool(_),
            Value::Host(_) | Value::Int(_) | Value::Bool(_),
        ) => Interp::NUMBER,
        _ => Value::Unknown,
    }
}

fn arithmetic(op: BinOp, x: i64, y: i64) -> Value {
    let r = match op {
        BinOp::Add => x.checked_add(y),
        BinOp::Sub => x.checked_sub(y),
        BinOp::Mul => x.checked_mul(y),
        BinOp::FloorDiv => x.checked_div_euclid(y),
        BinOp::Mod => x.checked_rem_euclid(y),
        BinOp::Pow => u32::try_from(y).ok().and_then(|y| x.checked_pow(y)),
        BinOp::LShift => u32::try_from(y).ok().filter(|&y| y < 62).and_then(|y| x.checked_mul(1 << y)),
        BinOp::RShift => u32::try_from(y).ok().and_then(|y| x.checked_shr(y)),
        _ => None,
    };
    r.map_or(Value::Host(Host::Number), Value::Int)
}

/// Whether a checkpoint has weights under this key.
pub(crate) fn names_weights(key: &str) -> bool {
    key.ends_with("state_dict") || key.ends_with("_weights") || KEYS_OF_WEIGHTS.has(key)
}
