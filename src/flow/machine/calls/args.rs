//! Arguments: evaluated at the call, bound to parameters.

use crate::flow::domain::diagram::TRUE;
use crate::flow::domain::store::Cell;
use crate::flow::domain::value::{Host, Outer, OuterId, OuterKey, Value};
use crate::flow::machine::Interp;
use crate::flow::query::flag_words::speaks_of_devices;
use crate::ir::{ArgKind, Call, Expr, ExprId, FuncId, Function, Param, ParamKind};
use crate::link::{ModIdx, Resolved};
use crate::span::Place;
use crate::sym::Sym;
use crate::torch::{ModuleOp, State};

/// How many dicts are tried one by one where one of them is unpacked.
const MAX_DICTS: usize = 3;

/// The evaluated arguments of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Args {
    pub(crate) positional: Vec<(Value, ExprId)>,
    pub(crate) keywords: Vec<(Sym, Value, ExprId)>,
    /// There is a `*args` or `**kwargs` whose content is not known.
    pub(crate) open: bool,
    /// There is a `**kwargs` whose content is not known.
    pub(crate) open_names: bool,
    /// One such.
    pub(crate) unnamed: Option<Value>,
    /// What each element is of the `*args` of which nobody knows how many there are.
    pub(crate) spread: Option<(Value, ExprId)>,
    /// What comes behind such a `*args`, nobody knows at which position.
    pub(crate) behind: Vec<(Value, ExprId)>,
    /// A `**kwargs` that is one of several dicts, which are known.
    pub(crate) either: Option<(Value, ExprId)>,
}

impl Args {
    /// The argument at a position or by keyword.
    pub(crate) fn get(&self, position: usize, name: &str) -> Option<(Value, ExprId)> {
        self.keyword(name).or_else(|| self.positional.get(position).copied())
    }

    /// Just this argument, by position.
    pub(crate) fn only(&self, position: usize, name: &str) -> Self {
        Self { positional: self.get(position, name).into_iter().collect(), ..Self::default() }
    }

    /// The same with `v` for this argument, if it is given.
    pub(crate) fn with(&self, position: usize, name: &str, v: Value) -> Self {
        let mut args = self.clone();
        let keyword = args.keywords.iter_mut().find(|(n, ..)| n.as_str() == name).map(|(_, v, _)| v);
        if let Some(place) = keyword.or_else(|| args.positional.get_mut(position).map(|(v, _)| v)) {
            *place = v;
        }
        args
    }

    /// The argument by keyword.
    pub(crate) fn keyword(&self, name: &str) -> Option<(Value, ExprId)> {
        self.keywords.iter().find(|(n, ..)| n.as_str() == name).map(|&(_, v, e)| (v, e))
    }

    /// Names and values come that nobody here knows.
    const fn open_keywords(&mut self) {
        self.open = true;
        self.open_names = true;
    }

    /// Puts `v` in the place of one of the [`Args::values`].
    pub(crate) fn replace(&mut self, n: usize, v: Value) {
        let positional = self.positional.iter_mut().map(|(v, _)| v);
        let keywords = self.keywords.iter_mut().map(|(_, v, _)| v);
        let mut all = positional.chain(keywords).chain(self.behind.iter_mut().map(|(v, _)| v));
        if let Some(place) = all.nth(n) {
            *place = v;
        }
    }

    /// All values.
    pub(crate) fn values(&self) -> impl Iterator<Item = (Value, ExprId)> + '_ {
        let keywords = self.keywords.iter().map(|&(_, v, e)| (v, e));
        self.positional.iter().copied().chain(keywords).chain(self.behind.iter().copied())
    }
}

/// Does a parameter or attribute of this name hold a device?
pub(crate) fn names_device(name: &str) -> bool {
    // Nearly none does.
    let may = |w: &[u8]| w.eq_ignore_ascii_case(b"dev") || w.eq_ignore_ascii_case(b"map");
    if !name.as_bytes().windows(3).any(may) {
        return false;
    }
    let name = name.to_ascii_lowercase();
    let name = name.rsplit('.').next().unwrap_or(&name);
    name.contains("device")
        && !name.contains("device_map")
        && !name.contains("devices")
        && !name.contains("device_count")
        && !name.contains("device_id")
        || matches!(name, "dev" | "map_location")
}

