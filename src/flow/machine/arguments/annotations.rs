//! What a parameter's annotation shows about its value.

use crate::flow::domain::value::{Host, Value};
use crate::flow::machine::Interp;
use crate::ir::{Expr, ExprId};
use crate::link::{ModIdx, Resolved};
use crate::torch::{ModuleOp, State};
use crate::words::Words;

static NUMBERS: Words = Words::of("number types of Python");
static ITERABLES: Words = Words::of("types of sequences");
static LISTS: Words = Words::of("list and tuple types");
static MAPPINGS: Words = Words::of("mapping types");
static TENSORS: Words = Words::of("tensor types");
static BESIDE_TENSORS: Words = Words::of("types beside tensors");
static JAXTYPING: Words = Words::of("jaxtyping types");

impl Interp<'_> {
    /// `tuple[int, int, int]`, `list[float]`: sizes, not tensors.
    pub(crate) fn annotated_numbers(&mut self, module: ModIdx, annotation: ExprId) -> Option<Value> {
        let ir = &self.program.get(module).ir;
        let Expr::Index { base, index } = ir.expr(annotation) else { return None };
        let number = |e: ExprId| plain_annotation(ir, e).is_some_and(|name| NUMBERS.has(name));
        let numbers = match ir.expr(index) {
            Expr::Tuple(list) => ir.list(list).to_vec(),
            _ => vec![index],
        };
        match plain_annotation(ir, base)? {
            "tuple" | "Tuple" if numbers.iter().all(|&e| number(e)) => {
                let items = vec![Value::Host(Host::Number); numbers.len()];
                Some(self.seq(&items))
            }
            name if ITERABLES.has(name) && number(numbers[0]) => Some(self.many(Value::Host(Host::Number))),
            _ => None,
        }
    }

    /// The PyTorch class in an annotation such as `embedding: nn.Embedding`, if its modules have weights.
    pub(crate) fn says_layer(&self, module: ModIdx, annotation: ExprId) -> Option<&'static ModuleOp> {
        let Some(Resolved::External(path)) = self.program.resolve_expr(module, annotation) else {
            return None;
        };
        let op = crate::torch::module(path).filter(|op| op.state == State::Yes)?;
        (!op.is_container()).then_some(op)
    }

    /// A value, narrowed by the annotation of its variable.
    pub(crate) fn annotated(&mut self, v: Value, annotation: ExprId) -> Value {
        if let Value::Outer(o) = v
            && says_tensor(&self.linked().ir, annotation)
        {
            self.evidence.tensor_proofs.insert(o);
        }
        v
    }
}

/// The last name of an annotation that is a plain name, a dotted name, `Optional[…]` or a string.
pub(crate) fn plain_annotation(ir: &crate::ir::Module, e: ExprId) -> Option<&'static str> {
    match ir.expr(e) {
        Expr::Var(var) => var_name(ir, var),
        Expr::Attr { name, .. } => Some(name.as_str()),
        Expr::Str(s) => Some(s.as_str().rsplit('.').next().unwrap_or_default()),
        Expr::Index { base, index } if plain_annotation(ir, base) == Some("Optional") => {
            plain_annotation(ir, index)
        }
        Expr::Binary { left, right, .. } if ir.expr(right) == Expr::None => plain_annotation(ir, left),
        _ => None,
    }
}

fn var_name(ir: &crate::ir::Module, var: crate::ir::Var) -> Option<&'static str> {
    use crate::ir::Var;
    match var {
        Var::Unbound(name) => Some(name.as_str()),
        Var::Local(slot) | Var::Global(slot) => {
            ir.functions.first()?.slots.get(slot as usize).map(|s| s.as_str())
        }
        Var::Enclosing { .. } => None,
    }
}

/// Whether the annotation says that the value is some module, and never `None`.
pub(crate) fn says_module(ir: &crate::ir::Module, e: ExprId) -> bool {
    match ir.expr(e) {
        Expr::Var(_) | Expr::Attr { .. } | Expr::Str(_) => plain_annotation(ir, e) == Some("Module"),
        _ => false,
    }
}

/// Whether the annotation says that the value may be a device: `dv: torch.device | str`.
pub(crate) fn says_device(ir: &crate::ir::Module, e: ExprId) -> bool {
    let mut parts = Vec::new();
    alternatives(ir, e, &mut parts);
    parts.iter().any(|&part| matches!(plain_annotation(ir, part), Some("device" | "DeviceLikeType")))
}

/// Whether the annotation says that the value is a tensor, and never `None`.
pub(crate) fn says_tensor_alone(ir: &crate::ir::Module, e: ExprId) -> bool {
    let one = matches!(ir.expr(e), Expr::Var(_) | Expr::Attr { .. } | Expr::Str(_));
    (one || says_shape(ir, e)) && says_tensor(ir, e)
}

/// Whether the annotation says that the value is a tensor if it is on a device at all. Numbers and arrays are not.
pub(crate) fn says_tensor(ir: &crate::ir::Module, e: ExprId) -> bool {
    says_tensor_apart_from(ir, e, &[])
}

