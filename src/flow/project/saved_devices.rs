//! Where the tensors of what is handed to `torch.save` are: copies on the CPU, numbers, or on whatever the program works with.

use crate::flow::query::call_sites::{Callers, MAX_CALLERS, Site, argument, given_for, own_method};
use crate::flow::query::nodes::{Node, named};
use crate::flow::query::reaching_values::{Given, Stored};
use crate::ir::{Call, Expr, ExprId, FuncId, FuncKind, IfElse, Module, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Program, Resolved};
use crate::span::Span;
use crate::sym::Sym;
use crate::torch;

/// Longest chain of expressions that is followed.
const MAX_DEPTH: u32 = 12;

/// The look at what is saved.
pub(crate) struct Contents<'a> {
    pub(crate) program: &'a Program,
    pub(crate) callers: &'a Callers,
}

impl Contents<'_> {
    /// Where the tensors of the expression's value are.
    pub(crate) fn of(&self, site: &Site<'_>, e: ExprId) -> Stored {
        self.value(site, e, MAX_DEPTH)
    }

    fn value(&self, site: &Site<'_>, e: ExprId, depth: u32) -> Stored {
        let Some(depth) = depth.checked_sub(1) else { return Stored::Unknown };
        let ir = &self.program.get(site.module).ir;
        let all = |list| self.all(site, ir.list(list), depth);
        match ir.expr(e) {
            Expr::Str(_) | Expr::Int(_) | Expr::Float(_) | Expr::True | Expr::False | Expr::None => {
                Stored::Plain
            }
            Expr::Format(_) | Expr::Compare { .. } | Expr::Ellipsis => Stored::Plain,
            Expr::Dict(list) => {
                let values: Vec<ExprId> = ir.list(list).iter().skip(1).step_by(2).copied().collect();
                let told = values.into_iter().filter(|&v| !is_group_without_parameters(ir, ir.list(list), v));
                self.all(site, &told.collect::<Vec<_>>(), depth)
            }
            Expr::List(list) | Expr::Tuple(list) | Expr::Set(list) | Expr::And(list) | Expr::Or(list) => {
                all(list)
            }
            Expr::Comp(id) => {
                let comp = ir.comp(id);
                self.value(site, comp.value.unwrap_or(comp.element), depth)
            }
            Expr::Binary { left, right, .. } => self.all(site, &[left, right], depth),
            Expr::IfElse(id) => {
                let IfElse { then, orelse, .. } = ir.if_else(id);
                self.all(site, &[then, orelse], depth)
            }
            Expr::Unary { operand, .. } => self.value(site, operand, depth),
            Expr::Star(x) | Expr::Await(x) => self.value(site, x, depth),
            Expr::Index { base, .. } => self.value(site, base, depth),
            Expr::Attr { base, name } => match name.as_str() {
                "data" | "T" | "grad" => self.value(site, base, depth),
                text if is_plain_name(text) || self.is_options(ir, site, base) => Stored::Plain,
                _ => self.own_attribute(site, base, name, depth),
            },
            Expr::Var(var) => match self.variable(site, var, e, depth) {
                Stored::Unknown => plain_if(self.name_of(site, var).is_some_and(is_plain_name)),
                known => known,
            },
            Expr::Call(id) => self.call(site, ir.call(id), depth),
            _ => Stored::Unknown,
        }
    }

    fn all(&self, site: &Site<'_>, list: &[ExprId], depth: u32) -> Stored {
        list.iter().map(|&x| self.value(site, x, depth)).min().unwrap_or(Stored::Plain)
    }

    /// The name of a variable of a function.
    fn name_of(&self, site: &Site<'_>, var: Var) -> Option<&str> {
        let ir = &self.program.get(site.module).ir;
        let (func, slot) = match var {
            Var::Local(slot) => (site.func, slot),
            Var::Global(slot) => (FuncId(0), slot),
            Var::Enclosing { depth, slot } => {
                let around = (0..depth).try_fold(site.func, |f, _| ir.function(f).parent)?;
                (around, slot)
            }
            Var::Unbound(_) => return None,
        };
        ir.function(func).slots.get(usize::from(slot)).map(|name| name.as_str())
    }

    /// `args.lr`, `cfg.model`
    fn is_options(&self, ir: &Module, site: &Site<'_>, e: ExprId) -> bool {
        let name = match ir.expr(e) {
            Expr::Attr { name, .. } => Some(name.as_str()),
            Expr::Var(var) => self.name_of(site, var),
            _ => None,
        };
        name.is_some_and(|name| {
            matches!(name, "args" | "opt" | "opts" | "cfg" | "config" | "hparams" | "options")
        })
    }

    /// `self.t`, to which the methods of its class only ever assign numbers, and what they have read of a file: numbers, then.
    fn own_attribute(&self, site: &Site<'_>, base: ExprId, name: Sym, depth: u32) -> Stored {
        let ir = &self.program.get(site.module).ir;
        let function = ir.function(site.func);
        let receiver = function.params.first().map(|p| Expr::Var(Var::Local(p.slot)));
        let (Some(class), true) = (function.class, receiver == Some(ir.expr(base))) else {
            return Stored::Unknown;
        };
        let key = ClassKey { module: site.module, class };
        let mut known = None;
        for k in &self.program.class(key).mro {
            let there = &self.program.get(k.module).ir;
            for &(_, f) in &there.class(k.class).methods {
                for value in assigned_to_self(there, f, name) {
                    if self.is_read(k.module, value) {
                        continue;
                    }
                    let stored = self.value(&Site::of(k.module, f), value, depth);
                    known = Some(known.map_or(stored, |k: Stored| k.min(stored)));
                }
            }
        }
        plain_if(known == Some(Stored::Plain))
    }

    /// `torch.load(…)`
    fn is_read(&self, m: ModIdx, e: ExprId) -> bool {
        let ir = &self.program.get(m).ir;
        let Expr::Call(call) = ir.expr(e) else { return false };
        matches!(self.program.resolve_expr(m, ir.call(call).func), Some(Resolved::External(path))
            if torch::canonical(path).as_str() == "torch.load")
    }

    fn variable(&self, site: &Site<'_>, var: Var, e: ExprId, depth: u32) -> Stored {
        let linked = self.program.get(site.module);
        let ir = &linked.ir;
        if !matches!(var, Var::Local(_)) {
            return Stored::Unknown;
        }
        if let Some(iter) = looped(ir, var, ir.span(e)) {
            return self.value(site, iter, depth);
        }
        let mut given = Given::new(ir, var);
        given.before(ir.function(site.func).body, ir.span(e), &mut |v| {
            self.value(site, v, depth) >= Stored::Host
        });
        let held = match given.held {
            Some(held) => held,
            None => self.parameter(site, var, depth),
        };
        let values = given.values.iter().map(|&v| self.value(site, v, depth));
        values.chain(held).min().unwrap_or(Stored::Unknown)
    }

    /// What the callers give for a parameter. Nothing for what is none and has been bound in another way.
    fn parameter(&self, site: &Site<'_>, var: Var, depth: u32) -> Option<Stored> {
        let function = self.program.get(site.module).ir.function(site.func);
        let Var::Local(slot) = var else { return None };
        let at = function.params.iter().position(|p| p.slot == slot)?;
        if let Some((caller, given)) = site.argument(self.program, var) {
            return Some(self.value(&caller, given, depth));
        }
        let callers = self.callers.get(&(site.module, site.func));
        let calls = callers.filter(|_| site.via.is_none()).into_iter().flatten().take(MAX_CALLERS);
        let given = calls.map(|(caller, call)| {
            let ir = &self.program.get(caller.module).ir;
            given_for(function, at, ir, ir.call(*call))
                .map_or(Stored::Unknown, |x| self.value(caller, x, depth))
        });
        Some(given.min().unwrap_or(Stored::Unknown))
    }

    fn call(&self, site: &Site<'_>, call: Call<'_>, depth: u32) -> Stored {
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
            "item" | "tolist" | "numpy" => Stored::Plain,
            "cuda" => Stored::Elsewhere,
            "to" => match argument(call, 0, Sym::new("device")) {
                Some(x) if self.is_cpu(site, x) => Stored::Host,
                _ => Stored::Unknown,
            },
            "state_dict" => match of_base() {
                Stored::Host => Stored::Host,
                _ => {
                    let text = self.last_name(site, base).to_ascii_lowercase();
                    let none =
                        ["sched", "scaler", "sampler", "meter", "stopp"].iter().any(|w| text.contains(w));
                    if none { Stored::Plain } else { Stored::Elsewhere }
                }
            },
            "items" | "values" | "keys" | "copy" | "get" | "pop" | "clone" | "detach" | "contiguous"
            | "float" | "half" | "double" | "bfloat16" | "view" | "reshape" | "flatten" | "squeeze"
            | "unsqueeze" | "narrow" | "permute" | "transpose" | "t" | "type" | "eval" | "train" => of_base(),
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
            "torch.load" | "torch.hub.load_state_dict_from_url" | "torch.utils.model_zoo.load_url" => {
                let at = if path == "torch.load" { 1 } else { 2 };
                let cpu = argument(call, at, Sym::new("map_location")).is_some_and(|x| self.is_cpu(site, x));
                if cpu { Stored::Host } else { Stored::Unknown }
            }
            "torch.from_numpy" | "torch.get_rng_state" | "safetensors.torch.load_file" => Stored::Host,
            // It is gathered on the CPU (torch/distributed/fsdp/fully_sharded_data_parallel.py, `_optim_state_dict_impl`).
            "torch.distributed.fsdp.FullyShardedDataParallel.full_optim_state_dict"
            | "torch.distributed.fsdp.fully_sharded_data_parallel.FullyShardedDataParallel.full_optim_state_dict" => {
                Stored::Host
            }
            // A device that is given decides.
            "torch.empty_like" | "torch.zeros_like" | "torch.ones_like" | "torch.full_like"
            | "torch.rand_like" | "torch.randn_like"
                if argument(call, usize::from(u8::MAX), Sym::new("device")).is_none() =>
            {
                given.first().map_or(Stored::Unknown, |&like| self.value(site, like, depth))
            }
            "builtins.dict"
            | "builtins.list"
            | "builtins.tuple"
            | "builtins.sorted"
            | "builtins.set"
            | "builtins.min"
            | "builtins.max"
            | "builtins.sum"
            | "builtins.zip"
            | "builtins.enumerate"
            | "collections.OrderedDict"
            | "copy.deepcopy"
            | "copy.copy" => self.all(site, &given, depth),
            "builtins.len" | "builtins.str" | "builtins.int" | "builtins.float" | "builtins.bool"
            | "builtins.round" | "builtins.vars" | "builtins.repr" => Stored::Plain,
            "torch.cat" | "torch.stack" | "torch.concat" | "torch.clone" => self.all(site, &given, depth),
            _ if ["numpy.", "random.", "time.", "math.", "datetime."].iter().any(|p| path.starts_with(p)) => {
                Stored::Plain
            }
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

    /// Does the function that is handed over give CPU copies of whatever it is given?
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
        // One that hands on what is no tensor copies the others.
        let param =
            |x: ExprId| ir.function(f).params.iter().any(|p| ir.expr(x) == Expr::Var(Var::Local(p.slot)));
        let copies = |x: &Option<ExprId>| x.is_some_and(|x| self.value(&there, x, depth) == Stored::Host);
        given.iter().any(copies) && given.iter().all(|x| copies(x) || x.is_some_and(param))
    }

    /// What a call of the project's function gives.
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

