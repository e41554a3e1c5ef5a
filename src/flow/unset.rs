//! Attributes that methods read off their own object, and that nothing in a project sets: `AttributeError` on any machine, so
//! that nothing comes after.

use rustc_hash::{FxHashMap, FxHashSet};

use super::behind::statements::{at_once, may_leave, may_set};
use super::methods::class_of_self;
use crate::ir::{ArgKind, Call, Class, ClassId, Expr, ExprId, FuncId, FuncKind, Module, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Program, Resolved};
use crate::span::Span;
use crate::sym::Sym;

/// Attributes that are not there, by the class whose methods read them.
#[derive(Debug, Default)]
pub struct Unset(FxHashSet<(ClassKey, Sym)>);

/// Bases from elsewhere of which it is known what their objects have.
const PLAIN: &[&str] = &[
    "builtins.object",
    "abc.ABC",
    "torch.nn.Module",
    "torch.nn.modules.module.Module",
    "torch.utils.data.Dataset",
    "torch.utils.data.IterableDataset",
];
/// What every module has (`dir(torch.nn.Module())` in PyTorch 2.15), and every data set.
const OF_MODULES: &str = "T_destination add_module apply bfloat16 buffers call_super_init children compile cpu cuda double \
    dump_patches eval extra_repr float forward get_buffer get_extra_state get_parameter get_submodule half ipu load_state_dict \
    modules mtia named_buffers named_children named_modules named_parameters parameters register_backward_hook register_buffer \
    register_forward_hook register_forward_pre_hook register_full_backward_hook register_full_backward_pre_hook \
    register_load_state_dict_post_hook register_load_state_dict_pre_hook register_module register_parameter \
    register_state_dict_post_hook register_state_dict_pre_hook requires_grad_ set_extra_state set_submodule share_memory state_dict \
    to to_empty train training type xpu zero_grad functions register_function register_datapipe_as_function";
/// What sets an attribute whose name it is given.
const SETTERS: &[&str] =
    &["setattr", "__setattr__", "add_module", "register_module", "register_buffer", "register_parameter"];
/// What asks for one.
const GETTERS: &[&str] = &["getattr", "hasattr", "delattr"];
/// What gives all of an object's attributes, to be changed.
const ALL: &str = "__dict__";
/// Methods that answer for attributes which are not there.
const ANSWERS: &[&str] = &["__getattr__", "__getattribute__"];
/// Texts that a file must have in it to set attributes whose names it does not spell out.
pub const BY_NAME: [&str; 3] = ["setattr", "vars(", ALL];

impl Unset {
    /// What methods of these files read that neither their class nor its bases set, as far as that can be told from these alone.
    pub fn of(program: &Program, files: &[ModIdx]) -> Self {
        let mut open: FxHashMap<ClassKey, bool> = FxHashMap::default();
        let mut found = FxHashMap::default();
        for &m in files {
            let ir = &program.get(m).ir;
            for expr in &ir.exprs {
                let Expr::Attr { base, name } = *expr else { continue };
                let Some(class) = own(program, m, base) else { continue };
                if *open.entry(class).or_insert_with(|| is_open(program, class)) {
                    found.entry((class, name)).or_insert_with(|| !has(program, class, name));
                }
            }
        }
        let unset = found.into_iter().filter(|&(_, lacking)| lacking).map(|(read, _)| read);
        Self(unset.collect()).after(program, &[])
    }

    /// Is there nothing?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names.
    pub fn names(&self) -> FxHashSet<Sym> {
        self.0.iter().map(|&(_, name)| name).collect()
    }

    /// Does the class read the attribute of its own object, and never have it?
    pub fn holds(&self, program: &Program, class: ClassKey, name: Sym) -> bool {
        !self.0.is_empty() && program.class(class).mro.iter().any(|&k| self.0.contains(&(k, name)))
    }

    /// Together with those of another.
    pub fn and(mut self, other: &Self) -> Self {
        self.0.extend(&other.0);
        self
    }

