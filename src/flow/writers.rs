//! Who has written a file that the program reads with `torch.load`, and whether it holds anything of a GPU.
//!
//! The project's own calls of `torch.save` say what is in its files. One writes what a load reads if it is in the method
//! that belongs to the load's (`save_network` to `load_network`), or if its file has the same name.

use super::behind::{Node, named};
use super::file_names::{agree, is_beside_source, is_distinctive, longest_piece, names};
use super::held::Stored;
use super::site::{Callers, MAX_CALLERS, Site, argument};
use super::stored::Contents;
use crate::ir::{CallId, Expr, ExprId, FuncId};
use crate::link::{ClassKey, ModIdx, Program, Resolved};
use crate::span::Place;
use crate::sym::Sym;
use crate::torch;

/// A call of `torch.load`.
pub struct Load {
    /// What its file may be called, where that tells it from others.
    names: Vec<String>,
    /// The function that writes what this one reads, by their names.
    pair: Option<(ModIdx, FuncId)>,
    /// The file is one of those that are there beside the source.
    shipped: bool,
}

impl Load {
    /// The call at a place, if anything is known of its file.
    pub fn at(program: &Program, place: Place) -> Option<Self> {
        let module = program.module_of(place.file)?;
        let ir = &program.get(module).ir;
        let is_it = |&(e, at): &(&Expr, _)| at == &place.span && matches!(e, Expr::Call(_));
        let n = ir.exprs.iter().zip(&ir.expr_spans).position(|x| is_it(&x))?;
        let e = ExprId(u32::try_from(n).ok()?);
        let Expr::Call(call) = ir.expr(e) else { return None };
        let func = ir.function_around(e);
        let path = argument(ir.call(call), 0, Sym::new("f"))?;
        let site = Site::of(module, func);
        let mut names = names(program, &site, path);
        // One of several that says nothing may be any file.
        if !names.iter().all(|name| is_distinctive(name)) {
            names.clear();
        }
        let shipped = is_beside_source(program, &site, path);
        let pair = counterpart(program, module, func);
        (shipped || pair.is_some() || !names.is_empty()).then_some(Self { names, pair, shipped })
    }

    /// What the source of whoever writes the file must have in it; nothing if that is in the same file as the load.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        let names = if self.pair.is_some() || self.shipped { &[] } else { self.names.as_slice() };
        names.iter().map(|name| longest_piece(name))
    }
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
                let func = ir.function_around(ExprId(u32::try_from(n).unwrap_or(u32::MAX)));
                let callee = ir.call(id).func;
                if is_save(program, m, callee) {
                    saves.push((Site::of(m, func), id));
                } else if let Some(Node::Function(to, f)) = named(program, m, callee) {
                    callers.entry((to, f)).or_default().push((Site::of(m, func), id));
                }
            }
        }
        Self { program, saves, callers }
    }

    /// Does the load find nothing that was on a GPU when it was saved?
    pub fn on_the_host(&self, load: &Load) -> bool {
        if load.shipped {
            return true;
        }
        let stored = match load.pair {
            Some(pair) => self.stored_by(pair),
            None => self.stored_under(&load.names),
        };
        // Of what is not known in one place, another may show what it is.
        let certain = stored.iter().any(|s| matches!(s, Stored::Host))
            || !stored.is_empty() && stored.iter().all(|s| matches!(s, Stored::Plain));
        certain && !stored.contains(&Stored::Elsewhere)
    }

    /// What a function saves.
    fn stored_by(&self, (module, func): (ModIdx, FuncId)) -> Vec<Stored> {
        let ir = &self.program.get(module).ir;
        let within = |f: FuncId| f == func || ir.function(func).span.contains(ir.function(f).span);
        let saves = self.saves.iter().filter(|(site, _)| site.module == module && within(site.func));
        saves.filter_map(|(site, call)| self.stored(site, *call)).collect()
    }

    /// What is saved in files of these names.
    fn stored_under(&self, wanted: &[String]) -> Vec<Stored> {
        let (mut found, mut others) = (Vec::new(), Vec::new());
        for (site, call) in &self.saves {
            for (name, site) in self.named_files(site, *call) {
                if wanted.contains(&name) {
                    found.extend(self.stored(&site, *call));
                } else if is_distinctive(&name) && wanted.iter().any(|w| agree(w, &name)) {
                    others.extend(self.stored(&site, *call));
                }
            }
        }
        if !found.is_empty() {
            found.extend(others);
        }
        found
    }

    /// The files that a call of `torch.save` writes, as it stands or as the callers of its function name them.
    fn named_files<'s>(&'s self, site: &Site<'static>, call: CallId) -> Vec<(String, Site<'s>)> {
        let ir = &self.program.get(site.module).ir;
        let Some(path) = argument(ir.call(call), 1, Sym::new("f")) else { return Vec::new() };
        let named = |site: Site<'s>| {
            let names = names(self.program, &site, path).into_iter().filter(|name| is_distinctive(name));
            names.map(|name| (name, site)).collect::<Vec<_>>()
        };
        let own = named(*site);
        if !own.is_empty() {
            return own;
        }
        let callers = self.callers.get(&(site.module, site.func)).into_iter().flatten().take(MAX_CALLERS);
        callers.flat_map(|(caller, c)| named(Site { via: Some((caller, *c)), ..*site })).collect()
    }

    fn stored(&self, site: &Site<'_>, call: CallId) -> Option<Stored> {
        let ir = &self.program.get(site.module).ir;
        let what = argument(ir.call(call), 0, Sym::new("obj"))?;
        let contents = Contents { program: self.program, callers: &self.callers };
        Some(contents.of(site, what))
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
