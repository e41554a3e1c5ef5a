//! What nobody in a project names: functions and classes that no file uses.
//!
//! A mismatch with what a function is given needs somebody who gives it something, and one in a module's method somebody who
//! makes the module. In an application, whose users are its own scripts, nobody does where the name of the function, or of the
//! class that it is a method of, stands nowhere but where it is defined.

use rustc_hash::FxHashSet;

use super::behind::{Node, method_around, node_of};
use super::given::Target;
use crate::ir::{Call, Expr, ExprList, Module};
use crate::link::{ClassKey, ModIdx, Program, Resolved, Target as LinkTarget};
use crate::span::Place;
use crate::sym::Sym;

/// A name, and the definition that it stands in.
#[derive(Debug, Clone, Copy)]
pub struct Definition {
    /// The name.
    pub name: Sym,
    /// The whole definition.
    pub own: Place,
}

/// How a project comes to its functions and classes without writing their names down.
#[derive(Debug, Default)]
pub struct LookedUp {
    /// `importlib.import_module(name)`: any class may be used, under a name that is put together.
    classes: bool,
    /// `getattr(x, name)`: any method may be.
    methods: bool,
    /// `getattr(models, name)`, `models.__dict__[name]`, `globals()[name]`: all that these files define may be.
    files: FxHashSet<ModIdx>,
}

impl LookedUp {
    /// Looks for such ways in these files.
    pub fn of(program: &Program, files: &[ModIdx]) -> Self {
        let mut found = Self::default();
        for &m in files {
            let ir = &program.get(m).ir;
            for expr in &ir.exprs {
                match *expr {
                    Expr::Call(call) => found.call(program, m, ir.call(call)),
                    Expr::Attr { base, name } if name.as_str() == "__dict__" => {
                        found.names_of(program, m, program.resolve_expr(m, base));
                    }
                    _ => {}
                }
            }
        }
        found
    }

    fn call(&mut self, program: &Program, m: ModIdx, call: Call<'_>) {
        let ir = &program.get(m).ir;
        let Some(Resolved::External(path)) = program.resolve_expr(m, call.func) else { return };
        let literal = |n: usize| call.args.get(n).is_some_and(|a| matches!(ir.expr(a.value), Expr::Str(_)));
        match path.as_str() {
            "importlib.import_module" | "builtins.__import__" if !literal(0) => self.classes = true,
            "builtins.getattr" if !literal(1) => {
                let of = call.args.first().and_then(|a| program.resolve_expr(m, a.value));
                self.names_of(program, m, of);
            }
            "builtins.globals" | "builtins.eval" | "builtins.exec" => {
                self.files.insert(m);
                let stars = program.get(m).stars.iter();
                self.files.extend(stars.filter_map(|&target| match target {
                    LinkTarget::Module(file) => Some(file),
                    _ => None,
                }));
            }
            _ => {}
        }
    }

    fn names_of(&mut self, program: &Program, m: ModIdx, of: Option<Resolved>) {
        match of {
            Some(Resolved::Module(other)) => {
                self.files.insert(other);
                // What a package takes over from its files.
                self.files.extend(program.imports(other).filter(|&file| file != m));
            }
            _ => self.methods = true,
        }
    }

    /// The definitions of which somebody must write each down for the function to be used: its own, and its class's. Nothing if
    /// it may be used otherwise.
    pub fn definitions(&self, program: &Program, (m, f): Target) -> Option<Vec<Definition>> {
        let ir = &program.get(m).ir;
        let place = |span| Place { file: ir.file, span };
        match node_of(ir, m, f)? {
            Node::Function(_, outer) => {
                let function = ir.function(outer);
                let plain = !self.files.contains(&m) && is_plain(program, m, function.decorators);
                plain.then(|| vec![Definition { name: function.name, own: place(function.span) }])
            }
            Node::Class(key) => {
                let class = ir.class(key.class);
                let mut needed = Vec::new();
                if !self.classes && !self.files.contains(&m) && is_plain(program, m, class.decorators) {
                    needed.push(Definition { name: class.name, own: place(class.span) });
                }
                if let Some(method) = method_around(ir, f).map(|method| ir.function(method))
                    && !self.methods
                    && is_plain(program, m, method.decorators)
                    && is_own(program, key, method.name)
                {
                    needed.push(Definition { name: method.name, own: place(method.span) });
                }
                (!needed.is_empty()).then_some(needed)
            }
        }
    }
}

/// Is the method one that only the project's own code calls: no base from elsewhere knows it, nor Python itself?
fn is_own(program: &Program, key: ClassKey, name: Sym) -> bool {
    let info = program.class(key);
    let bare = |p: &Sym| matches!(p.as_str(), "torch.nn.Module" | "builtins.object");
    let text = name.as_str();
    !text.starts_with("__") && text != "forward" && !info.unknown_base && info.externals.iter().all(bare)
}

/// Do the decorators leave it where it is, so that nobody has put it into a table?
fn is_plain(program: &Program, m: ModIdx, decorators: ExprList) -> bool {
    let ir: &Module = &program.get(m).ir;
    ir.list(decorators).iter().all(|&d| {
        let called = match ir.expr(d) {
            Expr::Call(call) => ir.call(call).func,
            _ => d,
        };
        matches!(program.resolve_expr(m, called), Some(Resolved::External(path))
            if ["torch.", "builtins.", "functools.", "dataclasses.", "typing."].iter().any(|p| path.as_str().starts_with(p)))
    })
}
