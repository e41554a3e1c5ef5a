//! Comparisons of a device's type, devices with and without an index, and data types in the place of a
//! device.

use crate::flow::domain::event::Compared;
use crate::flow::domain::value::{Device, Value};
use crate::flow::machine::Interp;
use crate::flow::query::type_names::{is_no_device_type, is_number_type};
use crate::ir::{CmpOp, Expr, ExprId, Var};
use crate::link::Resolved;

impl Interp<'_> {
    /// Reports `device.type == "gpu"`: no device type has that name, and none contains an index. True if it is reported.
    pub(crate) fn check_type_compare(
        &mut self,
        op: CmpOp,
        left: (Value, ExprId),
        right: (Value, ExprId),
    ) -> bool {
        if !matches!(op, CmpOp::Eq | CmpOp::NotEq) || self.run.muted > 0 {
            return false;
        }
        for (at, (text, _)) in [(left.1, right), (right.1, left)] {
            let Value::Str(text, _) = text else { continue };
            let Expr::Attr { base, name } = self.linked().ir.expr(at) else { continue };
            if name.as_str() == "type" && is_no_device_type(text.as_str()) && self.is_torch_device(base) {
                self.tell_compared(at, text.to_string(), Compared::Type, crate::flow::domain::diagram::TRUE);
                return true;
            }
        }
        false
    }

    /// Is the expression certainly a `torch.device`?
    pub(crate) fn is_torch_device(&mut self, e: ExprId) -> bool {
        self.run.muted += 1;
        let v = self.eval(e);
        self.run.muted -= 1;
        let Value::Device(d) = v else { return false };
        // `next(model.parameters()).device`
        let of_something = || {
            matches!(self.linked().ir.expr(e), Expr::Attr { name, .. } if name == self.known.device)
                && self.device_leaves(d).iter().all(|(_, d, _)| matches!(d, Device::Of(_)))
        };
        of_something() || self.is_known_device(v) || self.is_device_object(e, true)
    }

    /// Has the device an index whenever it is a GPU?
    pub(crate) fn is_indexed(&self, v: Value) -> bool {
        let Value::Device(d) = v else { return false };
        let leaves = self.device_leaves(d);
        !self.is_text(d)
            && leaves.iter().any(|(_, d, _)| matches!(d, Device::Cuda(Some(_))))
            && leaves.iter().all(|(_, d, _)| {
                matches!(d, Device::Cpu | Device::Cuda(Some(_)) | Device::Meta | Device::Other(_))
            })
    }

    /// Is it a string literal, or a variable that is not a parameter?
    pub(crate) fn is_text_here(&self, e: ExprId) -> bool {
        match self.linked().ir.expr(e) {
            Expr::Str(_) => true,
            Expr::Var(var @ (Var::Local(_) | Var::Global(_))) => !self.is_parameter(var),
            _ => false,
        }
    }

    /// Reports `torch.eye(3, device=x.dtype)`.
    pub(crate) fn check_no_dtype(&mut self, at: ExprId, e: ExprId) {
        let dtype = match self.linked().ir.expr(at) {
            Expr::Attr { name, .. } if name.as_str() == "dtype" => true,
            Expr::Attr { .. } => match self.program.resolve_expr(self.here().module, at) {
                Some(Resolved::External(path)) => {
                    path.as_str().strip_prefix("torch.").is_some_and(is_number_type)
                }
                _ => false,
            },
            _ => false,
        };
        if dtype {
            self.tell_invalid("", e);
        }
    }
}
