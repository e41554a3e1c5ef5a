//! Outside values that contain tensors: their loop items and their items are tensors.

use crate::flow::domain::dims::Dims;
use crate::flow::domain::value::{OuterId, OuterKey, Role, Tensor, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::annotations::{says_list, says_mapping_to_tensors, says_tensors};
use crate::ir::{ExprId, FuncId};
use crate::link::{ClassKey, ModIdx, Resolved};
use crate::sym::Sym;
use crate::torch::{self, Base};

impl Interp<'_> {
    /// Whether the value is a tensor, and no test asks whether it is one.
    pub(crate) fn has_rows(&self, o: OuterId) -> bool {
        self.is_tensorish(o)
            && !self.evidence.no_tensors.contains_key(&o)
            && !self.evidence.other_kinds.contains_key(&o)
    }

    /// A row of an outside tensor. It is a number if the tensor is a vector.
    pub(crate) fn row_outside(&mut self, o: OuterId, at: ExprId) -> Value {
        let device = self.device_of_outer(o, at);
        self.tensor(Tensor {
            device,
            dims: Dims::ANY.picked(),
            role: Role::Plain,
            certain: true,
            bytes: None,
            double: crate::flow::domain::diagram::FALSE,
        })
    }

    /// Whether each item of the outside value is a tensor: a parameter `list[Tensor]`, or the tensors from
    /// `ctx.save_for_backward`.
    pub(crate) fn holds_tensors(&self, o: OuterId) -> bool {
        match self.t.get_outer(o).key {
            OuterKey::Param { module, func, index } => self
                .annotation_of(module, func, index)
                .is_some_and(|(m, a)| says_tensors(&self.program.get(m).ir, a)),
            OuterKey::Attr { base, name } => {
                let first = match self.t.get_outer(base).key {
                    OuterKey::Param { module, func, index: 0 } => Some((module, func)),
                    _ => None,
                };
                name.as_str() == "saved_tensors" && first.is_some_and(|(m, f)| self.is_backward(m, f))
            }
            _ => false,
        }
    }

    /// Whether the value is a parameter `dict[str, Tensor]`, so that each of its values is a tensor.
    pub(crate) fn maps_to_tensors(&self, o: OuterId) -> bool {
        match self.t.get_outer(o).key {
            OuterKey::Param { module, func, index } => self
                .annotation_of(module, func, index)
                .is_some_and(|(m, a)| says_mapping_to_tensors(&self.program.get(m).ir, a)),
            _ => false,
        }
    }

    /// Whether the value has a length. Either its annotation says that it is a list, or the program reads its length
    /// and never tests whether it is a number.
    pub(crate) fn is_sized(&self, o: OuterId) -> bool {
        if let OuterKey::Param { module, func, index } = self.t.get_outer(o).key
            && let Some((m, a)) = self.annotation_of(module, func, index)
            && says_list(&self.program.get(m).ir, a)
        {
            return true;
        }
        let wonders =
            crate::flow::machine::expressions::compare::has_test(Value::Outer(o), Sym::new("__len__"));
        self.evidence.sized.contains(&o)
            && !self.evidence.numbers.contains_key(&o)
            && !self.tests.atoms.contains_key(&wonders)
    }

    /// The annotation of a parameter, with the file that contains it. If the annotation is a name for a type of the
    /// project, such as `Batch = dict[str, Tensor]`, the result is the named type.
    pub(crate) fn annotation_of(&self, module: ModIdx, func: FuncId, index: u16) -> Option<(ModIdx, ExprId)> {
        const MAX_NAMES: usize = 3;
        let param = self.program.get(module).ir.function(func).params.get(usize::from(index))?;
        let mut at = (module, param.annotation?);
        for _ in 0..MAX_NAMES {
            let Some(bound) = self.program.bound_to(at.0, at.1) else { break };
            at = bound;
        }
        Some(at)
    }

    /// Whether the value is a part of an item of a loop over a data loader: `for x, y in loader`, `batch["x"]`. A batch
    /// as a whole may be an object that moves in place, but its parts are tensors. So is a part with a device at that
    /// depth of any other loop item.
    pub(crate) fn is_of_batch_outside(&self, o: OuterId) -> bool {
        let part_of = |o: OuterId| match self.t.get_outer(o).key {
            OuterKey::Item { base, .. } => Some(base),
            _ => None,
        };
        let (Some(mut whole), mut depth, mut picked) = (part_of(o), 0, false) else { return false };
        while let Some(base) = part_of(whole) {
            picked = matches!(self.t.get_outer(whole).key, OuterKey::Item { key: Some(_), .. });
            (whole, depth) = (base, depth + 1);
        }
        let text = self.t.get_outer(whole).text.to_ascii_lowercase();
        let name = text.rsplit('.').next().unwrap_or_default();
        // A loader has no index: `loaders[0]` is one of several, and an item of a loop over it is a whole batch.
        let several = picked || name.ends_with("loaders");
        depth > usize::from(several) && name.contains("loader")
            || depth > 0 && self.evidence.asked_for_device.contains(&o) && !self.says_modules(whole)
    }

    /// Whether the value is a parameter whose annotation names modules at any depth: `dict[str, dict[str, nn.Module]]`.
    fn says_modules(&self, o: OuterId) -> bool {
        let OuterKey::Param { module, func, index } = self.t.get_outer(o).key else { return false };
        let Some((m, annotation)) = self.annotation_of(module, func, index) else { return false };
        let ir = &self.program.get(m).ir;
        let exprs = ir.exprs_in(annotation).filter_map(|n| u32::try_from(n).ok());
        exprs.map(ExprId).any(|e| match self.program.resolve_expr(m, e) {
            Some(Resolved::Class(key)) => self.is_module_class(key),
            Some(Resolved::External(path)) => torch::base_class(path).is_some_and(|b| b.kind == Base::Module),
            _ => false,
        })
    }

    /// Whether the value is an argument of `backward`. It is a tensor if it is used like one.
    pub(crate) fn is_gradient(&self, o: OuterId) -> bool {
        match self.t.get_outer(o).key {
            OuterKey::Param { module, func, index } => index > 0 && self.is_backward(module, func),
            _ => false,
        }
    }

    /// Whether the function is the `backward` of an `autograd.Function`. Its parameters after the context are tensors.
    pub(crate) fn is_backward(&self, module: ModIdx, func: FuncId) -> bool {
        let function = self.program.get(module).ir.function(func);
        function.name.as_str() == "backward"
            && function.class.is_some_and(|class| self.is_autograd_function(ClassKey { module, class }))
    }
}