impl Interp<'_> {
    pub(crate) fn arguments(&mut self, call: Call<'_>) -> Args {
        let mut args = Args { positional: Vec::with_capacity(call.args.len()), ..Args::default() };
        for arg in call.args {
            let v = self.eval(arg.value);
            match arg.kind {
                ArgKind::Positional if args.spread.is_some() => args.behind.push((v, arg.value)),
                ArgKind::Positional => args.positional.push((v, arg.value)),
                ArgKind::Keyword(name) => args.keywords.push((name, v, arg.value)),
                ArgKind::Star => match self.exact_elements(v) {
                    Some(items) => args.positional.extend(items.into_iter().map(|v| (v, arg.value))),
                    None => {
                        args.open = true;
                        let one = self.each(v, &mut |i, v| i.some_element(v, arg.value));
                        args.spread = Some((one, arg.value));
                    }
                },
                ArgKind::DoubleStar if args.either.is_none() && self.is_one_of_dicts(v) => {
                    args.either = Some((v, arg.value));
                }
                ArgKind::DoubleStar => self.add_named(&mut args, v, arg.value),
            }
        }
        args
    }

    /// `**v`
    fn add_named(&self, args: &mut Args, v: Value, at: ExprId) {
        let Some(items) = self.dict_items(v) else {
            args.unnamed = Some(v);
            return args.open_keywords();
        };
        for pair in items.chunks(2) {
            match pair {
                &[Value::Str(k, _), v] => args.keywords.push((k, v, at)),
                _ => args.open_keywords(),
            }
        }
    }

    /// `{"device": device} if on_device else {}`
    fn is_one_of_dicts(&self, v: Value) -> bool {
        let Value::Choice(d) = v else { return false };
        let mut leaves = Vec::new();
        self.d.leaves(d, &mut leaves);
        leaves.len() <= MAX_DICTS
            && leaves.iter().all(|&leaf| self.dict_items(*self.t.values.get(leaf)).is_some())
    }

    /// Calls `f` with the arguments, with each of the dicts in turn where one of several is unpacked. What is itself one
    /// of several goes with one of the dicts, nobody remembers with which.
    pub(crate) fn with_either(
        &mut self,
        f: Value,
        args: &Args,
        called: &mut dyn FnMut(&mut Self, &Args) -> Value,
    ) -> Value {
        let Some((dicts, at)) = args.either else { return called(self, args) };
        if matches!(f, Value::Choice(_)) {
            let mut args = Args { either: None, ..args.clone() };
            args.open_keywords();
            return called(self, &args);
        }
        self.each(dicts, &mut |i, dict| {
            let mut args = Args { either: None, ..args.clone() };
            i.add_named(&mut args, dict, at);
            called(i, &args)
        })
    }

    /// Puts the arguments into the slots of a new activation. `base` is its first cell.
    pub(crate) fn bind(
        &mut self,
        module: ModIdx,
        func: FuncId,
        base: Cell,
        receiver: Option<Value>,
        args: &Args,
        site: Option<Place>,
    ) {
        let function = self.program.get(module).ir.function(func);
        let mut positional: Vec<Value> = Vec::with_capacity(args.positional.len() + 1);
        positional.extend(receiver);
        positional.extend(args.positional.iter().map(|&(v, _)| v));
        let mut next = 0;
        for param in &function.params {
            let v = match param.kind {
                ParamKind::Star => {
                    let rest: Vec<Value> = positional.get(next..).unwrap_or(&[]).to_vec();
                    next = positional.len();
                    if args.open { self.many(Value::Unknown) } else { self.seq(&rest) }
                }
                ParamKind::DoubleStar => self.rest_keywords(function, args),
                ParamKind::KeywordOnly => self.keyword_or_default(module, func, param, args, site),
                ParamKind::PositionalOnly | ParamKind::Normal => match positional.get(next) {
                    Some(&v) => {
                        next += 1;
                        v
                    }
                    None => self.keyword_or_default(module, func, param, args, site),
                },
            };
            let cell = Cell(base.0 + u32::from(param.slot));
            self.store.set(cell, v);
        }
    }

    /// A device that a parameter has since the call says nothing of it.
    fn left_to_default(&mut self, v: Value, site: Place) -> Value {
        match v {
            Value::Str(s, origin)
                if crate::flow::models::devices::from_values::parse_device(s.as_str()).is_some() =>
            {
                Value::Str(s, self.origin(site, crate::flow::domain::value::Reason::Defaulted, origin))
            }
            Value::Device(d) => match self.d.as_leaf(d) {
                Some(leaf) => {
                    let (device, origin) = *self.t.places.get(leaf);
                    let origin = self.origin(site, crate::flow::domain::value::Reason::Defaulted, origin);
                    Value::Device(self.at(device, origin))
                }
                None => v,
            },
            v => v,
        }
    }

    fn rest_keywords(&mut self, function: &Function, args: &Args) -> Value {
        let mut flat = Vec::new();
        for &(name, v, _) in &args.keywords {
            if !function.params.iter().any(|p| p.name == name) {
                flat.extend([Value::Str(name, crate::flow::domain::value::NO_ORIGIN), v]);
            }
        }
        let content = if args.open { self.many(Value::Unknown) } else { self.seq(&flat) };
        Value::Object(self.object(
            crate::flow::machine::frame::ObjKind::Dict { module: false },
            None,
            content,
        ))
    }

    fn keyword_or_default(
        &mut self,
        module: ModIdx,
        func: FuncId,
        param: &Param,
        args: &Args,
        site: Option<Place>,
    ) -> Value {
        if let Some(&(_, v, _)) = args.keywords.iter().find(|(n, ..)| *n == param.name) {
            return v;
        }
        if !args.open
            && args.positional.is_empty()
            && args.keywords.is_empty()
            && let Some(index) = self.filled_by_decorator(module, func, param)
        {
            return self.symbolic_param(module, func, index, None);
        }
        match param.default {
            Some(e) if !args.open => {
                if let Some(&v) = self.calls.captured.get(&(module, func, param.name)) {
                    return v;
                }
                let scope = self.program.get(module).ir.function(func).parent.unwrap_or(FuncId(0));
                let v = self.eval_in(module, scope, e);
                self.is_kept_between_calls(module, e, v);
                match site.filter(|_| !self.run.symbolic) {
                    Some(site) => self.left_to_default(v, site),
                    None => v,
                }
            }
            // A switch that is given through `*args` or `**kwargs` which nobody knows: whoever filled these has decided.
            Some(e)
                if matches!(self.program.get(module).ir.expr(e), Expr::True | Expr::False)
                    && speaks_of_devices(param.name.as_str()) =>
            {
                self.passed_on(module, func, param)
            }
            // What nothing else gives is a part of the tensor that is unpacked.
            None if !args.open_names && args.behind.is_empty() => match args.spread {
                Some((v @ Value::Tensor(_), _)) => v,
                _ => Value::Unknown,
            },
            // Given so, or not at all.
            _ => Value::Unknown,
        }
    }

    /// The symbol for a parameter that is filled from what somebody else has collected.
    fn passed_on(&mut self, module: ModIdx, func: FuncId, param: &Param) -> Value {
        let params = &self.program.get(module).ir.function(func).params;
        let index = params.iter().position(|p| p.name == param.name).unwrap_or(0);
        let Value::Outer(base) = self.param(module, func, index) else { return Value::Unknown };
        // What it is called there is not what the user sets.
        let key =
            OuterKey::Item { base, key: Some(Value::Str(param.name, crate::flow::domain::value::NO_ORIGIN)) };
        let outer = Outer {
            key: key.clone(),
            text: String::new(),
            tensor: false,
            device: false,
            varies: true,
            with: None,
            default: None,
        };
        Value::Outer(self.t.outer(key, || outer))
    }

    /// The symbol for a parameter of a function that is interpreted for itself.
    pub(crate) fn param(&mut self, module: ModIdx, func: FuncId, index: usize) -> Value {
        let key = OuterKey::Param { module, func, index: u16::try_from(index).unwrap_or(u16::MAX) };
        if let Some(&id) = self.t.outer_ids.get(&key) {
            return Value::Outer(id);
        }
        let ir = &self.program.get(module).ir;
        let Some(param) = ir.function(func).params.get(index) else { return Value::Unknown };
        let annotated = u16::try_from(index).ok().and_then(|n| self.annotation_of(module, func, n));
        let tensor =
            param.documented || annotated.is_some_and(|(m, a)| says_tensor(&self.program.get(m).ir, a));
        let device =
            names_device(param.name.as_str()) || param.annotation.is_some_and(|a| says_device(ir, a));
        let text = param.name.to_string();
        let id = self.t.outer(key.clone(), || Outer {
            key,
            text,
            tensor,
            device,
            varies: true,
            with: None,
            default: None,
        });
        Value::Outer(id)
    }

    /// What a parameter holds when its function is interpreted for itself.
    pub(crate) fn symbolic_param(
        &mut self,
        module: ModIdx,
        func: FuncId,
        index: usize,
        with: Option<OuterId>,
    ) -> Value {
        let ir = &self.program.get(module).ir;
        let Some(param) = ir.function(func).params.get(index) else { return Value::Unknown };
        // `cuda_device=-1`, `gpus: int`: the number says whether there is one, and who asks about it asks for that.
        if numbers_a_device(ir, param) || counts_gpus(ir, param) {
            let v = self.param(module, func, index);
            if let Value::Outer(o) = v {
                self.evidence.size_proofs.insert(o);
            }
            return v;
        }
        // `scale=1.0`, `training=False`: numbers and switches, not tensors.
        if let Some(d) = param.default {
            match ir.expr(d) {
                Expr::Float(_) | Expr::Int(_) => return Value::Host(Host::Number),
                Expr::Unary { .. } => return Value::Host(Host::Number),
                _ => {}
            }
        }
        if let Some(a) = param.annotation {
            let plain = match plain_annotation(ir, a) {
                Some("int" | "float") => Some(Value::Host(Host::Number)),
                Some("str") if !names_device(param.name.as_str()) => Some(Value::Host(Host::Text)),
                Some("ndarray") => Some(Value::Host(Host::Array)),
                _ => None,
            };
            if let Some(v) = plain {
                // `n_gpus: int | None = None`: who gives one has decided.
                let none = param
                    .default
                    .filter(|&d| ir.expr(d) == Expr::None && speaks_of_devices(param.name.as_str()));
                return match (none, self.param(module, func, index)) {
                    (Some(at), Value::Outer(o)) => {
                        let given = self.outer_equal(o, Value::None, at);
                        self.ite(given, Value::None, v)
                    }
                    _ => v,
                };
            }
            if let Some(numbers) = self.annotated_numbers(module, a) {
                return numbers;
            }
        }
        let v = self.param(module, func, index);
        if let (Value::Outer(o), None, Some(a)) = (v, param.default, param.annotation) {
            let layer = self.says_layer(module, a);
            if layer.is_some() || says_module(ir, a) {
                return self.given_module(o, layer);
            }
        }
        if let (Value::Outer(id), Some(w)) = (v, with) {
            self.t.outers[id.0 as usize].with = Some(w);
        }
        v
    }

    /// `tuple[int, int, int]`, `list[float]`: sizes, not tensors.
    fn annotated_numbers(&mut self, module: ModIdx, annotation: ExprId) -> Option<Value> {
        let ir = &self.program.get(module).ir;
        let Expr::Index { base, index } = ir.expr(annotation) else { return None };
        let number = |e: ExprId| matches!(plain_annotation(ir, e), Some("int" | "float" | "bool"));
        let numbers = match ir.expr(index) {
            Expr::Tuple(list) => ir.list(list).to_vec(),
            _ => vec![index],
        };
        match plain_annotation(ir, base)? {
            "tuple" | "Tuple" if numbers.iter().all(|&e| number(e)) => {
                let items = vec![Value::Host(Host::Number); numbers.len()];
                Some(self.seq(&items))
            }
            "tuple" | "Tuple" | "list" | "List" | "Sequence" | "Iterable" if number(numbers[0]) => {
                Some(self.many(Value::Host(Host::Number)))
            }
            _ => None,
        }
    }

    /// `embedding: nn.Embedding`: a class of PyTorch whose modules have weights.
    fn says_layer(&self, module: ModIdx, annotation: ExprId) -> Option<&'static ModuleOp> {
        let Some(Resolved::External(path)) = self.program.resolve_expr(module, annotation) else {
            return None;
        };
        let op = crate::torch::module(path).filter(|op| op.state == State::Yes)?;
        (!op.is_container()).then_some(op)
    }

    /// An `nn.Module` that the caller gives, of a class of PyTorch perhaps: it lives where the caller wants it, until it is
    /// moved.
    fn given_module(&mut self, o: OuterId, layer: Option<&'static ModuleOp>) -> Value {
        let device =
            self.at(crate::flow::domain::value::Device::Of(o), crate::flow::domain::value::NO_ORIGIN);
        let id = self.object(
            crate::flow::machine::frame::ObjKind::ForeignModule(layer),
            None,
            Value::Device(device),
        );
        self.objects[id.0 as usize].outer = Some(o);
        Value::Object(id)
    }

    /// A value, narrowed by the annotation of the variable it is bound to.
    pub(crate) fn annotated(&mut self, v: Value, annotation: ExprId) -> Value {
        if let Value::Outer(o) = v
            && says_tensor(&self.linked().ir, annotation)
        {
            self.evidence.tensor_proofs.insert(o);
        }
        v
    }

    /// Evaluates an expression of another scope (a module's, a class body's), without reporting anything.
    pub(crate) fn eval_in(&mut self, module: ModIdx, scope: FuncId, e: ExprId) -> Value {
        if self.run.depth >= crate::flow::machine::MAX_DEPTH {
            return Value::Unknown;
        }
        let base = self.scope_base(module, scope);
        let saved = (self.frame, self.path);
        self.push_frame(module, scope, base, None);
        self.path = TRUE;
        self.run.muted += 1;
        self.run.depth += 1;
        let v = self.eval(e);
        self.run.depth -= 1;
        self.run.muted -= 1;
        (self.frame, self.path) = saved;
        v
    }
}

