//! SD210 ignored-device-parameter: calls that omit the device of the function, so that the callee uses its own default.

use super::elsewhere::PLAIN_DEVICES;
use super::has_effect;
use crate::ir::{ArgKind, Call, Expr, ExprId, FuncId, Function, Param, ParamKind, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Resolved};
use crate::rules::shared::file::{File, is_self};
use crate::sym::Sym;

/// The callee whose parameters a call fills.
pub(super) enum Callee {
    /// A function. `bound`: its first parameter is its object, for which the call has no argument.
    Function { module: ModIdx, func: FuncId, bound: bool },
    /// A dataclass. Its fields are its parameters.
    Record(ClassKey),
}

impl File<'_> {
    /// The callee's name and its default device, if the call omits the device.
    pub(super) fn left_to_default(
        &self,
        function: &Function,
        call: Call<'_>,
        wanted: Sym,
    ) -> Option<(Sym, Sym)> {
        if call.args.iter().any(|a| matches!(a.kind, ArgKind::Star | ArgKind::DoubleStar)) {
            return None;
        }
        match self.callee(function, call)? {
            Callee::Function { module, func, bound } => {
                self.left_by_function(function, call, wanted, (module, func), bound)
            }
            Callee::Record(key) => self.left_by_record(call, wanted, key),
        }
    }

    pub(super) fn callee(&self, function: &Function, call: Call<'_>) -> Option<Callee> {
        let program = self.cx.program;
        let made = |key: ClassKey| match program.find_method(key, Sym::new("__init__")) {
            Some((module, func)) => Some(Callee::Function { module, func, bound: true }),
            None => Some(Callee::Record(key)),
        };
        match program.resolve_expr(self.module, call.func) {
            Some(Resolved::Function(module, func)) => Some(Callee::Function { module, func, bound: false }),
            Some(Resolved::Class(key)) => made(key),
            Some(_) => None,
            None if self.is_own_class(function, call.func) => {
                made(ClassKey { module: self.module, class: function.class? })
            }
            None => {
                let (module, func) =
                    self.own_method(function, call).or_else(|| self.method_of_checked(call))?;
                Some(Callee::Function { module, func, bound: true })
            }
        }
    }

    /// Is it `cls` in a class method?
    pub(super) fn is_own_class(&self, function: &Function, e: ExprId) -> bool {
        let class_method =
            self.ir.list(function.decorators).iter().any(|&d| self.ir.is_builtin(d, "classmethod"));
        class_method
            && function.params.first().is_some_and(|p| self.ir.expr(e) == Expr::Var(Var::Local(p.slot)))
    }

    fn left_by_function(
        &self,
        function: &Function,
        call: Call<'_>,
        wanted: Sym,
        (m, f): (ModIdx, FuncId),
        bound: bool,
    ) -> Option<(Sym, Sym)> {
        let ir = &self.cx.program.get(m).ir;
        let callee = ir.function(f);
        let (n, param) = callee.params.iter().enumerate().find(|(_, p)| p.name == wanted)?;
        let by_default = || self.none_is_the_cpu(function, (m, f), param).then(|| Sym::new("None"));
        let default = self.default_device(m, param.default?, wanted).or_else(by_default)?;
        let last = param.kind == ParamKind::KeywordOnly;
        let position = (!last).then_some(n.checked_sub(usize::from(bound))?);
        if is_given(call, wanted, position) || !self.hangs_on(call, (m, f), param, bound) {
            return None;
        }
        let constructs = callee.name.as_str() == "__init__";
        let name =
            if constructs { callee.class.map_or(callee.name, |c| ir.class(c).name) } else { callee.name };
        Some((name, default))
    }

    /// Does the parameter have an effect in this call? A `map_location` that the callee ignores where it loads has one too.
    fn hangs_on(&self, call: Call<'_>, (m, f): (ModIdx, FuncId), param: &Param, bound: bool) -> bool {
        let program = self.cx.program;
        let given = has_effect::Given { ir: self.ir, call, bound };
        let forgets = || {
            let ir = &program.get(m).ir;
            let owner = File::new(self.cx, m, ir);
            param.name.as_str() == "map_location"
                && owner.loaded_elsewhere(ir.function(f), param.name).is_some()
        };
        has_effect::has_effect(program, (m, f), param, given) || forgets()
    }

    /// The same for `@dataclass class Batch: rows: Tensor; device: str = "cpu"`, if one of its methods reads the field.
    fn left_by_record(&self, call: Call<'_>, wanted: Sym, key: ClassKey) -> Option<(Sym, Sym)> {
        let program = self.cx.program;
        let info = program.class(key);
        let ir = &program.get(key.module).ir;
        let class = ir.class(key.class);
        let records = ir.list(class.decorators).iter().any(|&d| {
            let named = match ir.expr(d) {
                Expr::Call(c) => ir.call(c).func,
                _ => d,
            };
            matches!(program.resolve_expr(key.module, named),
                Some(Resolved::External(path)) if path.as_str() == "dataclasses.dataclass")
        });
        // The fields of bases would come first.
        if !records || info.mro.len() > 1 || info.unknown_base {
            return None;
        }
        let body = ir.function(class.body);
        let fields = ir.block(body.body).iter().filter_map(|&s| match *ir.stmt(s) {
            Stmt::AnnAssign { target, value, .. } => match ir.expr(target) {
                Expr::Var(Var::Local(slot)) => Some((*body.slots.get(usize::from(slot))?, value)),
                _ => None,
            },
            _ => None,
        });
        let (n, (_, default)) = fields.enumerate().find(|(_, (name, _))| *name == wanted)?;
        let default = self.default_device(key.module, default?, wanted)?;
        let looks = class.methods.iter().any(|&(_, f)| {
            ir.exprs[ir.exprs_of(ir.function(f))].iter().any(|e| match *e {
                Expr::Attr { base, name } => name == wanted && is_self(ir, base),
                _ => false,
            })
        });
        (looks && !is_given(call, wanted, Some(n))).then_some((class.name, default))
    }

    /// The default device: `"cpu"`, also `torch.device("cpu")`. For a load, `None` means the device that the file was saved from.
    fn default_device(&self, m: ModIdx, default: ExprId, wanted: Sym) -> Option<Sym> {
        let ir = &self.cx.program.get(m).ir;
        let written = match ir.expr(default) {
            Expr::Call(c) => match (self.cx.program.resolve_expr(m, ir.call(c).func), ir.call(c).args) {
                (Some(Resolved::External(p)), [a]) if p.as_str() == "torch.device" => ir.expr(a.value),
                _ => return None,
            },
            written => written,
        };
        match written {
            Expr::Str(s) if PLAIN_DEVICES.has(s.as_str()) => Some(s),
            Expr::None if wanted.as_str() == "map_location" => Some(Sym::new("None")),
            _ => None,
        }
    }
}

/// Does the call pass an argument for the parameter with this name, at this position?
fn is_given(call: Call<'_>, name: Sym, position: Option<usize>) -> bool {
    let positional = call.args.iter().filter(|a| a.kind == ArgKind::Positional).count();
    position.is_some_and(|n| positional > n) || call.args.iter().any(|a| a.kind == ArgKind::Keyword(name))
}
