//! What a whole file shows about the machine.

use crate::flow::domain::atom::{Atom, backend};
use crate::flow::domain::diagram::{Cond, TRUE};
use crate::flow::domain::event::{Bite, Kind};
use crate::flow::machine::Interp;
use crate::flow::query::cuda_imports::compiles_at;
use crate::flow::query::relevance::functions::Relevance;
use crate::ir::{Expr, ExprId, FuncId, Module, Slot, Stmt};
use crate::link::{Binding, ModIdx, Program, Resolved, Target};
use crate::span::{Place, Span};
use crate::sym::Sym;
use crate::torch::{self};
use crate::world::Backend;

/// The files of a program, for queries about whole files.
#[derive(Clone, Copy)]
pub(crate) struct Files<'p>(pub(crate) &'p Program);

impl Files<'_> {
    /// Whether the file is clearly written for CUDA only.
    pub(crate) fn cuda_only_file(self, relevance: &Relevance, module: ModIdx) -> bool {
        relevance.cuda_only.contains(module)
            || self.defines_kernels(module)
            || self.imports_kernels(relevance, module)
    }

    /// Whether the file imports kernels that another file of the project compiles at import, as in
    /// `from .backend import _backend`. An import with a fallback does not count.
    fn imports_kernels(self, relevance: &Relevance, module: ModIdx) -> bool {
        if !relevance.cuda_only.may_hold_kernels(self.0) {
            return false;
        }
        let linked = self.0.get(module);
        let ir = &linked.ir;
        let mut kernels = ir.stmts.iter().zip(&ir.stmt_spans).filter(|(stmt, _)| {
            let Stmt::Import(imports) = **stmt else { return false };
            ir.imported(imports).iter().any(|i| match linked.targets.get(&(i.level, i.module, i.name)) {
                Some(&Target::Member(m, name)) => {
                    let cuda_only = &relevance.cuda_only;
                    cuda_only.compiles(m) || cuda_only.holds_kernels(m) && self.are_kernels(m, name)
                }
                Some(&Target::Module(m)) => relevance.cuda_only.compiles(m),
                _ => false,
            })
        });
        let tried = |at: Span| ir.stmts.iter().filter_map(|s| tried(ir, s)).any(|span| span.contains(at));
        kernels.any(|(_, &at)| !tried(at))
    }

    /// Whether the variable holds compiled kernels: `_backend = load(name=…, sources=["kernel.cu"])`.
    fn are_kernels(self, module: ModIdx, name: Sym) -> bool {
        let linked = self.0.get(module);
        let slot = linked.names.get(&name).copied().unwrap_or(Slot::MAX);
        let Some(&Binding::Value(e)) = linked.bindings.get(usize::from(slot)) else { return false };
        compiles_at(self.0, module, e)
    }

    /// Whether a function in the file has `@triton.jit`, under any import. Then the other functions exist to launch the
    /// kernel.
    fn defines_kernels(self, module: ModIdx) -> bool {
        let ir = &self.0.get(module).ir;
        ir.functions.iter().flat_map(|f| ir.list(f.decorators)).any(|&d| {
            let target = match ir.expr(d) {
                Expr::Call(call) => ir.call(call).func,
                _ => d,
            };
            let resolved = self.0.resolve_expr(module, target);
            matches!(resolved, Some(Resolved::External(path)) if torch::cuda_only_import(path))
        })
    }

    /// Whether a function of the file raises without CUDA. Then the others may rely on CUDA.
    pub(crate) fn refuses_without_cuda(self, module: ModIdx) -> bool {
        let ir = &self.0.get(module).ir;
        (1..ir.functions.len()).any(|n| {
            let func = FuncId(u32::try_from(n).unwrap_or(u32::MAX));
            ir.block(ir.function(func).body).iter().any(|&s| match ir.stmt(s) {
                Stmt::Assert { test, .. } => self.asks_for_cuda(module, *test),
                Stmt::If { test, then, .. } => {
                    let Expr::Unary { operand, op: crate::ir::UnaryOp::Not } = ir.expr(*test) else {
                        return false;
                    };
                    let leaves =
                        ir.block(*then).last().is_some_and(|&s| matches!(ir.stmt(s), Stmt::Raise { .. }));
                    leaves && self.asks_for_cuda(module, operand)
                }
                _ => false,
            })
        })
    }

    fn asks_for_cuda(self, module: ModIdx, e: ExprId) -> bool {
        let ir = &self.0.get(module).ir;
        let Expr::Call(call) = ir.expr(e) else { return false };
        let Some(Resolved::External(path)) = self.0.resolve_expr(module, ir.call(call).func) else {
            return false;
        };
        path.as_str() == "torch.cuda.is_available"
    }
}