impl Interp<'_> {
    /// Cells for a scope that is looked into from outside: a module's own, or fresh ones.
    pub(crate) fn scope_base(&mut self, module: ModIdx, scope: FuncId) -> Cell {
        if scope == FuncId(0) {
            return self.global_cell(module, 0);
        }
        let slots = self.program.get(module).ir.function(scope).slots.len();
        self.store.alloc(slots)
    }
}

/// Is it a GPU's number, which is negative unless the caller has one?
fn numbers_a_device(ir: &crate::ir::Module, param: &crate::ir::Param) -> bool {
    let negative = |d| matches!(ir.expr(d), Expr::Unary { op: crate::ir::UnaryOp::Neg, .. });
    param.default.is_some_and(negative) && speaks_of_devices(param.name.as_str())
}

/// Is it a number of GPUs, of which there is none unless the caller has some?
fn counts_gpus(ir: &crate::ir::Module, param: &crate::ir::Param) -> bool {
    let words = || param.name.as_str().split('_');
    let several = words().any(|word| matches!(word, "gpus" | "ngpu" | "ngpus"));
    let counted =
        words().any(|word| word == "gpu") && words().any(|word| matches!(word, "n" | "num" | "count"));
    let number = match param.default {
        Some(d) => matches!(ir.expr(d), Expr::Int(crate::ir::Whole(0))),
        None => param.annotation.is_some_and(|a| plain_annotation(ir, a) == Some("int")),
    };
    number && (several || counted)
}

