//! Names of number types, and names that look like device types but are not.

use crate::world::Backend;

/// The number types in `torch`.
const NUMBERS: &[&str] = &[
    "float16",
    "half",
    "bfloat16",
    "float32",
    "float",
    "float64",
    "double",
    "complex64",
    "complex128",
    "uint8",
    "int8",
    "int16",
    "short",
    "int32",
    "int",
    "int64",
    "long",
    "bool",
];

/// Whether the name is a number type, as in `torch.float32`.
pub(crate) fn is_number_type(name: &str) -> bool {
    NUMBERS.contains(&name)
}

/// Whether programs compare device types with this string although no device type has that name. Plug-ins add types of their own (`tpu`).
pub(crate) fn is_no_device_type(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let kind = lower.split([':', '_', '-']).next().unwrap_or_default();
    let stem = kind.trim_end_matches(|c: char| c.is_ascii_digit());
    matches!(kind, "gpu" | "gpus")
        || text != stem && (matches!(stem, "cpu" | "cuda" | "meta") || Backend::from_name(stem).is_some())
}

/// Whether the string is one letter away from `cuda`, such as `cude`, `cdua`, `cudaa`.
pub(crate) fn is_misspelt(kind: &str) -> bool {
    kind.starts_with('c') && strsim::osa_distance(kind, "cuda") == 1
}
