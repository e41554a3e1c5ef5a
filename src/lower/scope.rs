//! Resolves names to slots.

use rustc_hash::FxHashMap;

use crate::ir::{ClassId, FuncId, FuncKind, Slot, Var};
use crate::sym::Sym;
use crate::work::spend;

/// How many variables the comprehensions around one place can have; further ones are ignored. They are searched one by one, which must not
/// take too long.
const MOST_INNER: usize = 1_000;

/// How a scope binds or declares a name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Binding {
    /// It is bound here.
    Slot(Slot),
    /// It is declared `global` here.
    Global,
    /// It is declared `nonlocal` here.
    Nonlocal,
}

/// The names of a scope. Most functions have few names, and a linear search in these is faster.
#[derive(Default)]
struct Names {
    few: Vec<(Sym, Binding)>,
    /// All names, if there are more than [`FEW`].
    many: FxHashMap<Sym, Binding>,
}

impl Names {
    /// How many names are searched linearly.
    const FEW: usize = 12;

    fn get(&self, name: Sym) -> Option<Binding> {
        if self.many.is_empty() {
            self.few.iter().find(|(known, _)| *known == name).map(|&(_, binding)| binding)
        } else {
            self.many.get(&name).copied()
        }
    }

    /// Adds a name, and returns its previous binding.
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
    /// Names of comprehensions and type parameters around the current node, the innermost last. `None` if the frame is full.
    pub inner: Vec<(Sym, Option<Slot>)>,
    /// The number of comprehensions around the current node.
    pub comprehensions: u32,
    /// Whether there was a `yield`.
    pub is_generator: bool,
    /// For a class body, the functions that were found in it so far.
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

    /// A scope for another body that uses the memory of this one.
    pub fn again(mut self, id: FuncId, kind: FuncKind, class: Option<ClassId>) -> Self {
        self.slots.clear();
        self.names.few.clear();
        self.names.many.clear();
        self.inner.clear();
        self.methods.clear();
        self.global_binds.clear();
        Self { id, kind, class, comprehensions: 0, is_generator: false, ..self }
    }

    /// Binds the name here, unless it is declared `global` or `nonlocal`. Returns its slot.
    pub fn bind(&mut self, name: &str) -> Option<Slot> {
        // The parser inserts an empty name where a name is missing.
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

    /// Declares the name `global` or `nonlocal` here.
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

    /// A new slot with this name; `None` if the frame is full.
    pub fn fresh(&mut self, name: Sym) -> Option<Slot> {
        let slot = Slot::try_from(self.slots.len()).ok().filter(|&slot| slot < Slot::MAX)?;
        self.slots.push(name);
        Some(slot)
    }

    /// Adds a slot that is visible until [`Scope::inner`] is truncated.
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

/// The variable of a name in the innermost scope, which is the last.
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
        // Only the statements of a class body itself see its names.
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

/// The variable with this slot in the scope `up` levels further out.
fn variable(scopes: &[Scope], up: usize, slot: Slot, name: Sym) -> Var {
    if up == 0 {
        return Var::Local(slot);
    }
    if up + 1 == scopes.len() {
        return Var::Global(slot);
    }
    u8::try_from(up).map_or(Var::Unbound(name), |depth| Var::Enclosing { depth, slot })
}
