//! On which device the result of a call is when it is saved.

use crate::flow::project::checkpoints::saved_devices::Contents;
use crate::flow::query::call_sites::{Site, argument, own_method};
use crate::flow::query::nodes::{Node, named};
use crate::flow::query::reaching_values::Stored;
use crate::ir::{Call, Expr, ExprId, FuncId, FuncKind, Module, Stmt, Var};
use crate::link::{ModIdx, Resolved};
use crate::span::Span;
use crate::sym::Sym;
use crate::torch;
use crate::words::Words;

/// Methods that give values of Python or NumPy.
static TO_PYTHON: Words = Words::of("results that are not tensors");
/// Parts of the names of objects whose state has no tensors.
static WITHOUT_TENSORS: Words = Words::of("states without tensors");
/// Methods whose result is on the device of the value.
static STAYS: Words = Words::of("results on the same device");
/// Functions with the argument `map_location`.
static LOADS: Words = Words::of("load with map_location");
/// Functions whose result is on the CPU.
static ON_HOST: Words = Words::of("results on the CPU");
/// Functions whose result is like their argument.
static LIKE: Words = Words::of("tensors like another one");
/// Functions whose result holds their arguments.
static COLLECTS: Words = Words::of("results that hold the arguments");
/// Functions whose result has no tensors.
static GIVES_PLAIN: Words = Words::of("builtins without tensors");
/// Functions whose result is on the device of their arguments.
static JOINS: Words = Words::of("results on the device of the arguments");
/// The starts of paths whose functions give no tensors.
static OTHER_MODULES: Words = Words::of("modules without tensors");

