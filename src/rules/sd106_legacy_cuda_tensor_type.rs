//! SD106 legacy-cuda-tensor-type: a type such as `torch.cuda.FloatTensor`, which needs CUDA.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind, UseKind};
use crate::rules::check::{Check, Context};
use crate::rules::shared::accelerators::chosen;
use crate::rules::shared::assumptions::assume_no_cuda;
use crate::rules::shared::code::{quoted, text};
use crate::rules::shared::events::{finding, with_also, with_stack};

pub(super) const CODE: Code = Code(106);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::Use { what, how: UseKind::LegacyType, backend: None, .. } = &event.kind else {
            return None;
        };
        if event.is_guess() || chosen(event, cx) {
            return None;
        }
        let used = quoted(cx, event.place, what);
        let message =
            format!("{used} needs CUDA, but no check of `torch.cuda.is_available()` comes before it");
        let f = finding(CODE, event, message, event.place, "this tensor type exists only with CUDA");
        let call = text(cx, event.place).unwrap_or(what.trim_matches('`'));
        Some(with_also(assume_no_cuda(with_stack(f, event), event, cx), event).help(help(call)))
    }
}

/// What to write in its place.
fn help(call: &str) -> String {
    let choice = "\"cuda\" if torch.cuda.is_available() else \"cpu\"";
    if call.contains("set_default_tensor_type") {
        return format!("set the default device instead: `torch.set_default_device({choice})`");
    }
    let new = made(call).unwrap_or_else(|| {
        let method = call.contains(".type(");
        if method { ".to(device)".to_owned() } else { "torch.empty(…, device=device)".to_owned() }
    });
    format!("choose the device with a check, `device = {choice}`, and use `{new}`")
}

/// `torch.cuda.FloatTensor(4, 8)` → `torch.empty(4, 8, device=device)`
fn made(call: &str) -> Option<String> {
    let (function, arguments) = call.strip_suffix(')')?.split_once('(')?;
    let dtype = match function.strip_prefix("torch.cuda.")? {
        "FloatTensor" => "float32",
        "LongTensor" => "int64",
        "HalfTensor" => "float16",
        "DoubleTensor" => "float64",
        "IntTensor" => "int32",
        "ByteTensor" => "uint8",
        "BoolTensor" => "bool",
        _ => return None,
    };
    let sizes = arguments.split(',').all(|a| a.trim().bytes().all(|b| b.is_ascii_digit()));
    let maker = match arguments.chars().next()? {
        '[' => "tensor",
        _ if sizes => "empty",
        _ => return None,
    };
    Some(format!("torch.{maker}({arguments}, dtype=torch.{dtype}, device=device)"))
}

#[cfg(test)]
mod tests {
    use super::made;

    #[test]
    fn sizes_and_lists_are_told_apart() {
        let [sizes, list] = ["torch.cuda.FloatTensor(4, 8)", "torch.cuda.LongTensor([1, 2])"].map(made);
        assert_eq!(sizes.as_deref(), Some("torch.empty(4, 8, dtype=torch.float32, device=device)"));
        assert_eq!(list.as_deref(), Some("torch.tensor([1, 2], dtype=torch.int64, device=device)"));
        assert_eq!(made("torch.cuda.FloatTensor(x)"), None);
    }
}