const fn plain_if(plain: bool) -> Stored {
    if plain { Stored::Plain } else { Stored::Unknown }
}

/// Names of what a checkpoint holds besides tensors.
fn is_plain_name(name: &str) -> bool {
    const PARTS: &[&str] = &[
        "epoch", "step", "iter", "config", "hparam", "score", "metric", "version", "vocab", "seed",
        "accuracy", "_idx",
    ];
    const WORDS: &[&str] = &[
        "args",
        "cfg",
        "opt",
        "opts",
        "lr",
        "acc",
        "loss",
        "name",
        "arch",
        "fold",
        "options",
        "params_dict",
        "history",
    ];
    let name = name.to_ascii_lowercase();
    PARTS.iter().any(|part| name.contains(part))
        || name.split('_').any(|word| WORDS.contains(&word)) && !name.contains("state")
}

/// What a method assigns or adds to an attribute of its object.
fn assigned_to_self(ir: &Module, f: FuncId, name: Sym) -> Vec<ExprId> {
    let function = ir.function(f);
    let receiver = function.params.first().map(|p| Expr::Var(Var::Local(p.slot)));
    let own = |&t: &ExprId| matches!(ir.expr(t), Expr::Attr { base, name: n } if n == name && Some(ir.expr(base)) == receiver);
    let assigned = ir.stmts[ir.stmts_of(function)].iter().filter_map(|s| match *s {
        Stmt::Assign { targets, value } => ir.list(targets).iter().any(own).then_some(value),
        Stmt::AugAssign { target, value, .. } => own(&target).then_some(value),
        Stmt::AnnAssign { target, value, .. } => value.filter(|_| own(&target)),
        _ => None,
    });
    assigned.collect()
}

