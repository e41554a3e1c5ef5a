//! SD210: a function is given a device and does not use it.

mod again;
mod astray;
mod built;
mod checked;
mod drawn;
mod dropped;
mod effect;
mod first;
mod flagged;
mod left;
mod loaders;
mod mixed;
mod none_given;
mod overridden;
mod own;
mod parts;
mod prepared;
mod registered;
mod sent_on;

use super::Context;
use super::file::File;
use crate::finding::{Code, Finding, Label};
use crate::ir::{
    ArgKind, Call, Expr, ExprId, FuncId, FuncKind, Function, IfElse, Param, ParamKind, Stmt, StmtId, Var,
    Whole,
};
use crate::link::{ClassKey, Resolved};
use crate::span::{Place, Span};
use crate::sym::Sym;
use crate::torch;
use crate::world::World;

/// SD210 ignored-device-parameter
pub(super) fn ignored(cx: &Context<'_>) -> Vec<Finding> {
    // Tests make things on the CPU on purpose, to see that they move.
    if super::in_tests(Place { file: cx.file, span: Span::default() }, cx) {
        return Vec::new();
    }
    let Some(file) = File::of(cx) else { return Vec::new() };
    // Names are compared by number: every parameter and variable of every function is looked at.
    let [device, location, named] = ["device", "map_location", "torch_device"].map(Sym::new);
    let objects_have_one = file.ir.has_attribute(device);
    let (mut found, mut asked) = (Vec::new(), Vec::new());
    for (n, function) in file.ir.functions.iter().enumerate() {
        if function.kind != FuncKind::Function {
            continue;
        }
        found.extend(drawn::with_given(&file, function));
        found.extend(overridden::to_current_gpu(&file, function));
        found.extend(parts::without_it(&file, function));
        found.extend(flagged::not_handed_on(&file, function));
        if objects_have_one && let Some(own) = own::not_where_it_runs(&file, function) {
            let (owner, finding) = own;
            let function = FuncId(u32::try_from(n).unwrap_or(u32::MAX));
            asked.push(first::Asked { function, owner, finding });
            continue;
        }
        // What takes any keyword takes this one for company.
        let any = function.params.iter().any(|p| p.kind == ParamKind::DoubleStar);
        for param in &function.params {
            if param.name == named {
                found.extend(file.overwritten(function, param));
            }
            if param.name != device && param.name != location {
                continue;
            }
            found.extend(astray::to_another(&file, function, param));
            if let Some(own) = own::goes_to_own(&file, function, param) {
                found.push(own);
                continue;
            }
            if let Some(overwritten) = file.overwritten(function, param) {
                found.push(overwritten);
                continue;
            }
            if let Some(lost) = dropped::lost(&file, function, param) {
                found.push(lost);
                continue;
            }
            let built = || built::left_where_made(&file, function, param);
            let left = || file.not_passed_on(function, param);
            if file.mentions(function, param.slot) {
                found.extend(left().or_else(built));
            } else if !any && file.is_interface(function) {
                let loaded = file.loaded_elsewhere(function, param.name);
                // What a base or a framework asks for need not be handed on, but what registers loads for somebody.
                let hands_on = param.name == location && function.class.is_none();
                found.extend(loaded.or_else(|| hands_on.then(left)?));
            } else if !any {
                found.extend(file.made_elsewhere(function, param.name).or_else(built).or_else(left));
            }
        }
        found.extend(file.own_not_passed_on(function, device));
        found.extend(again::without_its_device(&file, function, device));
    }
    found.extend(first::told(&file, asked));
    found
}

/// A device that a function has at hand.
struct Given {
    /// Its variable.
    slot: u16,
    /// The name of the parameter that others take for it.
    name: Sym,
    /// Where it comes from, and in words.
    at: Span,
    told: &'static str,
    /// The function has chosen it for itself.
    own: bool,
}

/// A load is a matter of its own, whatever was given.
const LOADED: &str = "this is loaded to where it was saved from";

