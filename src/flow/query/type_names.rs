//! Names of number types, and names that look like device types but are not.

use crate::words::Words;
use crate::world::Backend;

/// The number types in `torch`.
static NUMBERS: Words = Words::of("number types");
/// Device types that are not a `Backend`.
static OTHER_TYPES: Words = Words::of("device types without a backend");

/// Whether the name is a number type, as in `torch.float32`.
pub(crate) fn is_number_type(name: &str) -> bool {
    NUMBERS.has(name)
}

/// Whether programs compare device types with this string although no device type has that name. Plug-ins add types of their own (`tpu`).
pub(crate) fn is_no_device_type(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let kind = lower.split([':', '_', '-']).next().unwrap_or_default();
    let stem = kind.trim_end_matches(|c: char| c.is_ascii_digit());
    matches!(kind, "gpu" | "gpus")
        || text != stem && (OTHER_TYPES.has(stem) || Backend::from_name(stem).is_some())
}

/// Whether the string is one letter away from `cuda`, such as `cude`, `cdua`, `cudaa`.
pub(crate) fn is_misspelt(kind: &str) -> bool {
    kind.starts_with('c') && strsim::osa_distance(kind, "cuda") == 1
}