    /// Those of which another knows as well.
    pub fn within(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    /// Those that these files, all of the project's, do not set either.
    pub fn after(self, program: &Program, files: &[ModIdx]) -> Self {
        let classes: FxHashSet<ClassKey> = self.0.iter().map(|&(class, _)| class).collect();
        let kin = related(program, &classes, files);
        let around = kin.values().flatten().map(|k| k.module);
        let mut all: Vec<ModIdx> = around.chain(files.iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        let names = self.names();
        let places: Vec<Place> = all.iter().flat_map(|&m| places(program, m, &names)).collect();
        let is_known = |kin: &FxHashSet<ClassKey>| {
            kin.iter().all(|&k| is_of_project(program, k))
                && !places.iter().any(|p| p.may_set_any(program, &all, kin))
        };
        let known: FxHashSet<ClassKey> =
            kin.iter().filter(|&(_, kin)| is_known(kin)).map(|(&class, _)| class).collect();
        let stays = |&(class, name): &(ClassKey, Sym)| {
            known.contains(&class)
                && kin.get(&class).is_some_and(|kin| {
                    !kin.iter().any(|&k| defines(program, k, name))
                        && !places.iter().any(|p| p.may_set(kin, name))
                })
        };
        Self(self.0.into_iter().filter(stays).collect())
    }
}

/// Each of these classes with its bases, what these files derive from it, and the bases of that.
fn related(
    program: &Program,
    classes: &FxHashSet<ClassKey>,
    files: &[ModIdx],
) -> FxHashMap<ClassKey, FxHashSet<ClassKey>> {
    let own = |&class: &ClassKey| (class, program.class(class).mro.iter().copied().collect());
    let mut kin: FxHashMap<ClassKey, FxHashSet<ClassKey>> = classes.iter().map(own).collect();
    for key in files.iter().flat_map(|&m| classes_of(program, m)) {
        let mro = &program.class(key).mro;
        for base in mro {
            if let Some(kin) = kin.get_mut(base) {
                kin.extend(mro);
            }
        }
    }
    kin
}

/// The classes of a file.
fn classes_of(program: &Program, module: ModIdx) -> impl Iterator<Item = ClassKey> {
    let count = u32::try_from(program.get(module).ir.classes.len()).unwrap_or(u32::MAX);
    (0..count).map(move |class| ClassKey { module, class: ClassId(class) })
}

/// The class of whose object a method speaks there.
fn own(program: &Program, m: ModIdx, e: ExprId) -> Option<ClassKey> {
    let ir = &program.get(m).ir;
    let class = class_of_self(ir, m, e)?;
    let mut func = ir.function_around(e);
    while ir.function(func).kind != FuncKind::Function {
        func = ir.function(func).parent?;
    }
    (!is_decorated(ir, func, "staticmethod")).then_some(class)
}

fn is_decorated(ir: &Module, func: FuncId, by: &str) -> bool {
    ir.list(ir.function(func).decorators).iter().any(|&d| ir.last_name(d).is_some_and(|n| n.as_str() == by))
}

/// Do the objects of the class have nothing but what the project gives them?
fn is_of_project(program: &Program, key: ClassKey) -> bool {
    let info = program.class(key);
    !info.unknown_base
        && info.externals.iter().all(|base| PLAIN.contains(&base.as_str()))
        && ANSWERS.iter().all(|name| program.find_method(key, Sym::new(name)).is_none())
        && info.mro.iter().all(|&k| is_plain(program, k))
}

/// The same, and they exist as they are: what is left to derived classes, these may set.
fn is_open(program: &Program, key: ClassKey) -> bool {
    let left = |&k: &ClassKey| {
        let methods = &program.get(k.module).ir.class(k.class).methods;
        methods.iter().any(|&(name, _)| {
            program.find_method(key, name).is_some_and(|(m, f)| {
                // What is written so, a class that is derived may do without.
                is_decorated(&program.get(m).ir, f, "abstractmethod")
                    || k == key && raises_for_others(&program.get(m).ir, f)
            })
        })
    };
    is_of_project(program, key)
        && program.find_method(key, Sym::new("__init__")).is_some()
        && !program.class(key).mro.iter().any(left)
}

/// Is the function only there to be written by others: `raise NotImplementedError`?
fn raises_for_others(ir: &Module, f: FuncId) -> bool {
    ir.block(ir.function(f).body).iter().any(|&s| match *ir.stmt(s) {
        Stmt::Raise { exception: Some(e), .. } => {
            let class = if let Expr::Call(call) = ir.expr(e) { ir.call(call).func } else { e };
            ir.is_builtin(class, "NotImplementedError")
        }
        _ => false,
    })
}

/// Does the statement make the class as it is written, whatever decorators of the project note of it?
fn is_plain(program: &Program, key: ClassKey) -> bool {
    let ir = &program.get(key.module).ir;
    let class: &Class = ir.class(key.class);
    let of_project = |&d: &ExprId| {
        let target = if let Expr::Call(call) = ir.expr(d) { ir.call(call).func } else { d };
        matches!(program.resolve_expr(key.module, target), Some(Resolved::Function(..)))
    };
    let plain_metaclass = |e: ExprId| matches!(program.resolve_expr(key.module, e), Some(Resolved::External(path)) if path.as_str() == "abc.ABCMeta");
    ir.list(class.decorators).iter().all(of_project)
        && ir.args(class.bases).iter().all(|a| match a.kind {
            ArgKind::Keyword(_) => plain_metaclass(a.value),
            ArgKind::Positional => true,
            _ => false,
        })
}

/// Has the class the name, by its body or because all modules have it?
fn has(program: &Program, class: ClassKey, name: Sym) -> bool {
    name.as_str().starts_with('_')
        || OF_MODULES.split_whitespace().any(|known| known == name.as_str())
        || program.class(class).mro.iter().any(|&k| defines(program, k, name))
}

fn defines(program: &Program, key: ClassKey, name: Sym) -> bool {
    let ir = &program.get(key.module).ir;
    let class = ir.class(key.class);
    class.methods.iter().any(|&(n, _)| n == name) || ir.function(class.body).slots.contains(&name)
}

/// Something in a file by which an object may come to an attribute, or do without it.
struct Place {
    file: ModIdx,
    func: FuncId,
    /// The class of the object, if it is the one that a method belongs to.
    owner: Option<ClassKey>,
    /// Not known if the name is put together.
    name: Option<Sym>,
    /// It sets it, and does not only ask.
    sets: bool,
}

impl Place {
    /// May an object of these classes have the attribute from here?
    fn may_set(&self, kin: &FxHashSet<ClassKey>, name: Sym) -> bool {
        self.name == Some(name) && self.owner.map_or(self.sets, |class| kin.contains(&class))
    }

    /// May it have any attribute from here? Who sets what somebody else has named has the object from somewhere.
    fn may_set_any(&self, program: &Program, files: &[ModIdx], kin: &FxHashSet<ClassKey>) -> bool {
        if self.name.is_some() || !self.sets {
            return false;
        }
        if let Some(class) = self.owner {
            return kin.contains(&class);
        }
        let function = program.get(self.file).ir.function(self.func).name;
        let mentioned = |m: ModIdx| {
            let ir = &program.get(m).ir;
            kin.iter().any(|k| names(ir, program.get(k.module).ir.class(k.class).name))
        };
        mentioned(self.file) || files.iter().any(|&m| names(&program.get(m).ir, function) && mentioned(m))
    }
}

/// Does the file speak of something of that name?
fn names(ir: &Module, name: Sym) -> bool {
    ir.functions.first().is_some_and(|body| body.slots.contains(&name))
        || ir.imports.iter().any(|i| i.name == Some(name))
        || ir.has_attribute(name)
}

/// The places of a file that are about one of these names, or may be about any.
fn places(program: &Program, m: ModIdx, of: &FxHashSet<Sym>) -> Vec<Place> {
    let ir = &program.get(m).ir;
    let mut found = Vec::new();
    let place = |receiver: ExprId, name: Option<Sym>, sets: bool| Place {
        file: m,
        func: ir.function_around(receiver),
        owner: own(program, m, receiver),
        name,
        sets,
    };
    let mut tried: Vec<Span> = Vec::new();
    for (s, &at) in ir.stmts.iter().zip(&ir.stmt_spans) {
        match s {
            // To add to what is not there raises as well.
            Stmt::AugAssign { .. } | Stmt::AnnAssign { value: None, .. } => continue,
            Stmt::Try { handlers, .. } if !ir.handlers(*handlers).is_empty() => tried.push(at),
            _ => {}
        }
        for target in may_set(ir, s) {
            if let Expr::Attr { base, name } = ir.expr(target)
                && of.contains(&name)
                && !is_read_first(ir, base, name)
            {
                found.push(place(base, Some(name), true));
            }
        }
    }
    for (e, &at) in ir.exprs.iter().zip(&ir.expr_spans) {
        match *e {
            // Who reads it there may have thought of that.
            Expr::Attr { base, name } if of.contains(&name) && tried.iter().any(|t| t.contains(at)) => {
                found.push(place(base, Some(name), false));
            }
            Expr::Attr { base, name } if name.as_str() == ALL => found.push(place(base, None, true)),
            _ => {}
        }
    }
    for call in ir.calls() {
        found.extend(by_name(ir, call).into_iter().map(|(object, name, sets)| place(object, name, sets)));
    }
    found
}

/// `setattr(x, "name", value)`, `x.register_buffer(name, value)`, `hasattr(x, "name")`, `vars(x)`: the object, the name if it is written
/// down, and whether the call sets the attribute.
fn by_name(ir: &Module, call: Call<'_>) -> Option<(ExprId, Option<Sym>, bool)> {
    let callee = ir.last_name(call.func)?;
    if callee.as_str() == "vars" {
        return Some((call.args.first()?.value, None, true));
    }
    let sets = SETTERS.contains(&callee.as_str());
    if !sets && !GETTERS.contains(&callee.as_str()) {
        return None;
    }
    let text = |e: ExprId| match ir.expr(e) {
        Expr::Str(text) => Some(text),
        _ => None,
    };
    let literal = call.args.iter().find_map(|a| text(a.value));
    let object = match ir.expr(call.func) {
        Expr::Attr { base, .. } if matches!(ir.expr(base), Expr::Var(Var::Unbound(_))) => {
            call.args.first()?.value
        }
        Expr::Attr { base, .. } => base,
        _ => call.args.first()?.value,
    };
    // To ask for names that are not written down says nothing of this one.
    (sets || literal.is_some()).then_some((object, literal, sets))
}

/// Has the function always read the same attribute of the same object before it comes to set it there? `self.last = self.now` before
/// `self.now = x`.
fn is_read_first(ir: &Module, base: ExprId, name: Sym) -> bool {
    let at = ir.span(base);
    let reads = |e: ExprId| {
        let parts = || ir.exprs_in(e).map(|n| ir.exprs[n]);
        let always = |x: Expr| {
            !matches!(x, Expr::Lambda(_) | Expr::IfElse(_) | Expr::And(_) | Expr::Or(_) | Expr::Comp(_))
        };
        let read =
            |x: Expr| matches!(x, Expr::Attr { base: b, name: n } if n == name && ir.names_the_same(b, base));
        parts().any(read) && parts().all(always)
    };
    for &s in ir.block(ir.function(ir.function_around(base)).body) {
        let stmt = ir.stmt(s);
        let values = match *stmt {
            Stmt::Assign { value, .. } | Stmt::Expr(value) => vec![value],
            _ => at_once(stmt),
        };
        if values.into_iter().any(reads) {
            return true;
        }
        if ir.stmt_span(s).contains(at) || may_leave(ir, stmt) {
            return false;
        }
    }
    false
}
