//! SD210 ignored-device-parameter: a method takes a device, and moves tensors to the device of its object.

use super::IGNORES_CALLER;
use crate::finding::Finding;
use crate::flow::argument;
use crate::ir::{
    ArgKind, Block, Call, ClassId, Expr, ExprId, FuncId, Function, Module, Param, Slot, Stmt, Var,
};
use crate::link::{ClassKey, ModIdx, Resolved};
use crate::rules::shared::code::quotable;
use crate::rules::shared::file::File;
use crate::rules::shared::offloading::{EXECUTION, offloads, says_order};
use crate::span::Span;
use crate::sym::Sym;
use crate::torch;
use crate::words::Words;

static ABOUT_DEVICE: Words = Words::of("methods about the own device");

/// `x.to(self.device)` in a method with a parameter `device`.
pub(super) fn goes_to_own(file: &File<'_>, function: &Function, param: &Param) -> Option<Finding> {
    let receiver = function.params.first().filter(|p| p.name.as_str() == "self")?.slot;
    if param.name.as_str() != "device" || function.name.as_str() == "__init__" {
        return None;
    }
    let mut look = Look { file, function, receiver, device: param.slot, kept: Vec::new() };
    if look.is_given_own(param) {
        return None;
    }
    if let Some(getter) = look.property() {
        // `self.device` is the device of the object's tensors. A tensor that meets them must go there, whatever the caller passes.
        if look.gives_place_of_parts(getter) {
            return None;
        }
        look.kept = look.kept_by(getter);
    }
    let statements: Vec<(&Stmt, Span)> = look.statements().collect();
    // Before `self.device` changes to the new device, a move goes to the old one.
    let last = file
        .ir
        .block(function.body)
        .iter()
        .find(|&&s| look.takes_over(file.ir.stmt(s)) || look.has_it_taken_over(file.ir.stmt(s)));
    let until = last.map(|&s| file.ir.stmt_span(s));
    let decides = |s: &Stmt, at: Span| look.decides(s) && until != Some(at);
    if statements.iter().any(|&(s, at)| decides(s, at)) {
        return None;
    }
    // A move in a `return`, or under a test of the parameter, goes there on purpose.
    let purpose: Vec<Span> = statements
        .iter()
        .filter(|(s, _)| matches!(s, Stmt::Return(_)) || look.tests(s))
        .map(|&(_, at)| at)
        .collect();
    let at = file.inside(function).find_map(|(_, e, at)| {
        let Expr::Call(call) = e else { return None };
        let sent = look.sends_to_own(file.ir.call(call))
            && !purpose.iter().any(|p| p.contains(at))
            && until.is_none_or(|until| at.end <= until.start);
        sent.then_some(at)
    })?;
    let message = format!("`{}` takes `device`, but this goes to `self.device`", function.name);
    let found = file.parameter_finding(at, message, IGNORES_CALLER, function.name_span);
    let code = file.text_of(at).replace("self.device", "device");
    let code = quotable(code).unwrap_or_else(|| "device".to_owned());
    Some(found.help(format!("use the parameter: `{code}`")))
}

/// `x.to(self.device)` in a method of a class that runs on another device while its parts are offloaded; or `x.to(pipe.device)` in a
/// function with such an argument. The same for their parts: `x.to(self.vae.device)`. Also returns the name of the object whose device is
/// read.
pub(super) fn not_where_it_runs(file: &File<'_>, function: &Function) -> Option<(String, Finding)> {
    let name = function.name.as_str();
    if ABOUT_DEVICE.has(name) || name == EXECUTION || name.contains("offload") {
        return None;
    }
    // Most classes have no such device, and it is faster to check that first.
    let (param, name, at) = function.params.iter().find_map(|p| {
        let own = p.name.as_str() == "self" && function.class.is_some();
        if !own && p.annotation.is_none() || !is_offloaded(file, function, p) {
            return None;
        }
        let look = Look { file, function, receiver: p.slot, device: p.slot, kept: Vec::new() };
        let parts = own.then_some(function.class).flatten().map(|class| file.registered_parts(class));
        let parts = parts.unwrap_or_default();
        file.inside(function).find_map(|(_, e, at)| {
            let Expr::Call(call) = e else { return None };
            let call = file.ir.call(call);
            if look.sends_to_own(call) {
                return Some((p, p.name.to_string(), at));
            }
            let part = look.sends_to_part(call, &parts)?;
            Some((p, format!("{}.{part}", p.name), at))
        })
    })?;
    let receiver = param.name;
    let message = format!(
        "`{name}.device` is the CPU or `meta` while parts are offloaded, but they run on `{receiver}.{EXECUTION}`"
    );
    let mut finding =
        file.parameter_finding(at, message, "not the device on which the parts run", function.name_span);
    finding.related.clear();
    let there = format!("{receiver}.{EXECUTION}");
    let code = quotable(file.text_of(at).replace(&format!("{name}.device"), &there)).unwrap_or(there);
    finding.help = Some(format!("use the device on which the parts run: `{code}`"));
    Some((name, finding))
}

