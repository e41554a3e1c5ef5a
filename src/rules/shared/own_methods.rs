//! Methods of a method's own object: of its class, or of the classes that inherit from its class.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::file::File;
use crate::ir::{Call, ClassId, Expr, FuncId, Function, Var};
use crate::link::{ClassKey, ModIdx};
use crate::sym::Sym;

/// How many files are searched for such classes.
const MAX_FILES: usize = 4000;

impl File<'_> {
    /// `self.method(…)` in another method of the class.
    pub fn own_method(&self, function: &Function, call: Call<'_>) -> Option<(ModIdx, FuncId)> {
        let Expr::Attr { base, name } = self.ir.expr(call.func) else { return None };
        let class = function.class?;
        let receiver = function.params.first().filter(|p| p.name.as_str() == "self")?;
        if self.ir.expr(base) != Expr::Var(Var::Local(receiver.slot)) {
            return None;
        }
        let key = ClassKey { module: self.module, class };
        let own = self.cx.program.find_method(key, name);
        let (m, f) = own.or_else(|| self.method_of_mixed(key, name))?;
        // The first parameter of a static method or a property is not the object, or there is none.
        (self.cx.program.get(m).ir.function(f).decorators.len == 0).then_some((m, f))
    }

    /// The method with this name, if all subclasses of a class, among the files that this one imports directly or indirectly, have the same
    /// one.
    pub fn method_of_mixed(&self, mixin: ClassKey, name: Sym) -> Option<(ModIdx, FuncId)> {
        let program = self.cx.program;
        if !program.names_method(name) || !self.is_mixin(mixin) {
            return None;
        }
        let known = self.mixed.borrow().get(&mixin).cloned();
        let classes = known.unwrap_or_else(|| {
            let classes: Rc<[ClassKey]> = self.mixed_into(mixin).into();
            self.mixed.borrow_mut().insert(mixin, Rc::clone(&classes));
            classes
        });
        let methods: BTreeSet<_> = classes.iter().filter_map(|&key| program.find_method(key, name)).collect();
        // If subclasses have different methods, none of them counts.
        (methods.len() == 1).then(|| methods.first().copied())?
    }

    /// Is the class a mixin: does it have no base that defines the kind of its objects?
    fn is_mixin(&self, class: ClassKey) -> bool {
        let info = self.cx.program.class(class);
        let alone = info.mro.len() == 1 && !info.unknown_base;
        let plain = |base: &Sym| base.as_str().starts_with("builtins.") || base.as_str().starts_with("abc.");
        alone && info.externals.iter().all(plain)
    }

    /// Can the method with this name take an argument with that name, and be called without it?
    pub fn may_leave_out(&self, key: ClassKey, method: Sym, argument: Sym) -> bool {
        let program = self.cx.program;
        match program.find_method(key, method) {
            Some((m, f)) => {
                let params = &program.get(m).ir.function(f).params;
                params.iter().any(|p| p.name == argument && p.default.is_some())
            }
            None => self.is_mixin(key),
        }
    }

    /// The subclasses of a class. This searches all files, so call `method_of_mixed`, which caches the result.
    fn mixed_into(&self, mixin: ClassKey) -> Vec<ClassKey> {
        let program = self.cx.program;
        let mut found = Vec::new();
        for m in self.led_to() {
            let numbers = (0..program.get(m).classes.len()).filter_map(|n| u32::try_from(n).ok());
            let keys = numbers.map(|n| ClassKey { module: m, class: ClassId(n) });
            found.extend(keys.filter(|&key| key != mixin && program.class(key).mro.contains(&mixin)));
        }
        found
    }

    /// The file, its imports, their imports, and so on.
    fn led_to(&self) -> BTreeSet<ModIdx> {
        let mut files = BTreeSet::from([self.module]);
        let mut open = vec![self.module];
        while let Some(m) = open.pop() {
            for next in self.cx.program.imports(m) {
                if files.len() < MAX_FILES && files.insert(next) {
                    open.push(next);
                }
            }
        }
        files
    }
}
