//! Names of types: of numbers, and those that no device has.

use crate::world::Backend;

/// The types of numbers, in `torch`.
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

/// Is it the name of a type of numbers, as in `torch.float32`?
pub(crate) fn is_number_type(name: &str) -> bool {
    NUMBERS.contains(&name)
}

/// Do people compare the type of a device with this, and none is called so? Plug-ins bring types of their own (`tpu`).
pub(crate) fn is_no_device_type(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let kind = lower.split([':', '_', '-']).next().unwrap_or_default();
    let stem = kind.trim_end_matches(|c: char| c.is_ascii_digit());
    matches!(kind, "gpu" | "gpus")
        || text != stem && (matches!(stem, "cpu" | "cuda" | "meta") || Backend::from_name(stem).is_some())
}

/// `cude`, `cdua`, `cudaa`: one letter away from the name of the commonest type, and none of its own.
pub(crate) fn is_misspelt(kind: &str) -> bool {
    kind.starts_with('c') && strsim::osa_distance(kind, "cuda") == 1
}