impl File<'_> {
    /// The parts that the constructor of a class registers by name, `self.register_modules(vae=vae)`, if the class specifies the order in
    /// which they are offloaded.
    fn registered_parts(&self, class: ClassId) -> Vec<Sym> {
        let key = ClassKey { module: self.module, class };
        if !says_order(self.ir, self.ir.class(class)) {
            return Vec::new();
        }
        let Some(init) = self.cx.program.own_method(key, Sym::new("__init__")) else { return Vec::new() };
        let span = self.ir.function(init).span;
        let registers = |call: &Call<'_>| {
            span.contains(self.ir.span(call.func))
                && matches!(self.ir.expr(call.func), Expr::Attr { name, .. } if name.as_str() == "register_modules")
        };
        let args = self.ir.calls().filter(registers).flat_map(|call| call.args);
        args.filter_map(|a| if let ArgKind::Keyword(name) = a.kind { Some(name) } else { None }).collect()
    }
}

/// Is the parameter an object whose parts are offloaded: `self`, or one with such an annotation?
fn is_offloaded(file: &File<'_>, function: &Function, param: &Param) -> bool {
    match (function.class, param.annotation) {
        (Some(class), None) => offloads(file, ClassKey { module: file.module, class }),
        (_, Some(annotation)) => match file.cx.program.resolve_expr(file.module, annotation) {
            Some(Resolved::Class(key)) => offloads(file, key),
            Some(Resolved::External(path)) => torch::base_class(path).is_some_and(|b| b.offloads),
            _ => false,
        },
        _ => false,
    }
}

/// Is it the object of the method?
fn is_receiver(ir: &Module, method: &Function, e: ExprId) -> bool {
    method.params.first().is_some_and(|p| ir.expr(e) == Expr::Var(Var::Local(p.slot)))
}

/// A method and two of its parameters.
struct Look<'a> {
    file: &'a File<'a>,
    function: &'a Function,
    receiver: Slot,
    device: Slot,
    /// The attributes that `self.device` is computed from, if it is a property.
    kept: Vec<Sym>,
}

impl<'a> Look<'a> {
    fn statements(&self) -> impl Iterator<Item = (&'a Stmt, Span)> {
        let ir = self.file.ir;
        let inside = ir.stmts_of(self.function);
        ir.stmts[inside.clone()].iter().zip(ir.stmt_spans[inside].iter().copied())
    }

    /// `self.device`
    fn is_own(&self, e: ExprId) -> bool {
        match self.file.ir.expr(e) {
            Expr::Attr { base, name } => {
                name.as_str() == "device" && self.file.ir.expr(base) == Expr::Var(Var::Local(self.receiver))
            }
            _ => false,
        }
    }

    /// Is it `self.device`, or an attribute from which that is computed?
    fn is_source(&self, e: ExprId) -> bool {
        self.is_own(e)
            || matches!(self.file.ir.expr(e), Expr::Attr { base, name }
                if self.kept.contains(&name) && self.file.ir.expr(base) == Expr::Var(Var::Local(self.receiver)))
    }

    /// The getter of `self.device`.
    fn property(&self) -> Option<(ModIdx, FuncId)> {
        let program = self.file.cx.program;
        program.class(self.class()?).mro.iter().find_map(|k| {
            let ir = &program.get(k.module).ir;
            let getter = |&&(name, f): &&(Sym, FuncId)| {
                let decorators = ir.list(ir.function(f).decorators).iter();
                let mut names = decorators.filter_map(|&d| ir.last_name(d));
                name.as_str() == "device"
                    && names.any(|n| matches!(n.as_str(), "property" | "cached_property"))
            };
            ir.class(k.class).methods.iter().find(getter).map(|&(_, f)| (k.module, f))
        })
    }

