//! Which code has written a file that the program reads with `torch.load`, and whether it contains GPU tensors.
//!
//! The project's own calls of `torch.save` determine the content of its files. A call writes the file of a load if it is in the matching
//! method (`save_network` for `load_network`). Otherwise all calls together determine what the project's files contain.

use std::cell::OnceCell;

use rustc_hash::FxHashSet;

use crate::flow::project::CallGraph;
use crate::flow::project::checkpoints::saved_devices::Contents;
use crate::flow::query::call_sites::{Chain, MAX_CALLERS, Site, argument, assigned, calls, through};
use crate::flow::query::reaching_values::Stored;
use crate::ir::{CallId, Expr, ExprId, FuncId, Var};
use crate::link::{ClassKey, ModIdx, Program, Resolved};
use crate::span::Place;
use crate::sym::Sym;
use crate::torch;

/// The maximum length of call chains that are followed upwards to the saved value.
const MAX_CHAIN: usize = 3;
/// The maximum number of call chains to one call of `torch.save`.
const MAX_WAYS: usize = 32;

/// A call of `torch.load`.
pub struct Load {
    /// The file of the call.
    module: ModIdx,
    /// The function that writes what this one reads, according to their names.
    pair: Option<(ModIdx, FuncId)>,
    /// Whether the call reads bytes in memory, not a file.
    in_memory: bool,
}

impl Load {
    /// The call at a place.
    pub fn at(program: &Program, place: Place) -> Option<Self> {
        let module = program.module_of(place.file)?;
        let ir = &program.get(module).ir;
        let e = ir.call_at(place.span)?;
        let Expr::Call(call) = ir.expr(e) else { return None };
        let func = ir.function_around(e);
        let path = argument(ir.call(call), 0, Sym::new("f"))?;
        let pair = counterpart(program, module, func);
        let in_memory = is_buffer(program, &Site::of(module, func), path);
        Some(Self { module, pair, in_memory })
    }

    /// A word that the source of the writer must contain; `None` if the writer is in the same file as the load.
    pub fn word(&self) -> Option<&'static str> {
        self.pair.is_none().then_some("torch.save")
    }
}

/// The method of the same class, or the function of the same file, that saves what this function loads.
fn counterpart(program: &Program, module: ModIdx, mut func: FuncId) -> Option<(ModIdx, FuncId)> {
    let ir = &program.get(module).ir;
    loop {
        let function = ir.function(func);
        let name = function.name.as_str();
        if let Some(verb) = ["load", "restore"].into_iter().find(|verb| name.contains(verb)) {
            let other = Sym::new(&name.replacen(verb, "save", 1));
            return match function.class {
                Some(class) => program.find_method(ClassKey { module, class }, other),
                None => match program.lookup(module, other)? {
                    Resolved::Function(m, f) => Some((m, f)),
                    _ => None,
                },
            };
        }
        func = function.parent?;
    }
}

/// The project's calls of `torch.save`.
pub struct Writers<'a> {
    program: &'a Program,
    saves: Vec<(Site<'static>, CallId)>,
    graph: &'a CallGraph,
    /// See [`Writers::host_anywhere`].
    anywhere: OnceCell<bool>,
}

impl<'a> Writers<'a> {
    /// Finds the calls in the files of this call graph.
    pub fn of(program: &'a Program, graph: &'a CallGraph) -> Self {
        let mut saves = Vec::new();
        for &m in graph.files() {
            let ir = &program.get(m).ir;
            for (n, call) in (0..).zip(ir.calls()).filter(|(_, call)| is_save(program, m, call.func)) {
                saves.push((Site::of(m, ir.function_around(call.func)), CallId(n)));
            }
        }
        Self { program, saves, graph, anywhere: OnceCell::new() }
    }

