//! SD206 generator-device-mismatch: finds parts of an object that create tensors from arrays, on the CPU.

use crate::ir::{ArgKind, Call, Expr, ExprId, FuncId, Function, Module, Var};
use crate::link::{ClassKey, ModIdx, Resolved};
use crate::rules::shared::file::{File, given_to_own, is_self};
use crate::sym::Sym;

/// Functions that create a tensor from an array, on the CPU unless they get a device.
const FROM_ARRAYS: &[&str] = &["torch.from_numpy", "torch.tensor", "torch.as_tensor"];

/// Methods that move a tensor, or may do so.
const TAKE: &[&str] = &["cuda", "pin_memory", "to_empty"];

/// Library classes that create tensors on the CPU, with the method (diffusers/image_processor.py, `VaeImageProcessor.preprocess`;
/// diffusers/video_processor.py, `VideoProcessor.preprocess_video`).
const LIBRARIES: &[(&str, &str)] = &[
    ("diffusers.image_processor.VaeImageProcessor", "preprocess"),
    ("diffusers.video_processor.VideoProcessor", "preprocess"),
    ("diffusers.video_processor.VideoProcessor", "preprocess_video"),
];

/// How many methods deep the search goes.
const DEPTH: u32 = 3;

impl File<'_> {
    /// Does `self.part.method(…)` create a tensor from an array, for example from an image, without ever naming a device? The constructor
    /// must create the part, from a class of the project or one of [`LIBRARIES`].
    pub(super) fn makes_of_arrays(&self, function: &Function, func: ExprId) -> bool {
        let Expr::Attr { base, name: method } = self.ir.expr(func) else { return false };
        let part = self.own_attribute(base);
        let class = part.zip(function.class).and_then(|(part, class)| {
            self.made_by_constructor(ClassKey { module: self.module, class }, part)
        });
        match class {
            Some(Resolved::Class(key)) => {
                let method = self.cx.program.find_method(key, method);
                method.is_some_and(|method| self.reads_arrays(key, method, DEPTH) == Some(true))
            }
            Some(Resolved::External(path)) => LIBRARIES.contains(&(path.as_str(), method.as_str())),
            _ => false,
        }
    }

    /// The class from which the constructor creates this attribute.
    fn made_by_constructor(&self, class: ClassKey, part: Sym) -> Option<Resolved> {
        let program = self.cx.program;
        let (module, init) = program.find_method(class, Sym::new("__init__"))?;
        let ir = &program.get(module).ir;
        let made = given_to_own(ir, ir.function(init), part);
        let &[value] = made.as_slice() else { return None };
        let Expr::Call(call) = ir.expr(value) else { return None };
        program.resolve_expr(module, ir.call(call).func)
    }

    /// Does the method, or a method of the same object that it calls, create a tensor from an array? `None` if one of them may move it to
    /// another device.
    fn reads_arrays(&self, class: ClassKey, (module, method): (ModIdx, FuncId), depth: u32) -> Option<bool> {
        let program = self.cx.program;
        let ir = &program.get(module).ir;
        let mut reads = false;
        for n in ir.exprs_of(ir.function(method)) {
            let Expr::Call(call) = ir.exprs[n] else { continue };
            let call = ir.call(call);
            if says_place(ir, call) {
                return None;
            }
            match (program.resolve_expr(module, call.func), ir.expr(call.func)) {
                (Some(Resolved::External(path)), _) => {
                    reads |= FROM_ARRAYS.contains(&path.as_str())
                        && call.args.first().is_some_and(|a| is_of_variable(ir, a.value));
                }
                (_, Expr::Attr { base, name }) if is_self(ir, base) && depth > 0 => {
                    if let Some(next) = program.find_method(class, name) {
                        reads |= self.reads_arrays(class, next, depth - 1)?;
                    }
                }
                _ => {}
            }
        }
        Some(reads)
    }
}

/// Does the call name a device, or move something to one?
fn says_place(ir: &Module, call: Call<'_>) -> bool {
    let named = |k: Sym| k.as_str() == "device";
    let keyword = call.args.iter().any(|a| matches!(a.kind, ArgKind::Keyword(k) if named(k)));
    let Expr::Attr { name, .. } = ir.expr(call.func) else { return keyword };
    // `x.to(dtype=torch.float32)` does not move the tensor.
    let sent = name.as_str() == "to" && call.args.iter().any(|a| a.kind == ArgKind::Positional);
    keyword || sent || TAKE.contains(&name.as_str())
}

/// Does the expression contain a variable, so that it is no constant?
fn is_of_variable(ir: &Module, e: ExprId) -> bool {
    ir.exprs_in(e).any(|n| matches!(ir.exprs[n], Expr::Var(Var::Local(_))))
}
