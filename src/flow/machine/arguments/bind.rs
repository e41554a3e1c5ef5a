//! Binds arguments to parameters, and gives symbols to parameters without an argument.

use crate::flow::domain::diagram::TRUE;
use crate::flow::domain::store::Cell;
use crate::flow::domain::value::{Host, Outer, OuterId, OuterKey, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::annotations::{plain_annotation, says_device, says_module, says_tensor};
use crate::flow::machine::arguments::args::{Args, names_device};
use crate::flow::query::flag_words::speaks_of_devices;
use crate::ir::{Expr, ExprId, FuncId, Function, Param, ParamKind};
use crate::link::ModIdx;
use crate::span::Place;
use crate::torch::ModuleOp;
use crate::words::Words;

static SEVERAL_GPUS: Words = Words::of("numbers of GPUs");
static COUNT: Words = Words::of("count something");

impl Interp<'_> {
    /// Stores the arguments in the slots of a new activation, whose first cell is `base`.
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

    /// Adds an origin to a device that a parameter has by default: the call at `site` does not give it.
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
            // A flag that may come from an unknown `*args` or `**kwargs`: the code that filled these decides it.
            Some(e)
                if matches!(self.program.get(module).ir.expr(e), Expr::True | Expr::False)
                    && speaks_of_devices(param.name.as_str()) =>
            {
                self.passed_on(module, func, param)
            }
            // A parameter without other argument gets an element of the unpacked tensor.
            None if !args.open_names && args.behind.is_empty() => match args.spread {
                Some((v @ Value::Tensor(_), _)) => v,
                _ => Value::Unknown,
            },
            // The parameter comes from `*args` or `**kwargs`, or has its default.
            _ => Value::Unknown,
        }
    }

    /// The symbol for a parameter that comes from an unknown `*args` or `**kwargs`.
    fn passed_on(&mut self, module: ModIdx, func: FuncId, param: &Param) -> Value {
        let params = &self.program.get(module).ir.function(func).params;
        let index = params.iter().position(|p| p.name == param.name).unwrap_or(0);
        let Value::Outer(base) = self.param(module, func, index) else { return Value::Unknown };
        // The parameter's name is not an option that the user sets, so the symbol has no text.
        let key =
            OuterKey::Item { base, key: Some(Value::Str(param.name, crate::flow::domain::value::NO_ORIGIN)) };
        let outer = Outer { varies: true, ..Outer::new(key.clone(), String::new()) };
        Value::Outer(self.t.outer(key, || outer))
    }

    /// The symbol for a parameter of a symbolic function.
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
        let id =
            self.t.outer(key.clone(), || Outer { tensor, device, varies: true, ..Outer::new(key, text) });
        Value::Outer(id)
    }

    /// The value of a parameter of a symbolic function.
    pub(crate) fn symbolic_param(
        &mut self,
        module: ModIdx,
        func: FuncId,
        index: usize,
        with: Option<OuterId>,
    ) -> Value {
        let ir = &self.program.get(module).ir;
        let Some(param) = ir.function(func).params.get(index) else { return Value::Unknown };
        // `cuda_device=-1`, `gpus: int`: the number says whether there is a GPU. A test of it is a test for a GPU.
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
                // `n_gpus: int | None = None`: a caller that passes a number has decided.
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

    /// An `nn.Module` that the caller passes, perhaps of a class of PyTorch. The caller decides its device, until the
    /// function moves it.
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

    /// Evaluates an expression of another scope, such as a module or class body, without reporting events.
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

    /// Cells for a scope that is evaluated from outside: a module's own, or new ones.
    pub(crate) fn scope_base(&mut self, module: ModIdx, scope: FuncId) -> Cell {
        if scope == FuncId(0) {
            return self.global_cell(module, 0);
        }
        let slots = self.program.get(module).ir.function(scope).slots.len();
        self.store.alloc(slots)
    }
}

/// Whether the parameter is a GPU's index that is negative by default.
fn numbers_a_device(ir: &crate::ir::Module, param: &crate::ir::Param) -> bool {
    let negative = |d| matches!(ir.expr(d), Expr::Unary { op: crate::ir::UnaryOp::Neg, .. });
    param.default.is_some_and(negative) && speaks_of_devices(param.name.as_str())
}

/// Whether the parameter is a number of GPUs that is 0 by default.
fn counts_gpus(ir: &crate::ir::Module, param: &crate::ir::Param) -> bool {
    let words = || param.name.as_str().split('_');
    let several = words().any(|word| SEVERAL_GPUS.has(word));
    let counted = words().any(|word| word == "gpu") && words().any(|word| COUNT.has(word));
    let number = match param.default {
        Some(d) => matches!(ir.expr(d), Expr::Int(crate::ir::Whole(0))),
        None => param.annotation.is_some_and(|a| plain_annotation(ir, a) == Some("int")),
    };
    number && (several || counted)
}
