//! Modules that move themselves in their constructor, before they have any parameters or submodules.

use crate::flow::domain::diagram::{Dd, FALSE};
use crate::flow::domain::event::{Bite, Kind};
use crate::flow::domain::value::{Device, ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::frame::ObjKind;
use crate::ir::{Expr, ExprId, Module, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Resolved};
use crate::span::Place;
use crate::sym::Sym;
use crate::words::Words;
use crate::world::World;

/// Bases that have no parts.
static WITHOUT_PARTS: Words = Words::of("bases without parts");

/// Methods with which a class finds its parts in its own way.
static FINDS_PARTS: Words = Words::of("methods that find the parts of a module");

impl Interp<'_> {
    /// The program moves a module. Stores the move if the module's own constructor makes it before the module has anything to move.
    pub(crate) fn note_empty_move(&mut self, id: ObjId, name: Sym, device: Dd, e: ExprId) {
        if self.obj(id).kind != ObjKind::Module || self.run.muted > 0 || self.path == FALSE {
            return;
        }
        // A module that moves itself to the CPU is there in any case.
        let stays = self.device_leaves(device).iter().all(|&(_, d, _)| d == Device::Cpu);
        match self.made_by(id, e) {
            Some(place) if !stays && self.has_no_parts_yet(id) => {
                self.observed.empty_moves.push((id, place, name));
            }
            _ => self.observed.empty_moves.retain(|&(moved, ..)| moved != id),
        }
    }

    /// The place in the constructor of this module that leads here. `None` if its constructor does not lead here.
    fn made_by(&self, id: ObjId, e: ExprId) -> Option<Place> {
        let (mut at, mut place) = (Some(self.frame), Some(self.place(e)));
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            let function = self.program.get(frame.module).ir.function(frame.func);
            if function.name == self.known.init && frame.receiver == Value::Object(id) {
                return place;
            }
            (at, place) = (frame.caller, frame.site);
        }
        None
    }

    fn has_no_parts_yet(&self, id: ObjId) -> bool {
        let Some(key) = self.obj(id).class else { return false };
        let info = self.program.class(key);
        let plain = |path: &Sym| {
            WITHOUT_PARTS.has(path.as_str())
                || path.as_str().starts_with("builtins.")
                || path.as_str().starts_with("typing.")
        };
        !info.unknown_base
            && info.externals.iter().all(plain)
            && !self.calls.half_made.contains(&id)
            && !self.moves_by_itself(key)
            && self.obj(id).attrs.iter().all(|&(name, cell)| {
                let v = self.store.get(cell);
                self.has_nothing_to_move(v, 0) || self.is_setting(id, name) || self.are_settings(v)
            })
    }

    /// Does a framework move the class, or does it list its own parts?
    fn moves_by_itself(&self, key: ClassKey) -> bool {
        self.is_moved_for_user(key)
            || FINDS_PARTS.all().iter().any(|name| self.program.find_method(key, Sym::new(name)).is_some())
    }

    /// Is the value a settings object, such as a `cfg` from which the code reads `cfg.width`?
    fn are_settings(&self, v: Value) -> bool {
        self.values_of(v).into_iter().all(|v| match v {
            Value::Outer(o) => self.has_fields(o),
            Value::Object(o) => matches!(self.obj(o).kind, ObjKind::Instance | ObjKind::Namespace),
            _ => false,
        })
    }

    /// The constructor of a module has ended. Reports an empty move if the module got parts later that are still where they were made.
    pub(crate) fn check_empty_moves(&mut self, id: ObjId) {
        let Some(n) = self.observed.empty_moves.iter().rposition(|&(moved, ..)| moved == id) else { return };
        let (_, place, method) = self.observed.empty_moves.swap_remove(n);
        let fields = self.obj(id).attrs.iter().map(|&(name, cell)| (name, self.store.get(cell)));
        let held: Vec<(Sym, ObjId)> = fields
            .filter_map(|(name, v)| match v {
                Value::Object(part) if self.is_module_object(part) => Some((name, part)),
                _ => None,
            })
            .collect();
        let late =
            held.into_iter().find(|&(_, part)| self.has_weights(part, 0) && self.left_where_made(part));
        let Some(at) = late.and_then(|(name, _)| self.modules.fields.get(&(id, name)).copied()) else {
            return;
        };
        if self.obj(id).class.is_none_or(|key| self.may_be_moved_by_maker(key)) {
            // The code that makes the module decides the final device of its parts.
            let unknown = self.unknown_device();
            self.move_module(id, unknown);
            return;
        }
        let kind = Kind::MovedEmpty { method: method.to_string(), part: at };
        self.emit(kind, place, Bite::in_world(World::Always), Vec::new());
    }

    /// Does an analysed file make such a module and move it, or pass it to code that may move it?
    fn may_be_moved_by_maker(&self, key: ClassKey) -> bool {
        (0..self.program.all().len()).any(|m| {
            let module = ModIdx(u32::try_from(m).unwrap_or(u32::MAX));
            let ir = &self.program.get(module).ir;
            let all = (0..ir.exprs.len()).map(|n| ExprId(u32::try_from(n).unwrap_or(u32::MAX)));
            all.filter_map(|e| Some((e, self.makes(module, e, key)?))).any(|(e, maker)| {
                match kept_as(ir, e) {
                    Some(name) => is_moved_as(ir, name, maker),
                    // A call that is a statement of its own discards the module.
                    None => !ir.stmts.iter().any(|s| matches!(*s, Stmt::Expr(x) if x == e)),
                }
            })
        })
    }

    /// Does the expression make a module of the class or a subclass? Either a file calls `Kind(…)`, or a class method calls `cls(…)`.
    fn makes(&self, module: ModIdx, e: ExprId, key: ClassKey) -> Option<Maker> {
        let ir = &self.program.get(module).ir;
        let Expr::Call(call) = ir.expr(e) else { return None };
        let func = ir.call(call).func;
        if let Some(Resolved::Class(made)) = self.program.resolve_expr(module, func) {
            return self.program.class(made).mro.contains(&key).then_some(Maker::File);
        }
        let around = ir.function(ir.function_around(e));
        let of_class = ir.list(around.decorators).iter().any(|&d| ir.is_builtin(d, "classmethod"));
        let own = ClassKey { module, class: around.class? };
        let related =
            self.program.class(own).mro.contains(&key) || self.program.class(key).mro.contains(&own);
        (of_class && related && ir.expr(func) == Expr::Var(Var::Local(0))).then_some(Maker::Own)
    }
}

