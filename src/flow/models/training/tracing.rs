//! Functions that call a module once and record its operations: `torch.onnx.export(module, args)`.
//!
//! That is a call of the module with these arguments, and often the only call in a project.

use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::ir::ExprId;

/// Functions that call a module, with the name of their parameter for its arguments.
const TRACERS: &[(&str, &str)] = &[
    ("torch.onnx.export", "args"),
    ("torch.onnx.dynamo_export", "args"),
    ("torch.jit.trace", "example_inputs"),
    ("torch.export.export", "args"),
];

impl Interp<'_> {
    /// A call of an external function. If that function calls a module, the engine calls the module, too.
    pub(crate) fn traces(&mut self, callee: &str, args: &Args, e: ExprId) {
        let Some(&(_, name)) = TRACERS.iter().find(|t| t.0 == callee) else { return };
        let module = args
            .positional
            .first()
            .copied()
            .or_else(|| ["model", "func", "mod"].iter().find_map(|n| args.keyword(n)));
        let Some((Value::Object(id), _)) = module else { return };
        if self.obj(id).kind != ObjKind::Module {
            return;
        }
        let Some((given, at)) = args.get(1, name) else { return };
        let positional: Vec<(Value, ExprId)> = match given {
            Value::Tensor(_) => vec![(given, at)],
            given => match self.exact_elements(given) {
                Some(items) => items.into_iter().map(|v| (v, at)).collect(),
                None => return,
            },
        };
        // A dict as the last item holds keyword arguments.
        let named = |&(v, _): &(Value, ExprId)| matches!(v, Value::Object(o) if matches!(self.obj(o).kind, ObjKind::Dict { .. }));
        if positional.iter().any(named) || args.keyword("kwargs").is_some() {
            return;
        }
        let before = self.path;
        self.call_module(id, &Args { positional, ..Args::default() }, e);
        self.path = before;
    }
}