    fn class(&self) -> Option<ClassKey> {
        Some(ClassKey { module: self.file.module, class: self.function.class? })
    }

    /// Does the getter return the device of the object's tensors: `next(self.parameters()).device`, `self.net.device`?
    fn gives_place_of_parts(&self, (m, getter): (ModIdx, FuncId)) -> bool {
        let program = self.file.cx.program;
        let ir = &program.get(m).ir;
        ir.exprs[ir.exprs_of(ir.function(getter))].iter().any(|e| match *e {
            Expr::Attr { base, name } if name.as_str() == "device" => {
                !is_receiver(ir, ir.function(getter), base) && program.resolve_expr(m, base).is_none()
            }
            _ => false,
        })
    }

    /// The attributes of its object that a getter reads.
    fn kept_by(&self, (m, getter): (ModIdx, FuncId)) -> Vec<Sym> {
        let ir = &self.file.cx.program.get(m).ir;
        let function = ir.function(getter);
        let read = ir.exprs[ir.exprs_of(function)].iter().filter_map(|e| match *e {
            Expr::Attr { base, name } if is_receiver(ir, function, base) => Some(name),
            _ => None,
        });
        read.collect()
    }

    /// `super().to(device=device)`, if the base's method, or another method of the object, makes it the object's device.
    fn has_it_taken_over(&self, s: &Stmt) -> bool {
        let ir = self.file.ir;
        let (Stmt::Expr(e) | Stmt::Assign { value: e, .. }) = *s else { return false };
        let Expr::Call(call) = ir.expr(e) else { return false };
        let call = ir.call(call);
        let Expr::Attr { base, name } = ir.expr(call.func) else { return false };
        let Some(class) = self.class() else { return false };
        let above = matches!(ir.expr(base), Expr::Call(c) if ir.is_builtin(ir.call(c).func, "super"));
        let own = ir.expr(base) == Expr::Var(Var::Local(self.receiver));
        if !(above || own) || !call.args.iter().any(|a| self.is_parameter(a.value)) {
            return false;
        }
        let program = self.file.cx.program;
        let mut classes = program.class(class).mro.iter().skip(usize::from(above));
        match classes.find_map(|&k| Some((k.module, program.own_method(k, name)?))) {
            Some(method) => self.sets_device(method),
            // PyTorch's own method moves the tensors that the property may read.
            None => !self.kept.is_empty(),
        }
    }

    fn sets_device(&self, (m, f): (ModIdx, FuncId)) -> bool {
        let ir = &self.file.cx.program.get(m).ir;
        let function = ir.function(f);
        let is_it = |t: ExprId| {
            matches!(ir.expr(t), Expr::Attr { base, name }
                if is_receiver(ir, function, base) && (name.as_str() == "device" || self.kept.contains(&name)))
        };
        ir.stmts[ir.stmts_of(function)].iter().any(|s| match *s {
            Stmt::Assign { targets, .. } => ir.list(targets).iter().any(|&t| is_it(t)),
            _ => false,
        })
    }

    fn is_parameter(&self, e: ExprId) -> bool {
        self.file.ir.expr(e) == Expr::Var(Var::Local(self.device))
    }

    fn any_within(&self, around: ExprId, is: impl Fn(ExprId) -> bool) -> bool {
        let mut inside = self.file.ir.exprs_in(around);
        inside.any(|n| is(ExprId(u32::try_from(n).unwrap_or(u32::MAX))))
    }

    /// Does the statement make the two devices equal, or choose the result by the parameter?
    fn decides(&self, s: &Stmt) -> bool {
        let ir = self.file.ir;
        match *s {
            Stmt::Assign { targets, value } => {
                let targets = ir.list(targets);
                targets.iter().any(|&t| self.is_source(t))
                    || targets.iter().any(|&t| self.is_parameter(t))
                        && self.any_within(value, |e| self.is_source(e))
            }
            Stmt::If { test, then, orelse } => {
                self.asks(test) && (self.returns(then) || self.returns(orelse))
            }
            _ => false,
        }
    }