/// The kind of code that makes a module.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Maker {
    /// A function of some file.
    File,
    /// A class method of the module, which returns it to its callers.
    Own,
}

/// In `name = Kind(…)`, the variable that keeps the new module.
fn kept_as(ir: &Module, e: ExprId) -> Option<Sym> {
    ir.stmts.iter().find_map(|s| match *s {
        Stmt::Assign { targets, value } if value == e => match *ir.list(targets) {
            [target] => ir.variable_of(target),
            _ => None,
        },
        _ => None,
    })
}

/// Does the file move the variable's value, pass it to a function, or return it?
fn is_moved_as(ir: &Module, name: Sym, maker: Maker) -> bool {
    let is_it = |e: ExprId| ir.variable_of(e) == Some(name);
    let is_type = |e: ExprId| ir.last_name(e).is_some_and(|n| n.as_str() == "dtype");
    let by_call = ir.calls().any(|call| {
        let moves = matches!(ir.expr(call.func), Expr::Attr { base, name }
            if matches!(name.as_str(), "to" | "cuda") && is_it(base));
        let typed = call.args.first().is_some_and(|a| is_type(a.value));
        moves && !typed || call.args.iter().any(|a| is_it(a.value))
    });
    let given_back = |s: &Stmt| matches!(*s, Stmt::Return(Some(e)) if is_it(e));
    by_call || maker == Maker::File && ir.stmts.iter().any(given_back)
}
