//! What shows an outside thing to be a tensor: attributes and methods that nothing else has.

use std::sync::LazyLock;

use rustc_hash::FxHashSet;

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::value::{Device, Host, OuterId, OuterKey, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::ir::{Expr, ExprId, Var};
use crate::sym::Sym;

/// Attributes and methods that only tensors have: who has one of them is a tensor.
const ONLY_TENSORS: &[&str] = &[
    "addmm",
    "backward",
    "bmm",
    "contiguous",
    "detach",
    "detach_",
    "dim",
    "expand",
    "expand_as",
    "gather",
    "index_add_",
    "index_copy_",
    "index_fill_",
    "index_select",
    "is_cuda",
    "is_leaf",
    "is_sparse",
    "log_softmax",
    "logsumexp",
    "masked_fill",
    "masked_fill_",
    "masked_scatter",
    "masked_select",
    "matmul",
    "mm",
    "narrow",
    "new_empty",
    "new_full",
    "new_ones",
    "new_tensor",
    "new_zeros",
    "numel",
    "permute",
    "requires_grad",
    "scatter",
    "scatter_",
    "scatter_add",
    "scatter_add_",
    "sigmoid",
    "softmax",
    "split_with_sizes",
    "topk",
    "type_as",
    "unbind",
    "unfold",
    "unsqueeze",
    "unsqueeze_",
    "view_as",
    "reshape_as",
    "repeat_interleave",
    "clamp_",
    "clamp",
    "clamp_min",
    "clamp_max",
    "mul_",
    "add_",
    "sub_",
    "div_",
    "zero_",
    "fill_",
    "copy_",
    "normal_",
    "uniform_",
    "squeeze_",
    "tanh",
    "relu",
    "exp",
    "sqrt",
    "rsqrt",
    "log",
    "pow",
    "cos",
    "sin",
    "to_sparse",
    "is_floating_point",
    "data_ptr",
    "storage",
    "grad_fn",
    "is_contiguous",
    "ne",
    "eq",
    "lt",
    "gt",
    "le",
    "ge",
    "triu",
    "tril",
    "flip",
    "bernoulli",
    "erf",
    "long",
    "int",
];

/// Methods that only tensors have, where others have attributes of that name: `module.stride`, `array.size`.
const ONLY_TENSORS_CALL: &[&str] = &[
    "abs",
    "abs_",
    "addcmul",
    "addcmul_",
    "amax",
    "amin",
    "atan2",
    "baddbmm",
    "bincount",
    "ceil",
    "coalesce",
    "cross",
    "div",
    "element_size",
    "erfinv",
    "exp_",
    "fill_diagonal_",
    "floor",
    "floor_",
    "frac",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_put_",
    "isfinite",
    "isinf",
    "isnan",
    "log_",
    "log1p",
    "log2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "masked_scatter_",
    "movedim",
    "mul",
    "nan_to_num",
    "ndimension",
    "neg",
    "nelement",
    "new",
    "norm",
    "random_",
    "reciprocal",
    "relu_",
    "scatter_reduce",
    "scatter_reduce_",
    "sigmoid_",
    "sign",
    "size",
    "square",
    "stride",
    "t",
    "tensor_split",
    "transpose_",
    "trunc",
    "unflatten",
    "unique_consecutive",
];

static ONLY: LazyLock<FxHashSet<Sym>> = LazyLock::new(|| ONLY_TENSORS.iter().map(|n| Sym::new(n)).collect());

static ONLY_CALL: LazyLock<FxHashSet<Sym>> =
    LazyLock::new(|| ONLY_TENSORS_CALL.iter().map(|n| Sym::new(n)).collect());

/// Does whoever has an attribute of this name show to be a tensor?
pub(crate) fn only_tensors_have(name: Sym) -> bool {
    ONLY.contains(&name)
}

/// Does whoever has a method of this name show to be a tensor?
pub(crate) fn only_tensors_do(name: Sym) -> bool {
    ONLY.contains(&name) || ONLY_CALL.contains(&name)
}

/// Does whoever has a method of this name show to be a tensor, given what it takes? Arrays have `axis` for `dim`, and
/// `view` with a type.
pub(crate) fn only_tensors_take(name: Sym, args: &Args) -> bool {
    match name.as_str() {
        "view" => {
            args.positional.len() > 1
                || matches!(args.positional.first(), Some((Value::Int(_) | Value::Host(Host::Number), _)))
        }
        "sum" | "mean" | "max" | "min" | "std" | "var" | "prod" | "argmax" | "argmin" | "sort"
        | "argsort" | "cumsum" | "cumprod" | "any" | "all" | "squeeze" | "flatten" => {
            args.keyword("dim").is_some() || args.keyword("keepdim").is_some()
        }
        "nonzero" => args.keyword("as_tuple").is_some(),
        _ => false,
    }
}

/// Does no tensor's method of this name take what this one is given? `loader.new(num_workers=0)`
pub(crate) fn no_tensors_take(name: Sym, args: &Args) -> bool {
    name.as_str() == "new" && args.keywords.iter().any(|(k, ..)| k.as_str() != "device")
}

impl Interp<'_> {
    /// Has the outside thing been asked for something that no tensor has?
    pub(crate) fn has_what_no_tensor_has(&self, o: OuterId) -> bool {
        self.t.outers.iter().any(
            |other| matches!(other.key, OuterKey::Attr { base, name } if base == o && !is_tensor_attribute(name)),
        )
    }

    /// Handed over in a list of tensors: it is one, and so is what its own method made it of.
    pub(crate) fn shown_in_list(&mut self, v: Value) {
        match v {
            Value::Outer(o) => {
                self.evidence.tensor_proofs.insert(o);
            }
            Value::Tensor(t) => {
                if let Some(o) = self.shown_through(self.get_tensor(t)) {
                    self.evidence.tensor_proofs.insert(o);
                }
            }
            _ => {}
        }
    }

    /// `y.to(found.device)`: the function that is interpreted for itself moves something to where a call's result is, which
    /// may be anywhere, then.
    pub(crate) fn goes_after(&mut self, target: Dd, named: Option<ExprId>) {
        self.follows(target);
        let asked = named.and_then(|at| self.asked_for_its_device(at));
        if let (Some(name), Some(leaf)) = (asked, self.d.as_leaf(target))
            && let Device::Of(o) = self.t.places.get(leaf).0
            && self.is_result(o)
            && self.run.symbolic
            && self.here().site.is_none()
        {
            let outer = &mut self.t.outers[o.0 as usize];
            (outer.varies, outer.text) = (true, name.to_string());
        }
    }

    /// `found` in `found.device`, a variable of the function.
    fn asked_for_its_device(&self, e: ExprId) -> Option<Sym> {
        let ir = &self.linked().ir;
        let Expr::Attr { base, name } = ir.expr(e) else { return None };
        match ir.expr(base) {
            Expr::Var(Var::Local(slot)) if name == self.known.device => {
                ir.function(self.here().func).slots.get(usize::from(slot)).copied()
            }
            _ => None,
        }
    }

    /// Of two operands one is taken for a tensor, and the other one has been asked for its device: it is one, too.
    pub(crate) fn shown_by_company(&mut self, a: Value, b: Value) {
        for (v, other) in [(a, b), (b, a)] {
            if let Value::Outer(o) = v
                && matches!(other, Value::Tensor(_))
                && self.is_result(o)
                && self.t.get_outer(o).varies
            {
                self.evidence.tensor_proofs.insert(o);
            }
        }
    }

    fn is_result(&self, o: OuterId) -> bool {
        matches!(self.t.get_outer(o).key, OuterKey::Result { .. })
    }

    /// The outside thing whose own method gave what is on this device.
    pub(crate) fn made_by_own_method(&self, device: Dd) -> Option<OuterId> {
        let (place, origin) = *self.t.places.get(self.d.as_leaf(device)?);
        match place {
            Device::Of(_) => self.evidence.own_results.get(&origin).copied(),
            _ => None,
        }
    }

    /// What an outside thing gave by itself is on this device: a method of it, or it with a number. If that turns out to be
    /// a tensor, so is the thing.
    pub(crate) fn is_made_by_own(&mut self, whole: Value, device: Dd) {
        if let Value::Outer(o) = whole
            && let Some(leaf) = self.d.as_leaf(device)
            && let (Device::Of(of), origin) = *self.t.places.get(leaf)
            && of == o
        {
            self.evidence.own_results.insert(origin, o);
        }
    }

    /// The same of an outside thing with a number: `factor / 255`.
    pub(crate) fn is_made_with_number(&mut self, whole: Value, device: Dd) {
        self.is_made_by_own(whole, device);
        if let Some(leaf) = self.d.as_leaf(device) {
            let origin = self.t.places.get(leaf).1;
            if self.evidence.own_results.contains_key(&origin) {
                self.evidence.own_numbers.insert(origin);
            }
        }
    }

    /// The outside thing that is a tensor if this is one. In `image * (factor / 255)` a tensor takes part, and that the product is
    /// one shows nothing of the factor.
    fn shown_through(&self, t: Tensor) -> Option<OuterId> {
        let o = self.made_by_own_method(t.device)?;
        let origin = self.t.places.get(self.d.as_leaf(t.device)?).1;
        (!t.certain || !self.evidence.own_numbers.contains(&origin)).then_some(o)
    }

    /// A function that takes tensors alone is given what an outside thing's own method gave.
    pub(crate) fn shown_by_taker(&mut self, v: Value) {
        if let Value::Tensor(t) = v
            && let Some(o) = self.shown_through(self.get_tensor(t))
        {
            self.evidence.tensor_proofs.insert(o);
        }
    }

    /// A method of this name is called on what an outside thing's own method gave: is that thing a tensor?
    pub(crate) fn shown_by_result(&mut self, t: Tensor, name: Sym) {
        if let Some(o) = self.shown_through(t)
            && only_tensors_do(name)
        {
            self.evidence.tensor_proofs.insert(o);
        }
    }
}

/// Do tensors have an attribute or method of this name?
pub(crate) fn is_tensor_attribute(name: Sym) -> bool {
    const FIELDS: &[&str] = &[
        "shape",
        "ndim",
        "device",
        "dtype",
        "data",
        "grad",
        "T",
        "mT",
        "H",
        "mH",
        "real",
        "imag",
        "is_cpu",
        "is_mps",
        "is_xpu",
        "is_quantized",
        "is_meta",
        "layout",
        "names",
        "name",
        "nbytes",
        "itemsize",
        "output_nr",
        "cuda",
        "to",
    ];
    FIELDS.contains(&name.as_str()) || crate::torch::method(name).is_some() || only_tensors_do(name)
}
