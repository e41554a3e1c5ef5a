//! Functions of PyTorch in the operator table: which tensors take part, factories, `out=`, arguments that must be on
//! the CPU.

use crate::flow::domain::dims::Dims;
use crate::flow::domain::event::Meeting;
use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::observers::mismatch::meet::{Party, Rule};
use crate::ir::{Expr, ExprId};
use crate::sym::Sym;
use crate::torch::{ArgRule, Elsewhere, Op, ResultRule, Share};

impl Interp<'_> {
    /// The tensors among the arguments, each with its rule from the table.
    pub(crate) fn parties(
        &mut self,
        op: &'static Op,
        receiver: Option<(Value, ExprId)>,
        args: &Args,
    ) -> Vec<Party> {
        let mut parties = Vec::new();
        let offset = usize::from(receiver.is_some());
        let positional = receiver.into_iter().chain(args.positional.iter().copied()).enumerate();
        for (position, (v, at)) in positional {
            let rule = op.positional(position);
            if rule.is_none()
                && (op.kind == crate::torch::Kind::Factory
                    || position >= offset.max(1) && !op.args.is_empty())
            {
                continue;
            }
            // For a method, the receiver may be of another class with the same method name.
            if receiver.is_none() && rule.is_some_and(|rule| !rule.list && only_tensors_go(op, rule)) {
                self.shown_by_taker(v);
            }
            self.add_party(op, rule, v, at, &mut parties);
        }
        // `meshgrid(*ranges)`: all elements of the unpacked argument.
        let position = offset + args.positional.len();
        if let (Some((v, at)), Some(rule)) = (args.spread, op.positional(position).filter(|r| r.variadic)) {
            self.add_party(op, Some(rule), v, at, &mut parties);
        }
        for &(name, v, at) in &args.keywords {
            if let Some(rule) = op.keyword(name) {
                self.add_party(op, Some(rule), v, at, &mut parties);
            }
        }
        parties
    }

    fn add_party(
        &mut self,
        op: &'static Op,
        rule: Option<&'static ArgRule>,
        v: Value,
        at: ExprId,
        parties: &mut Vec<Party>,
    ) {
        let r = rule.map_or(Rule { share: Share::Unknown, ..Rule::STRICT }, Rule::from);
        let list = rule.is_some_and(|r| r.list);
        let v = match v {
            Value::Outer(o) if list && self.holds_tensors(o) => {
                Value::Outer(self.outer_item(o, Value::Unknown))
            }
            v => v,
        };
        // The program passes it where the function accepts only tensors, so it is one.
        if let Value::Outer(o) = v
            && !list
            && rule.is_some_and(|rule| only_tensors_go(op, rule))
        {
            self.evidence.tensor_proofs.insert(o);
        }
        if let Some(p) = self.party(v, at, r) {
            parties.push(p);
            return;
        }
        if list || rule.is_none() {
            let items = match v {
                Value::Many(id) => self.members(*self.t.values.get(id)),
                v => self.exact_elements(v).unwrap_or_default(),
            };
            let written = self.written_items(at, items.len());
            for (n, item) in items.into_iter().enumerate() {
                self.shown_in_list(item);
                let at = written.get(n).copied().unwrap_or(at);
                if let Some(p) = self.party(item, at, r) {
                    parties.push(p);
                }
            }
            if let Value::Object(id) = v
                && let Value::Many(m) = self.own(id)
            {
                for item in self.members(*self.t.values.get(m)) {
                    parties.extend(self.party(item, at, r));
                }
            }
        }
    }

    /// The expressions of a literal list or tuple with exactly `wanted` items. Empty for anything else.
    fn written_items(&self, at: ExprId, wanted: usize) -> Vec<ExprId> {
        let ir = &self.linked().ir;
        let (Expr::List(items) | Expr::Tuple(items)) = ir.expr(at) else { return Vec::new() };
        let items = ir.list(items);
        let starred = |&e: &ExprId| matches!(ir.expr(e), Expr::Star(_));
        if items.len() == wanted && !items.iter().any(starred) { items.to_vec() } else { Vec::new() }
    }

    /// Checks that the tensor for `out=` is on the device of the result.
    #[expect(clippy::too_many_arguments, reason = "the whole call matters")]
    pub(crate) fn check_out(
        &mut self,
        op: &'static Op,
        what: &str,
        v: Value,
        at: ExprId,
        parties: &[Party],
        args: &Args,
        e: ExprId,
    ) {
        if !op.out_must_match {
            return;
        }
        if let Value::Choice(_) = v {
            self.each(v, &mut |i, v| {
                i.check_out(op, what, v, at, parties, args, e);
                Value::Absent
            });
            return;
        }
        // `out=(values, indices)`
        if let Value::Seq(several) = v {
            for v in self.seq_items(several).to_vec() {
                self.check_out(op, what, v, at, parties, args, e);
            }
            return;
        }
        let Some(out) = self.party(v, at, Rule::STRICT) else { return };
        let named = args.keyword("device").filter(|(v, _)| op.accepts.device && *v != Value::None);
        if let Some((d, at)) = named {
            let Some(device) = self.as_device(d, at) else { return };
            let first = Party { expr: at, device, dims: Dims::SOME, rule: Rule::STRICT };
            self.meet(Meeting::Function, what, e, &[first, out]);
        } else if let Some(first) = parties.first()
            && (op.kind != crate::torch::Kind::Factory || op.result == ResultRule::Follows)
        {
            let first = Party { rule: Rule::STRICT, ..*first };
            self.meet(Meeting::Function, what, e, &[first, out]);
        }
    }

    /// A call of a PyTorch function in the operator table.
    pub(crate) fn torch_function(&mut self, path: Sym, op: &'static Op, args: &Args, e: ExprId) -> Value {
        let name = path.as_str();
        if op.kind == crate::torch::Kind::Distribution {
            return self.distribution(op, args, e);
        }
        if let Some(method) = name.strip_prefix("torch.Tensor.")
            && let Some((&(v, at), rest)) = args.positional.split_first()
        {
            let rest = Args { positional: rest.to_vec(), ..args.clone() };
            return self.call_method(v, Sym::new(method), &rest, e, at);
        }
        let made = self.apply_op(op, None, args, e, name);
        // `nn.init.normal_(parameter)` returns its argument.
        match args.positional.first() {
            Some(&(same @ Value::Tensor(_), _))
                if name.starts_with("torch.nn.init.") && name.ends_with('_') =>
            {
                same
            }
            _ => made,
        }
    }
}

