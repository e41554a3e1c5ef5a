//! Words that speak of devices.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

/// Parts of names that speak of devices, wherever they stand: nothing else is called so.
const PARTS: &[&str] = &[
    "cuda",
    "gpu",
    "device",
    "accel",
    "xpu",
    "nccl",
    "distributed",
    "parallel",
    "backend",
    "neuron",
    "offload",
    "triton",
    "hardware",
    "platform",
    "bitsandbytes",
    "xformers",
    "deepspeed",
    "flash_attn",
    "tensorrt",
];
/// They, looked for all at once.
static DEVICE_WORDS: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(PARTS).ok());

/// Words that speak of devices where they stand alone: `input` has an `npu` in it, `output` a `tpu`, `sample` an `amp`.
const WORDS: &[&str] = &[
    "cpu", "cpus", "mps", "npu", "hpu", "tpu", "tpus", "mlu", "musa", "xla", "ddp", "fsdp", "rank", "ranks",
    "pin", "pinned", "amp", "autocast", "fp16", "half", "apex", "bnb",
];
/// All of these, and `available`, anywhere at all.
static MAYBE: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let anywhere = PARTS.iter().chain(WORDS).chain(&["available"]);
    AhoCorasick::builder().ascii_case_insensitive(true).build(anywhere).ok()
});

/// Does a flag's name speak of devices? Then whoever sets it decides where things go.
pub(super) fn speaks_of_devices(text: &str) -> bool {
    // Most names have none of the words in them anywhere.
    if MAYBE.as_ref().is_some_and(|words| !words.is_match(text)) {
        return false;
    }
    if DEVICE_WORDS.as_ref().is_some_and(|parts| parts.is_match(text)) {
        return true;
    }
    let is = |word: &[u8], known: &&str| word.eq_ignore_ascii_case(known.as_bytes());
    let mut words = text.as_bytes().split(|b| !b.is_ascii_alphanumeric());
    let mut names = text.as_bytes().split(|&b| !b.is_ascii_alphanumeric() && b != b'_');
    words.any(|word| WORDS.iter().any(|known| is(word, known)))
        // `is_package_available()` asks for a package, and says nothing of the machine.
        || names.any(|name| ["available", "is_available"].iter().any(|known| is(name, known)))
}
