//! Records: instances of data classes and named tuples, and copies of them with other fields.

use crate::flow::domain::value::{NO_ORIGIN, ObjId, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::machine::frame::ObjKind;
use crate::ir::{Expr, ExprId, Stmt};
use crate::link::{ClassKey, Resolved};
use crate::sym::Sym;

/// A field of a record: the class that defines its default, its name, and the default.
type Field = (ClassKey, Sym, Option<ExprId>);

impl Interp<'_> {
    /// Fills the fields of an instance without a custom `__init__`: a data class, a named tuple, or a class that only
    /// inherits from such classes.
    pub(crate) fn fill_fields(&mut self, id: ObjId, key: ClassKey, args: &Args, e: ExprId) {
        for (position, (owner, name, default)) in self.record_fields(key).into_iter().enumerate() {
            let given = args.keywords.iter().find(|(n, ..)| *n == name).map(|&(_, v, _)| v);
            let given = given.or_else(|| args.positional.get(position).map(|&(v, _)| v));
            let v = match (given, default) {
                (Some(v), _) => v,
                (None, Some(d)) => match self.default_of_field(owner, d, e) {
                    Some(v) => v,
                    None => {
                        let body = self.program.get(owner.module).ir.class(owner.class).body;
                        self.eval_in(owner.module, body, d)
                    }
                },
                (None, None) => continue,
            };
            self.set_field(id, name, v);
        }
        if let Some(fields) = self.tuple_fields(key) {
            let values: Vec<Value> = fields.iter().map(|&f| self.get_field(id, f)).collect();
            if !args.open && values.iter().all(|&v| v != Value::Absent) {
                let own = self.seq(&values);
                self.set_own(id, own);
            }
        }
        self.post_init(id, e);
    }

    /// The fields in the order of the constructor's parameters: inherited fields of data classes come first.
    fn record_fields(&self, key: ClassKey) -> Vec<Field> {
        let mut fields: Vec<Field> = Vec::new();
        for &k in self.program.class(key).mro.iter().rev() {
            if k != key && !self.is_data_class(k) {
                continue;
            }
            let ir = &self.program.get(k.module).ir;
            for &s in ir.block(ir.function(ir.class(k.class).body).body) {
                let Stmt::AnnAssign { target, value, .. } = ir.stmt(s) else { continue };
                let Expr::Var(var) = ir.expr(*target) else { continue };
                let Some(name) = self.slot_name(k, var) else { continue };
                match fields.iter_mut().find(|f| f.1 == name) {
                    Some(field) => *field = (k, name, *value),
                    None => fields.push((k, name, *value)),
                }
            }
        }
        fields
    }

    /// Whether the class is a data class: `@dataclass`, `@dataclass(frozen=True)`.
    fn is_data_class(&self, key: ClassKey) -> bool {
        let ir = &self.program.get(key.module).ir;
        ir.list(ir.class(key.class).decorators).iter().any(|&d| {
            let named = match ir.expr(d) {
                Expr::Call(call) => ir.call(call).func,
                _ => d,
            };
            matches!(self.program.resolve_expr(key.module, named), Some(Resolved::External(p)) if p.as_str() == "dataclasses.dataclass")
        })
    }

    /// Calls `__post_init__` of a data class after its fields are set.
    pub(crate) fn post_init(&mut self, id: ObjId, e: ExprId) {
        let Some(key) = self.obj(id).class else { return };
        if !self.program.class(key).mro.iter().any(|&k| self.is_data_class(k)) {
            return;
        }
        let Some((m, f)) = self.program.find_method(key, Sym::new("__post_init__")) else { return };
        // A `__post_init__` with additional parameters is not interpreted.
        if self.program.get(m).ir.function(f).params.len() == 1 {
            self.call_function(m, f, None, Some(Value::Object(id)), &Args::default(), e);
        }
    }

    /// `dataclasses.fields(x)`: objects that have the names of the fields.
    pub(crate) fn fields_of(&mut self, v: Value) -> Option<Value> {
        let key = match v {
            Value::Class(key) => key,
            Value::Object(id) => self.obj(id).class?,
            _ => return None,
        };
        if self.program.class(key).unknown_base {
            return None;
        }
        let name = Sym::new("name");
        let mut fields = Vec::new();
        for (_, field, _) in self.record_fields(key) {
            let id = self.object(ObjKind::Inert, None, Value::Absent);
            self.set_field(id, name, Value::Str(field, NO_ORIGIN));
            fields.push(Value::Object(id));
        }
        Some(self.seq(&fields))
    }

    /// `dataclasses.replace(x, y=y)`: a copy with these fields replaced.
    pub(crate) fn replaced(&mut self, args: &Args, e: ExprId) -> Value {
        let Some(&(Value::Object(id), _)) = args.positional.first() else { return Value::Unknown };
        if self.obj(id).kind != ObjKind::Instance || self.obj(id).outer.is_some() || args.open {
            return Value::Unknown;
        }
        let new = self.with_fields(id, args);
        self.post_init(new, e);
        Value::Object(new)
    }

    /// `pair._replace(left=x)` of a named tuple that the program made.
    pub(crate) fn replaced_in_tuple(&mut self, id: ObjId, args: &Args) -> Option<Value> {
        let Value::Seq(old) = self.own(id) else { return None };
        if args.open || args.open_names || self.obj(id).outer.is_some() {
            return None;
        }
        let fields: Vec<Sym> = self.obj(id).attrs.iter().map(|&(name, _)| name).collect();
        let mut values = self.seq_items(old).to_vec();
        if fields.len() != values.len() {
            return None;
        }
        for (field, value) in fields.iter().zip(&mut values) {
            if let Some(&(_, given, _)) = args.keywords.iter().find(|(name, ..)| name == field) {
                *value = given;
            }
        }
        let new = self.with_fields(id, args);
        let own = self.seq(&values);
        self.set_own(new, own);
        Some(Value::Object(new))
    }

    /// A copy of the object with the keyword arguments as new fields.
    fn with_fields(&mut self, id: ObjId, args: &Args) -> ObjId {
        let new = self.object(ObjKind::Instance, self.obj(id).class, Value::Absent);
        for (name, cell) in self.obj(id).attrs.clone() {
            let v = self.store.get(cell);
            self.set_field(new, name, v);
        }
        for &(name, v, _) in &args.keywords {
            self.set_field(new, name, v);
        }
        new
    }
}
