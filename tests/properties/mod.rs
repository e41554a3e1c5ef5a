//! What must hold of what the linter reads besides programs, whatever is in it. `tests/fuzzed.rs` asks that of the inputs in
//! `seeds`, and `fuzz` of those that libFuzzer makes.
#![allow(dead_code, clippy::expect_used, reason = "each fuzz target uses one of them; they may panic")]

pub mod configuration;
pub mod machine;
pub mod suppressions;

use samedevice::span::Span;

/// Fails unless the range is one of whole characters of the text.
fn lies_within(span: Span, text: &str) {
    let (start, end) = (span.start as usize, span.end as usize);
    assert!(start <= end && text.get(start..end).is_some(), "{span:?} of {} bytes", text.len());
}
