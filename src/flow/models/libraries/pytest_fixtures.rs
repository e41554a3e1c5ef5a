//! pytest's fixtures: a test runs only if its fixtures let it. A fixture that skips ends the test before it begins
//! (docs.pytest.org, "How to use fixtures"). The set-up functions of unittest, for a class or a file, work the same way.

use crate::flow::domain::diagram::{Cond, FALSE, TRUE};
use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::ir::{ArgKind, Call, Expr, ExprId, ExprList, FuncId, Module};
use crate::link::{Binding, ClassKey, ModIdx, Resolved};
use crate::sym::Sym;

/// Decorators that make a function a fixture.
const MAKERS: &[&str] = &["pytest.fixture", "pytest.yield_fixture", "pytest_asyncio.fixture"];
/// Names of functions that run before all tests of a file.
const BEFORE_FILE: &[&str] = &["setup_module", "setUpModule", "setup_function"];
/// Names of methods that run before all tests of a class.
const BEFORE_CLASS: &[&str] = &["setUpClass", "setup_class"];

/// A fixture: its function, and the class if it is a method.
type Fixture = (ModIdx, FuncId, Option<ClassKey>);

impl Interp<'_> {
    /// The condition on the machine under which a test or fixture runs, because of the fixtures that it uses.
    pub(crate) fn fixture_guard(
        &mut self,
        module: ModIdx,
        func: FuncId,
        class: Option<ClassKey>,
        receiver: Option<Value>,
    ) -> Cond {
        let ir = &self.program.get(module).ir;
        let function = ir.function(func);
        let tests = function.name.as_str().starts_with("test");
        if !tests && !is_fixture(self.program, module, func) {
            return TRUE;
        }
        let mut names: Vec<Sym> = function.params.iter().map(|p| p.name).collect();
        self.marked_fixtures(module, function.decorators, &mut names);
        if let Some(key) = class {
            let decorators = self.program.get(key.module).ir.class(key.class).decorators;
            self.marked_fixtures(key.module, decorators, &mut names);
        }
        self.fixtures_of_file(module, &mut names);
        let mut used: Vec<Fixture> =
            names.into_iter().filter_map(|name| self.fixture(module, class, name)).collect();
        if tests {
            used.extend(self.fixtures_for_all(module, class));
        }
        let mut guard = TRUE;
        for fixture in used {
            let goes_on = self.goes_on_past(fixture, receiver);
            guard = self.d.and(guard, goes_on);
        }
        guard
    }

    /// The condition under which neither a fixture nor one that it uses skips or raises.
    fn goes_on_past(&mut self, (m, f, class): Fixture, receiver: Option<Value>) -> Cond {
        if let Some(&known) = self.libraries.fixtures.get(&(m, f)) {
            return known;
        }
        // Until this fixture's condition is known, it is true. That also ends a cycle of fixtures.
        self.libraries.fixtures.insert((m, f), TRUE);
        let this = match class {
            Some(key) if self.is_before_class(m, f) => Some(Value::Class(key)),
            Some(_) if receiver.is_none() => return TRUE,
            Some(_) => receiver,
            None => None,
        };
        let before = self.fixture_guard(m, f, class, receiver);
        let saved = (self.frame, self.path, self.budget, self.run.exhausted);
        let (start, cells) = (self.store.mark(), self.store.len());
        self.path = TRUE;
        self.run.muted += 1;
        self.run(m, f, None, this, class, None, None, false);
        self.run.muted -= 1;
        let mut goes_on = if self.run.exhausted { TRUE } else { self.path };
        (self.frame, self.path, self.budget, self.run.exhausted) = saved;
        self.undo_to_what_was(start, cells);
        goes_on = self.settled(goes_on);
        let guard = self.d.and(before, goes_on);
        // If no path seems to pass, the analysis did not understand the fixture.
        let guard = if guard == FALSE { TRUE } else { guard };
        self.libraries.fixtures.insert((m, f), guard);
        guard
    }

    fn is_before_class(&self, m: ModIdx, f: FuncId) -> bool {
        BEFORE_CLASS.contains(&self.program.get(m).ir.function(f).name.as_str())
    }

    /// The fixture with this name that a test uses: in its class, in its file, or in a `conftest.py` above.
    fn fixture(&self, module: ModIdx, class: Option<ClassKey>, name: Sym) -> Option<Fixture> {
        if let Some(key) = class
            && let Some((m, f)) = self.program.find_method(key, name)
            && is_fixture(self.program, m, f)
        {
            return Some((m, f, class));
        }
        self.fixture_files(module).into_iter().find_map(|m| {
            let found = match self.program.lookup(m, name) {
                Some(Resolved::Function(m, f)) if called(self.program, m, f, name) => Some((m, f)),
                _ => None,
            };
            let (m, f) = found.or_else(|| self.fixture_under(m, name))?;
            Some((m, f, None))
        })
    }

    /// `@pytest.fixture(name="…")`
    fn fixture_under(&self, m: ModIdx, name: Sym) -> Option<(ModIdx, FuncId)> {
        let ir = &self.program.get(m).ir;
        if !ir.has_string(name) {
            return None;
        }
        own_functions(ir).find(|&f| called(self.program, m, f, name)).map(|f| (m, f))
    }

    /// The test's file and the `conftest.py` files above it.
    fn fixture_files(&self, module: ModIdx) -> Vec<ModIdx> {
        let around = self.program.conftests.get(&self.program.get(module).ir.file);
        let around = around.into_iter().flatten().filter_map(|&file| self.program.module_of(file));
        [module].into_iter().chain(around).collect()
    }

    /// The fixtures that run for all tests: with `autouse=True`, or with the name of a set-up function.
    fn fixtures_for_all(&self, module: ModIdx, class: Option<ClassKey>) -> Vec<Fixture> {
        let mut found = Vec::new();
        for m in self.fixture_files(module) {
            let ir = &self.program.get(m).ir;
            let named = |f: FuncId| m == module && BEFORE_FILE.contains(&ir.function(f).name.as_str());
            let of_file = own_functions(ir).filter(|&f| named(f) || uses_itself(self.program, m, f));
            found.extend(of_file.map(|f| (m, f, None)));
        }
        let Some(key) = class else { return found };
        for &of in &self.program.class(key).mro {
            let methods = &self.program.get(of.module).ir.class(of.class).methods;
            let before = methods.iter().filter(|&&(name, f)| {
                BEFORE_CLASS.contains(&name.as_str()) || uses_itself(self.program, of.module, f)
            });
            found.extend(before.map(|&(_, f)| (of.module, f, class)));
        }
        found
    }

    /// Adds the fixtures of `@pytest.mark.usefixtures("…")` decorators.
    fn marked_fixtures(&self, module: ModIdx, decorators: ExprList, names: &mut Vec<Sym>) {
        for &d in self.program.get(module).ir.list(decorators) {
            self.fixtures_in_mark(module, d, names);
        }
    }

    /// Adds the fixtures of `pytestmark = pytest.mark.usefixtures("…")`, alone or in a list.
    fn fixtures_of_file(&self, module: ModIdx, names: &mut Vec<Sym>) {
        let linked = self.program.get(module);
        let Some(&slot) = linked.names.get(&Sym::new("pytestmark")) else { return };
        let Some(&Binding::Value(e)) = linked.bindings.get(usize::from(slot)) else { return };
        match linked.ir.expr(e) {
            Expr::List(list) | Expr::Tuple(list) => self.marked_fixtures(module, list, names),
            _ => self.fixtures_in_mark(module, e, names),
        }
    }

    fn fixtures_in_mark(&self, module: ModIdx, mark: ExprId, names: &mut Vec<Sym>) {
        let ir = &self.program.get(module).ir;
        let Expr::Call(call) = ir.expr(mark) else { return };
        let call = ir.call(call);
        let path = self.program.resolve_expr(module, call.func);
        if matches!(path, Some(Resolved::External(p)) if p.as_str() == "pytest.mark.usefixtures") {
            names.extend(call.args.iter().filter_map(|a| match ir.expr(a.value) {
                Expr::Str(name) => Some(name),
                _ => None,
            }));
        }
    }
}