/// The last name of an annotation that is a plain name, a dotted name, `Optional[…]` or quoted.
fn plain_annotation(ir: &crate::ir::Module, e: ExprId) -> Option<&'static str> {
    match ir.expr(e) {
        Expr::Var(var) => var_name(ir, var),
        Expr::Attr { name, .. } => Some(name.as_str()),
        Expr::Str(s) => Some(s.as_str().rsplit('.').next().unwrap_or_default()),
        Expr::Index { base, index } if plain_annotation(ir, base) == Some("Optional") => {
            plain_annotation(ir, index)
        }
        Expr::Binary { left, right, .. } if ir.expr(right) == Expr::None => plain_annotation(ir, left),
        _ => None,
    }
}

fn var_name(ir: &crate::ir::Module, var: crate::ir::Var) -> Option<&'static str> {
    use crate::ir::Var;
    match var {
        Var::Unbound(name) => Some(name.as_str()),
        Var::Local(slot) | Var::Global(slot) => {
            ir.functions.first()?.slots.get(slot as usize).map(|s| s.as_str())
        }
        Var::Enclosing { .. } => None,
    }
}

/// Does the annotation say that the thing is some module, and never `None`?
fn says_module(ir: &crate::ir::Module, e: ExprId) -> bool {
    match ir.expr(e) {
        Expr::Var(_) | Expr::Attr { .. } | Expr::Str(_) => plain_annotation(ir, e) == Some("Module"),
        _ => false,
    }
}

