//! Who has written a file that the program reads with `torch.load`, and whether it holds anything of a GPU.
//!
//! The project's own calls of `torch.save` say what is in its files. One writes what a load reads if it is in the method
//! that belongs to the load's (`save_network` to `load_network`), if its file has the same name, or if it stores what the
//! load looks for (`stored_keys.rs`).

mod read_back;

use rustc_hash::FxHashSet;

use super::file_names::{agree, assigned, is_beside_source, is_distinctive, longest_piece, names};
use super::held::Stored;
use super::site::{Callers, Chain, MAX_CALLERS, Site, argument, note_call, through};
use super::stored::Contents;
use super::stored_keys::{Keys, is_telling, looked_for};
use crate::ir::{CallId, Expr, ExprId, FuncId, Var};
use crate::link::{ClassKey, ModIdx, Program, Resolved};
use crate::span::Place;
use crate::sym::Sym;
use crate::torch;

/// How many calls in a row are followed upwards to who says what is saved.
const MAX_CHAIN: usize = 3;
/// So many keys that all checkpoints have tell one kind of file from others.
const MIN_KEYS: usize = 2;
/// More ways to one call of `torch.save` are not looked at.
const MAX_WAYS: usize = 32;

/// A call of `torch.load`.
pub struct Load {
    /// Where it is, and what it reads.
    site: Site<'static>,
    path: ExprId,
    /// What its file may be called, where that tells it from others.
    names: Vec<String>,
    /// What is looked for in it.
    keys: Vec<Sym>,
    /// The function that writes what this one reads, by their names.
    pair: Option<(ModIdx, FuncId)>,
    /// The file is one of those that are there beside the source.
    shipped: bool,
    /// It is no file, but bytes in memory.
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
        let site = Site::of(module, func);
        let names = telling_names(program, &site, path);
        let keys = looked_for(program, module, e);
        let shipped = is_beside_source(program, &site, path);
        let pair = counterpart(program, module, func);
        let in_memory = is_buffer(program, &site, path);
        Some(Self { site, path, names, keys, pair, shipped, in_memory })
    }

    /// What the source of whoever writes the file must have in it; nothing if that is in the same file as the load.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        let names = if self.pair.is_some() || self.shipped { &[] } else { self.names.as_slice() };
        let by_anybody = self.pair.is_none() && !self.shipped;
        names.iter().map(|name| longest_piece(name)).chain(by_anybody.then_some("torch.save"))
    }
}

/// The names that a path may have; nothing if one of them says nothing, for then it may be any file.
fn telling_names(program: &Program, site: &Site<'_>, path: ExprId) -> Vec<String> {
    let names = names(program, site, path);
    if names.iter().all(|name| is_distinctive(name)) { names } else { Vec::new() }
}

/// The method of the same class, or the function of the same file, that saves what this one loads.
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
    callers: Callers,
}

impl<'a> Writers<'a> {
    /// Those in these files.
    pub fn of(program: &'a Program, files: &[ModIdx]) -> Self {
        let (mut saves, mut callers) = (Vec::new(), Callers::default());
        for &m in files {
            let ir = &program.get(m).ir;
            for (n, e) in ir.exprs.iter().enumerate() {
                let &Expr::Call(id) = e else { continue };
                let site = Site::of(m, ir.function_around(ExprId(u32::try_from(n).unwrap_or(u32::MAX))));
                if is_save(program, m, ir.call(id).func) {
                    saves.push((site, id));
                } else {
                    note_call(program, &mut callers, site, id);
                }
            }
        }
        Self { program, saves, callers }
    }