/// The functions at the top level of the file.
fn own_functions(ir: &Module) -> impl Iterator<Item = FuncId> {
    let functions = (0..).map(FuncId).zip(&ir.functions);
    functions.filter(|(_, f)| f.parent == Some(FuncId(0)) && f.class.is_none()).map(|(id, _)| id)
}

/// The decorator that makes the function a fixture: its call, or `Some(None)` for a decorator without a call. `None` for other functions.
fn making(program: &crate::link::Program, m: ModIdx, f: FuncId) -> Option<Option<Call<'_>>> {
    let ir = &program.get(m).ir;
    ir.list(ir.function(f).decorators).iter().find_map(|&d| {
        let (func, call) = match ir.expr(d) {
            Expr::Call(call) => (ir.call(call).func, Some(ir.call(call))),
            _ => (d, None),
        };
        let path = program.resolve_expr(m, func);
        matches!(path, Some(Resolved::External(p)) if MAKERS.contains(&p.as_str())).then_some(call)
    })
}

fn is_fixture(program: &crate::link::Program, m: ModIdx, f: FuncId) -> bool {
    making(program, m, f).is_some()
}

/// The argument for this keyword in the decorator that makes the function a fixture.
fn told(program: &crate::link::Program, m: ModIdx, f: FuncId, keyword: &str) -> Option<Expr> {
    let call = making(program, m, f)??;
    let named = |a: &&crate::ir::Arg| matches!(a.kind, ArgKind::Keyword(k) if k.as_str() == keyword);
    call.args.iter().find(named).map(|a| program.get(m).ir.expr(a.value))
}

/// Is the function a fixture with this name?
fn called(program: &crate::link::Program, m: ModIdx, f: FuncId, name: Sym) -> bool {
    is_fixture(program, m, f)
        && match told(program, m, f, "name") {
            Some(Expr::Str(known)) => known == name,
            _ => program.get(m).ir.function(f).name == name,
        }
}

fn uses_itself(program: &crate::link::Program, m: ModIdx, f: FuncId) -> bool {
    told(program, m, f, "autouse") == Some(Expr::True)
}
