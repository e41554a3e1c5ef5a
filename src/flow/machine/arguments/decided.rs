//! Whether the visible calls decide a parameter.

use crate::flow::domain::event::{DeviceName, Event, Kind};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::callers::Parameter;
use crate::flow::models::tensors::sizes::dtype_width;
use crate::flow::project::call_arguments::handed_on;
use crate::flow::project::method_calls::through_objects;
use crate::ir::{ArgKind, Call, CallId, Expr, ExprId, FuncId, Function};
use crate::link::{ModIdx, Resolved};
use crate::words::Words;

static ABOUT_DEVICES: Words = Words::of("mention a device");
static IMPLIED: Words = Words::of("called without their names");
use rustc_hash::{FxHashMap, FxHashSet};

impl Interp<'_> {
    /// Marks the events about a function's parameters if visible calls decide these parameters.
    pub(crate) fn mark_decided(&self, events: Vec<(Event, Option<FuncId>, Option<Parameter>)>) -> Vec<Event> {
        let with_module = |event: &Event| match &event.kind {
            Kind::Mismatch { other: side, .. } | Kind::ToHost { tensor: side, .. } => {
                event.symbolic && side.device == DeviceName::WithModule
            }
            _ => false,
        };
        let rests = events.iter().any(|(event, ..)| with_module(event)) && self.modules_rest();
        let marked = events.into_iter().map(|(mut event, func, parameter)| {
            let decided = |event: &Event| {
                let own = event.stack.is_empty() || parameter.is_some_and(|(f, _)| Some(f) == func);
                own && func.is_some_and(|f| self.is_decided(f, parameter))
            };
            event.parameter = parameter.filter(|&(f, _)| Some(f) == func);
            event.callers_decide = matches!(event.kind, Kind::Mismatch { .. } | Kind::ToHost { .. })
                && !event.followed
                && if with_module(&event) { rests } else { decided(&event) };
            event
        });
        marked.collect()
    }

    /// Whether the file makes its own modules and never mentions a device. Then they stay on the CPU.
    fn modules_rest(&self) -> bool {
        let ir = &self.program.get(self.entry).ir;
        let device = |text: &str| ABOUT_DEVICES.is_part_of(text);
        let names = ir.functions.iter().flat_map(|f| f.slots.iter());
        // `.to("cpu")`, `.to(torch.float32)`
        let stays = |call: Call<'_>| {
            let cpu = |e| matches!(ir.expr(e), Expr::Str(text) if text.as_str() == "cpu");
            let dtype = |e| {
                matches!(self.program.resolve_expr(self.entry, e),
                    Some(Resolved::External(path)) if dtype_width(path.as_str()).is_some())
            };
            matches!(call.args, [only] if cpu(only.value) || dtype(only.value))
        };
        let to_cpu: FxHashSet<ExprId> =
            ir.calls().filter(|&call| stays(call)).map(|call| call.func).collect();
        let speaks = ir.exprs.iter().enumerate().any(|(n, e)| match *e {
            Expr::Attr { name, .. } if name.as_str() == "to" => {
                !to_cpu.contains(&ExprId(u32::try_from(n).unwrap_or(u32::MAX)))
            }
            Expr::Attr { name, .. } => device(name.as_str()),
            Expr::Str(text) => device(text.as_str()),
            _ => false,
        });
        if speaks || names.into_iter().any(|name| device(name.as_str())) {
            return false;
        }
        let made = ir.exprs.iter().enumerate().filter_map(|(n, e)| {
            let Expr::Call(call) = *e else { return None };
            let around = ir.function_around(ExprId(u32::try_from(n).unwrap_or(u32::MAX)));
            match self.program.resolve_expr(self.entry, ir.call(call).func) {
                Some(Resolved::Class(k))
                    if ir.function(around).class.is_none()
                        && k.module == self.entry
                        && self.is_module_class(k) =>
                {
                    Some(k)
                }
                _ => None,
            }
        });
        // A framework decides the devices of its own modules.
        let mut rests = false;
        for class in made {
            if self.is_moved_for_user(class) {
                return false;
            }
            rests = true;
        }
        rests
    }

    /// Whether visible calls decide this function's argument. A call that passes on its caller's own argument leaves it
    /// open. Any other call decides it, even if nothing is known of the argument.
    fn is_decided(&self, func: FuncId, parameter: Option<Parameter>) -> bool {
        let linked = self.program.get(self.entry);
        let sites: Vec<CallId> = self.sites(func).collect();
        if sites.is_empty() {
            return false;
        }
        let function = linked.ir.function(func);
        let Some((_, index)) = parameter.filter(|&(f, _)| f == func) else { return true };
        let derived =
            |site: &CallId| self.calls.callers.derived.get(site).is_some_and(|n| n.contains(&index));
        if function.is_private() {
            // The argument is known at the caller, unless unknown code is in between.
            return !sites.iter().all(derived);
        }
        let mut open = false;
        for site in sites {
            let handed = || handed_on(&linked.ir, linked.ir.call(site), function, usize::from(index));
            open |= match self.calls.callers.given.get(&site) {
                Some(parameters) if parameters.contains(&index) => true,
                Some(_) if derived(&site) => true,
                Some(_) => return true,
                None => handed().is_some(),
            };
        }
        !open
    }

    /// The default of a parameter that no call passes, for a private function that the file only calls and never passes
    /// on.
    pub(crate) fn left_by_all(&self, module: ModIdx, func: FuncId, index: usize) -> Option<ExprId> {
        let ir = &self.program.get(module).ir;
        let function = ir.function(func);
        let param = function.params.get(index)?;
        let default = param
            .default
            .filter(|&d| matches!(ir.expr(d), Expr::None | Expr::True | Expr::False | Expr::Str(_)))?;
        if !function.is_private() {
            return None;
        }
        let calls: Vec<Call<'_>> =
            ir.calls().filter(|c| ir.last_name(c.func) == Some(function.name)).collect();
        let named = |e: &&Expr| matches!(**e, Expr::Attr { name, .. } if name == function.name);
        let only_called = function.class.is_none() || ir.exprs.iter().filter(named).count() == calls.len();
        let bound = usize::from(function.class.is_some());
        let leaves = |call: &Call<'_>| {
            let positional = call.args.iter().filter(|a| a.kind == ArgKind::Positional).count();
            positional + bound <= index
                && call.args.iter().all(|a| match a.kind {
                    ArgKind::Positional => true,
                    ArgKind::Keyword(name) => name != param.name,
                    ArgKind::Star | ArgKind::DoubleStar => false,
                })
        };
        (only_called && !calls.is_empty() && calls.iter().all(leaves)).then_some(default)
    }

    /// The calls of a function in the entry's file, including calls of static methods through their class and of
    /// methods through objects.
    fn sites(&self, func: FuncId) -> impl Iterator<Item = CallId> + '_ {
        let sites = self.program.sites(self.entry);
        let objects = self.calls.callers.objects.get_or_init(|| through_objects(self.program, self.entry));
        [&sites.by_name, &sites.by_class, objects]
            .into_iter()
            .filter_map(move |of| of.get(&func))
            .flatten()
            .copied()
    }
}

/// Keeps the parameters for which the property held at each interpretation of the call.
pub(crate) fn keep_common(calls: &mut FxHashMap<CallId, Vec<u16>>, call: CallId, now: Vec<u16>) {
    match calls.get_mut(&call) {
        Some(before) => before.retain(|n| now.contains(n)),
        None => {
            calls.insert(call, now);
        }
    }
}

/// Whether Python calls the method implicitly, so that the call expression does not name it.
pub(crate) fn implied(callee: &Function, named: Expr) -> bool {
    IMPLIED.has(callee.name.as_str()) && !matches!(named, Expr::Attr { name, .. } if name == callee.name)
}