/// The same for a value that is of none of the classes named in `others`: `str | Tensor` for a value that is no `str`.
pub(crate) fn says_tensor_apart_from(ir: &crate::ir::Module, e: ExprId, others: &[&str]) -> bool {
    let mut parts = Vec::new();
    alternatives(ir, e, &mut parts);
    if let [only] = *parts {
        return says_one_tensor(ir, only);
    }
    let other = |p: ExprId| {
        let name = match ir.expr(p) {
            Expr::Index { base, .. } => plain_annotation(ir, base),
            _ => plain_annotation(ir, p),
        };
        name.is_some_and(|name| others.iter().any(|o| o.eq_ignore_ascii_case(name)))
    };
    let plain = |p: ExprId| {
        ir.expr(p) == Expr::None || plain_annotation(ir, p).is_some_and(|name| BESIDE_TENSORS.has(name))
    };
    parts.iter().any(|&p| says_one_tensor(ir, p))
        && parts.iter().all(|&p| plain(p) || other(p) || says_one_tensor(ir, p))
}

/// Collects the parts of a union and of the unions in it.
fn alternatives(ir: &crate::ir::Module, e: ExprId, parts: &mut Vec<ExprId>) {
    match ir.expr(e) {
        Expr::Index { base, index } if plain_annotation(ir, base) == Some("Union") => match ir.expr(index) {
            Expr::Tuple(list) => ir.list(list).iter().for_each(|&p| alternatives(ir, p, parts)),
            _ => alternatives(ir, index, parts),
        },
        Expr::Binary { op: crate::ir::BinOp::BitOr, left, right } => {
            alternatives(ir, left, parts);
            alternatives(ir, right, parts);
        }
        _ => parts.push(e),
    }
}

fn says_one_tensor(ir: &crate::ir::Module, e: ExprId) -> bool {
    match ir.expr(e) {
        Expr::Index { base, index } if plain_annotation(ir, base) == Some("Optional") => {
            says_tensor(ir, index)
        }
        _ => names_tensor(ir, e) || says_shape(ir, e),
    }
}

/// Whether the annotation is a jaxtyping tensor with type and shape: `Float[Tensor, "batch width"]`.
fn says_shape(ir: &crate::ir::Module, e: ExprId) -> bool {
    let Expr::Index { base, index } = ir.expr(e) else { return false };
    let Expr::Tuple(list) = ir.expr(index) else { return false };
    plain_annotation(ir, base).is_some_and(|name| JAXTYPING.has(name))
        && ir.list(list).first().is_some_and(|&array| names_tensor(ir, array))
}

/// Whether the annotation says that the value is a list or tuple, or `None`: `weights: list[float] | None`.
pub(crate) fn says_list(ir: &crate::ir::Module, e: ExprId) -> bool {
    let mut parts = Vec::new();
    alternatives(ir, e, &mut parts);
    parts.retain(|&p| ir.expr(p) != Expr::None);
    let listed = |&p: &ExprId| {
        let name = match ir.expr(p) {
            Expr::Index { base, index } if plain_annotation(ir, base) == Some("Optional") => {
                return says_list(ir, index);
            }
            Expr::Index { base, .. } => plain_annotation(ir, base),
            _ => plain_annotation(ir, p),
        };
        name.is_some_and(|name| LISTS.has(name))
    };
    !parts.is_empty() && parts.iter().all(listed)
}

/// Whether the annotation says that each item is a tensor: `list[Tensor]`, `tuple[Tensor, ...]`, `Sequence[Tensor]`.
pub(crate) fn says_tensors(ir: &crate::ir::Module, e: ExprId) -> bool {
    let Expr::Index { base, index } = ir.expr(e) else { return false };
    let items = match ir.expr(index) {
        Expr::Tuple(list) => ir.list(list).to_vec(),
        _ => vec![index],
    };
    match plain_annotation(ir, base) {
        Some("Optional") => says_tensors(ir, index),
        Some(name) if ITERABLES.has(name) => {
            let rest = |&e: &ExprId| matches!(ir.expr(e), Expr::Ellipsis);
            says_tensor_alone(ir, items[0]) && items.iter().all(|e| rest(e) || says_tensor_alone(ir, *e))
        }
        _ => false,
    }
}

/// Whether the annotation says that each value is a tensor: `dict[str, Tensor]`, `Mapping[str, Tensor]`.
pub(crate) fn says_mapping_to_tensors(ir: &crate::ir::Module, e: ExprId) -> bool {
    let Expr::Index { base, index } = ir.expr(e) else { return false };
    match (plain_annotation(ir, base), ir.expr(index)) {
        (Some("Optional"), _) => says_mapping_to_tensors(ir, index),
        (Some(name), Expr::Tuple(list)) if MAPPINGS.has(name) => {
            matches!(*ir.list(list), [_, value] if says_tensor_alone(ir, value))
        }
        _ => false,
    }
}

fn names_tensor(ir: &crate::ir::Module, e: ExprId) -> bool {
    plain_annotation(ir, e).is_some_and(|name| TENSORS.has(name))
}
