//! SD801 invalid-device-string: a value that is no device where PyTorch expects one.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind, Misplaced};
use crate::rules::check::{Check, Context};
use crate::rules::shared::code::{self, quoted};
use crate::rules::shared::events::{finding, with_stack};
use crate::words::Words;
use crate::world::World;

pub(super) const CODE: Code = Code(801);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        invalid(event, cx).or_else(|| misplaced(event, cx))
    }
}

/// SD801 invalid-device-string
fn invalid(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::InvalidDevice { text } = &event.kind else { return None };
    let code = quoted(cx, event.place, "this");
    let (message, help) = if text == "cuda:cuda" {
        let device = code::text(cx, event.place).and_then(inserted);
        (
            format!("{code} puts a device after `cuda:`, where PyTorch expects an index"),
            device.map_or("use the device itself".to_owned(), |device| {
                format!("use the device itself: `{device}`")
            }),
        )
    } else if text.is_empty() {
        (
            format!("{code} passes a dtype where PyTorch expects a device"),
            "pass the dtype as `dtype=`, or pass a device".to_owned(),
        )
    } else {
        let help = meant(text).map_or_else(
            || "use a device string of PyTorch, such as `cpu`, `cuda`, `cuda:0` or `mps`".to_owned(),
            |meant| format!("write `\"{meant}\"`"),
        );
        (format!("{code} raises: PyTorch has no device `{text}`"), help)
    };
    let mut f = finding(CODE, event, message, event.place, "raises on every machine");
    f.world = World::Always;
    Some(with_stack(f, event).help(help))
}

/// The expression that the f-string `f"cuda:{device}"` inserts.
fn inserted(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('{')?;
    let (device, rest) = rest.split_once('}')?;
    (rest.len() == 1 && !device.contains(['{', ':', '!'])).then_some(device)
}

/// The intended device: `gpu` → `cuda`, `cuda0` → `cuda:0`, `CUDA:1` → `cuda:1`.
fn meant(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let letters = lower.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, ':' | ' ' | '_' | '-'));
    let index: String = lower[letters.len()..].chars().filter(char::is_ascii_digit).collect();
    let kind = match letters {
        "gpu" | "nvidia" => "cuda",
        _ => KINDS.all().iter().copied().find(|kind| strsim::osa_distance(kind, letters) <= 1)?,
    };
    Some(if index.is_empty() || kind == "cpu" { kind.to_owned() } else { format!("{kind}:{index}") })
}

static KINDS: Words = Words::of("common device types");

/// SD801 invalid-device-string: a value that is no device string
fn misplaced(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::Misplaced { what } = event.kind else { return None };
    let code = quoted(cx, event.place, "this");
    let source = code::text(cx, event.place);
    let (message, label, help) = match what {
        Misplaced::Number => (
            format!(
                "{code} passes the result of `get_device()` as a device, and that is -1 for a CPU tensor"
            ),
            "raises if the tensor is on the CPU",
            match source.and_then(asked_for_number) {
                Some(tensor) => format!("pass the device itself: `{tensor}.device`"),
                None => "pass the tensor's `.device` instead".to_owned(),
            },
        ),
        Misplaced::Manager => (
            format!("{code} passes `torch.cuda.device(…)` as a device, but that is a context manager"),
            "raises on every machine",
            "write `torch.device(\"cuda\", …)` with the same index".to_owned(),
        ),
        Misplaced::Autocast => (
            format!(
                "{code} passes a `torch.device`, but `torch.autocast` expects a device type such as \"cuda\""
            ),
            "raises on every machine",
            match source.and_then(first_argument) {
                Some(device) => format!("pass the type of the device: `{device}.type`"),
                None => "pass the type of the device: `device.type`".to_owned(),
            },
        ),
        Misplaced::Unnumbered => (
            format!("{code} has no index, but this function needs to know which GPU to make the current one"),
            "raises on every machine",
            "add the index: `torch.device(\"cuda\", 0)`".to_owned(),
        ),
        Misplaced::Location => (
            format!("`map_location` is the number {code}, which is neither a device nor a function"),
            "`TypeError`: an `int` is not callable",
            match source {
                Some(number) => format!("pass a device string: `map_location=f\"cuda:{{{number}}}\"`"),
                None => "pass a device string that ends in this number".to_owned(),
            },
        ),
        Misplaced::Truth => (
            format!("{code} is a truth value where PyTorch expects a device"),
            "`TypeError` on every machine",
            "name the argument: `non_blocking=True`".to_owned(),
        ),
    };
    let mut f = finding(CODE, event, message, event.place, label);
    if what != Misplaced::Number {
        f.world = World::Always;
    }
    Some(with_stack(f, event).help(help))
}

/// The tensor whose `get_device()` is called.
fn asked_for_number(text: &str) -> Option<&str> {
    let (before, _) = text.split_once(".get_device()")?;
    let at = before.rfind(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.')));
    let tensor = &before[at.map_or(0, |at| at + 1)..];
    (!tensor.is_empty() && !tensor.starts_with('.')).then_some(tensor)
}

/// The first argument of a call, if that is a name or an attribute.
fn first_argument(text: &str) -> Option<&str> {
    let (_, arguments) = text.strip_suffix(')')?.split_once('(')?;
    let first = arguments.split(',').next()?.trim();
    let value = first.split_once('=').map_or(first, |(_, value)| value.trim());
    let plain = value.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'));
    (plain && !value.is_empty()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::{asked_for_number, first_argument, inserted, meant};

    #[test]
    fn what_is_passed() {
        assert_eq!(asked_for_number("layer(3, 3).to(first.get_device())"), Some("first"));
        assert_eq!(asked_for_number("f(x)[0].get_device()"), None);
        assert_eq!(first_argument("torch.autocast(device_type=x.device)"), Some("x.device"));
        assert_eq!(first_argument("torch.autocast(device, dtype=d)"), Some("device"));
        assert_eq!(first_argument("torch.autocast(torch.device(0))"), None);
    }

    #[test]
    fn the_device_that_is_meant() {
        for (text, device) in [
            ("gpu", "cuda"),
            ("cuda0", "cuda:0"),
            ("CUDA:1", "cuda:1"),
            ("cude:0", "cuda:0"),
            ("cuda:", "cuda"),
        ] {
            assert_eq!(meant(text).as_deref(), Some(device), "{text}");
        }
        assert_eq!(meant("tensor"), None);
    }

    #[test]
    fn what_an_f_string_inserts() {
        assert_eq!(inserted("f\"cuda:{gpu}\""), Some("gpu"));
        assert_eq!(inserted("f\"cuda:{gpu}:{n}\""), None);
    }
}
