//! Which programs of a project set PyTorch's default device, and which files they use.
//!
//! A function that is interpreted for itself makes its tensors on the CPU, as PyTorch does unless it is told otherwise. A program
//! that has called `torch.set_default_device` or `torch.set_default_tensor_type` makes them elsewhere, in the project's other
//! files as well. So does a function that sets it before it makes an object, be it a library's.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::finding::ByDefault;
use crate::ir::{Call, Expr, FuncId, FuncKind, Module};
use crate::link::{ClassKey, ModIdx, Program, Resolved};

/// The functions that set it, as texts mention them.
pub const SETTERS: [&str; 2] = ["set_default_device", "set_default_tensor_type"];

/// The functions that `torch.Tensor` follows, too.
const TYPE_SETTERS: [&str; 1] = ["set_default_tensor_type"];

/// The files that only programs use which have set another default device than the CPU.
#[derive(Debug, Default)]
pub struct Elsewhere {
    /// By either function.
    device: FxHashSet<ModIdx>,
    /// By the default tensor type.
    tensor_type: FxHashSet<ModIdx>,
}

impl Elsewhere {
    /// Looks for such programs among these files: what no other file imports is a program, or there for others.
    pub fn of(program: &Program, files: &[ModIdx]) -> Self {
        Self {
            device: used_with(program, files, &SETTERS),
            tensor_type: used_with(program, files, &TYPE_SETTERS),
        }
    }

    /// Do only such programs use the file?
    pub fn reaches(&self, file: ModIdx, by: ByDefault) -> bool {
        match by {
            ByDefault::Device => self.device.contains(&file),
            ByDefault::Type => self.tensor_type.contains(&file),
        }
    }
}

/// Functions that set it, by the file they are in, and where: what they make afterwards is made there.
#[derive(Debug, Default)]
pub struct SetBefore {
    device: FxHashMap<(ModIdx, FuncId), u32>,
    tensor_type: FxHashMap<(ModIdx, FuncId), u32>,
}

impl SetBefore {
    /// Looks for them in these files.
    pub fn of(program: &Program, files: &[ModIdx]) -> Self {
        let mut found = Self::default();
        for &m in files {
            for (names, first) in
                [(SETTERS.as_slice(), &mut found.device), (TYPE_SETTERS.as_slice(), &mut found.tensor_type)]
            {
                let ir = &program.get(m).ir;
                for call in ir.calls().filter(|&call| is_setter(program, m, call, names)) {
                    let at = ir.span(call.func).start;
                    let first = first.entry((m, ir.function_around(call.func))).or_insert(at);
                    *first = at.min(*first);
                }
            }
        }
        found
    }

    /// Is every call that makes one of the class in such a function, after it has set the default?
    pub fn makes_all(&self, program: &Program, files: &[ModIdx], class: ClassKey, by: ByDefault) -> bool {
        let first = match by {
            ByDefault::Device => &self.device,
            ByDefault::Type => &self.tensor_type,
        };
        if first.is_empty() {
            return false;
        }
        let mut made = false;
        for &m in files {
            let ir = &program.get(m).ir;
            for call in ir.calls() {
                if !matches!(program.resolve_expr(m, call.func), Some(Resolved::Class(k)) if k == class) {
                    continue;
                }
                let set = first.get(&(m, ir.function_around(call.func)));
                if set.is_none_or(|&at| at > ir.span(call.func).start) {
                    return false;
                }
                made = true;
            }
        }
        made
    }
}

/// Has the project a function of its own that sets the default to what it is given, and do other files call it? Then what is
/// made by default in it is made wherever the programs that use it say.
pub fn is_offered(program: &Program, files: &[ModIdx], by: ByDefault) -> bool {
    let names = match by {
        ByDefault::Device => SETTERS.as_slice(),
        ByDefault::Type => TYPE_SETTERS.as_slice(),
    };
    let mut own: FxHashSet<(ModIdx, FuncId)> = FxHashSet::default();
    for &m in files {
        let ir = &program.get(m).ir;
        let given =
            |call: Call<'_>| call.args.first().is_some_and(|arg| !matches!(ir.expr(arg.value), Expr::Str(_)));
        for call in ir.calls().filter(|&call| is_setter(program, m, call, names) && given(call)) {
            let around = ir.function_around(call.func);
            let function = ir.function(around);
            if function.kind == FuncKind::Function && !function.params.is_empty() && function.class.is_none()
            {
                own.insert((m, around));
            }
        }
    }
    let called = |m: ModIdx| {
        program.get(m).ir.calls().any(|call| {
            matches!(program.resolve_expr(m, call.func), Some(Resolved::Function(of, f)) if of != m && own.contains(&(of, f)))
        })
    };
    !own.is_empty() && files.iter().any(|&m| called(m))
}

/// The files that only programs use which call one of these functions.
fn used_with(program: &Program, files: &[ModIdx], names: &[&str]) -> FxHashSet<ModIdx> {
    let setters: FxHashSet<ModIdx> = files.iter().copied().filter(|&m| sets(program, m, names)).collect();
    if setters.is_empty() {
        return setters;
    }
    let imported: FxHashSet<ModIdx> =
        files.iter().flat_map(|&m| program.imports(m).filter(move |&other| other != m)).collect();
    let (mut set, mut not) = (FxHashSet::default(), FxHashSet::default());
    for &m in files.iter().filter(|m| !imported.contains(m)) {
        let used = used(program, m);
        let places = if used.is_disjoint(&setters) { &mut not } else { &mut set };
        places.extend(used);
    }
    set.retain(|m| !not.contains(m));
    set
}

/// The file and what it imports, directly or not.
fn used(program: &Program, m: ModIdx) -> FxHashSet<ModIdx> {
    let (mut used, mut work) = (FxHashSet::default(), vec![m]);
    while let Some(m) = work.pop() {
        if used.insert(m) {
            work.extend(program.imports(m));
        }
    }
    used
}

/// Does the file say that tensors are made elsewhere than on the CPU?
fn sets(program: &Program, m: ModIdx, names: &[&str]) -> bool {
    program.get(m).ir.calls().any(|call| is_setter(program, m, call, names))
}

/// Is it such a call?
fn is_setter(program: &Program, m: ModIdx, call: Call<'_>, names: &[&str]) -> bool {
    let ir = &program.get(m).ir;
    let named = matches!(ir.expr(call.func), Expr::Attr { name, .. } if names.contains(&name.as_str()));
    let resolved = || program.resolve_expr(m, call.func);
    let sets = named
        || matches!(ir.expr(call.func), Expr::Var(_))
            && matches!(resolved(), Some(Resolved::External(path))
                if path.as_str().strip_prefix("torch.").is_some_and(|name| names.contains(&name)));
    sets && !stays(ir, call)
}

/// Is it the CPU, or another type on the CPU, that the call names? What it computes may be any.
fn stays(ir: &Module, call: Call<'_>) -> bool {
    let Some(arg) = call.args.first() else { return true };
    match ir.expr(arg.value) {
        Expr::Str(s) => !["cuda", "mps", "xpu", "npu", "hpu"].iter().any(|d| s.as_str().contains(d)),
        Expr::None => true,
        // `torch.DoubleTensor`, and not `torch.cuda.DoubleTensor`
        Expr::Attr { base, name } => {
            name.as_str().ends_with("Tensor") && matches!(ir.expr(base), Expr::Var(_))
        }
        _ => false,
    }
}