/// What the loop, or the comprehension, around a place takes the variable from.
fn looped(ir: &Module, var: Var, at: Span) -> Option<ExprId> {
    let within = |e: ExprId| ir.span(e).contains(at);
    let comps = ir.exprs.iter().zip(&ir.expr_spans).filter(|(_, span)| span.contains(at));
    let generators = comps.filter_map(|(e, _)| match *e {
        Expr::Comp(id) => Some(&ir.comp(id).generators),
        _ => None,
    });
    let of_comp = generators.flatten().find(|g| ir.binds(g.target, var) && !within(g.iter));
    if let Some(generator) = of_comp {
        return Some(generator.iter);
    }
    let loops = ir.stmts.iter().zip(&ir.stmt_spans).filter(|(_, span)| span.contains(at));
    let mut of_loop = loops.filter_map(|(stmt, _)| match *stmt {
        Stmt::For { target, iter, .. } if ir.binds(target, var) && !within(iter) => Some(iter),
        _ => None,
    });
    of_loop.next()
}

/// The function that is defined under a name in another one.
fn local_function(ir: &Module, func: FuncId, var: Var) -> Option<FuncId> {
    let stmts = &ir.stmts[ir.stmts_of(ir.function(func))];
    stmts.iter().find_map(|stmt| match *stmt {
        Stmt::Def(f, name) if name == var && ir.function(f).parent == Some(func) => Some(f),
        _ => None,
    })
}

/// What a function returns, each time.
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

/// `group` of `{**group, "params": ids}` for each of an optimizer's `param_groups`: the rest of a group are numbers.
fn is_group_without_parameters(ir: &Module, entries: &[ExprId], value: ExprId) -> bool {
    let replaced =
        entries.iter().step_by(2).any(|&key| matches!(ir.expr(key), Expr::Str(s) if s.as_str() == "params"));
    let Expr::Var(var) = ir.expr(value) else { return false };
    let spread =
        entries.chunks(2).any(|e| matches!(e, &[key, v] if v == value && ir.expr(key) == Expr::Star(value)));
    let groups = |e: ExprId| ir.last_name(e).is_some_and(|name| name.as_str() == "param_groups");
    replaced && spread && looped(ir, var, ir.span(value)).is_some_and(groups)
}