    /// The functions that save what they are given, or hand it on to one that does, by their names.
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
            let calls = found.iter().filter_map(|f| self.callers.get(f)).flatten();
            let handing = calls.filter(|(site, call)| is_given(site, *call));
            let more: Vec<(ModIdx, FuncId)> = handing.map(|(s, _)| (s.module, s.func)).collect();
            found.extend(more);
        }
        found.into_iter().map(|(m, f)| self.program.get(m).ir.function(f).name).collect()
    }

    /// Does the load find nothing that was on a GPU when it was saved, or only what this run has saved?
    pub fn on_the_host(&self, load: &Load) -> bool {
        if load.shipped || self.is_read_back(load) {
            return true;
        }
        let mut stored = match load.pair {
            Some(pair) => {
                let there = self.stored_by(pair, &load.names);
                if there.is_empty() { self.stored_by(pair, &[]) } else { there }
            }
            None if load.in_memory => self.stored_in_memory(load.site.module),
            None => self.stored_under(&self.wanted(load)),
        };
        // One key that all checkpoints have says nothing of who wrote them; several say that the project writes such files.
        let tells = load.keys.len() >= MIN_KEYS || load.keys.iter().any(|&key| is_telling(key));
        if stored.is_empty() && tells {
            stored = self.stored_with(load);
        }
        // Of a file with a name of its own that nobody here writes, the others say nothing.
        if stored.is_empty() && load.names.is_empty() {
            stored = self.stored_anywhere();
        }
        // Of what is not known in one place, another may show what it is.
        let certain = stored.iter().any(|s| matches!(s, Stored::Host))
            || !stored.is_empty() && stored.iter().all(|s| matches!(s, Stored::Plain));
        certain && !stored.contains(&Stored::Elsewhere)
    }

    /// The names of a load's file, as it stands or as the callers of its function give them.
    fn wanted(&self, load: &Load) -> Vec<String> {
        if !load.names.is_empty() {
            return load.names.clone();
        }
        let mut all = Vec::new();
        for chain in self.chains(load.site).into_iter().filter(|chain| chain.len() == 1) {
            let mut given = Vec::new();
            through(load.site, &chain, &mut |site| given = telling_names(self.program, site, load.path));
            if given.is_empty() {
                return given;
            }
            all.extend(given);
        }
        all
    }

    /// What a function saves, in files that may have one of these names, if there are any.
    fn stored_by(&self, (module, func): (ModIdx, FuncId), wanted: &[String]) -> Vec<Stored> {
        let ir = &self.program.get(module).ir;
        let within = |f: FuncId| f == func || ir.function(func).span.contains(ir.function(f).span);
        let fits = |site: &Site<'_>, call: CallId| {
            let path = argument(ir.call(call), 1, Sym::new("f"));
            let names = path.map_or_else(Vec::new, |path| names(self.program, site, path));
            wanted.is_empty() || names.iter().any(|name| wanted.iter().any(|w| agree(w, name)))
        };
        let saves = self
            .saves
            .iter()
            .filter(|(site, call)| site.module == module && within(site.func) && fits(site, *call));
        saves.filter_map(|(site, call)| self.stored(site, *call)).collect()
    }

    /// What is saved in files of these names.
    fn stored_under(&self, wanted: &[String]) -> Vec<Stored> {
        let (mut found, mut filled, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for &(site, call) in &self.saves {
            self.each_way(site, call, &mut |site, names| {
                for name in names.iter().filter(|name| is_distinctive(name)) {
                    let fits = || wanted.iter().any(|w| agree(w, name));
                    if wanted.contains(name) {
                        found.extend(self.stored(site, call));
                    } else if fits() && wanted.iter().all(|w| is_written_out(w)) {
                        filled.extend(self.stored(site, call));
                    } else if fits() {
                        others.extend(self.stored(site, call));
                    }
                }
            });
        }
        // A name that is made of parts may be the one that is asked for.
        found.extend(filled);
        if !found.is_empty() {
            found.extend(others);
        }
        found
    }

    /// What the file that reads bytes of its own accord writes into such bytes: `encode` and `decode` stand beside each other.
    fn stored_in_memory(&self, module: ModIdx) -> Vec<Stored> {
        let ir = &self.program.get(module).ir;
        let buffer = |site: &Site<'_>, call: CallId| {
            let file = argument(ir.call(call), 1, Sym::new("f"));
            file.is_some_and(|file| is_buffer(self.program, site, file))
        };
        let saves = self.saves.iter().filter(|(site, call)| site.module == module && buffer(site, *call));
        saves.filter_map(|(site, call)| self.stored(site, *call)).collect()
    }

    /// What is saved with the keys that the load looks for, in files that may have its name.
    fn stored_with(&self, load: &Load) -> Vec<Stored> {
        let mut found = Vec::new();
        let read = names(self.program, &load.site, load.path);
        for &(site, call) in &self.saves {
            self.each_way(site, call, &mut |site, names| {
                let may_be = names.is_empty() || names.iter().any(|name| read.iter().any(|r| agree(r, name)));
                if may_be && self.keys(site, call).is_some_and(|keys| keys.have(&load.keys)) {
                    found.extend(self.stored(site, call));
                }
            });
        }
        found
    }

    /// What the project saves at all. Where that is copies on the CPU, so are the files that it is given, as far as anybody knows.
    fn stored_anywhere(&self) -> Vec<Stored> {
        let mut found = Vec::new();
        for &(site, call) in &self.saves {
            for chain in std::iter::once(Chain::new()).chain(self.chains(site)) {
                through(site, &chain, &mut |site| found.extend(self.stored(site, call)));
            }
        }
        // Numbers say nothing of tensors.
        if found.contains(&Stored::Host) { found } else { Vec::new() }
    }

    /// Each way to a call of `torch.save` on which something is known of its file or its content, with the names of the file.
    fn each_way(&self, save: Site<'static>, call: CallId, then: &mut dyn FnMut(&Site<'_>, &[String])) {
        let ir = &self.program.get(save.module).ir;
        let Some(path) = argument(ir.call(call), 1, Sym::new("f")) else { return };
        let mut known = false;
        for chain in std::iter::once(Chain::new()).chain(self.chains(save)) {
            through(save, &chain, &mut |site| {
                let names = names(self.program, site, path);
                let tells = names.iter().any(|name| is_distinctive(name));
                // What says it without its callers says no more with them.
                if !chain.is_empty() && known {
                    return;
                }
                known |= chain.is_empty() && tells;
                if tells || self.keys(site, call).is_some() {
                    then(site, &names);
                }
            });
        }
    }

    /// The calls that lead to a place.
    fn chains(&self, site: Site<'static>) -> Vec<Chain> {
        let (mut found, mut last): (Vec<Chain>, Vec<Chain>) = (Vec::new(), vec![Chain::new()]);
        for _ in 0..MAX_CHAIN {
            let mut next = Vec::new();
            for chain in &last {
                let top = chain.last().map_or(site, |&(caller, _)| caller);
                let calls = self.callers.get(&(top.module, top.func)).into_iter().flatten();
                for &(caller, call) in calls.take(MAX_CALLERS) {
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
        let contents = Contents { program: self.program, callers: &self.callers };
        Some(contents.of(site, what))
    }

    /// The keys of what is saved, as far as the source says them.
    fn keys(&self, site: &Site<'_>, call: CallId) -> Option<Keys> {
        let ir = &self.program.get(site.module).ir;
        let what = argument(ir.call(call), 0, Sym::new("obj"))?;
        Keys::of(self.program, site, what)
    }
}

/// `io.BytesIO(data)`, or a variable of the function that is nothing else.
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

/// Is the whole name written down?
fn is_written_out(name: &str) -> bool {
    longest_piece(name) == name
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
