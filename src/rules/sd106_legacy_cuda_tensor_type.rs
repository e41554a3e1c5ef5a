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

/// The replacement.
fn help(call: &str) -> String {
    let choice = "\"cuda\" if torch.cuda.is_available() else \"cpu\"";
    if call.contains("set_default_tensor_type") {
        return format!("set the default device instead: `torch.set_default_device({choice})`");
    }
    let new = made(call).or_else(|| converted(call)).unwrap_or_else(|| {
        let method = call.contains(".type(");
        if method { ".to(device)".to_owned() } else { "torch.empty(…, device=device)".to_owned() }
    });
    format!("choose the device with a check, `device = {choice}`, and use `{new}`")
}

/// The dtype of `torch.cuda.FloatTensor`.
fn dtype(name: &str) -> Option<&'static str> {
    Some(match name.strip_prefix("torch.cuda.")? {
        "FloatTensor" => "torch.float32",
        "LongTensor" => "torch.int64",
        "HalfTensor" => "torch.float16",
        "DoubleTensor" => "torch.float64",
        "IntTensor" => "torch.int32",
        "ByteTensor" => "torch.uint8",
        "BoolTensor" => "torch.bool",
        _ => return None,
    })
}

/// `torch.cuda.FloatTensor(4, 8)` → `torch.empty(4, 8, dtype=torch.float32, device=device)`
fn made(call: &str) -> Option<String> {
    let (function, arguments) = call.strip_suffix(')')?.split_once('(')?;
    let dtype = dtype(function)?;
    let number = |a: &str| a.trim().bytes().all(|b| b.is_ascii_digit());
    let several = arguments.contains(',') && !arguments.contains(['[', '(', '=', '*']);
    let maker = match arguments.chars().next()? {
        '[' => "tensor",
        // Several arguments are sizes.
        _ if several || number(arguments) => "empty",
        _ => return None,
    };
    Some(format!("torch.{maker}({arguments}, dtype={dtype}, device=device)"))
}

/// `x.type(torch.cuda.FloatTensor)` → `x.to(device, torch.float32)`
fn converted(call: &str) -> Option<String> {
    let (tensor, kind) = call.strip_suffix(')')?.rsplit_once(".type(")?;
    match dtype(kind.trim_matches(['"', '\''])) {
        Some(dtype) => Some(format!("{tensor}.to(device, {dtype})")),
        None => Some(format!("{tensor}.to(device)")),
    }
}

#[cfg(test)]
mod tests {
    use super::{converted, made};

    #[test]
    fn sizes_and_lists_are_told_apart() {
        let [sizes, list] = ["torch.cuda.FloatTensor(4, 8)", "torch.cuda.LongTensor([1, 2])"].map(made);
        assert_eq!(sizes.as_deref(), Some("torch.empty(4, 8, dtype=torch.float32, device=device)"));
        assert_eq!(list.as_deref(), Some("torch.tensor([1, 2], dtype=torch.int64, device=device)"));
        assert_eq!(made("torch.cuda.FloatTensor(x)"), None);
        let sizes = made("torch.cuda.FloatTensor(count, 3)");
        assert_eq!(sizes.as_deref(), Some("torch.empty(count, 3, dtype=torch.float32, device=device)"));
        let moved = converted("x.type(torch.cuda.LongTensor)");
        assert_eq!(moved.as_deref(), Some("x.to(device, torch.int64)"));
    }
}
