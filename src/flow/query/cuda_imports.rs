//! Which files cannot be imported without a CUDA build.
//!
//! A file needs CUDA if its body, on every path, imports an extension that is built for CUDA alone, or compiles kernels. It also needs
//! CUDA if it imports another file of the project that does. Code in a branch, or in a `try` that continues after an error, does not
//! count: the program has a choice.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHashMap;

use crate::flow::project::context::closed_over;
use crate::ir::{Block, Expr, ExprId, FuncId, Import, ImportList, Module, Stmt};
use crate::link::{Binding, ModIdx, Program, Resolved, Target};
use crate::reads;
use crate::sym::Sym;
use crate::torch::{self, Reach};

/// The files that cannot be imported without CUDA.
#[derive(Debug, Default)]
pub struct CudaOnly {
    needs: Vec<bool>,
    /// Whether each file compiles kernels itself.
    compile: Vec<bool>,
    /// Whether each file has a variable that holds compiled kernels.
    hold: Vec<bool>,
    /// Whether any file compiles or holds kernels.
    kernels: bool,
}

impl CudaOnly {
    /// Examines every file of the program.
    pub fn of(program: &Program) -> Self {
        Self::in_packages(program, &[])
    }

    /// The same, but each file in `packages` also needs CUDA if the `__init__.py` of its package does, because that is imported first.
    pub fn in_packages(program: &Program, packages: &[(ModIdx, ModIdx)]) -> Self {
        let all = || (0..program.len()).map(|n| ModIdx(u32::try_from(n).unwrap_or(u32::MAX)));
        let compile: Vec<bool> = all().map(|m| compiles(program, m)).collect();
        let hold: Vec<bool> = all().map(|m| holds_kernels(program, m)).collect();
        let kernels = compile.contains(&true) || hold.contains(&true);
        let known =
            |m: ModIdx| imports_extension(program, m).max(compile[m.0 as usize].then_some(Reach::Importers));
        let seeds: Vec<Option<Reach>> = all().map(known).collect();
        let needing: Vec<ModIdx> = all().filter(|m| seeds[m.0 as usize] == Some(Reach::Importers)).collect();
        let mut importers: FxHashMap<ModIdx, Vec<ModIdx>> = FxHashMap::default();
        for m in all().filter(|_| !needing.is_empty()) {
            let linked = program.get(m);
            for i in first_imports(&linked.ir) {
                let target = linked.targets.get(&(i.level, i.module, i.name));
                if let Some(&(Target::Module(t) | Target::Member(t, _))) = target {
                    importers.entry(t).or_default().push(m);
                }
            }
        }
        for &(file, package) in packages {
            importers.entry(package).or_default().push(file);
        }
        let reached = closed_over(needing, &importers, &|_| true);
        let needs = all().map(|m| seeds[m.0 as usize].is_some() || reached.contains(&m)).collect();
        Self { needs, compile, hold, kernels }
    }

    /// Adds what is known about a file to a fingerprint.
    pub(crate) fn fingerprint(&self, module: ModIdx, into: &mut impl Hasher) {
        (self.contains(module), self.compiles(module), self.holds_kernels(module), self.kernels).hash(into);
    }

    /// Whether CUDA is available wherever the file has been imported.
    pub fn contains(&self, module: ModIdx) -> bool {
        reads::note(module.0);
        self.needs.get(module.0 as usize).copied().unwrap_or(false)
    }

    /// Whether importing the file compiles kernels on every machine.
    pub(crate) fn compiles(&self, module: ModIdx) -> bool {
        reads::note(module.0);
        self.compile.get(module.0 as usize).copied().unwrap_or(false)
    }

    /// Whether a file of the program may compile or hold kernels. In most programs none does.
    pub(crate) fn may_hold_kernels(&self, program: &Program) -> bool {
        self.kernels || self.hold.len() < program.len()
    }

    /// Whether a variable of the file's body may hold kernels that the file has compiled.
    pub(crate) fn holds_kernels(&self, module: ModIdx) -> bool {
        reads::note(module.0);
        self.hold.get(module.0 as usize).copied().unwrap_or(true)
    }
}

/// The imports that run whenever the file is imported.
fn first_imports(ir: &Module) -> Vec<&Import> {
    let mut found = Vec::new();
    if let Some(body) = ir.functions.first() {
        add_imports(ir, body.body, &mut found);
    }
    found
}

