//! Devices as values: strings that name no device, and comparisons that never hold.

use crate::flow::domain::diagram::{Cond, TRUE};
use crate::flow::domain::event::{Compared, Kind};
use crate::flow::domain::value::{Device, Value};
use crate::flow::machine::Interp;
use crate::ir::{CmpOp, Expr, ExprId, Module, Param, Var};
use crate::sym::Sym;
use crate::words::Words;

/// The device types that PyTorch accepts before the colon.
static TYPES: Words = Words::of("device types");
/// Common mistakes. Any other name may belong to a plug-in.
static MISTAKES: Words = Words::of("mistaken device types");

/// Does `torch.device(text)` raise on every installation?
fn is_invalid(text: &str) -> bool {
    if let Some((kind, index)) = text.split_once(':')
        && TYPES.has(kind)
    {
        return index.is_empty() || !index.bytes().all(|b| b.is_ascii_digit());
    }
    let lower = text.to_ascii_lowercase();
    let kind = lower.split(':').next().unwrap_or_default();
    let stem = kind.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '_' | '-' | ' '));
    !TYPES.has(text) && TYPES.has(stem)
        || MISTAKES.has(kind)
        || crate::flow::query::type_names::is_misspelt(kind)
}

/// Does a parameter's default or annotation show that it may be a string?
pub(crate) fn takes_text(ir: &Module, p: &Param) -> bool {
    let of_text = |span: crate::span::Span| {
        ir.exprs.iter().zip(&ir.expr_spans).any(|(e, &at)| {
            span.contains(at)
                && match *e {
                    Expr::Var(Var::Unbound(n)) => n.as_str() == "str",
                    // An annotation that is a string.
                    Expr::Str(s) => s.as_str().contains("str"),
                    _ => false,
                }
        })
    };
    p.default.is_some_and(|d| matches!(ir.expr(d), Expr::Str(_)))
        || p.annotation.is_some_and(|a| of_text(ir.span(a)))
}

impl Interp<'_> {
    /// Does the file contain a name such as `is_supa_available()`? Code that tests for a device by its name may use a plug-in.
    fn is_asked_for(&self, device: &str) -> bool {
        let kind = device.split(':').next().unwrap_or_default();
        let asks = |name: Sym| {
            let text = name.as_str();
            text.contains("available") && text.split('_').any(|word| word == kind)
        };
        let ir = &self.linked().ir;
        let named = ir.functions.first().is_some_and(|f| f.slots.iter().any(|&name| asks(name)));
        named || ir.attributes.iter().any(|&name| asks(name))
    }

    /// The program passes a value where PyTorch wants a device. Reports an invalid string.
    pub(crate) fn check_device_string(&mut self, v: Value, e: ExprId) {
        self.check_device_strings(v, TRUE, e);
    }

    /// The same for each alternative, under the condition `when` that selects it. An earlier test may have excluded alternatives.
    fn check_device_strings(&mut self, v: Value, when: Cond, e: ExprId) {
        match v {
            Value::Str(s, _)
                if is_invalid(s.as_str()) && self.is_written(s) && !self.is_asked_for(s.as_str()) =>
            {
                self.tell_invalid_where(s.as_str(), when, e);
            }
            Value::Choice(d) => {
                let mut leaves = Vec::new();
                self.d.leaves(d, &mut leaves);
                for leaf in leaves {
                    let here = self.d.where_leaf(d, &mut |p| p == leaf);
                    let here = self.d.and(when, here);
                    let v = *self.t.values.get(leaf);
                    self.check_device_strings(v, here, e);
                }
            }
            _ => {}
        }
    }

    /// Does the source contain the string? A string that the program builds may exist only on paths that the
    /// program's own checks exclude.
    fn is_written(&self, s: Sym) -> bool {
        [self.entry, self.here().module].into_iter().any(|m| self.program.get(m).ir.has_string(s))
    }

    /// Reports `text`, which names no device.
    pub(crate) fn tell_invalid(&mut self, text: &str, e: ExprId) {
        self.tell_invalid_where(text, TRUE, e);
    }

    fn tell_invalid_where(&mut self, text: &str, when: Cond, e: ExprId) {
        if let Some(bite) = self.bite(when, false) {
            let place = self.place(e);
            self.emit(Kind::InvalidDevice { text: text.to_owned() }, place, bite, Vec::new());
        }
    }

    /// Reports `f"cuda:{device}"` where `device` is a device already.
    pub(crate) fn check_device_in_string(&mut self, v: Value, e: ExprId) -> bool {
        let device = match v {
            // The number of a device is right there.
            Value::Device(d) if self.is_device_number(d) => false,
            Value::Device(d) => self.device_leaves(d).iter().any(|(_, d, _)| {
                matches!(d, Device::Cpu | Device::Cuda(_) | Device::CudaSome | Device::Other(_))
            }),
            Value::Choice(_) | Value::Str(..) => self
                .values_of(v)
                .iter()
                .all(|v| matches!(v, Value::Str(s, _) if crate::flow::models::devices::from_values::parse_device(s.as_str()).is_some())),
            // An option whose default names a device.
            Value::Outer(o) => matches!(self.t.get_outer(o).default, Some(Value::Str(s, _))
                if crate::flow::models::devices::from_values::parse_device(s.as_str()).is_some()),
            _ => false,
        };
        if device {
            self.tell_invalid("cuda:cuda", e);
        }
        device
    }

    /// Reports `x.device == "cuda"`: a `torch.device` equals no string, and a tensor's device has an index. After a report, the comparison
    /// counts as true where the author meant it. Returns true if the two differ without a report: another caller may pass a string.
    pub(crate) fn check_device_compare(
        &mut self,
        op: CmpOp,
        left: (Value, ExprId),
        right: (Value, ExprId),
    ) -> bool {
        if !matches!(op, CmpOp::Eq | CmpOp::NotEq) || self.check_type_compare(op, left, right) {
            return false;
        }
        for ((device, at), (other, written)) in [(left, right), (right, left)] {
            let text = match other {
                Value::Str(s, _)
                    if crate::flow::models::devices::from_values::parse_device(s.as_str()).is_some()
                        && self.is_text_here(written) =>
                {
                    s.as_str().to_owned()
                }
                Value::Device(_) if self.is_bare_cuda(written) => "torch.device(\"cuda\")".to_owned(),
                _ => continue,
            };
            let string = matches!(other, Value::Str(..));
            let indexed = !string && self.is_indexed(device) && !self.is_given_by_caller(at);
            let place = self.place(at);
            if string && self.may_be_text(device, at) {
                self.observed.texts.insert(place);
                if matches!(device, Value::Device(d) if !self.is_text(d)) {
                    return true;
                }
                continue;
            }
            let certain = matches!(device, Value::Device(_))
                && (string && self.is_known_device(device) || indexed || self.is_device_object(at, string));
            if self.run.muted > 0 || !certain {
                continue;
            }
            let how = match (string, indexed) {
                (true, _) => Compared::Text,
                (false, true) => Compared::Indexed,
                (false, false) => Compared::Tensors,
            };
            self.tell_compared(at, text, how, TRUE);
            return false;
        }
        false
    }

    /// Reports a comparison. `differ` is the condition under which the two are never equal.
    pub(crate) fn tell_compared(&mut self, at: ExprId, with: String, how: Compared, differ: Cond) {
        if let Some(bite) = self.bite(differ, false) {
            let place = self.place(at);
            self.emit(Kind::DeviceCompared { with, how }, place, bite, Vec::new());
        }
    }
}