/// `dv: torch.device | str`: does the annotation say that the thing may be a device?
fn says_device(ir: &crate::ir::Module, e: ExprId) -> bool {
    let mut parts = Vec::new();
    alternatives(ir, e, &mut parts);
    parts.iter().any(|&part| matches!(plain_annotation(ir, part), Some("device" | "DeviceLikeType")))
}

/// Does the annotation say that the thing is a tensor, and never `None`?
pub(crate) fn says_tensor_alone(ir: &crate::ir::Module, e: ExprId) -> bool {
    let one = matches!(ir.expr(e), Expr::Var(_) | Expr::Attr { .. } | Expr::Str(_));
    (one || says_shape(ir, e)) && says_tensor(ir, e)
}

/// Does the annotation say that the thing is a tensor, if it is anything that lives on a device? Numbers and arrays do not.
pub(crate) fn says_tensor(ir: &crate::ir::Module, e: ExprId) -> bool {
    says_tensor_apart_from(ir, e, &[])
}

/// The same of what is none of these classes, by their names: `str | Tensor` of what is no `str`.
pub(crate) fn says_tensor_apart_from(ir: &crate::ir::Module, e: ExprId, others: &[&str]) -> bool {
    let mut parts = Vec::new();
    alternatives(ir, e, &mut parts);
    if let [only] = *parts {
        return says_one_tensor(ir, only);
    }
    let other = |p: ExprId| {
        let name = match ir.expr(p) {
            Expr::Index { base, .. } => plain_annotation(ir, base),
            _ => plain_annotation(ir, p),
        };
        name.is_some_and(|name| others.iter().any(|o| o.eq_ignore_ascii_case(name)))
    };
    let plain = |p: ExprId| {
        ir.expr(p) == Expr::None || matches!(plain_annotation(ir, p), Some("int" | "float" | "ndarray"))
    };
    parts.iter().any(|&p| says_one_tensor(ir, p))
        && parts.iter().all(|&p| plain(p) || other(p) || says_one_tensor(ir, p))
}