fn add_imports<'a>(ir: &'a Module, block: Block, found: &mut Vec<&'a Import>) {
    for &s in ir.block(block) {
        match ir.stmt(s) {
            Stmt::Import(imports) => found.extend(ir.imported(*imports)),
            // `except ImportError: raise RuntimeError(…)`: without the module, the file cannot be imported.
            Stmt::Try { body, handlers, .. } => {
                let handlers = ir.handlers(*handlers);
                if !handlers.is_empty() && handlers.iter().all(|h| raises(ir, h.body)) {
                    add_imports(ir, *body, found);
                } else if let ([s], [handler]) = (ir.block(*body), handlers)
                    && let Stmt::Import(imports) = ir.stmt(*s)
                    && ir.imported(*imports).iter().all(|i| i.level == 0)
                {
                    // The fallback import stands for an extension that is not built. It is of the same kind.
                    add_imports(ir, handler.body, found);
                    // The fallback imports the same names by another path.
                    if let [other] = *ir.block(handler.body)
                        && let Stmt::Import(others) = ir.stmt(other)
                        && names(ir, *imports).eq(names(ir, *others))
                    {
                        found.extend(ir.imported(*imports));
                    }
                }
            }
            _ => {}
        }
    }
}

/// Whether the block ends by raising. An exception for the set-up script is allowed (`builtins.__OPS_SETUP__`).
fn raises(ir: &Module, block: Block) -> bool {
    let set_up = |n: usize| matches!(ir.exprs[n], Expr::Str(name) if name.as_str().ends_with("SETUP__"));
    ir.block(block).last().is_some_and(|&s| match *ir.stmt(s) {
        Stmt::Raise { .. } => true,
        Stmt::If { test, then, orelse } => {
            ir.exprs_in(test).any(set_up) && raises(ir, then) && ir.block(orelse).is_empty()
        }
        _ => false,
    })
}

/// The names that imports bind.
fn names(ir: &Module, imports: ImportList) -> impl Iterator<Item = Option<Sym>> + '_ {
    ir.imported(imports).iter().map(|i| i.name)
}

/// Whether the file itself imports something that only a CUDA build has. The result says for which files that counts.
fn imports_extension(program: &Program, module: ModIdx) -> Option<Reach> {
    let reach = |i: &Import| {
        // `import fused_dense_cuda`: an extension by its name.
        let named = i.name.is_none() && i.module.as_str().ends_with("_cuda");
        if named && i.level == 0 || program.is_extension(module, i) {
            return Some(Reach::Importers);
        }
        let known = || torch::cuda_only_reach(i.whole()).max(torch::cuda_only_reach(i.module));
        (i.level == 0).then(known).flatten()
    };
    first_imports(&program.get(module).ir).into_iter().filter_map(reach).max()
}

fn compiles(program: &Program, module: ModIdx) -> bool {
    let ir = &program.get(module).ir;
    let Some(body) = ir.functions.first() else { return false };
    ir.block(body.body).iter().any(|&s| match *ir.stmt(s) {
        Stmt::Assign { value, .. } | Stmt::Expr(value) => compiles_at(program, module, value),
        _ => false,
    })
}

fn holds_kernels(program: &Program, module: ModIdx) -> bool {
    let compiled = |b: &Binding| matches!(*b, Binding::Value(e) if compiles_at(program, module, e));
    program.get(module).bindings.iter().any(compiled)
}

/// `load(name=…, sources=["kernel.cu"])`, or a call of the project's function that does it.
pub(crate) fn compiles_at(program: &Program, module: ModIdx, e: ExprId) -> bool {
    let ir = &program.get(module).ir;
    let Expr::Call(call) = ir.expr(e) else { return false };
    let call = ir.call(call);
    // The loader takes a name and the sources, and the names of its wrappers contain `load`. A call with fewer arguments and another
    // name is not resolved. That skips most calls at top level, for example of loggers.
    let loads = matches!(ir.expr(call.func), Expr::Attr { name, .. } if name.as_str().contains("load"));
    if call.args.len() < 2 && !loads {
        return false;
    }
    let kernel = |ir: &Module, n: usize| matches!(ir.exprs[n], Expr::Str(s) if s.as_str().ends_with(".cu"));
    match program.resolve_expr(module, call.func) {
        Some(Resolved::External(path)) => is_loader(path) && ir.exprs_in(e).any(|n| kernel(ir, n)),
        Some(Resolved::Function(m, f)) => {
            let ir = &program.get(m).ir;
            let range = range_of(ir, f);
            range.clone().any(|n| kernel(ir, n)) && range.into_iter().any(|n| calls_loader(program, m, n))
        }
        _ => false,
    }
}

/// The expressions of a function and of its nested functions.
fn range_of(ir: &Module, f: FuncId) -> std::ops::Range<usize> {
    let function = ir.function(f);
    let inner = ir.functions.iter().filter(|g| function.span.contains(g.span)).map(|g| g.exprs.end);
    let end = inner.max().unwrap_or(function.exprs.end);
    function.exprs.start as usize..(end as usize).min(ir.exprs.len())
}

fn calls_loader(program: &Program, module: ModIdx, n: usize) -> bool {
    let ir = &program.get(module).ir;
    let Expr::Call(call) = ir.exprs[n] else { return false };
    matches!(program.resolve_expr(module, ir.call(call).func), Some(Resolved::External(path)) if is_loader(path))
}

fn is_loader(path: Sym) -> bool {
    path.as_str() == "torch.utils.cpp_extension.load"
}
