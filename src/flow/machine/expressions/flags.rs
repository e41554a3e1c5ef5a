//! Flags: tests of a caller's or user's decisions, their names, and whether they are about devices.

use crate::flow::domain::atom::Atom;
use crate::flow::domain::diagram::{Cond, FALSE, TRUE};
use crate::flow::domain::value::{FrameId, OuterId, OuterKey, Value};
use crate::flow::machine::expressions::truth::ordered;
use crate::flow::machine::{Interp, Test};
use crate::flow::models::libraries::urls::Written;
use crate::flow::query::flag_words::{speaks_of_devices, speaks_of_own_gpu};
use crate::ir::{CmpOp, Expr, ExprId, Module, UnaryOp, Var, Whole};
use crate::link::{ModIdx, Resolved};
use crate::sym::Sym;
use crate::words::Words;

/// Parameters and buffers that PyTorch's layers may lack (`bias=False`, `track_running_stats=False`). Then they are
/// `None`.
static OPTIONAL_IN_LAYERS: Words = Words::of("optional in layers");
static DEVICE_OBJECTS: Words = Words::of("classes of device objects");

impl Interp<'_> {
    /// The condition of a test on an outside value: a flag that the caller or the user decides.
    pub(crate) fn flag(&mut self, test: Test, outer: OuterId, suffix: &str, e: ExprId) -> Cond {
        let atom = match self.tests.atoms.get(&test) {
            Some(&atom) => atom,
            None => {
                let name = self.flag_name(outer);
                // `helper().kind == "cuda"`: the value has no name, but the constant refers to devices.
                let atom = if name.is_empty() && !speaks_of_devices(suffix) {
                    Atom::Opaque { place: self.place(e) }
                } else {
                    let default = self.t.get_outer(outer).default.and_then(|v| by_default(test, v));
                    let named = !name.is_empty() && !name.starts_with('…');
                    let settable = named && !self.is_answered_elsewhere(outer);
                    let name = if name.is_empty() { "…" } else { name.as_str() };
                    let text = [name, suffix].concat();
                    let about_devices = !self.asks_accelerator_else(outer)
                        && (speaks_of_devices(&text)
                            || speaks_of_own_gpu(&text)
                            || self.annotated_for_devices(outer));
                    let left_out = !about_devices && self.asks_for_default(test, outer);
                    let default = if left_out { Some(true) } else { default };
                    Atom::Flag { text, about_devices, settable, default }
                };
                let guards = matches!(atom, Atom::Flag { about_devices: true, .. });
                let atom = self.atoms.add(atom);
                if guards {
                    self.d.keep(atom);
                }
                self.note_question(atom, outer, test);
                self.note_test(test, atom);
                atom
            }
        };
        self.d.atom(atom)
    }

    /// The test for a call without arguments, `is_package_available()`: it has the same outcome at every call.
    pub(super) fn asked_by_name(&self, o: OuterId) -> Option<Test> {
        let OuterKey::Result { module, expr, .. } = self.t.get_outer(o).key else {
            return None;
        };
        let ir = &self.program.get(module).ir;
        let Expr::Call(call) = ir.expr(expr) else { return None };
        let call = ir.call(call);
        let Expr::Var(Var::Global(slot)) = ir.expr(call.func) else { return None };
        let name = *ir.functions.first()?.slots.get(usize::from(slot))?;
        let asks = name.as_str().starts_with("is_") || name.as_str().starts_with("has_");
        (asks && call.args.is_empty()).then_some(Test::Compare(31, Value::External(name), Value::None))
    }

    /// The text of a test on an unknown value, if it refers to devices: `conf["use_gpu"]`, `len(gpu_ids) > 0`.
    pub(super) fn asked_of(&self, module: ModIdx, e: ExprId) -> Option<String> {
        let ir = &self.program.get(module).ir;
        if let Some(key) = self.key_of(module, Some(self.frame), e) {
            return speaks_of_devices(key.as_str()).then(|| format!("…[\"{key}\"]"));
        }
        let written = |e: ExprId| {
            matches!(ir.expr(e), Expr::Int(_) | Expr::Str(_) | Expr::None | Expr::True | Expr::False)
        };
        match ir.expr(e) {
            // `device > -1`: a GPU index, which is negative without a GPU.
            Expr::Compare { left, op, right }
                if matches!(ir.expr(left), Expr::Var(_)) && is_below_all(ir, op, right) =>
            {
                let name = ir.variable_of(left).filter(|name| speaks_of_devices(name.as_str()))?;
                Some(format!("…({name})"))
            }
            Expr::Compare { left, right, .. } if written(right) => self.asked_of(module, left),
            Expr::Call(call) => {
                let call = ir.call(call);
                let counts = matches!(ir.expr(call.func), Expr::Var(Var::Unbound(f)) if f.as_str() == "len" || f.as_str() == "int");
                let [argument] = call.args else { return None };
                let name = self.converted(module, argument.value).filter(|_| counts)?;
                Some(format!("…({name})"))
            }
            _ => None,
        }
    }

    /// The name of the only argument of a call of a named function, if the name refers to devices.
    fn converted_by(&self, module: ModIdx, e: ExprId) -> Option<Sym> {
        let ir = &self.program.get(module).ir;
        let Expr::Call(call) = ir.expr(e) else { return None };
        let call = ir.call(call);
        let [argument] = call.args else { return None };
        let named = matches!(ir.expr(call.func), Expr::Var(_));
        self.converted(module, argument.value).filter(|_| named)
    }

    /// The last name of a converted value, if it refers to devices: `use_cuda` of `strtobool(options["use_cuda"])`.
    fn converted(&self, module: ModIdx, e: ExprId) -> Option<Sym> {
        let ir = &self.program.get(module).ir;
        let name = match ir.expr(e) {
            Expr::Attr { name, .. } => name,
            Expr::Var(_) => ir.variable_of(e)?,
            _ => self.key_of(module, None, e)?,
        };
        speaks_of_devices(name.as_str()).then_some(name)
    }

    /// The key `"use_gpu"` of `conf["use_gpu"]` or `conf.get("use_gpu")`. The key may also come from the function's
    /// caller.
    fn key_of(&self, module: ModIdx, frame: Option<FrameId>, e: ExprId) -> Option<Sym> {
        let ir = &self.program.get(module).ir;
        let key = match ir.expr(e) {
            Expr::Index { index, .. } => index,
            Expr::Call(call) => {
                let call = ir.call(call);
                let get = matches!(ir.expr(call.func), Expr::Attr { name, .. } if name.as_str() == "get");
                call.args.first().filter(|_| get)?.value
            }
            _ => return None,
        };
        match ir.expr(key) {
            Expr::Str(key) => Some(key),
            Expr::Var(var) => {
                let frame = frame.filter(|f| self.frames[f.0 as usize].module == module)?;
                let given = self.given_by_caller(Written { module, frame: Some(frame), e: key }, var)?;
                match self.program.get(given.module).ir.expr(given.e) {
                    Expr::Str(key) => Some(key),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Whether the value comes from a library call without arguments, such as `current_device_index()`. The user cannot
    /// set it.
    fn is_answered_elsewhere(&self, outer: OuterId) -> bool {
        let OuterKey::Result { module, expr, .. } = self.t.get_outer(outer).key else {
            return false;
        };
        let ir = &self.program.get(module).ir;
        let Expr::Call(call) = ir.expr(expr) else { return false };
        let call = ir.call(call);
        let external = || matches!(self.program.resolve_expr(module, call.func), Some(Resolved::External(_)));
        call.args.is_empty() && external()
    }

    /// Whether the test asks for a default: `mask is None` for a parameter with the default `None`, which holds if the
    /// caller omits it. Also `conv.bias is None`, for a layer that was made without a bias.
    fn asks_for_default(&self, test: Test, outer: OuterId) -> bool {
        let Test::Compare(0, _, Value::None) = test else { return false };
        match self.t.get_outer(outer).key {
            OuterKey::Param { module, func, index } => {
                let ir = &self.program.get(module).ir;
                let param = ir.function(func).params.get(usize::from(index));
                param.and_then(|p| p.default).is_some_and(|d| ir.expr(d) == Expr::None)
            }
            OuterKey::Attr { base, name } => {
                OPTIONAL_IN_LAYERS.has(name.as_str()) && self.t.get_outer(base).varies
            }
            _ => false,
        }
    }

    /// The name of a flag: for `conf["use_gpu"]`, with its key.
    fn flag_name(&self, outer: OuterId) -> String {
        let known = self.t.get_outer(outer);
        match known.key {
            OuterKey::Item { key: Some(Value::Str(key, _)), .. } => {
                let base = known.text.strip_suffix("[…]").unwrap_or("…");
                format!("{base}[\"{key}\"]")
            }
            OuterKey::Result { module, expr, frame, .. }
                if known.text.is_empty() || known.text == "get()" =>
            {
                self.key_of(module, Some(frame), expr)
                    .map_or(known.text.clone(), |key| format!("…[\"{key}\"]"))
            }
            // `strtobool(options["use_cuda"])`: the same flag in another form.
            OuterKey::Result { module, expr, .. } if !speaks_of_devices(&known.text) => {
                match self.converted_by(module, expr) {
                    Some(name) => format!("{}({name})", known.text.trim_end_matches("()")),
                    None => known.text.clone(),
                }
            }
            _ => known.text.clone(),
        }
    }

    /// Whether the annotation shows that a caller that passes a value has the device:
    /// `stream: torch.cuda.Stream | None`.
    pub(crate) fn annotated_for_devices(&self, o: OuterId) -> bool {
        let OuterKey::Param { module, func, index } = self.t.get_outer(o).key else {
            return false;
        };
        let ir = &self.program.get(module).ir;
        let param = ir.function(func).params.get(usize::from(index));
        param.and_then(|p| p.annotation).is_some_and(|a| names_device_object(ir, a))
    }
}

/// The outcome of a test on an option with its default value.
pub(crate) fn by_default(test: Test, default: Value) -> Option<bool> {
    match (test, default) {
        (Test::Truth(_), Value::Bool(c)) if c == TRUE || c == FALSE => Some(c == TRUE),
        (Test::Truth(_), Value::Int(n)) => Some(n != 0),
        (Test::Truth(_), Value::Str(s, _)) => Some(!s.as_str().is_empty()),
        (Test::Truth(_), Value::None) => Some(false),
        (Test::Compare(0, _, Value::Str(a, _)), Value::Str(b, _)) => Some(a == b),
        (Test::Compare(0, _, Value::Int(a)), Value::Int(b)) => Some(a == b),
        (Test::Compare(op, _, Value::Int(limit)), Value::Int(n)) => ordered(op, n, limit),
        (Test::Compare(0, _, Value::None), v) => match v {
            Value::None => Some(true),
            Value::Int(_) | Value::Str(..) | Value::Bool(_) => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// Whether an annotation names a stream, event or graph of an accelerator.
pub(crate) fn names_device_object(ir: &Module, e: ExprId) -> bool {
    match ir.expr(e) {
        Expr::Attr { base, name } => DEVICE_OBJECTS.has(name.as_str()) || names_device_object(ir, base),
        Expr::Index { index, .. } => names_device_object(ir, index),
        Expr::Tuple(list) => ir.list(list).iter().any(|&x| names_device_object(ir, x)),
        Expr::Binary { left, right, .. } => names_device_object(ir, left) || names_device_object(ir, right),
        _ => false,
    }
}

/// Whether the path is a variable of another library whose name refers to devices. PyTorch's own names are excluded,
/// because their meaning is known.
pub(super) fn is_flag(path: Sym) -> bool {
    let (owner, name) = path.as_str().rsplit_once('.').unwrap_or_default();
    !owner.is_empty() && owner != "builtins" && !owner.starts_with("torch") && speaks_of_devices(name)
}

/// Whether the comparison with this number separates negative numbers from the others.
fn is_below_all(ir: &Module, op: CmpOp, e: ExprId) -> bool {
    match ir.expr(e) {
        Expr::Unary { op: UnaryOp::Neg, operand } => {
            matches!(ir.expr(operand), Expr::Int(Whole(1))) && !matches!(op, CmpOp::GtE | CmpOp::Lt)
        }
        Expr::Int(Whole(-1)) => !matches!(op, CmpOp::GtE | CmpOp::Lt),
        Expr::Int(Whole(0)) => matches!(op, CmpOp::GtE | CmpOp::Lt),
        _ => false,
    }
}
