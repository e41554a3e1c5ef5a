//! Pipelines that offload parts to the CPU while these parts do not run.

use super::file::File;
use crate::ir::{Class, Expr, Module};
use crate::link::ClassKey;
use crate::sym::Sym;
use crate::torch;

/// The attribute with the device on which a pipeline runs while its parts are offloaded. Then `self.device` is the CPU
/// (`enable_model_cpu_offload`) or `meta` (`enable_sequential_cpu_offload`).
pub const EXECUTION: &str = "_execution_device";

/// Does the class have such an attribute, and does it mention offloading, or inherit a method that offloads its parts?
pub fn offloads(file: &File<'_>, key: ClassKey) -> bool {
    let program = file.cx.program;
    let ir = &program.get(key.module).ir;
    let class = ir.class(key.class);
    let asks = || {
        ir.exprs.iter().zip(&ir.expr_spans).any(|(e, &at)| {
            matches!(e, Expr::Attr { name, .. } if name.as_str() == EXECUTION) && class.span.contains(at)
        })
    };
    let says = || says_order(ir, class);
    let info = program.class(key);
    let inherits = || {
        info.mro.iter().any(|k| {
            program.get(k.module).ir.functions.iter().any(|f| {
                let name = f.name.as_str();
                f.class == Some(k.class) && name.starts_with("enable_") && name.ends_with("_offload")
            })
        })
    };
    program.find_method(key, Sym::new(EXECUTION)).is_some() && (says() || asks() || inherits())
        || info.externals.iter().any(|&p| torch::base_class(p).is_some_and(|b| b.offloads))
}

/// Does the class specify the order in which its parts are offloaded?
pub fn says_order(ir: &Module, class: &Class) -> bool {
    ir.function(class.body).slots.iter().any(|s| s.as_str() == "model_cpu_offload_seq")
}
