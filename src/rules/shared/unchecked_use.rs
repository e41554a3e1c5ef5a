//! Uses of an accelerator with no check before them, in words: SD101 and SD102.

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
    /// What uses it, if the expression is too long to repeat: "`.cuda()`".
    pub what: &'a str,
    /// How it came about.
    pub how: UseKind,
    /// Where the device is written, or the use itself.
    pub place: Place,
    /// The accelerator as people call it: `CUDA`.
    pub accelerator: &'a str,
    /// A device of that kind, as a text: `cuda`.
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
            let label =
                if literal.is_some() { "this device is not checked" } else { "the device comes from here" };
            finding(code, self.event, message, self.place, label).related(self.event.place, raises)
        } else {
            finding(code, self.event, message, self.place, &raises)
        };
        f.help(self.help(cx))
    }

    fn help(&self, cx: &Context<'_>) -> String {
        let check = self.check;
        let used = text(cx, self.event.place);
        let asks = self.how == UseKind::Query && used.is_none_or(|used| used.starts_with("torch."));
        if asks {
            let statement = used.filter(|_| is_statement(cx, self.event.place));
            return match statement {
                Some(statement) => format!("check for it first: `if {check}: {statement}`"),
                None => format!("check for it first: `if {check}:`"),
            };
        }
        let choice = |device: &str| format!("{device} if {check} else \"cpu\"");
        let literal = text(cx, self.place).filter(|text| is_literal(text));
        if let Some(literal) = literal {
            let choice = choice(literal);
            let line = stands_alone(cx, self.place).then(|| line_with(cx, self.place, &choice)).flatten();
            return format!("choose the device with a check: `{}`", line.unwrap_or(choice));
        }
        let choice = choice(&format!("\"{}\"", self.device));
        let moved = used.and_then(moved_to).unwrap_or_else(|| ".to(device)".to_owned());
        format!("choose the device with a check, `device = {choice}`, and use `{moved}`")
    }
}

/// `"cuda"`, `f"cuda:{rank}"`, `0`, `torch.device("cuda")`
fn is_literal(text: &str) -> bool {
    let string = text.trim_start_matches(['f', 'F', 'r', 'u', 'b']).starts_with(['"', '\'']);
    string || text.bytes().all(|b| b.is_ascii_digit()) || text.starts_with("torch.device(")
}

/// `x.cuda(non_blocking=True)` → `x.to(device, non_blocking=True)`
fn moved_to(text: &str) -> Option<String> {
    let (receiver, arguments) = text.strip_suffix(')')?.rsplit_once(".cuda(")?;
    if arguments.contains(['(', ')', '*']) {
        return None;
    }
    let kept = arguments.split(',').map(str::trim).filter(|a| a.contains('=') && !a.starts_with("device"));
    let kept: String = kept.map(|argument| format!(", {argument}")).collect();
    Some(format!("{receiver}.to(device{kept})"))
}

#[cfg(test)]
mod tests {
    use super::{is_literal, moved_to};

    #[test]
    fn cuda_becomes_to() {
        assert_eq!(moved_to("x.cuda()").as_deref(), Some("x.to(device)"));
        assert_eq!(
            moved_to("x.cuda(0, non_blocking=True)").as_deref(),
            Some("x.to(device, non_blocking=True)")
        );
        assert_eq!(moved_to("f(x.cuda())"), None);
        assert_eq!(moved_to("torch.cuda.Stream()"), None);
    }

    #[test]
    fn literals_are_written_devices() {
        for text in ["\"cuda\"", "f'cuda:{rank}'", "0", "torch.device(\"cuda\")"] {
            assert!(is_literal(text), "{text}");
        }
        assert!(!is_literal("fast"));
    }
}
