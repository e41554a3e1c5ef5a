//! Which slot a name means.

use rustc_hash::FxHashMap;

use crate::ir::{ClassId, FuncId, FuncKind, Slot, Var};
use crate::sym::Sym;
use crate::work::spend;

/// So many variables may comprehensions around one place have; others are not seen. They are searched
/// one by one, which must not take forever.
const MOST_INNER: usize = 1_000;

/// What a scope says of a name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Binding {
    /// It is bound here.
    Slot(Slot),
    /// It is declared `global` here.
    Global,
    /// It is declared `nonlocal` here.
    Nonlocal,
}

/// What a scope says of its names. Most functions have few, which are found sooner by going through them.
#[derive(Default)]
struct Names {
    few: Vec<(Sym, Binding)>,
    /// All of them, once there are many.
    many: FxHashMap<Sym, Binding>,
}

impl Names {
    /// So many are gone through.
    const FEW: usize = 12;

    fn get(&self, name: Sym) -> Option<Binding> {
        if self.many.is_empty() {
            self.few.iter().find(|(known, _)| *known == name).map(|&(_, binding)| binding)
        } else {
            self.many.get(&name).copied()
        }
    }

    /// Gives what was said of the name before.
    fn insert(&mut self, name: Sym, binding: Binding) -> Option<Binding> {
        spend(self.few.len() + 1);
        if !self.many.is_empty() {
            return self.many.insert(name, binding);
        }
        if let Some((_, known)) = self.few.iter_mut().find(|(known, _)| *known == name) {
            return Some(std::mem::replace(known, binding));
        }
        if self.few.is_empty() {
            self.few.reserve_exact(Self::FEW);
        }
        self.few.push((name, binding));
        if self.few.len() > Self::FEW {
            self.many = self.few.drain(..).collect();
        }
        None
    }
}

/// A function, lambda, class body or module body while it is lowered.
pub(super) struct Scope {
    pub id: FuncId,
    pub kind: FuncKind,
    /// For a class body, the class.
    pub class: Option<ClassId>,
    /// Names of the slots.
    pub slots: Vec<Sym>,
    names: Names,
    /// Names of comprehensions and type parameters around the current place, innermost last. `None`
    /// when the frame is full.
    pub inner: Vec<(Sym, Option<Slot>)>,
    /// How many comprehensions are around the current place.
    pub comprehensions: u32,
    /// Was there a `yield`?
    pub is_generator: bool,
    /// For a class body, the functions in it so far.
    pub methods: Vec<(Sym, FuncId)>,
    /// Names that are bound here and declared `global`: the module binds them.
    pub global_binds: Vec<Sym>,
}

impl Scope {
    pub fn new(id: FuncId, kind: FuncKind, class: Option<ClassId>) -> Self {
        Self {
            id,
            kind,
            class,
            slots: Vec::new(),
            names: Names::default(),
            inner: Vec::new(),
            comprehensions: 0,
            is_generator: false,
            methods: Vec::new(),
            global_binds: Vec::new(),
        }
    }

    /// The scope of another body, in the room that this one had.
    pub fn again(mut self, id: FuncId, kind: FuncKind, class: Option<ClassId>) -> Self {
        self.slots.clear();
        self.names.few.clear();
        self.names.many.clear();
        self.inner.clear();
        self.methods.clear();
        self.global_binds.clear();
        Self { id, kind, class, comprehensions: 0, is_generator: false, ..self }
    }

    /// The name is bound here, unless it was declared to live elsewhere. Gives its slot.
    pub fn bind(&mut self, name: &str) -> Option<Slot> {
        // What the parser puts where a name is missing.
        if name.is_empty() {
            return None;
        }
        let name = Sym::new(name);
        match self.names.get(name) {
            Some(Binding::Slot(slot)) => Some(slot),
            Some(Binding::Global) => {
                self.global_binds.push(name);
                None
            }
            Some(Binding::Nonlocal) => None,
            None => {
                let slot = self.fresh(name)?;
                self.names.insert(name, Binding::Slot(slot));
                Some(slot)
            }
        }
    }

    /// The name is declared `global` or `nonlocal` here.
    pub fn declare(&mut self, name: &str, binding: Binding) {
        if self.kind == FuncKind::Module {
            return;
        }
        let name = Sym::new(name);
        let before = self.names.insert(name, binding);
        if binding == Binding::Global && matches!(before, Some(Binding::Slot(_))) {
            self.global_binds.push(name);
        }
    }

    /// Another slot with this name; nothing when the frame is full.
    pub fn fresh(&mut self, name: Sym) -> Option<Slot> {
        let slot = Slot::try_from(self.slots.len()).ok().filter(|&slot| slot < Slot::MAX)?;
        self.slots.push(name);
        Some(slot)
    }

    /// Another slot that is visible until [`Scope::inner`] is cut.
    pub fn bind_inner(&mut self, name: &str, since: usize) {
        if self.inner.len() >= MOST_INNER {
            return;
        }
        let name = Sym::new(name);
        spend(self.inner.len() - since);
        if !self.inner[since..].iter().any(|&(known, _)| known == name) {
            let slot = self.fresh(name);
            self.inner.push((name, slot));
        }
    }
}

/// The variable that a name means in the innermost of the scopes, the last.
pub(super) fn resolve(scopes: &[Scope], name: Sym) -> Var {
    look_up(scopes, name, true)
}

/// The variable that a `:=` binds: never one of a comprehension.
pub(super) fn resolve_walrus(scopes: &[Scope], name: Sym) -> Var {
    look_up(scopes, name, false)
}

fn look_up(scopes: &[Scope], name: Sym, inner: bool) -> Var {
    for (up, scope) in scopes.iter().rev().enumerate() {
        let innermost = up == 0;
        spend(scope.inner.len());
        if (inner || !innermost)
            && let Some(&(_, slot)) = scope.inner.iter().rev().find(|(known, _)| *known == name)
        {
            return slot.map_or(Var::Unbound(name), |slot| variable(scopes, up, slot, name));
        }
        // The names of a class body are seen by its own statements alone.
        let hidden = !innermost || (inner && scope.comprehensions > 0);
        if scope.kind == FuncKind::ClassBody && hidden {
            continue;
        }
        match scope.names.get(name) {
            Some(Binding::Slot(slot)) => return variable(scopes, up, slot, name),
            Some(Binding::Global) => return global(scopes, name),
            Some(Binding::Nonlocal) | None => {}
        }
    }
    Var::Unbound(name)
}

fn global(scopes: &[Scope], name: Sym) -> Var {
    match scopes.first().and_then(|module| module.names.get(name)) {
        Some(Binding::Slot(slot)) => variable(scopes, scopes.len() - 1, slot, name),
        _ => Var::Unbound(name),
    }
}

/// The slot of the scope that is so many scopes up.
fn variable(scopes: &[Scope], up: usize, slot: Slot, name: Sym) -> Var {
    if up == 0 {
        return Var::Local(slot);
    }
    if up + 1 == scopes.len() {
        return Var::Global(slot);
    }
    u8::try_from(up).map_or(Var::Unbound(name), |depth| Var::Enclosing { depth, slot })
}