/// The parts of a union, and of unions in it.
fn alternatives(ir: &crate::ir::Module, e: ExprId, parts: &mut Vec<ExprId>) {
    match ir.expr(e) {
        Expr::Index { base, index } if plain_annotation(ir, base) == Some("Union") => match ir.expr(index) {
            Expr::Tuple(list) => ir.list(list).iter().for_each(|&p| alternatives(ir, p, parts)),
            _ => alternatives(ir, index, parts),
        },
        Expr::Binary { op: crate::ir::BinOp::BitOr, left, right } => {
            alternatives(ir, left, parts);
            alternatives(ir, right, parts);
        }
        _ => parts.push(e),
    }
}

fn says_one_tensor(ir: &crate::ir::Module, e: ExprId) -> bool {
    match ir.expr(e) {
        Expr::Index { base, index } if plain_annotation(ir, base) == Some("Optional") => {
            says_tensor(ir, index)
        }
        _ => names_tensor(ir, e) || says_shape(ir, e),
    }
}

/// `Float[Tensor, "batch width"]`, as jaxtyping has it: a tensor with its type and shape.
fn says_shape(ir: &crate::ir::Module, e: ExprId) -> bool {
    const TYPED: &[&str] = &[
        "Float", "Float16", "Float32", "Float64", "BFloat16", "Int", "Int8", "Int16", "Int32", "Int64",
        "UInt", "UInt8", "Integer", "Bool", "Num", "Real", "Inexact", "Complex", "Shaped",
    ];
    let Expr::Index { base, index } = ir.expr(e) else { return false };
    let Expr::Tuple(list) = ir.expr(index) else { return false };
    plain_annotation(ir, base).is_some_and(|name| TYPED.contains(&name))
        && ir.list(list).first().is_some_and(|&array| names_tensor(ir, array))
}