    /// `self.device = device`
    fn takes_over(&self, s: &Stmt) -> bool {
        let Stmt::Assign { targets, value } = *s else { return false };
        matches!(*self.file.ir.list(targets), [t] if self.is_source(t)) && self.is_parameter(value)
    }

    fn asks(&self, test: ExprId) -> bool {
        self.any_within(test, |e| self.is_parameter(e))
    }

    fn tests(&self, s: &Stmt) -> bool {
        matches!(*s, Stmt::If { test, .. } if self.asks(test))
    }

    fn returns(&self, block: Block) -> bool {
        let ir = self.file.ir;
        ir.block(block).iter().any(|&s| matches!(ir.stmt(s), Stmt::Return(_) | Stmt::Raise { .. }))
    }

    fn sends_to_own(&self, call: Call<'_>) -> bool {
        // `torch.cuda.current_stream(device=self.device)`: a query about a device moves nothing there.
        let asks = |path| torch::call(path).is_some_and(|fact| fact.accelerator.is_some());
        let called = self.file.cx.program.resolve_expr(self.file.module, call.func);
        if matches!(called, Some(Resolved::External(path)) if asks(path)) {
            return false;
        }
        let method = match self.file.ir.expr(call.func) {
            Expr::Attr { name, .. } => name.as_str() == "to",
            _ => false,
        };
        call.args.iter().enumerate().any(|(n, arg)| match arg.kind {
            ArgKind::Positional => n == 0 && method && self.is_own(arg.value),
            ArgKind::Keyword(name) => {
                name.as_str() == "device" && self.is_own(arg.value) || self.is_option(arg.value)
            }
            _ => false,
        })
    }

    /// The part in `x.to(self.part.device)`, `f(device=self.part.device)`.
    fn sends_to_part(&self, call: Call<'_>, parts: &[Sym]) -> Option<Sym> {
        let ir = self.file.ir;
        let to = matches!(ir.expr(call.func), Expr::Attr { name, .. } if name.as_str() == "to");
        call.args.iter().enumerate().find_map(|(n, arg)| {
            let place = match arg.kind {
                ArgKind::Positional => n == 0 && to,
                ArgKind::Keyword(name) => name.as_str() == "device",
                _ => false,
            };
            let Expr::Attr { base, name } = ir.expr(arg.value) else { return None };
            let Expr::Attr { base: owner, name: part } = ir.expr(base) else { return None };
            let own = ir.expr(owner) == Expr::Var(Var::Local(self.receiver));
            (place && name.as_str() == "device" && own && parts.contains(&part)).then_some(part)
        })
    }

    /// Does each call pass the object's own device to the method, as in `self._run(x, self.device)`? Only for private methods.
    fn is_given_own(&self, param: &Param) -> bool {
        let (ir, function) = (self.file.ir, self.function);
        if !function.is_private() {
            return false;
        }
        let index = function.params.iter().position(|p| p.slot == param.slot).unwrap_or(0);
        // The call has no argument for the object.
        let place = index.saturating_sub(1);
        let gives = |call: Call<'_>, of: ExprId| {
            argument(call, place, param.name).is_some_and(|given| match ir.expr(given) {
                Expr::Attr { base, name } => name.as_str() == "device" && ir.names_the_same(base, of),
                _ => false,
            })
        };
        let named =
            ir.exprs.iter().filter(|e| matches!(**e, Expr::Attr { name, .. } if name == function.name));
        let own = ir.calls().filter(|call| match ir.expr(call.func) {
            Expr::Attr { base, name } => name == function.name && gives(*call, base),
            _ => false,
        });
        let all = named.count();
        all > 0 && own.count() == all
    }

    /// `{"device": self.device}`
    fn is_option(&self, e: ExprId) -> bool {
        let ir = self.file.ir;
        let Expr::Dict(list) = ir.expr(e) else { return false };
        let device = |key: ExprId| matches!(ir.expr(key), Expr::Str(s) if s.as_str() == "device");
        ir.list(list).chunks(2).any(|pair| matches!(*pair, [k, v] if device(k) && self.is_own(v)))
    }
}