/// The last part of a dotted name.
pub(crate) fn short(path: Sym) -> &'static str {
    last_part(path.as_str())
}

/// The same for a string.
pub(crate) fn last_part(name: &str) -> &str {
    name.bytes().rposition(|b| b == b'.').and_then(|dot| name.get(dot + 1..)).unwrap_or(name)
}

/// Must the argument be a tensor? Later arguments may also be numbers: `torch.add(x, 2)`.
fn only_tensors_go(op: &Op, rule: &ArgRule) -> bool {
    let numbers = rule.share == Share::Must && !matches!(rule.cpu_ok, Elsewhere::No);
    // The target of a loss.
    if rule.share == Share::Must && rule.name.as_str() == "target" {
        return true;
    }
    rule.position == Some(0)
        && match rule.name.as_str() {
            // `torch.Tensor.__add__` also accepts a number.
            "input" if numbers => {
                !takes_number_first(op.name) && !op.name.as_str().starts_with("torch.Tensor.")
            }
            "input" => !takes_number_first(op.name),
            _ => rule.share == Share::Must && !numbers,
        }
}

/// Whether the function's `input` may be a number if another argument is a tensor.
fn takes_number_first(path: Sym) -> bool {
    path.as_str().starts_with("torch.special.")
        || matches!(
            short(path),
            "add"
                | "bitwise_and"
                | "bitwise_left_shift"
                | "bitwise_or"
                | "bitwise_right_shift"
                | "bitwise_xor"
                | "bucketize"
                | "div"
                | "divide"
                | "float_power"
                | "floor_divide"
                | "mul"
                | "multiply"
                | "pow"
                | "remainder"
                | "result_type"
                | "sub"
                | "subtract"
                | "true_divide"
                | "xlogy"
        )
}