/// `weights: list[float] | None`: does the annotation say that the thing is a list or tuple, if it is anything?
pub(crate) fn says_list(ir: &crate::ir::Module, e: ExprId) -> bool {
    let mut parts = Vec::new();
    alternatives(ir, e, &mut parts);
    parts.retain(|&p| ir.expr(p) != Expr::None);
    let listed = |&p: &ExprId| {
        let name = match ir.expr(p) {
            Expr::Index { base, index } if plain_annotation(ir, base) == Some("Optional") => {
                return says_list(ir, index);
            }
            Expr::Index { base, .. } => plain_annotation(ir, base),
            _ => plain_annotation(ir, p),
        };
        matches!(name, Some("list" | "List" | "tuple" | "Tuple" | "Sequence"))
    };
    !parts.is_empty() && parts.iter().all(listed)
}

/// `list[Tensor]`, `tuple[Tensor, ...]`, `Sequence[Tensor]`: does the annotation say that each item is a tensor?
pub(crate) fn says_tensors(ir: &crate::ir::Module, e: ExprId) -> bool {
    let Expr::Index { base, index } = ir.expr(e) else { return false };
    let items = match ir.expr(index) {
        Expr::Tuple(list) => ir.list(list).to_vec(),
        _ => vec![index],
    };
    match plain_annotation(ir, base) {
        Some("Optional") => says_tensors(ir, index),
        Some("list" | "List" | "tuple" | "Tuple" | "Sequence" | "Iterable") => {
            let rest = |&e: &ExprId| matches!(ir.expr(e), Expr::Ellipsis);
            says_tensor_alone(ir, items[0]) && items.iter().all(|e| rest(e) || says_tensor_alone(ir, *e))
        }
        _ => false,
    }
}

/// `dict[str, Tensor]`, `Mapping[str, Tensor]`: does the annotation say that each value is a tensor?
pub(crate) fn says_mapping_to_tensors(ir: &crate::ir::Module, e: ExprId) -> bool {
    let Expr::Index { base, index } = ir.expr(e) else { return false };
    match (plain_annotation(ir, base), ir.expr(index)) {
        (Some("Optional"), _) => says_mapping_to_tensors(ir, index),
        (Some("dict" | "Dict" | "Mapping" | "MutableMapping" | "OrderedDict"), Expr::Tuple(list)) => {
            matches!(*ir.list(list), [_, value] if says_tensor_alone(ir, value))
        }
        _ => false,
    }
}

fn names_tensor(ir: &crate::ir::Module, e: ExprId) -> bool {
    plain_annotation(ir, e).is_some_and(|n| {
        matches!(
            n,
            "Tensor"
                | "FloatTensor"
                | "LongTensor"
                | "BoolTensor"
                | "IntTensor"
                | "HalfTensor"
                | "ByteTensor"
        )
    })
}
