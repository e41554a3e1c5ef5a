//! Evidence that an outside value is a tensor: attributes and methods that only tensors have.

use std::sync::LazyLock;

use rustc_hash::FxHashSet;

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::value::{Device, Host, OuterId, OuterKey, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::ir::{Expr, ExprId, Var};
use crate::sym::Sym;
use crate::words::Words;

/// Attributes and methods that only tensors have.
static ONLY_TENSORS: Words = Words::of("only tensors have");

/// Methods that only tensors have. Other types may have an attribute of the same name: `module.stride`, `array.size`.
static ONLY_TENSORS_CALL: Words = Words::of("only tensors do");

static WITH_DIM: Words = Words::of("take a dimension");
static FIELDS: Words = Words::of("attributes of tensors");

static ONLY: LazyLock<FxHashSet<Sym>> =
    LazyLock::new(|| ONLY_TENSORS.all().iter().map(|n| Sym::new(n)).collect());

static ONLY_CALL: LazyLock<FxHashSet<Sym>> =
    LazyLock::new(|| ONLY_TENSORS_CALL.all().iter().map(|n| Sym::new(n)).collect());

/// Whether an attribute of this name shows that the value is a tensor.
pub(crate) fn only_tensors_have(name: Sym) -> bool {
    ONLY.contains(&name)
}

/// Whether a method call of this name shows that the receiver is a tensor.
pub(crate) fn only_tensors_do(name: Sym) -> bool {
    ONLY.contains(&name) || ONLY_CALL.contains(&name)
}

/// Whether a method call with these arguments shows that the receiver is a tensor. Arrays have `axis` for `dim`, and
/// `view` with a type.
pub(crate) fn only_tensors_take(name: Sym, args: &Args) -> bool {
    match name.as_str() {
        "view" => {
            args.positional.len() > 1
                || matches!(args.positional.first(), Some((Value::Int(_) | Value::Host(Host::Number), _)))
        }
        name if WITH_DIM.has(name) => args.keyword("dim").is_some() || args.keyword("keepdim").is_some(),
        "nonzero" => args.keyword("as_tuple").is_some(),
        _ => false,
    }
}

/// Whether the tensor method of this name cannot take these arguments: `loader.new(num_workers=0)`.
pub(crate) fn no_tensors_take(name: Sym, args: &Args) -> bool {
    name.as_str() == "new" && args.keywords.iter().any(|(k, ..)| k.as_str() != "device")
}

impl Interp<'_> {
    /// Whether the program has read an attribute of the outside value that no tensor has.
    pub(crate) fn has_what_no_tensor_has(&self, o: OuterId) -> bool {
        self.t.outers.iter().any(
            |other| matches!(other.key, OuterKey::Attr { base, name } if base == o && !is_tensor_attribute(name)),
        )
    }

    /// Records that the value is passed in a list of tensors: it is a tensor, and so is the value whose own method gave
    /// it.
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

    /// Handles `y.to(found.device)`: the symbolic function moves a value to the device of a call's result. That result
    /// may then be on any device.
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

    /// The name `found` in `found.device`, if it is a local variable.
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

    /// Handles two operands of which one is a tensor. If the program has read the device of the other, it is a tensor
    /// as well.
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

    /// The outside value whose own method gave the value on this device.
    pub(crate) fn made_by_own_method(&self, device: Dd) -> Option<OuterId> {
        let (place, origin) = *self.t.places.get(self.d.as_leaf(device)?);
        match place {
            Device::Of(_) => self.evidence.own_results.get(&origin).copied(),
            _ => None,
        }
    }

    /// Records that the outside value `whole` alone gave the value on this device, by a method or by arithmetic with a
    /// number. If the result is shown to be a tensor, so is the outside value.
    pub(crate) fn is_made_by_own(&mut self, whole: Value, device: Dd) {
        if let Value::Outer(o) = whole
            && let Some(leaf) = self.d.as_leaf(device)
            && let (Device::Of(of), origin) = *self.t.places.get(leaf)
            && of == o
        {
            self.evidence.own_results.insert(origin, o);
        }
    }

    /// The same for an outside value in arithmetic with a number: `factor / 255`.
    pub(crate) fn is_made_with_number(&mut self, whole: Value, device: Dd) {
        self.is_made_by_own(whole, device);
        if let Some(leaf) = self.d.as_leaf(device) {
            let origin = self.t.places.get(leaf).1;
            if self.evidence.own_results.contains_key(&origin) {
                self.evidence.own_numbers.insert(origin);
            }
        }
    }

    /// The outside value that is a tensor if `t` is one. In `image * (factor / 255)` another tensor takes part, so the
    /// product shows nothing about `factor`.
    fn shown_through(&self, t: Tensor) -> Option<OuterId> {
        let o = self.made_by_own_method(t.device)?;
        let origin = self.t.places.get(self.d.as_leaf(t.device)?).1;
        (!t.certain || !self.evidence.own_numbers.contains(&origin)).then_some(o)
    }

    /// Handles a result of an outside value's own method as argument of a function that only takes tensors.
    pub(crate) fn shown_by_taker(&mut self, v: Value) {
        if let Value::Tensor(t) = v
            && let Some(o) = self.shown_through(self.get_tensor(t))
        {
            self.evidence.tensor_proofs.insert(o);
        }
    }

    /// Handles a method call on the result of an outside value's own method. The method may show that the outside value
    /// is a tensor.
    pub(crate) fn shown_by_result(&mut self, t: Tensor, name: Sym) {
        if let Some(o) = self.shown_through(t)
            && only_tensors_do(name)
        {
            self.evidence.tensor_proofs.insert(o);
        }
    }
}

/// Whether tensors have an attribute or method of this name.
pub(crate) fn is_tensor_attribute(name: Sym) -> bool {
    FIELDS.has(name.as_str()) || crate::torch::method(name).is_some() || only_tensors_do(name)
}
