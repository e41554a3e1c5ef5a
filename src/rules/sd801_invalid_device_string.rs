//! SD801 invalid-device-string: a value that is no device where PyTorch expects one.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind, Misplaced};
use crate::rules::check::{Check, Context};
use crate::rules::shared::code::{self, quoted};
use crate::rules::shared::events::{finding, with_stack};
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
        (format!("PyTorch has no device `{text}`"), help)
    };
    let mut f = finding(CODE, event, message, event.place, "raises on every machine");
    f.world = World::Always;
    Some(with_stack(f, event).help(help))
}

/// What the f-string `f"cuda:{device}"` inserts.
fn inserted(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once('{')?;
    let (device, rest) = rest.split_once('}')?;
    (rest.len() == 1 && !device.contains(['{', ':', '!'])).then_some(device)
}

/// The device that is meant: `gpu` → `cuda`, `cuda0` → `cuda:0`, `CUDA:1` → `cuda:1`.
fn meant(text: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let letters = lower.trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, ':' | ' ' | '_' | '-'));
    let index: String = lower[letters.len()..].chars().filter(char::is_ascii_digit).collect();
    let kind = match letters {
        "gpu" | "nvidia" => "cuda",
        _ => KINDS.into_iter().find(|kind| strsim::osa_distance(kind, letters) <= 1)?,
    };
    Some(if index.is_empty() || kind == "cpu" { kind.to_owned() } else { format!("{kind}:{index}") })
}

const KINDS: [&str; 4] = ["cuda", "cpu", "mps", "xpu"];

/// SD801 invalid-device-string: a value that is no device string
fn misplaced(event: &Event, cx: &Context<'_>) -> Option<Finding> {
    let Kind::Misplaced { what } = event.kind else { return None };
    let code = quoted(cx, event.place, "this");
    let (message, label, help) = match what {
        Misplaced::Number => (
            format!(
                "{code} passes the result of `get_device()` as a device, and that is -1 for a CPU tensor"
            ),
            "raises if the tensor is on the CPU",
            "pass the tensor's `.device` instead",
        ),
        Misplaced::Manager => (
            format!("{code} passes `torch.cuda.device(…)` as a device, but that is a context manager"),
            "raises on every machine",
            "write `torch.device(\"cuda\", …)` with the same index",
        ),
        Misplaced::Autocast => (
            format!(
                "{code} passes a `torch.device`, but `torch.autocast` expects a device type such as \"cuda\""
            ),
            "raises on every machine",
            "pass the type of the device: `.type`",
        ),
        Misplaced::Unnumbered => (
            format!("{code} has no index, but this function needs to know which GPU to make the current one"),
            "raises on every machine",
            "add the index: `torch.device(\"cuda\", 0)`",
        ),
        Misplaced::Location => (
            format!("`map_location` is the number {code}, which is neither a device nor a function"),
            "`TypeError`: an `int` is not callable",
            "pass a device string: `map_location=f\"cuda:{…}\"` with that number",
        ),
        Misplaced::Truth => (
            format!("{code} is a truth value where PyTorch expects a device"),
            "`TypeError` on every machine",
            "name the argument: `non_blocking=True`",
        ),
    };
    let mut f = finding(CODE, event, message, event.place, label);
    if what != Misplaced::Number {
        f.world = World::Always;
    }
    Some(with_stack(f, event).help(help))
}

#[cfg(test)]
mod tests {
    use super::{inserted, meant};

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
