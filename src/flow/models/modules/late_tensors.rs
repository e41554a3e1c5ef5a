//! Tensors that a method other than the constructor sets in a module: `def set_up(self): self.bins = torch.tensor(…)`.
//!
//! The code that makes the module, or a base class, calls that method before `forward` uses the tensor. If no other method sets the
//! attribute, and no code tests whether it exists, it is a plain attribute like those that the constructor sets.

use crate::flow::domain::value::OriginId;
use crate::flow::domain::value::{Device, ObjId, Origin, Reason, Value};
use crate::flow::machine::Interp;
use crate::flow::summary::object_state::Held;
use crate::ir::{Expr, ExprId, FuncId, Stmt, Var};
use crate::link::{ClassKey, ModIdx};
use crate::span::Place;
use crate::sym::Sym;

/// Methods that move a module.
const MOVERS: [&str; 3] = ["to", "cuda", "_apply"];

/// The maximum number of methods that set such attributes, for each class.
const MAX_SETTERS: usize = 4;

impl Interp<'_> {
    /// The CPU tensors that the module's other methods set before its first use, with their attributes.
    pub(crate) fn kept_late(&mut self, key: ClassKey, id: ObjId) -> Vec<(Sym, Value)> {
        let setters = self.late_setters(key);
        let mut late: Vec<(Sym, Held)> = Vec::new();
        for &(m, f) in &setters {
            for &name in self.relevance.assigned.to_self(m, f) {
                let there =
                    self.get_field(id, name) != Value::Absent || self.obj(id).reserved.contains(&name);
                if !there
                    && !late.iter().any(|&(n, _)| n == name)
                    && self.only_they_set(key, name, &setters)
                    && self.class_attr(key, name).is_none()
                    && !self.may_miss(key, name)
                {
                    late.push((name, Held::Nothing));
                }
            }
        }
        let names: Vec<Sym> = late.iter().map(|&(name, _)| name).collect();
        let nothing = vec![Held::Nothing; names.len()];
        for &setter in setters.iter().filter(|_| !names.is_empty()) {
            let left = self.left_by(key, id, setter, &names, &nothing);
            for (n, held) in left.into_iter().enumerate() {
                late[n].1 = late[n].1.join(self.kept_by(held, setter, names[n]));
            }
        }
        let mut values = Vec::new();
        for (name, held) in late {
            if matches!(held, Held::Tensor { device: Some((Device::Cpu, _)), .. }) {
                let v = self.value_of(held);
                self.set_field(id, name, v);
                values.push((name, v));
            }
        }
        values
    }

    /// The methods that choose a device and set attributes. Empty if there are too many, or if the class moves itself in its own way.
    pub(crate) fn late_setters(&self, key: ClassKey) -> Vec<(ModIdx, FuncId)> {
        let mut setters: Vec<(ModIdx, FuncId)> = Vec::new();
        for &k in &self.program.class(key).mro {
            let named = |f: FuncId| self.program.get(k.module).ir.function(f).name;
            let late = self.relevance.late_setters(k).iter();
            setters.extend(late.filter(|&&f| named(f) != self.known.forward).map(|&f| (k.module, f)));
        }
        // Few classes have such methods, so the more expensive checks come after this one.
        let fits = (1..=MAX_SETTERS).contains(&setters.len())
            && self.is_module_class(key)
            && self.movers(key).into_iter().all(|at| self.keeps_things(key, at));
        if fits { setters } else { Vec::new() }
    }

    /// Does a method leave the object's attributes unchanged, together with the methods that it calls on the object?
    fn keeps_things(&self, key: ClassKey, (m, f): (ModIdx, FuncId)) -> bool {
        let ir = &self.program.get(m).ir;
        let sets = |(m, f): (ModIdx, FuncId)| !self.relevance.assigned.by(m, f).is_empty();
        let reaches = |e: &Expr| match *e {
            Expr::Var(Var::Unbound(name)) => matches!(name.as_str(), "setattr" | "vars"),
            Expr::Attr { name, .. } => {
                name.as_str() == "__dict__" || self.program.find_method(key, name).is_some_and(sets)
            }
            _ => false,
        };
        !sets((m, f)) && !ir.exprs[ir.exprs_of(ir.function(f))].iter().any(reaches)
    }

    /// Do all other methods of the class, including the constructor, leave the attribute alone?
    fn only_they_set(&self, key: ClassKey, name: Sym, setters: &[(ModIdx, FuncId)]) -> bool {
        self.program.class(key).mro.iter().all(|k| {
            let methods = &self.program.get(k.module).ir.class(k.class).methods;
            methods.iter().all(|&(_, f)| {
                setters.contains(&(k.module, f)) || !self.relevance.assigned.by(k.module, f).contains(&name)
            })
        })
    }

    /// The value that a method assigns to the attribute, with the place of the assignment as an origin `Kept`.
    fn kept_by(&mut self, held: Held, (m, f): (ModIdx, FuncId), name: Sym) -> Held {
        match (held, self.set_in(m, f, name)) {
            (Held::Tensor { device: Some((device, from)), dims, double }, Some(place)) => {
                let origin = Origin { place, reason: Reason::Kept, from };
                let origin = OriginId(self.t.origins.add(origin));
                Held::Tensor { device: Some((device, origin)), dims, double }
            }
            (held, _) => held,
        }
    }

    /// The methods of the class and its bases that move it. An override calls those of the bases with `super()`.
    fn movers(&self, key: ClassKey) -> Vec<(ModIdx, FuncId)> {
        let mut movers = Vec::new();
        for &k in &self.program.class(key).mro {
            // Most classes have none. This test is cheaper than a search through all methods.
            if MOVERS.iter().all(|&name| self.program.own_method(k, Sym::new(name)).is_none()) {
                continue;
            }
            let methods = &self.program.get(k.module).ir.class(k.class).methods;
            let moves = methods.iter().filter(|(name, _)| MOVERS.contains(&name.as_str()));
            movers.extend(moves.map(|&(_, f)| (k.module, f)));
        }
        movers
    }

    /// Where a method assigns to an attribute of its own object.
    fn set_in(&self, m: ModIdx, f: FuncId, name: Sym) -> Option<Place> {
        let ir = &self.program.get(m).ir;
        let function = ir.function(f);
        let receiver = Expr::Var(Var::Local(function.params.first()?.slot));
        let is_it = |t: ExprId| matches!(ir.expr(t), Expr::Attr { base, name: n } if n == name && ir.expr(base) == receiver);
        let target = ir.stmts[ir.stmts_of(function)].iter().find_map(|s| match *s {
            Stmt::Assign { targets, .. } => ir.list(targets).iter().copied().find(|&t| is_it(t)),
            Stmt::AnnAssign { target, .. } => Some(target).filter(|&t| is_it(t)),
            _ => None,
        })?;
        Some(Place { file: ir.file, span: ir.span(target) })
    }
}
