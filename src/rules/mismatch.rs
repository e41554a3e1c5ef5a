//! SD2: two devices meet; SD301, its form for tensors that modules do not register.

use super::inputs::Input;
use super::naming::{Spot, is_short};
use super::{Context, finding, reason, with_also, with_stack};
use crate::finding::{Finding, Label};
use crate::flow::event::{DeviceName, Entered, Event, Gives, Kind, Meeting, Operand};
use crate::flow::is_module_class;
use crate::flow::value::Reason;
use crate::ir::FuncKind;
use crate::link::ClassKey;
use crate::remedy::Remedy;
use crate::span::{Place, Span};
use crate::world::World;

/// SD203 discarded-transfer
pub(super) fn discarded(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::Discarded { receiver, method, parameter } = &event.kind else { return None };
    let file = event.place.file;
    let name = cx.sources.text(Place { file, span: *receiver }).to_owned();
    let parameter = *parameter;
    let moved = first_line(cx.sources.text(event.place));
    let message = format!("the result of `.{method}()` is dropped: tensors do not move in place");
    let f = finding(203, event, message, event.place, "gives a new tensor, which nothing keeps");
    // What a call gives cannot be assigned to.
    let named = is_short(&name) && !name.contains('(');
    let help = match (parameter, name.strip_suffix(".data")) {
        (false, _) if named => format!("keep it: `{name} = {moved}`"),
        (false, _) => "keep what it gives, in a variable".to_owned(),
        // A registered parameter takes no tensor: `TypeError` (torch/nn/modules/module.py, `__setattr__`).
        (true, None) if named => {
            let call = moved.strip_prefix(name.as_str()).unwrap_or_default();
            format!("move the module, or the parameter's values: `{name}.data = {name}.data{call}`")
        }
        (true, _) => "move the module, or the parameter's values through its `.data`".to_owned(),
    };
    let remedy = (!parameter).then_some(Remedy::Keep(event.place));
    let f = Finding { shows_with_accelerator: true, ..f };
    Some(with_stack(f, event).help(help).remedy(remedy))
}