impl Interp<'_> {
    /// Handles an import in a function such as `import amp_C`: an extension that the project builds for CUDA only, or a
    /// file that needs CUDA. The code after it has CUDA. At the top of a file, only an import in a `try` is handled. It
    /// holds for the rest of the body, and wherever a variable shows that the body completed.
    pub(crate) fn imports_extension(&mut self, import: &crate::ir::Import, at: Span) {
        let here = self.here();
        let (module, top, tried) = (here.module, here.func == FuncId(0), !here.tries.is_empty());
        if top != tried {
            return;
        }
        if let Some(b) = torch::plugin(import.module).filter(|_| !top && import.level == 0) {
            self.cannot_do_without(b);
        }
        let known = || torch::cuda_only_import(import.whole()) || torch::cuda_only_import(import.module);
        let built = self.program.is_extension(module, import) || import.level == 0 && known();
        let key = (import.level, import.module, import.name);
        let target = self.program.get(module).targets.get(&key);
        let needs = matches!(target, Some(&(Target::Module(m) | Target::Member(m, _)))
            if !top && self.relevance.cuda_only.contains(m));
        if needs {
            // Later uses of CUDA are in the shadow of this import: without CUDA, the import has already failed.
            let place = Place { file: self.linked().ir.file, span: at };
            let shadow = self.atoms.add(Atom::Shadow { place });
            self.tests.kernels_imported.insert(shadow);
            let (shadow, there) = (self.d.atom(shadow), self.available(None));
            let fine = self.d.or(there, shadow);
            self.path = self.d.and(self.path, fine);
        }
        if built {
            let there = self.available(None);
            self.path = self.d.and(self.path, there);
            if let Some(tried) = self.here_mut().tries.last_mut() {
                tried.imported = there;
            }
        }
    }

    /// Records that this point raises without the back end: the code after it has it.
    pub(crate) fn cannot_do_without(&mut self, b: Backend) {
        let there = self.available(Some(b));
        if self.caught_around() {
            self.survive(TRUE, there);
        } else {
            self.path = self.d.and(self.path, there);
        }
    }

    /// The condition from a file's unconditional top-level imports: the machine must have the back ends of the
    /// plug-ins.
    pub(crate) fn plugins_at_top(&mut self, module: ModIdx) -> Cond {
        let ir = &self.program.get(module).ir;
        let mut cond = TRUE;
        let Some(body) = ir.functions.first() else { return cond };
        for &s in ir.block(body.body) {
            let Stmt::Import(imports) = *ir.stmt(s) else { continue };
            for i in ir.imported(imports).iter().filter(|i| i.level == 0) {
                if let Some(b) = torch::plugin(i.module) {
                    let there = self.d.atom(backend(b));
                    cond = self.d.and(cond, there);
                }
            }
        }
        cond
    }

    /// Checks `torch.npu.is_available()` where the file does not import `torch_npu`: the attribute `torch.npu` itself
    /// may be missing.
    pub(crate) fn check_plugin(&mut self, path: Sym, backend: Backend, e: ExprId) {
        let imported = |m: ModIdx| {
            self.program
                .get(m)
                .ir
                .imports
                .iter()
                .any(|i| i.level == 0 && torch::plugin(i.module) == Some(backend))
        };
        if imported(self.entry) || imported(self.here().module) || self.missing_caught() {
            return;
        }
        let there = self.available(Some(backend));
        let mut missing = self.d.not(there);
        if let Some(&asked) = self.tests.plugin_atoms.get(&backend) {
            let asked = self.d.atom(asked);
            let not_asked = self.d.not(asked);
            missing = self.d.and(missing, not_asked);
        }
        if let Some(bite) = self.bite(missing, true) {
            let bite = Bite { world: crate::world::World::No(backend), ..bite };
            let place = self.place(e);
            self.emit(Kind::Plugin { function: path.to_string(), backend }, place, bite, Vec::new());
        }
    }
}

/// The span of the body of a `try` with handlers.
fn tried(ir: &Module, stmt: &Stmt) -> Option<Span> {
    let Stmt::Try { body, handlers, .. } = stmt else { return None };
    let (first, last) = (ir.block(*body).first()?, ir.block(*body).last()?);
    (handlers.len > 0).then(|| ir.stmt_span(*first).cover(ir.stmt_span(*last)))
}
