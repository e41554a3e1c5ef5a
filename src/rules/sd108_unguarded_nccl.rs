//! SD108 unguarded-nccl: an NCCL process group is started on a path without a check for CUDA.

use crate::finding::{Code, Finding};
use crate::flow::event::{Event, Kind};
use crate::remedy::Remedy;
use crate::rules::check::{Check, Context};
use crate::rules::shared::accelerators::chosen;
use crate::rules::shared::assumptions::assume_no_cuda;
use crate::rules::shared::code::{line_with, quoted, text};
use crate::rules::shared::events::{finding, with_also, with_stack};

pub(super) const CODE: Code = Code(108);
pub(super) struct Rule;

impl Check for Rule {
    fn on_event(&mut self, event: &Event, cx: &Context<'_>) -> Option<Finding> {
        let Kind::Nccl = &event.kind else { return None };
        if event.is_guess() || chosen(event, cx) {
            return None;
        }
        let call = quoted(cx, event.place, "`init_process_group()`");
        let message = format!(
            "{call} starts NCCL, which needs CUDA, but no check of `torch.cuda.is_available()` comes before it"
        );
        let f = finding(CODE, event, message, event.place, "NCCL raises without a GPU");
        let choice = "\"nccl\" if torch.cuda.is_available() else \"gloo\"";
        let line = text(cx, event.place).and_then(|text| {
            let backend = text.split('"').skip(1).step_by(2).find(|part| part.contains("nccl"))?;
            let backend = format!("\"{backend}\"");
            let choice = format!("{backend} if torch.cuda.is_available() else \"gloo\"");
            line_with(cx, event.place, &text.replacen(&backend, &choice, 1))
        });
        let line = line.unwrap_or_else(|| choice.to_owned());
        Some(
            with_also(assume_no_cuda(with_stack(f, event), event, cx), event)
                .help(format!("choose the backend with a check: `{line}`"))
                .remedy([Remedy::Choose {
                    literal: event.place,
                    check: "torch.cuda.is_available",
                    otherwise: "gloo",
                }]),
        )
    }
}