/// SD203 as well: a module's own `.to()`, before it has parts
pub(super) fn moved_empty(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let Kind::MovedEmpty { method, part } = &event.kind else { return None };
    let message = format!("`.{method}()` moves nothing: the module has no parts yet");
    let f = finding(203, event, message, event.place, "moves what is registered by now");
    let f = f.related(*part, "registered after it");
    let f = Finding { shows_with_accelerator: true, ..f };
    Some(with_stack(f, event).help("move it as the last thing, or leave it to whoever makes the module"))
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// SD205 cuda-tensor-to-numpy
pub(super) fn to_numpy(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::ToHost { what, tensor } = &event.kind else { return None };
    if callers_decide(event, tensor, cx) || as_tests_like(event, tensor, cx) {
        return None;
    }
    let message =
        format!("{what} needs a tensor on the CPU, and this one is on {}", tensor.device.in_words());
    let f = finding(205, event, message, event.place, "NumPy cannot read device memory");
    let f = origins(f, tensor);
    let given = Some(tensor.place)
        .filter(|&p| p != event.place && matches!(tensor.gives, Gives::Tensor | Gives::Tensors));
    let several = tensor.gives == Gives::Tensors;
    let remedy = Remedy::ToHost { call: event.place, tensor: given, several };
    Some(with_stack(f, event).help("copy it to the host first: `.detach().cpu().numpy()`").remedy([remedy]))
}

/// The reasons of one side as labels: why it is there now, and where that began.
fn origins(mut f: Finding, side: &Operand) -> Finding {
    let mut steps: Vec<_> =
        side.chain.iter().filter(|s| s.reason != Reason::Given && s.reason != Reason::None).collect();
    steps.truncate(3);
    for step in steps {
        if !f.places().any(|p| p == step.place) {
            let text = format!("{} ({})", reason(step), side.device.in_words());
            f = f.related(step.place, text);
        }
    }
    f
}

fn mismatch(event: &Event) -> Option<(Meeting, &str, &Operand, &Operand)> {
    match &event.kind {
        Kind::Mismatch { meeting, what, stray, other } => Some((*meeting, what, stray, other)),
        _ => None,
    }
}

/// A finding on the meeting itself, with both sides and where they come from.
fn meeting_finding(code: u16, event: &Event, message: String) -> Option<Finding> {
    let (_, _, stray, other) = mismatch(event)?;
    let f = finding(code, event, message, event.place, "they meet here");
    let mut f = sides(f, stray, other);
    f.stray_from = made(stray).map(|(place, _)| place);
    // Where a device is only written, nothing is wrong.
    f.suspects.extend(stray.chain.iter().filter(|s| s.reason != Reason::Literal).map(|s| s.place));
    Some(with_stack(f, event))
}

fn sides(mut f: Finding, stray: &Operand, other: &Operand) -> Finding {
    for side in [stray, other] {
        if side.place != f.primary.place && !f.places().any(|p| p == side.place) {
            f.related.push(Label::new(side.place, format!("on {}", side.device.in_words())));
        }
    }
    let f = origins(f, stray);
    origins(f, other)
}

/// SD206 generator-device-mismatch
pub(super) fn generator(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let (Meeting::Generator, what, stray, other) = mismatch(event)? else { return None };
    // One that nobody gave has no place of its own, and is on the CPU.
    let given = other.place != event.place;
    let (generator, drawn) =
        if stray.place == event.place && given { (other, stray) } else { (stray, other) };
    if as_tests_like(event, generator, cx) {
        return None;
    }
    let message = format!(
        "{what} draws on {} with a generator of {}",
        drawn.device.in_words(),
        generator.device.in_words()
    );
    Some(
        meeting_finding(206, event, message)?
            .help("make the generator on the same device: `torch.Generator(device=…)`"),
    )
}

/// SD207 cpu-only-argument
pub(super) fn cpu_only(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let (meeting, what, stray, _) = mismatch(event)?;
    if meeting == Meeting::OldConstructor {
        let device = stray.device.in_words();
        let message = format!("{what} makes tensors on the CPU and nowhere else, and is asked for {device}");
        let f = finding(207, event, message, event.place, "takes `device=` for the CPU only");
        return Some(
            with_stack(origins(f, stray), event)
                .help("`torch.tensor(…, device=…)` or `torch.empty(…, device=…)`"),
        );
    }
    if meeting != Meeting::CpuOnly {
        return None;
    }
    let message = format!("{what} wants this tensor on the CPU, and it is on {}", stray.device.in_words());
    let f = finding(207, event, message, event.place, "must be on the CPU");
    Some(with_also(with_stack(origins(f, stray), event), event).help("pass `.cpu()` of it"))
}

/// SD209 data-assigned-across-devices
pub(super) fn data(event: &Event, _cx: &Context<'_>) -> Option<Finding> {
    let (Meeting::Data, _, stray, other) = mismatch(event)? else { return None };
    if event.symbolic && event.stack.len() > 1 {
        return None;
    }
    let known = |o: &Operand| matches!(o.device, DeviceName::Known(_));
    if !known(stray) || !known(other) {
        return None;
    }
    let message = format!(
        "`.data` is assigned across devices, {} and {}",
        stray.device.in_words(),
        other.device.in_words()
    );
    Some(meeting_finding(209, event, message)?.help("copy the values instead: `.data.copy_(…)`"))
}

/// Where a side was made, and how.
fn made(side: &Operand) -> Option<(Place, Reason)> {
    side.chain
        .last()
        .filter(|s| matches!(s.reason, Reason::Default | Reason::Host | Reason::Typed))
        .map(|s| (s.place, s.reason))
}

/// SD301 unregistered-tensor
pub(super) fn unregistered(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let (meeting, what, stray, other) = mismatch(event)?;
    if matches!(meeting, Meeting::Generator | Meeting::CpuOnly | Meeting::OldConstructor | Meeting::Data) {
        return None;
    }
    let given = matches!(other.device, DeviceName::Varies(_)) && event.callers_decide;
    if given || as_tests_like(event, other, cx) {
        return None;
    }
    let step = stray.chain.iter().find(|s| matches!(s.reason, Reason::Kept | Reason::Stored))?;
    let place = step.place;
    let fits = match step.reason {
        // Put where its module was then, and left there: nobody has to make it elsewhere.
        Reason::Stored => {
            let before = stray.chain.iter().skip_while(|s| s.reason != Reason::Stored).nth(1);
            let explicit =
                before.is_none_or(|s| !matches!(s.reason, Reason::Default | Reason::Host | Reason::Typed));
            explicit && matches!(other.device, DeviceName::Known(_))
        }
        _ => function_of(place, cx) != function_of(event.place, cx),
    };
    if stray.device != DeviceName::Known("cpu".to_owned()) || !fits {
        return None;
    }
    let message = format!(
        "a plain tensor attribute of a module: `.to()` does not move it, and {what} meets {}",
        other.device.in_words()
    );
    let f = finding(301, event, message, place, "kept as a plain attribute");
    let mut f = f.related(event.place, format!("meets a tensor on {} here", other.device.in_words()));
    if let Some((made, _)) = made(stray).filter(|&(p, _)| p != place) {
        f = f.related(made, "made here, on the CPU");
    }
    let help = "register it with `register_buffer`";
    let remedy = (step.reason == Reason::Kept).then_some(Remedy::Register(place));
    Some(with_stack(f, event).help(help).remedy(remedy))
}

/// The innermost function at a place, by its start.
pub(super) fn function_of(place: Place, cx: &Context<'_>) -> Option<(u32, u32)> {
    let ir = &cx.program.get(cx.program.module_of(place.file)?).ir;
    ir.function_at(place.span).map(|f| (f.span.start, f.span.end))
}

/// SD202 module-input-mismatch
pub(super) fn module_input(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let (meeting, what, stray, other) = mismatch(event)?;
    let called = handed_over(event, stray, other);
    // A weight that the module's own `forward` brings together with what it was given.
    let weight = matches!(meeting, Meeting::Operator | Meeting::Function)
        && stray.of_module != other.of_module
        && called.is_some();
    if meeting != Meeting::ModuleInput && !weight {
        return None;
    }
    let given = matches!(other.device, DeviceName::Varies(_))
        && other.chain.iter().all(|s| s.reason == Reason::Given);
    if given && (callers_decide(event, other, cx) || as_tests_like(event, other, cx)) {
        return None;
    }
    // Inside a method the module's own device is a symbol: a tensor made there is SD204's.
    if matches!(other.device, DeviceName::WithModule) {
        return None;
    }
    let site = called.map_or(event.place, |call| call.site);
    let input = Input::of(site, called, (stray, other), cx);
    let message = input.as_ref().map_or_else(|| meets(what, stray, other), |input| input.message(what));
    let mut f = meeting_finding(202, event, message)?;
    if let Some(call) = called {
        let inner = std::mem::replace(&mut f.primary.place, call.site);
        f.related.retain(|l| l.place != call.site);
        f.related.insert(0, Label::new(inner, "they meet here"));
        // Of one that is made of layers, there is the place at which one would move it.
        if let Some(made) = call.made.filter(|&m| f.related.iter().all(|l| l.place != m)) {
            f.related.insert(1, Label::new(made, "the module that is called is made here"));
        }
        "a module and its input, on two devices".clone_into(&mut f.primary.text);
    }
    if matches!(event.bite.world, World::Always) {
        f.world = World::Cuda;
    }
    let both = || "move the module and its inputs to one device before the call".to_owned();
    let mut remedies = on_one_device(event, stray, other, cx);
    // Of two inputs either may move; of a module and an input, where the module is called says which.
    if input.is_some() {
        remedies.retain(|r| matches!(r, Remedy::Make { .. }));
    }
    let f = f.remedy(remedies).remedy(input.as_ref().and_then(Input::remedy));
    Some(f.help(input.map_or_else(both, |input| input.help())))
}

fn meets(what: &str, stray: &Operand, other: &Operand) -> String {
    format!("{what} meets tensors on {} and on {}", stray.device.in_words(), other.device.in_words())
}

/// Which of two tensors one would move, by the names that they have where they meet.
fn move_one(event: &Event, stray: &Operand, other: &Operand, cx: &Context<'_>) -> String {
    let spot = Spot::new(cx, event.place);
    let name = spot.as_ref().and_then(|spot| spot.name(stray.place)).filter(|_| stray.gives == Gives::Tensor);
    match (name, spot.and_then(|spot| spot.device(other))) {
        (Some(name), Some(device)) => format!("move one of them: `{name}.to({device})`"),
        (None, Some(device)) => {
            format!("move the one that is on {}: `.to({device})`", stray.device.in_words())
        }
        (Some(name), None) => format!("move `{name}` to the device of the tensor that it meets"),
        (None, None) => "move one of them to the device of the other".to_owned(),
    }
}

/// The outermost call of a module that was given what does not fit: neither side was made on the way in.
fn handed_over(event: &Event, stray: &Operand, other: &Operand) -> Option<Entered> {
    let within = |function: Place| {
        let inside = |s: &Operand| {
            s.chain.iter().any(|s| s.place.file == function.file && function.span.contains(s.place.span))
        };
        inside(stray) || inside(other)
    };
    event.entered.iter().take_while(|call| !within(call.forward)).last().copied()
}

/// SD204 default-device-tensor
pub(super) fn default_device(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let (meeting, what, stray, other) = mismatch(event)?;
    if matches!(meeting, Meeting::Generator | Meeting::CpuOnly | Meeting::OldConstructor | Meeting::Data) {
        return None;
    }
    let (DeviceName::WithModule | DeviceName::Varies(_)) = other.device else { return None };
    if stray.device != DeviceName::Known("cpu".to_owned()) {
        return None;
    }
    let (place, how) = made(stray)?;
    if callers_decide(event, other, cx) || as_tests_like(event, other, cx) {
        return None;
    }
    if matches!(&other.device, DeviceName::Varies(_))
        && other.chain.iter().any(|s| matches!(s.reason, Reason::Made | Reason::Moved))
    {
        return None;
    }
    let text = match how {
        Reason::Default => "made without `device=`: on the CPU",
        Reason::Typed => "made on the CPU",
        _ => "always made on the CPU",
    };
    let there = other.device.in_words();
    let message = format!("a tensor on the CPU meets one on {there} in {what}");
    let then = format!("meets a tensor on {there} here");
    let f = finding(204, event, message, place, text).related(event.place, then);
    let spot = Spot::new(cx, place);
    let there = spot.as_ref().and_then(|spot| Some((spot, spot.device(other)?)));
    let help = match there {
        Some((spot, device)) => match spot.corrected(how, &device) {
            Some(line) => format!("make it where the other one is: `{line}`"),
            None if how == Reason::Default => format!("make it where the other one is: `device={device}`"),
            None => format!("move it to where the other one is: `.to({device})`"),
        },
        None => "make it on the device of the tensor that it meets".to_owned(),
    };
    Some(with_stack(f, event).help(help).remedy(on_one_device(event, stray, other, cx)))
}

/// How two sides come to one device: the one that was made on the CPU without a word is made where the other one is, or moved there
/// where they meet.
fn on_one_device(event: &Event, stray: &Operand, other: &Operand, cx: &Context<'_>) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    if stray.device != DeviceName::Known("cpu".to_owned())
        || matches!(other.device, DeviceName::Known(ref d) if d == "cpu")
    {
        return remedies;
    }
    if let Some((call, _)) = made(stray)
        && !kept_by_constructor(call, event.place, cx)
        && let Some(spot) = Spot::new(cx, call)
        && let Some(function) = spot.function()
        && let Some(device) = spot.device(other).or_else(|| {
            // The weights that it meets are the module's own.
            spot.same_module(event.place).filter(|_| other.of_module || other.gives == Gives::Module)
        })
    {
        remedies.push(Remedy::Make { call, function, device, meets: event.place });
    }
    if stray.gives == Gives::Tensor
        && let Some(device) = Spot::new(cx, stray.place).and_then(|spot| spot.device(other))
    {
        remedies.push(Remedy::Move { operand: stray.place, device });
    }
    remedies
}

/// Is it made in a constructor, and meets the other one elsewhere? There the object is not where it will be.
fn kept_by_constructor(made: Place, met: Place, cx: &Context<'_>) -> bool {
    let Some(module) = cx.program.module_of(made.file) else { return false };
    let function = cx.program.get(module).ir.function_at(made.span);
    let constructs =
        function.is_some_and(|f| matches!(f.name.as_str(), "__init__" | "__post_init__" | "setup"));
    constructs && function_of(made, cx) != function_of(met, cx)
}

/// Is it as a test likes it? Fixtures and parameters are the project's own, wherever that stands to which they are given.
fn as_tests_like(event: &Event, other: &Operand, cx: &Context<'_>) -> bool {
    let given = !matches!(other.device, DeviceName::Known(_));
    let here = Place { file: cx.file, span: Span::default() };
    event.symbolic
        && (super::in_tests(event.place, cx)
            || given && super::in_tests(here, cx)
            || given && tries_itself(event, cx))
}

/// Is it the method by which a module tries itself out that is looked at for itself: `def test(self):`? What it makes is
/// where it likes the module.
fn tries_itself(event: &Event, cx: &Context<'_>) -> bool {
    let (Some(module), Some(entry)) = (cx.program.module_of(cx.file), event.entry) else { return false };
    let function = cx.program.get(module).ir.function(entry);
    let of_module = |class| is_module_class(cx.program, ClassKey { module, class });
    function.params.len() == 1
        && function.name.as_str().split('_').any(|word| matches!(word, "test" | "selftest"))
        && function.class.is_some_and(of_module)
}

/// A helper whose callers are in sight is judged by what they give it; host code stays on the host.
fn callers_decide(event: &Event, other: &Operand, cx: &Context<'_>) -> bool {
    match other.device {
        // What code of the host calls is on the host, too.
        DeviceName::Varies(_) => {
            let mut places = std::iter::once(event.place).chain(event.stack.iter().copied());
            event.callers_decide || places.any(|place| host_code(place, cx))
        }
        DeviceName::WithModule => event.callers_decide,
        DeviceName::Known(_) => false,
    }
}

/// Is the place in code that prepares data on the host: a data set, a collator, a tokenizer?
fn host_code(place: Place, cx: &Context<'_>) -> bool {
    let Some(module) = cx.program.module_of(place.file) else { return false };
    let file = cx.sources.get(place.file);
    if file.path.file_stem().is_some_and(|s| names_host_code(&s.to_string_lossy())) {
        return true;
    }
    let linked = cx.program.get(module);
    let by_class = linked.ir.classes.iter().zip(&linked.classes).any(|(class, info)| {
        class.span.contains(place.span)
            && (names_host_code(class.name.as_str())
                || info.externals.iter().any(|&p| {
                    crate::torch::base_class(p).is_some_and(|b| {
                        matches!(b.kind, crate::torch::Base::Dataset | crate::torch::Base::HostData)
                    })
                }))
    });
    by_class
        || linked.ir.functions.iter().any(|f| {
            f.kind == FuncKind::Function && f.span.contains(place.span) && names_host_code(f.name.as_str())
        })
}

/// Names that the field gives to host code.
fn names_host_code(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    [
        "collat",
        "dataset",
        "dataloader",
        "loader",
        "tokeniz",
        "processor",
        "preprocess",
        "augment",
        "__getitem__",
    ]
    .iter()
    .any(|w| name.contains(w))
}

/// SD201 mixed-device-operation
pub(super) fn operation(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let (meeting, what, stray, other) = mismatch(event)?;
    if matches!(meeting, Meeting::Generator | Meeting::CpuOnly | Meeting::OldConstructor | Meeting::Data)
        || callers_decide(event, other, cx)
        || as_tests_like(event, other, cx)
    {
        return None;
    }
    let message = meets(what, stray, other);
    let code = if meeting == Meeting::ModuleInput { 202 } else { 201 };
    let remedies = on_one_device(event, stray, other, cx);
    Some(meeting_finding(code, event, message)?.help(move_one(event, stray, other, cx)).remedy(remedies))
}