impl Contents<'_> {
    pub(crate) fn call(&self, site: &Site<'_>, call: Call<'_>, depth: u32) -> Stored {
        // `tree_map(lambda x: x.cpu(), state)`
        if call.args.iter().any(|a| self.copies_to_host(site, a.value, depth)) {
            return Stored::Host;
        }
        let ir = &self.program.get(site.module).ir;
        if let Some(node) = named(self.program, site.module, call.func) {
            return match node {
                Node::Function(m, f) => self.result(site, call, m, f, depth),
                Node::Class(_) => Stored::Unknown,
            };
        }
        if let Some(Resolved::External(path)) = self.program.resolve_expr(site.module, call.func) {
            return self.foreign(site, torch::canonical(path).as_str(), call, depth);
        }
        match ir.expr(call.func) {
            Expr::Attr { base, name } => self.method(site, base, name, call, depth),
            Expr::Var(var) => match local_function(ir, site.func, var) {
                Some(f) => self.result(site, call, site.module, f, depth),
                None => Stored::Unknown,
            },
            _ => Stored::Unknown,
        }
    }

    /// A method, by its name.
    fn method(&self, site: &Site<'_>, base: ExprId, name: Sym, call: Call<'_>, depth: u32) -> Stored {
        let of_base = || self.value(site, base, depth);
        match name.as_str() {
            "cpu" => Stored::Host,
            text if TO_PYTHON.has(text) => Stored::Plain,
            "cuda" => Stored::Elsewhere,
            "to" => match argument(call, 0, Sym::new("device")) {
                Some(x) if self.is_cpu(site, x) => Stored::Host,
                _ => Stored::Unknown,
            },
            "state_dict" => match of_base() {
                Stored::Host => Stored::Host,
                _ => {
                    let text = self.last_name(site, base).to_ascii_lowercase();
                    if WITHOUT_TENSORS.is_part_of(&text) { Stored::Plain } else { Stored::Elsewhere }
                }
            },
            text if STAYS.has(text) => of_base(),
            _ => match own_method(self.program, site.module, site.func, call.func) {
                Some((m, f)) => self.result(site, call, m, f, depth),
                None => Stored::Unknown,
            },
        }
    }

    /// The last name of an expression: `scheduler` of `self.scheduler`.
    fn last_name(&self, site: &Site<'_>, e: ExprId) -> &str {
        let ir = &self.program.get(site.module).ir;
        match ir.expr(e) {
            Expr::Attr { name, .. } => name.as_str(),
            Expr::Var(var) => self.name_of(site, var).unwrap_or_default(),
            _ => "",
        }
    }

    /// A function outside the project.
    fn foreign(&self, site: &Site<'_>, path: &str, call: Call<'_>, depth: u32) -> Stored {
        let given: Vec<ExprId> = call.args.iter().map(|a| a.value).collect();
        match path {
            _ if LOADS.has(path) => {
                let at = if path == "torch.load" { 1 } else { 2 };
                let cpu = argument(call, at, Sym::new("map_location")).is_some_and(|x| self.is_cpu(site, x));
                if cpu { Stored::Host } else { Stored::Unknown }
            }
            _ if ON_HOST.has(path) => Stored::Host,
            // The state is gathered on the CPU (torch/distributed/fsdp/fully_sharded_data_parallel.py, `_optim_state_dict_impl`).
            "torch.distributed.fsdp.FullyShardedDataParallel.full_optim_state_dict"
            | "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel.full_optim_state_dict" => {
                Stored::Host
            }
            // Without an explicit device, the result is on the device of the argument.
            _ if LIKE.has(path) && argument(call, usize::from(u8::MAX), Sym::new("device")).is_none() => {
                given.first().map_or(Stored::Unknown, |&like| self.value(site, like, depth))
            }
            _ if COLLECTS.has(path) => self.all(site, &given, depth),
            _ if GIVES_PLAIN.has(path) => Stored::Plain,
            _ if JOINS.has(path) => self.all(site, &given, depth),
            _ if OTHER_MODULES.starts(path) => Stored::Plain,
            _ => Stored::Unknown,
        }
    }

    /// `"cpu"`, `torch.device("cpu")`, `lambda storage, location: storage`
    fn is_cpu(&self, site: &Site<'_>, e: ExprId) -> bool {
        let ir = &self.program.get(site.module).ir;
        match ir.expr(e) {
            Expr::Str(s) => s.as_str() == "cpu",
            Expr::Call(id) => {
                ir.call(id).args.first().is_some_and(|a| ir.expr(a.value) == Expr::Str(Sym::new("cpu")))
            }
            Expr::Lambda(f) => {
                let function = ir.function(f);
                let first = function.params.first().map(|p| Expr::Var(Var::Local(p.slot)));
                let returned = returns(ir, f);
                matches!(returned.as_slice(), &[Some(x)] if Some(ir.expr(x)) == first)
            }
            _ => false,
        }
    }

    /// Whether the function that is passed as an argument returns CPU copies of all tensors.
    fn copies_to_host(&self, site: &Site<'_>, e: ExprId, depth: u32) -> bool {
        let ir = &self.program.get(site.module).ir;
        let (m, f) = match ir.expr(e) {
            Expr::Lambda(f) => (site.module, f),
            Expr::Var(var @ Var::Local(_)) => match local_function(ir, site.func, var) {
                Some(f) => (site.module, f),
                None => return false,
            },
            Expr::Var(_) => match named(self.program, site.module, e) {
                Some(Node::Function(m, f)) => (m, f),
                _ => return false,
            },
            _ => return false,
        };
        let Some(depth) = depth.checked_sub(1) else { return false };
        let ir = &self.program.get(m).ir;
        let there = Site::of(m, f);
        let given = returns(ir, f);
        // A function that returns its parameter does so for values other than tensors, and copies the tensors.
        let param =
            |x: ExprId| ir.function(f).params.iter().any(|p| ir.expr(x) == Expr::Var(Var::Local(p.slot)));
        let copies = |x: &Option<ExprId>| x.is_some_and(|x| self.value(&there, x, depth) == Stored::Host);
        given.iter().any(copies) && given.iter().all(|x| copies(x) || x.is_some_and(param))
    }

    /// The result of a call of a function of the project.
    fn result(&self, site: &Site<'_>, call: Call<'_>, m: ModIdx, f: FuncId, depth: u32) -> Stored {
        let Some(depth) = depth.checked_sub(1) else { return Stored::Unknown };
        let caller = &self.program.get(site.module).ir;
        let Some(n) = caller.calls().position(|c| c.func == call.func) else { return Stored::Unknown };
        let ir = &self.program.get(m).ir;
        if ir.function(f).is_generator {
            return Stored::Unknown;
        }
        let id = crate::ir::CallId(u32::try_from(n).unwrap_or(u32::MAX));
        let there = Site { module: m, func: f, via: Some((site, id)) };
        let given =
            returns(ir, f).into_iter().map(|x| x.map_or(Stored::Plain, |x| self.value(&there, x, depth)));
        given.min().unwrap_or(Stored::Plain)
    }
}

/// The nested function of `func` with this name.
fn local_function(ir: &Module, func: FuncId, var: Var) -> Option<FuncId> {
    let stmts = &ir.stmts[ir.stmts_of(ir.function(func))];
    stmts.iter().find_map(|stmt| match *stmt {
        Stmt::Def(f, name) if name == var && ir.function(f).parent == Some(func) => Some(f),
        _ => None,
    })
}

/// The expressions of all `return` statements of a function.
pub(crate) fn returns(ir: &Module, func: FuncId) -> Vec<Option<ExprId>> {
    let function = ir.function(func);
    let inner: Vec<Span> = ir
        .functions
        .iter()
        .filter(|f| f.parent == Some(func) && f.kind != FuncKind::ClassBody)
        .map(|f| f.span)
        .collect();
    let range = ir.stmts_of(function);
    ir.stmts[range.clone()]
        .iter()
        .zip(&ir.stmt_spans[range])
        .filter(|(_, at)| !inner.iter().any(|span| span.contains(**at)))
        .filter_map(|(stmt, _)| match *stmt {
            Stmt::Return(value) => Some(value),
            _ => None,
        })
        .collect()
}