    /// The names of the functions that save a parameter, or pass it on to such a function.
    pub fn helpers(&self) -> FxHashSet<Sym> {
        let is_given = |site: &Site<'_>, call: CallId| {
            let ir = &self.program.get(site.module).ir;
            let params = &ir.function(site.func).params;
            let param = |e: ExprId| params.iter().any(|p| ir.expr(e) == Expr::Var(Var::Local(p.slot)));
            ir.call(call).args.iter().any(|a| param(a.value))
        };
        let saves = self.saves.iter().filter(|(site, call)| is_given(site, *call));
        let mut found: FxHashSet<(ModIdx, FuncId)> = saves.map(|(s, _)| (s.module, s.func)).collect();
        for _ in 0..MAX_CHAIN {
            let calls = found.iter().flat_map(|&f| calls(self.program, self.graph, f));
            let handing = calls.filter(|(site, call)| is_given(site, *call));
            let more: Vec<(ModIdx, FuncId)> = handing.map(|(s, _)| (s.module, s.func)).collect();
            found.extend(more);
        }
        found.into_iter().map(|(m, f)| self.program.get(m).ir.function(f).name).collect()
    }

    /// Whether everything that the load reads was on the CPU when it was saved.
    pub fn on_the_host(&self, load: &Load) -> bool {
        let stored = match load.pair {
            Some(pair) => self.stored_by(pair),
            None if load.in_memory => self.stored_in_memory(load.module),
            None => Vec::new(),
        };
        if stored.is_empty() {
            return *self.anywhere.get_or_init(|| self.host_anywhere());
        }
        // If one place leaves the device unknown, another may determine it.
        let certain = stored.iter().any(|s| matches!(s, Stored::Host))
            || !stored.is_empty() && stored.iter().all(|s| matches!(s, Stored::Plain));
        certain && !stored.contains(&Stored::Elsewhere)
    }

    /// Where the tensors are that a function saves.
    fn stored_by(&self, (module, func): (ModIdx, FuncId)) -> Vec<Stored> {
        let ir = &self.program.get(module).ir;
        let within = |f: FuncId| f == func || ir.function(func).span.contains(ir.function(f).span);
        let saves = self.saves.iter().filter(|(site, _)| site.module == module && within(site.func));
        saves.filter_map(|(site, call)| self.stored(site, *call)).collect()
    }

    /// The same for what the load's file writes to memory: functions such as `encode` and `decode` are usually in the same file.
    fn stored_in_memory(&self, module: ModIdx) -> Vec<Stored> {
        let ir = &self.program.get(module).ir;
        let buffer = |site: &Site<'_>, call: CallId| {
            let file = argument(ir.call(call), 1, Sym::new("f"));
            file.is_some_and(|file| is_buffer(self.program, site, file))
        };
        let saves = self.saves.iter().filter(|(site, call)| site.module == module && buffer(site, *call));
        saves.filter_map(|(site, call)| self.stored(site, *call)).collect()
    }

    /// Whether all saves of the project write tensors from the CPU, and at least one does. Then the files that the project reads probably
    /// contain CPU tensors too. Plain values say nothing about tensors.
    fn host_anywhere(&self) -> bool {
        let (mut host, mut elsewhere) = (false, false);
        for &(site, call) in &self.saves {
            for chain in std::iter::once(Chain::new()).chain(self.chains(site)) {
                through(site, &chain, &mut |site| {
                    let stored = self.stored(site, call);
                    host |= stored == Some(Stored::Host);
                    elsewhere |= stored == Some(Stored::Elsewhere);
                });
                if elsewhere {
                    return false;
                }
            }
        }
        host
    }

    /// The chains of calls that lead to a place.
    fn chains(&self, site: Site<'static>) -> Vec<Chain> {
        let (mut found, mut last): (Vec<Chain>, Vec<Chain>) = (Vec::new(), vec![Chain::new()]);
        for _ in 0..MAX_CHAIN {
            let mut next = Vec::new();
            for chain in &last {
                let top = chain.last().map_or(site, |&(caller, _)| caller);
                for (caller, call) in
                    calls(self.program, self.graph, (top.module, top.func)).take(MAX_CALLERS)
                {
                    let seen = |s: &Site<'_>| s.module == caller.module && s.func == caller.func;
                    if !seen(&site) && !chain.iter().any(|(s, _)| seen(s)) {
                        next.push([chain.as_slice(), &[(caller, call)]].concat());
                    }
                }
            }
            next.truncate(MAX_WAYS);
            found.extend(next.iter().cloned());
            last = next;
        }
        found.truncate(MAX_WAYS);
        found
    }

    fn stored(&self, site: &Site<'_>, call: CallId) -> Option<Stored> {
        let ir = &self.program.get(site.module).ir;
        let what = argument(ir.call(call), 0, Sym::new("obj"))?;
        let contents = Contents { program: self.program, graph: self.graph };
        Some(contents.of(site, what))
    }
}

/// `io.BytesIO(data)`, or a local variable that holds nothing else.
fn is_buffer(program: &Program, site: &Site<'_>, e: ExprId) -> bool {
    let ir = &program.get(site.module).ir;
    match ir.expr(e) {
        Expr::Call(id) => matches!(program.resolve_expr(site.module, ir.call(id).func),
            Some(Resolved::External(path)) if path.as_str() == "io.BytesIO"),
        Expr::Var(var @ Var::Local(_)) => {
            let given = assigned(ir, site.func, var);
            let made = |&e: &ExprId| matches!(ir.expr(e), Expr::Call(_)) && is_buffer(program, site, e);
            !given.is_empty() && given.iter().all(made)
        }
        _ => false,
    }
}

/// `torch.save`
fn is_save(program: &Program, m: ModIdx, callee: ExprId) -> bool {
    let ir = &program.get(m).ir;
    let called = match ir.expr(callee) {
        Expr::Attr { name, .. } => name.as_str() == "save",
        Expr::Var(_) => true,
        _ => false,
    };
    called
        && matches!(program.resolve_expr(m, callee), Some(Resolved::External(path))
            if torch::canonical(path).as_str() == "torch.save")
}