impl File<'_> {
    pub(super) fn inside(&self, function: &Function) -> impl Iterator<Item = (usize, Expr, Span)> {
        let body = function.exprs.start as usize..function.exprs.end as usize;
        let exprs = body.clone().zip(&self.ir.exprs[body.clone()]).zip(&self.ir.expr_spans[body]);
        exprs.map(|((n, e), at)| (n, *e, *at))
    }

    /// Is the parameter mentioned in the body, or may it be used without its name?
    fn mentions(&self, function: &Function, slot: u16) -> bool {
        self.inside(function).any(|(_, e, _)| match e {
            Expr::Var(Var::Local(s)) => s == slot,
            Expr::Var(Var::Enclosing { slot: s, .. }) => s == slot,
            Expr::Var(Var::Unbound(n)) => matches!(n.as_str(), "locals" | "super" | "__class__"),
            _ => false,
        })
    }

    /// `device = torch.device("cuda" if … else "cpu")` before anybody has looked at the parameter.
    fn overwritten(&self, function: &Function, param: &Param) -> Option<Finding> {
        let own = Var::Local(param.slot);
        let sets = |&s: &StmtId| match *self.ir.stmt(s) {
            Stmt::Assign { targets, value } if matches!(*self.ir.list(targets), [t] if self.ir.expr(t) == Expr::Var(own)) => {
                Some((s, value))
            }
            _ => None,
        };
        let (stmt, value) = self.ir.block(function.body).iter().find_map(sets)?;
        let at = self.ir.stmt_span(stmt);
        let looked_at = self.inside(function).any(|(_, e, x)| match e {
            Expr::Var(v) if v == own => x.start < at.start || self.ir.span(value).contains(x),
            Expr::Var(Var::Unbound(n)) => matches!(n.as_str(), "locals"),
            _ => false,
        });
        if looked_at || !self.chooses_device(value) || self.is_from_base(function) {
            return None;
        }
        let message = format!(
            "`{}` is given `{}` and overwrites it without having looked at it",
            function.name, param.name
        );
        Some(self.parameter_finding(at, message, "whatever the caller wants", function.name_span))
    }

    /// `"cuda"`, `torch.device(…)`, or one of two such.
    pub(super) fn chooses_device(&self, e: ExprId) -> bool {
        match self.ir.expr(e) {
            Expr::Str(s) => matches!(s.as_str(), "cpu" | "cuda" | "cuda:0" | "mps"),
            Expr::IfElse(id) => {
                let IfElse { then, orelse, .. } = self.ir.if_else(id);
                self.chooses_device(then) && self.chooses_device(orelse)
            }
            Expr::Call(c) => matches!(self.cx.program.resolve_expr(self.module, self.ir.call(c).func),
                Some(Resolved::External(p)) if p.as_str() == "torch.device"),
            _ => false,
        }
    }

    /// A method that others define as well has its parameters from them; a stub uses none.
    fn is_interface(&self, function: &Function) -> bool {
        if function.decorators.len > 0 && self.ir.list(function.decorators).iter().any(|&d| self.overrides(d))
        {
            return true;
        }
        let Some(class) = function.class else { return false };
        let key = ClassKey { module: self.module, class };
        let info = self.cx.program.class(key);
        let plain = info.mro.len() == 1
            && !info.unknown_base
            && info
                .externals
                .iter()
                .all(|p| p.as_str() == "torch.nn.Module" || p.as_str().starts_with("builtins."));
        !plain
    }

    /// Has the method its parameters from a base, as far as anybody sees? Who sets one over has no use for what another class of
    /// the kind is asked for; one that a base names may have to be there.
    fn is_from_base(&self, function: &Function) -> bool {
        let Some(class) = function.class.filter(|_| self.is_interface(function)) else {
            return self.is_interface(function);
        };
        let (program, key) = (self.cx.program, ClassKey { module: self.module, class });
        let info = program.class(key);
        let known = |p: &Sym| p.as_str() == "torch.nn.Module" || p.as_str().starts_with("builtins.");
        let decorated = self.ir.list(function.decorators).iter().any(|&d| self.overrides(d));
        decorated
            || info.unknown_base
            || !info.externals.iter().all(known)
            || info.mro.iter().any(|&base| base != key && program.own_method(base, function.name).is_some())
    }

    fn overrides(&self, decorator: ExprId) -> bool {
        let name = match self.ir.expr(decorator) {
            Expr::Attr { name, .. } | Expr::Var(Var::Unbound(name)) => Some(name),
            // `@torch.no_grad()`
            Expr::Call(c) => match self.cx.program.resolve_expr(self.module, self.ir.call(c).func) {
                Some(Resolved::External(p)) => Some(p),
                _ => return true,
            },
            Expr::Var(_) => match self.cx.program.resolve_expr(self.module, decorator) {
                Some(Resolved::External(p)) => Some(p),
                _ => return true,
            },
            _ => return true,
        };
        name.is_none_or(|n| !n.as_str().ends_with("no_grad") && !n.as_str().ends_with("staticmethod"))
    }

    /// What the function loads somewhere else. A method that has its parameters from others need not make or move anything,
    /// but what it loads belongs there.
    fn loaded_elsewhere(&self, function: &Function, param: Sym) -> Option<Finding> {
        self.made_elsewhere(function, param).filter(|finding| finding.code == Code(105))
    }

    /// What the function makes, loads or moves somewhere else.
    fn made_elsewhere(&self, function: &Function, param: Sym) -> Option<Finding> {
        let (call, what) = self.inside(function).find_map(|(_, e, at)| {
            let Expr::Call(c) = e else { return None };
            self.elsewhere(self.ir.call(c), param)
                .filter(|_| {
                    !self.stays_on_host(c, at) && !self.is_sent_on(at) && !self.is_taken_along(function, at)
                })
                .map(|what| (at, what))
        })?;
        let message = format!("`{}` is given `{param}` and never looks at it: {what}", function.name);
        let mut finding =
            self.parameter_finding(call, message, "not where the caller wants it", function.name_span);
        if what == LOADED {
            finding.code = Code(105);
        }
        Some(finding)
    }

    /// Is the tensor empty, or asked at once for something that is no tensor?
    fn stays_on_host(&self, call: crate::ir::CallId, at: Span) -> bool {
        let empty = match self.ir.call(call).args.first().map(|a| self.ir.expr(a.value)) {
            Some(Expr::Int(Whole(0))) => true,
            Some(Expr::List(list) | Expr::Tuple(list)) => list.len == 0,
            _ => false,
        };
        empty
            || self.ir.exprs.iter().any(|e| match *e {
                Expr::Attr { base, name } => {
                    self.ir.span(base) == at
                        && matches!(
                            name.as_str(),
                            "element_size"
                                | "item"
                                | "tolist"
                                | "numpy"
                                | "numel"
                                | "is_floating_point"
                                | "dtype"
                                | "shape"
                                | "size"
                        )
                }
                _ => false,
            })
    }

    /// `torch.zeros(n).cuda()`: where it is made does not matter.
    fn is_sent_on(&self, at: Span) -> bool {
        self.ir.exprs.iter().any(|e| {
            matches!(*e, Expr::Attr { base, name } if self.ir.span(base) == at && matches!(name.as_str(), "cuda" | "to"))
        })
    }

    fn elsewhere(&self, call: Call<'_>, param: Sym) -> Option<&'static str> {
        let keyword = |name: &str| {
            call.args.iter().any(|a| match a.kind {
                ArgKind::Keyword(k) => k.as_str() == name,
                ArgKind::DoubleStar => true,
                _ => false,
            })
        };
        let literal = |e: ExprId| matches!(self.ir.expr(e), Expr::Str(s) if matches!(s.as_str(), "cpu" | "cuda" | "cuda:0"));
        if let Expr::Attr { name, .. } = self.ir.expr(call.func) {
            match name.as_str() {
                // Who chooses the current GPU has said which one that is.
                "cuda" if call.args.is_empty() && !self.ir.has_attribute(Sym::new("set_device")) => {
                    return Some("this goes to the current GPU");
                }
                "to" if call.args.len() == 1 && literal(call.args[0].value) => {
                    return Some("this goes to a device that is written down");
                }
                _ => {}
            }
        }
        let Some(Resolved::External(path)) = self.cx.program.resolve_expr(self.module, call.func) else {
            return None;
        };
        let positional = call.args.iter().filter(|a| a.kind == ArgKind::Positional).count();
        let loads = match path.as_str() {
            "torch.load" | "torch.jit.load" => positional == 1,
            // A URL, and the folder to keep it in: as a rule what is published was saved from the CPU, and a device that is never
            // looked at need not be meant for it.
            "torch.hub.load_state_dict_from_url" | "torch.utils.model_zoo.load_url" => {
                (1..=2).contains(&positional) && param.as_str() == "map_location"
            }
            _ => false,
        };
        if loads && !keyword("map_location") {
            return Some(LOADED);
        }
        let op = torch::function(path)?;
        let plain = op.kind == torch::Kind::Factory && op.accepts.device && op.honours_default;
        (param.as_str() == "device" && plain && !keyword("device") && !keyword("out"))
            .then_some("this is made on the CPU")
    }

    /// A call of a function of the project that takes a device as well, has another default, and is not given it.
    fn not_passed_on(&self, function: &Function, param: &Param) -> Option<Finding> {
        // What is rebound, or decided inside, is not the caller's any more.
        let rebound = !self.assignments(function, param.slot).is_empty();
        let at = function.name_span;
        let given = Given { slot: param.slot, name: param.name, at, told: "given a device here", own: false };
        (!rebound).then(|| self.left_out(function, &given))?
    }

    /// The same of a device that the function has chosen for itself, and gives to others: `device = args.device`.
    fn own_not_passed_on(&self, function: &Function, device: Sym) -> Option<Finding> {
        let slot = u16::try_from(function.slots.iter().position(|&name| name == device)?).ok()?;
        if function.params.iter().any(|p| p.slot == slot) {
            return None;
        }
        let &[(at, value)] = &*self.assignments(function, slot) else { return None };
        let picked = self.picks_device(value);
        let given = Given { slot, name: device, at, told: "chosen here", own: true };
        (picked && self.is_handed_out(function, slot)).then(|| self.left_out(function, &given))?
    }

    /// `args.device`, `options.pop("device")`, `torch.device(args.device)`, `pick_device(…)`, or one of two that are written
    /// down: nothing that has only one value.
    fn picks_device(&self, e: ExprId) -> bool {
        let speaks = |n: Sym| n.as_str().contains("device");
        match self.ir.expr(e) {
            Expr::Attr { name, .. } => speaks(name),
            Expr::Index { index, .. } => matches!(self.ir.expr(index), Expr::Str(s) if speaks(s)),
            Expr::Call(c) => {
                let call = self.ir.call(c);
                let first = call.args.first().map(|a| self.ir.expr(a.value));
                let named = match self.ir.expr(call.func) {
                    Expr::Attr { name, .. } => speaks(name),
                    Expr::Var(_) => self.ir.variable_of(call.func).is_some_and(speaks),
                    _ => false,
                };
                match first {
                    Some(Expr::Str(s)) => speaks(s),
                    _ => named,
                }
            }
            Expr::IfElse(_) => self.chooses_device(e),
            _ => false,
        }
    }

    /// Is the variable given to calls, as `device=device` or `x.to(device)`?
    fn is_handed_out(&self, function: &Function, slot: u16) -> bool {
        let it = |e: ExprId| self.ir.expr(e) == Expr::Var(Var::Local(slot));
        self.inside(function).any(|(_, e, _)| {
            let Expr::Call(c) = e else { return false };
            let call = self.ir.call(c);
            let to = matches!(self.ir.expr(call.func), Expr::Attr { name, .. } if name.as_str() == "to");
            call.args.iter().any(|a| match a.kind {
                ArgKind::Keyword(k) => k.as_str() == "device" && it(a.value),
                _ => to && it(a.value),
            })
        })
    }

    /// The statements of a function that assign a variable, with what they assign.
    pub(super) fn assignments(&self, function: &Function, slot: u16) -> Vec<(Span, ExprId)> {
        let body = self.ir.stmts_of(function);
        let is_it = |&t: &ExprId| self.ir.expr(t) == Expr::Var(Var::Local(slot));
        let stmts = self.ir.stmts[body.clone()].iter().zip(&self.ir.stmt_spans[body]);
        stmts
            .filter_map(|(s, &at)| match *s {
                Stmt::Assign { targets, value } if self.ir.list(targets).iter().any(is_it) => {
                    Some((at, value))
                }
                Stmt::AnnAssign { target, value: Some(value), .. } if is_it(&target) => Some((at, value)),
                _ => None,
            })
            .collect()
    }

    /// The first call that could be given the device that the function has, and is left to another default.
    fn left_out(&self, function: &Function, given: &Given) -> Option<Finding> {
        self.inside(function).filter(|(.., at)| at.start > given.at.start).find_map(|(_, e, at)| {
            let Expr::Call(c) = e else { return None };
            let call = self.ir.call(c);
            let (name, default) = self.left_to_default(function, call, given.name)?;
            // Kept on the host on purpose: whoever takes it from there sends it to the device.
            // An instance keeps its device, whatever it becomes a part of.
            let kept = self.is_own_class(function, call.func)
                || matches!(self.cx.program.resolve_expr(self.module, call.func), Some(Resolved::Class(_)));
            let later = || {
                self.comes_later(function, given.slot, at, kept)
                    || self.results_follow(function, given.slot, at, !kept)
                    || self.is_placed_later(function, at)
            };
            // What is read to the host, and given back to nobody, goes on from there by itself: a checkpoint.
            let read = || given.own && self.is_statement(at);
            let along = || {
                self.is_taken_along(function, at)
                    || self.moves_with_owner(function, call, at)
                    || self.works_for_loader(function, at)
            };
            if matches!(default.as_str(), "cpu" | "None") && (later() || read() || along()) {
                return None;
            }
            let what = given.name;
            let takes = if what.as_str() == "device" { "a device".to_owned() } else { format!("`{what}`") };
            let message = format!("`{name}` takes {takes} as well, and is left to its default, `{default}`");
            let mut found = self
                .device_finding(at, message, "the device is not passed on", (given.at, given.told))
                .help(format!("pass it on: `{what}={what}`"));
            found.part_of = self.part_of(function, call, at);
            Some(found)
        })
    }

    /// Does nobody look at what is written there?
    fn is_statement(&self, at: Span) -> bool {
        self.ir.stmts.iter().any(|s| matches!(*s, Stmt::Expr(e) if self.ir.span(e) == at))
    }

    /// The variables that an assignment to this target sets.
    pub(super) fn names_in(&self, target: ExprId) -> Vec<u16> {
        match self.ir.expr(target) {
            Expr::Var(Var::Local(s)) => vec![s],
            Expr::Tuple(list) | Expr::List(list) => {
                self.ir.list(list).iter().flat_map(|&t| self.names_in(t)).collect()
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn parameter_finding(
        &self,
        at: Span,
        message: String,
        label: &str,
        function: Span,
    ) -> Finding {
        self.device_finding(at, message, label, (function, "given a device here"))
    }

    fn device_finding(&self, at: Span, message: String, label: &str, (from, told): (Span, &str)) -> Finding {
        let place = |span| Place { file: self.cx.file, span };
        let label = Label::new(place(at), label);
        Finding::new(Code(210), World::Cuda, message, label)
            .related(place(from), told)
            .help("pass it on: `device=device`")
    }
}
