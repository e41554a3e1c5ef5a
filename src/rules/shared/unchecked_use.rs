//! Findings about uses of an accelerator without a check: SD101 and SD102.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, UseKind};
use crate::rules::check::Context;
use crate::rules::shared::code::{is_statement, line_with, quoted, stands_alone, text};
use crate::rules::shared::events::finding;
use crate::span::Place;

/// A use of an accelerator.
pub struct Use<'a> {
    /// The event.
    pub event: &'a Event,
    /// The name of the use, if the expression is too long to repeat: "`.cuda()`".
    pub what: &'a str,
    /// The kind of the use.
    pub how: UseKind,
    /// The place of the device literal, or of the use itself.
    pub place: Place,
    /// The accelerator's name for people: `CUDA`.
    pub accelerator: &'a str,
    /// A device of this kind, as a string: `cuda`.
    pub device: &'a str,
    /// The call that checks for it: `torch.cuda.is_available()`.
    pub check: &'a str,
}

impl Use<'_> {
    /// The finding, with its help.
    pub fn finding(&self, code: Code, cx: &Context<'_>) -> Finding {
        let used = quoted(cx, self.event.place, self.what);
        let (accelerator, check) = (self.accelerator, self.check);
        let elsewhere = self.place != self.event.place;
        let literal = text(cx, self.place).filter(|text| elsewhere && is_literal(text));
        let needs = match literal.filter(|literal| !used.contains(literal)) {
            Some(literal) => format!("{used} uses the device `{literal}`"),
            None => format!("{used} needs {accelerator}"),
        };
        let message = format!("{needs}, but no check of `{check}` comes before it");
        let raises = format!("raises without {accelerator}");
        let f = if elsewhere {
            let label = if literal.is_some() {
                "this device is chosen without a check"
            } else {
                "the device comes from here"
            };
            finding(code, self.event, message, self.place, label).related(self.event.place, raises)
        } else {
            finding(code, self.event, message, self.place, &raises)
        };
        f.help(self.help(cx))
    }

    fn help(&self, cx: &Context<'_>) -> String {
        let check = self.check;
        let used = text(cx, self.event.place);
        let choice = |device: &str| format!("{device} if {check} else \"cpu\"");
        let literal = text(cx, self.place).filter(|text| is_literal(text));
        if cx.sources.text(self.place).contains("current_accelerator(") {
            return "pass `check_available=True`, and use the CPU if the result is `None`".to_owned();
        }
        // `torch.cuda.set_device("cuda:0")` needs CUDA, whatever device is chosen.
        let of_torch = used.is_none_or(|used| used.starts_with("torch."));
        let moved = used.filter(|_| literal.is_none()).and_then(moved_to);
        if self.how == UseKind::Query && moved.is_none() && (literal.is_none() || of_torch) {
            let statement = used.filter(|_| is_statement(cx, self.event.place));
            return match statement {
                Some(statement) => format!("check for it first: `if {check}: {statement}`"),
                None => format!("check for it first: `if {check}:`"),
            };
        }
        if let Some(literal) = literal {
            let choice = choice(literal);
            let line = stands_alone(cx, self.place).then(|| line_with(cx, self.place, &choice)).flatten();
            return format!("choose the device with a check: `{}`", line.unwrap_or(choice));
        }
        let Some(Moved { call, index }) = moved else {
            let choice = choice(&format!("\"{}\"", self.device));
            return format!("choose the device with a check, `device = {choice}`, and use `.to(device)`");
        };
        match index {
            // The argument may be a device.
            Some(device) if device.contains("dev") => {
                format!(
                    "choose `{device}` with a check, and use `{}`",
                    call.replace("(device", &format!("({device}"))
                )
            }
            Some(index) => {
                let indexed = if index.bytes().all(|b| b.is_ascii_digit()) {
                    format!("\"cuda:{index}\"")
                } else {
                    format!("f\"cuda:{{{index}}}\"")
                };
                format!("choose the device with a check, `device = {}`, and use `{call}`", choice(&indexed))
            }
            None => {
                format!("choose the device with a check, `device = {}`, and use `{call}`", choice("\"cuda\""))
            }
        }
    }
}

/// `"cuda"`, `f"cuda:{rank}"`, `0`, `torch.device("cuda")`
fn is_literal(text: &str) -> bool {
    let string = text.trim_start_matches(['f', 'F', 'r', 'u', 'b']).starts_with(['"', '\'']);
    string || text.bytes().all(|b| b.is_ascii_digit()) || text.starts_with("torch.device(")
}

/// A call of `.cuda()`, written as a call of `.to()`.
#[derive(PartialEq, Debug)]
struct Moved<'a> {
    /// `x.to(device)`
    call: String,
    /// The index argument of `.cuda()`.
    index: Option<&'a str>,
}

/// `x.cuda(0, non_blocking=True)` → `x.to(device, non_blocking=True)`, and `0`.
fn moved_to(text: &str) -> Option<Moved<'_>> {
    let (receiver, arguments) = text.strip_suffix(')')?.rsplit_once(".cuda(")?;
    if arguments.contains(['(', ')', '*', '"', '\'']) {
        return None;
    }
    let (mut index, mut kept) = (None, String::new());
    for (n, argument) in arguments.split(',').map(str::trim).filter(|a| !a.is_empty()).enumerate() {
        match argument.split_once('=').map(|(name, value)| (name.trim(), value.trim())) {
            None if n == 0 => index = Some(argument),
            Some(("device", given)) => index = Some(given),
            None => return None,
            Some(_) => kept.push_str(&format!(", {argument}")),
        }
    }
    Some(Moved { call: format!("{receiver}.to(device{kept})"), index: index.filter(|&i| i != "None") })
}

#[cfg(test)]
mod tests {
    use super::{is_literal, moved_to};

    #[test]
    fn cuda_becomes_to() {
        let moved = |text| moved_to(text).map(|moved| (moved.call, moved.index));
        assert_eq!(moved("x.cuda()"), Some(("x.to(device)".to_owned(), None)));
        assert_eq!(moved("x.cuda(None)"), Some(("x.to(device)".to_owned(), None)));
        let kept = "x.to(device, non_blocking=True)".to_owned();
        assert_eq!(moved("x.cuda(0, non_blocking=True)"), Some((kept.clone(), Some("0"))));
        assert_eq!(moved("x.cuda(device=gpu, non_blocking=True)"), Some((kept, Some("gpu"))));
        assert_eq!(moved("f(x.cuda())"), None);
        assert_eq!(moved("torch.cuda.Stream()"), None);
    }

    #[test]
    fn literals_are_written_devices() {
        for text in ["\"cuda\"", "f'cuda:{rank}'", "0", "torch.device(\"cuda\")"] {
            assert!(is_literal(text), "{text}");
        }
        assert!(!is_literal("fast"));
    }
}
