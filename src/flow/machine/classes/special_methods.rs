//! Special methods of the project's classes: operators, setters of properties, fields.

use crate::flow::domain::value::{Closure, NO_ORIGIN, ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::ir::{ArgKind, BinOp, Expr, ExprId, FuncId, Stmt};
use crate::link::{ClassKey, Resolved};
use crate::sym::Sym;
use crate::words::Words;

static CONTAINERS: Words = Words::of("containers of modules and parameters");

impl Interp<'_> {
    /// The result of an operator if the class of one operand defines it: `a * b`.
    pub(crate) fn own_binary(&mut self, op: BinOp, a: Value, b: Value, e: ExprId) -> Option<Value> {
        let name = operator(op)?;
        for (object, other, method) in [(a, b, format!("__{name}__")), (b, a, format!("__r{name}__"))] {
            let Value::Object(id) = object else { continue };
            if !matches!(self.obj(id).kind, ObjKind::Instance | ObjKind::Module) {
                continue;
            }
            if let Some((m, f)) = self.own_method(id, &method) {
                let args = Args { positional: vec![(other, e)], ..Args::default() };
                return Some(self.call_function(m, f, None, Some(object), &args, e));
            }
        }
        None
    }

    /// The setter that an assignment to the attribute calls: `@bounds.setter`.
    pub(crate) fn setter(&self, id: ObjId, name: Sym) -> Option<Closure> {
        let key = self.obj(id).class?;
        let (module, func) = self.program.find_method(key, name)?;
        let closure = Closure { module, func, frame: None };
        self.sets_a_property(closure).then_some(closure)
    }

    /// Whether the function is a setter, such as `@device.setter`. The name keeps its property.
    pub(crate) fn sets_a_property(&self, c: Closure) -> bool {
        let ir = &self.program.get(c.module).ir;
        ir.list(ir.function(c.func).decorators)
            .iter()
            .any(|&d| matches!(ir.expr(d), Expr::Attr { name, .. } if name.as_str() == "setter"))
    }

    /// The getter of the property with this setter.
    pub(crate) fn getter(&self, setter: Closure) -> Option<Closure> {
        let ir = &self.program.get(setter.module).ir;
        let wanted = ir.function(setter.func);
        let getters =
            ir.functions.iter().enumerate().filter(|(_, f)| f.name == wanted.name && f.class == wanted.class);
        getters
            .filter_map(|(n, _)| Some(Closure { func: FuncId(u32::try_from(n).ok()?), ..setter }))
            .find(|&c| self.method_kind(c) == crate::flow::machine::classes::define::MethodKind::Property)
    }

    /// The default of a data class's field: `field(default_factory=…)`.
    pub(crate) fn default_of_field(&mut self, key: ClassKey, default: ExprId, e: ExprId) -> Option<Value> {
        let ir = &self.program.get(key.module).ir;
        let Expr::Call(call) = ir.expr(default) else { return None };
        let call = ir.call(call);
        let field = self.program.resolve_expr(key.module, call.func);
        if !matches!(field, Some(Resolved::External(p)) if p.as_str() == "dataclasses.field") {
            return None;
        }
        let scope = ir.class(key.class).body;
        call.args.iter().find_map(|a| {
            let ArgKind::Keyword(name) = a.kind else { return None };
            let given = |i: &mut Self| i.eval_in(key.module, scope, a.value);
            match name.as_str() {
                "default" => Some(given(self)),
                "default_factory" => {
                    let made = given(self);
                    Some(self.call_value(made, &Args::default(), e))
                }
                _ => None,
            }
        })
    }

    /// `vars(x)`, `x.__dict__`: the attributes of a plain object that the program made.
    pub(crate) fn fields_as_dict(&mut self, id: ObjId) -> Option<Value> {
        if self.obj(id).kind != ObjKind::Instance || self.obj(id).outer.is_some() {
            return None;
        }
        let mut flat = Vec::new();
        for (name, cell) in self.obj(id).attrs.clone() {
            let v = self.store.get(cell);
            if v != Value::Absent && !name.as_str().starts_with(' ') {
                flat.extend([Value::Str(name, NO_ORIGIN), v]);
            }
        }
        let content = self.seq(&flat);
        Some(Value::Object(self.object(ObjKind::Dict { module: false }, None, content)))
    }

    /// The field names of `class Rays(NamedTuple)`.
    pub(crate) fn tuple_fields(&self, key: ClassKey) -> Option<Vec<Sym>> {
        let named = |p: &Sym| matches!(p.as_str(), "typing.NamedTuple" | "typing_extensions.NamedTuple");
        if !self.program.class(key).externals.iter().any(named) {
            return None;
        }
        let ir = &self.program.get(key.module).ir;
        let body = ir.function(ir.class(key.class).body).body;
        let fields = ir.block(body).iter().filter_map(|&s| match ir.stmt(s) {
            Stmt::AnnAssign { target, .. } => match ir.expr(*target) {
                Expr::Var(var) => self.slot_name(key, var),
                _ => None,
            },
            _ => None,
        });
        Some(fields.collect())
    }

    /// Whether the name is the index of a child of `nn.Sequential` or `nn.ModuleList`.
    pub(crate) fn is_numbered(&self, id: ObjId, name: Sym) -> bool {
        self.obj(id).kind == (ObjKind::List { module: true }) && name.as_str().parse::<u16>().is_ok()
    }

    /// Whether a layer, or a module of the project, is of this PyTorch class, if known.
    pub(crate) fn is_layer(&self, id: ObjId, class: Sym) -> Option<bool> {
        let path = crate::torch::canonical(class);
        if path.as_str() == "torch.nn.Module" {
            return self.is_module_object(id).then_some(true);
        }
        let wanted = crate::torch::module(path)?;
        // Base classes of other layers are not decided here.
        let last = crate::flow::models::tensors::functions::short(wanted.name);
        if last.starts_with('_') || last.ends_with("Base") {
            return None;
        }
        match self.obj(id).kind {
            ObjKind::ForeignModule(Some(op)) => Some(op.name == wanted.name),
            ObjKind::List { module: true } | ObjKind::Dict { module: true } => {
                let container = CONTAINERS.has(last);
                (!container).then_some(false)
            }
            ObjKind::Module => {
                let info = self.program.class(self.obj(id).class?);
                let is = info.externals.iter().any(|&p| crate::torch::canonical(p) == path);
                (is || !info.unknown_base).then_some(is)
            }
            _ => None,
        }
    }
}

/// The operator's name in the special methods.
const fn operator(op: BinOp) -> Option<&'static str> {
    Some(match op {
        BinOp::Add => "add",
        BinOp::Sub => "sub",
        BinOp::Mul => "mul",
        BinOp::MatMul => "matmul",
        BinOp::Div => "truediv",
        BinOp::FloorDiv => "floordiv",
        BinOp::Mod => "mod",
        BinOp::Pow => "pow",
        BinOp::BitOr => "or",
        BinOp::BitAnd => "and",
        _ => return None,
    })
}
