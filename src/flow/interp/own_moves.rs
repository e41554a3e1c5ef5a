//! Classes that move by hand what they keep: `def to(self, device): self.table = self.table.to(device)`.
//!
//! What such a method does not mention stays where the constructor has made it, and the class's other methods then bring
//! it together with what has moved.

use super::super::value::{Device, NO_ORIGIN, ObjId, Origin, OuterId, Reason, Tensor, Value};
use super::{Dd, Interp};
use crate::ir::{Expr, ExprId, FuncId, Function, Module, Stmt, Var};
use crate::link::{ClassKey, ModIdx};
use crate::span::Place;
use crate::sym::Sym;

/// Methods by which things move.
pub(super) const MOVERS: [&str; 3] = ["to", "cuda", "_apply"];

/// What a class's own ways to move do with its attributes.
#[derive(Default)]
pub(super) struct OwnMoves {
    /// Those that they set anew.
    pub(super) moved: Vec<Sym>,
    /// Those of which they speak at all.
    pub(super) mentioned: Vec<Sym>,
}

impl Interp<'_> {
    /// What the class's own methods do that move it; nothing if it has none, or if they may move things without saying
    /// their names.
    pub(super) fn own_moves(&self, key: ClassKey) -> Option<OwnMoves> {
        let mut own = OwnMoves::default();
        for (module, func) in self.movers(key) {
            let ir = &self.program.get(module).ir;
            own.mentioned.extend(attributes_named(ir, ir.function(func))?);
            own.moved.extend(self.relevance.assigned.to_self(module, func));
        }
        (!own.moved.is_empty()).then_some(own)
    }

    /// The same, if tensors that the object has are among what they move: who remembers nothing but a device that way has
    /// something else in mind.
    pub(super) fn own_moves_of(&self, id: ObjId, key: ClassKey) -> Option<OwnMoves> {
        let own = self.own_moves(key)?;
        let tensor = |&v: &Value| matches!(v, Value::Tensor(_));
        let any = own.moved.iter().any(|&name| self.values_of(self.get_field(id, name)).iter().any(tensor));
        any.then_some(own)
    }

    /// The class's methods that move it, those of its bases included: they are called with `super()`.
    pub(super) fn movers(&self, key: ClassKey) -> Vec<(ModIdx, FuncId)> {
        let mut movers = Vec::new();
        for &k in &self.program.class(key).mro {
            // Most classes have none, which is sooner said than all their methods are gone through.
            if self.known.movers.iter().all(|&name| self.program.own_method(k, name).is_none()) {
                continue;
            }
            let methods = &self.program.get(k.module).ir.class(k.class).methods;
            let moves = methods.iter().filter(|(name, _)| self.known.movers.contains(name));
            movers.extend(moves.map(|&(_, f)| (k.module, f)));
        }
        movers
    }

    /// A module moves, and by its own methods the tensors that are not registered with it.
    pub(super) fn moves_along(&mut self, key: ClassKey, id: ObjId, own: &OwnMoves, device: Dd) {
        for &name in &own.moved {
            if !self.only_movers_set(key, name) {
                continue;
            }
            let v = self.get_field(id, name);
            let v = self.each(v, &mut |i, v| match v {
                Value::Tensor(t) if !i.get_tensor(t).role.registered() => {
                    let t = i.get_tensor(t);
                    i.tensor(Tensor { device, ..t })
                }
                v => v,
            });
            self.set_field(id, name, v);
        }
    }

    /// An object that is no module, as its methods find it after it has moved: what its class moves is wherever it is
    /// wanted, and the rest where the constructor, which has left `made`, has put it.
    pub(super) fn move_by_hand(&mut self, key: ClassKey, id: ObjId, made: &[(Sym, Value)], outer: OuterId) {
        let Some(own) = self.own_moves(key) else { return };
        if !made.iter().any(|&(name, v)| matches!(v, Value::Tensor(_)) && own.moved.contains(&name)) {
            return;
        }
        let there = self.at(Device::Of(outer), NO_ORIGIN);
        for &(name, v) in made {
            let Value::Tensor(t) = v else { continue };
            let t = self.get_tensor(t);
            if !t.certain || !self.is_cpu(t.device) {
                continue;
            }
            let device = if own.moved.contains(&name) && self.only_movers_set(key, name) {
                there
            } else if !own.mentioned.contains(&name) && self.get_field(id, name) == v {
                match self.left_behind(key, name, t) {
                    Some(device) => device,
                    None => continue,
                }
            } else {
                continue;
            };
            let v = self.tensor(Tensor { device, ..t });
            self.set_field(id, name, v);
        }
    }

    /// The device of a tensor that the constructor keeps under this name, with that as the reason.
    fn left_behind(&mut self, key: ClassKey, name: Sym, t: Tensor) -> Option<Dd> {
        let place = self.kept_at(key, name)?;
        let leaf = self.d.as_leaf(t.device)?;
        let (device, from) = *self.t.places.get(leaf);
        let origin = Origin { place, reason: Reason::Forgotten, from };
        let origin = super::super::value::OriginId(self.t.origins.add(origin));
        Some(self.at(device, origin))
    }

    /// Does no other method than the constructor and those that move set the attribute?
    pub(super) fn only_movers_set(&self, key: ClassKey, name: Sym) -> bool {
        self.program.class(key).mro.iter().all(|k| {
            let methods = &self.program.get(k.module).ir.class(k.class).methods;
            methods.iter().all(|&(method, f)| {
                method == self.known.init
                    || ["to", "cuda", "cpu", "_apply"].contains(&method.as_str())
                    || !self.relevance.assigned.by(k.module, f).contains(&name)
            })
        })
    }

    /// Do the methods put nothing but other parameters in the attribute's place: `self.weight = nn.Parameter(…)`? These are where
    /// the module is as soon as it is moved again, or were made where the old one was.
    pub(super) fn only_parameters_set(&self, key: ClassKey, name: Sym) -> bool {
        self.program.class(key).mro.iter().all(|k| {
            let ir = &self.program.get(k.module).ir;
            let makes = |e: ExprId| match ir.expr(e) {
                Expr::Call(id) => ir.last_name(ir.call(id).func).is_some_and(|n| n.as_str() == "Parameter"),
                _ => false,
            };
            let is_it = |t: ExprId| matches!(ir.expr(t), Expr::Attr { name: n, .. } if n == name);
            ir.class(k.class).methods.iter().all(|&(method, f)| {
                let mut set = ir.stmts[ir.stmts_of(ir.function(f))].iter().filter_map(|s| match *s {
                    Stmt::Assign { targets, value } if ir.list(targets).iter().any(|&t| is_it(t)) => {
                        Some(value)
                    }
                    _ => None,
                });
                let others = !self.relevance.assigned.by(k.module, f).contains(&name);
                method == self.known.init || others || set.next().is_some_and(makes) && set.all(makes)
            })
        })
    }

    /// Where the class's own constructor sets the attribute.
    fn kept_at(&self, key: ClassKey, name: Sym) -> Option<Place> {
        let (m, f) = self.program.find_method(key, self.known.init)?;
        self.set_in(m, f, name)
    }

    /// Where a method sets an attribute of its own object.
    pub(super) fn set_in(&self, m: ModIdx, f: FuncId, name: Sym) -> Option<Place> {
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

/// The attributes of its own object that a method names; nothing if it may come to others without naming them: through
/// `vars(self)`, `setattr(self, name, …)`, a method of its own.
fn attributes_named(ir: &Module, function: &Function) -> Option<Vec<Sym>> {
    let receiver = Expr::Var(Var::Local(function.params.first()?.slot));
    let all = function.exprs.start as usize..function.exprs.end as usize;
    let (mut named, mut seen) = (Vec::new(), 0);
    // `this = super()._apply(fn)`, `setattr(this, name, …)`: the object by another name.
    let generic = |e: &Expr| matches!(*e, Expr::Var(Var::Unbound(n)) if matches!(n.as_str(), "setattr" | "getattr" | "vars"));
    let sets_another = |s: &Stmt| match *s {
        Stmt::Assign { targets, .. } => ir.list(targets).iter().any(|&t| match ir.expr(t) {
            Expr::Attr { base, .. } => ir.expr(base) != receiver,
            _ => false,
        }),
        _ => false,
    };
    if ir.exprs[all.clone()].iter().any(generic) || ir.stmts[ir.stmts_of(function)].iter().any(sets_another) {
        return None;
    }
    let called =
        |e: ExprId| ir.exprs[all.clone()].iter().any(|x| matches!(*x, Expr::Call(c) if ir.call(c).func == e));
    for n in all.clone() {
        let Expr::Attr { base, name } = ir.exprs[n] else { continue };
        if ir.expr(base) != receiver {
            continue;
        }
        seen += 1;
        let e = ExprId(u32::try_from(n).ok()?);
        match called(e) {
            false if name.as_str() != "__dict__" => named.push(name),
            true if MOVERS.contains(&name.as_str()) => {}
            _ => return None,
        }
    }
    // `return self`, `super(Base, self)`
    let returned = ir.stmts[ir.stmts_of(function)]
        .iter()
        .filter(|s| matches!(**s, Stmt::Return(Some(e)) if ir.expr(e) == receiver))
        .count();
    let of_super = |c: crate::ir::Call<'_>| matches!(ir.expr(c.func), Expr::Var(Var::Unbound(n)) if n.as_str() == "super");
    let handed: usize = ir.exprs[all.clone()]
        .iter()
        .filter_map(|e| if let Expr::Call(c) = *e { Some(ir.call(c)) } else { None })
        .filter(|&c| of_super(c))
        .map(|c| c.args.iter().filter(|a| ir.expr(a.value) == receiver).count())
        .sum();
    let mentions = ir.exprs[all].iter().filter(|e| **e == receiver).count();
    (mentions == seen + returned + handed).then_some(named)
}
