//! SD210 ignored-device-parameter: a function takes a device and does not use it.

mod called_again;
mod callee_default;
mod checked_class;
mod elsewhere;
mod first_use;
mod for_data_loader;
mod gpu_flag;
mod has_effect;
mod interface;
mod lost;
mod method_of_parts;
mod moved_later;
mod moves_along;
mod none_is_cpu;
mod not_passed_on;
mod overwritten;
mod own_cuda_method;
mod own_device;
mod wrong_position;

use crate::finding::{Code, Finding, Label};
use crate::ir::{Expr, FuncId, FuncKind, Function, Param, ParamKind, Var};
use crate::rules::check::{Check, Context};
use crate::rules::shared::calls::CallAt;
use crate::rules::shared::file::File;
use crate::rules::shared::test_code::in_tests;
use crate::span::{Place, Span};
use crate::sym::Sym;
use crate::words::Words;
use crate::world::World;

static WITHOUT_NAMES: Words = Words::of("use parameters without their names");

pub(super) const CODE: Code = Code(210);
pub(super) struct Rule;

/// The label of code that ignores the parameter.
const IGNORES_CALLER: &str = "ignores the device of the caller";

impl Check for Rule {
    fn on_file(&mut self, cx: &Context<'_>) -> Vec<Finding> {
        let Some(file) = file_of(cx) else { return Vec::new() };
        let names = Names::new(&file);
        let (mut found, mut asked) = (Vec::new(), Vec::new());
        for (n, function) in functions(&file) {
            match of_function(&file, n, function, &names, &mut found) {
                Some(own) => asked.push(own),
                None => {
                    found.extend(file.own_not_passed_on(function, names.device));
                    found.extend(called_again::without_its_device(&file, function, names.device));
                }
            }
        }
        found.extend(first_use::told(&file, asked));
        found.retain(|f| f.code == CODE);
        found
    }
}

/// Loads to the device that the file was saved from, in functions with a device parameter. SD105 reports these.
pub(super) fn loads_elsewhere(cx: &Context<'_>) -> Vec<Finding> {
    let Some(file) = file_of(cx) else { return Vec::new() };
    let names = Names::new(&file);
    let mut found = Vec::new();
    for (n, function) in functions(&file) {
        let loads = |param: &Param| {
            names.is_given(param)
                && file.inside(function).any(|(_, e, _)| match e {
                    Expr::Call(c) => file.loads_to_where_it_was(file.ir.call(c), param.name),
                    _ => false,
                })
        };
        if function.params.iter().any(loads) {
            of_function(&file, n, function, &names, &mut found);
        }
    }
    found.retain(|f| f.code != CODE);
    found
}

/// The file; `None` for tests, which create objects on the CPU on purpose, to see that they move.
fn file_of<'a>(cx: &'a Context<'a>) -> Option<File<'a>> {
    let tests = in_tests(Place { file: cx.file, span: Span::default() }, cx);
    if tests { None } else { File::of(cx) }
}

fn functions<'a>(file: &File<'a>) -> impl Iterator<Item = (usize, &'a Function)> {
    file.ir.functions.iter().enumerate().filter(|(_, function)| function.kind == FuncKind::Function)
}

/// The names of device parameters. They are compared as numbers, because every parameter and variable of every function is checked.
struct Names {
    device: Sym,
    location: Sym,
    torch_device: Sym,
    /// Whether the file mentions the device of an object.
    objects_have_one: bool,
}

impl Names {
    fn new(file: &File<'_>) -> Self {
        let device = Sym::new("device");
        Self {
            device,
            location: Sym::new("map_location"),
            torch_device: Sym::new("torch_device"),
            objects_have_one: file.ir.has_attribute(device),
        }
    }

    fn is_given(&self, param: &Param) -> bool {
        param.name == self.device || param.name == self.location
    }
}

/// The findings about how a function, with index `n` in its file, uses its device parameters. Also returns the object whose device it asks
/// for although its parts are offloaded. Then there is no finding about its parameters.
fn of_function(
    file: &File<'_>,
    n: usize,
    function: &Function,
    names: &Names,
    found: &mut Vec<Finding>,
) -> Option<first_use::Asked> {
    found.extend(own_cuda_method::to_current_gpu(file, function));
    found.extend(method_of_parts::without_it(file, function));
    found.extend(gpu_flag::not_handed_on(file, function));
    if names.objects_have_one
        && let Some((owner, finding)) = own_device::not_where_it_runs(file, function)
    {
        let function = FuncId(u32::try_from(n).unwrap_or(u32::MAX));
        return Some(first_use::Asked { function, owner, finding });
    }
    for param in &function.params {
        if param.name == names.torch_device {
            found.extend(file.overwritten(function, param));
        }
        if names.is_given(param) {
            of_parameter(file, function, param, names, found);
        }
    }
    None
}

/// The first finding about how a function uses one device parameter.
fn of_parameter(
    file: &File<'_>,
    function: &Function,
    param: &Param,
    names: &Names,
    found: &mut Vec<Finding>,
) {
    found.extend(wrong_position::to_another(file, function, param));
    let told = own_device::goes_to_own(file, function, param)
        .or_else(|| file.overwritten(function, param))
        .or_else(|| lost::lost(file, function, param));
    if told.is_some() {
        found.extend(told);
        return;
    }
    // A function with `**kwargs` accepts this argument together with others.
    let any = function.params.iter().any(|p| p.kind == ParamKind::DoubleStar);
    let left = || file.not_passed_on(function, param);
    if file.mentions(function, param.slot) {
        found.extend(left());
    } else if !any && file.is_interface(function) {
        let loaded = file.loaded_elsewhere(function, param.name);
        // A function need not pass on a parameter that a base or a framework prescribes. Exception: `map_location` of a registered
        // function.
        let hands_on = param.name == names.location && function.class.is_none();
        found.extend(loaded.or_else(|| hands_on.then(left)?));
    } else if !any {
        found.extend(file.made_elsewhere(function, param.name).or_else(left));
    }
}

impl File<'_> {
    /// Does the body mention the parameter, or may it use the parameter without its name?
    fn mentions(&self, function: &Function, slot: u16) -> bool {
        self.inside(function).any(|(_, e, _)| match e {
            Expr::Var(Var::Local(s)) => s == slot,
            Expr::Var(Var::Enclosing { slot: s, .. }) => s == slot,
            Expr::Var(Var::Unbound(n)) => WITHOUT_NAMES.has(n.as_str()),
            _ => false,
        })
    }

    fn parameter_finding(
        &self,
        at: Span,
        message: String,
        label: impl Into<String>,
        function: Span,
    ) -> Finding {
        self.device_finding(at, message, label, (function, "takes a device"))
    }

    fn device_finding(
        &self,
        at: Span,
        message: String,
        label: impl Into<String>,
        (from, source): (Span, impl Into<String>),
    ) -> Finding {
        let place = |span| Place { file: self.cx.file, span };
        let label = Label::new(place(at), label);
        Finding::new(CODE, World::Cuda, message, label)
            .related(place(from), source)
            .help("pass it on: `device=device`")
    }

    /// The help for a call that omits a parameter.
    fn pass_on(&self, at: Span, name: Sym) -> String {
        let argument = format!("{name}={name}");
        let call = CallAt::new(self.cx, Place { file: self.cx.file, span: at });
        format!("pass it on: `{}`", call.and_then(|call| call.with(&argument)).unwrap_or(argument))
    }

    fn text_of(&self, at: Span) -> &str {
        self.cx.sources.text(Place { file: self.cx.file, span: at })
    }
}
