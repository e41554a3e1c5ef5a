//! Words in names that say a flag decides about accelerators.
//!
//! A flag is a guard only if it comes with a decision about devices. Being one process of several, or on a platform, is none: gloo's
//! groups run on the CPU.

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
    "neuron",
    // What leaves an accelerator, to spare its memory.
    "offload",
    // Packages that need a GPU.
    "triton",
    "bitsandbytes",
    "xformers",
    "flash_attn",
    "tensorrt",
];
/// They, looked for all at once.
static DEVICE_WORDS: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(PARTS).ok());

/// Words that speak of devices where they stand alone: `input` has an `npu` in it, `output` a `tpu`, `napex` an `apex`.
/// Pinned memory is for copies to an accelerator, and PyTorch's FSDP raises where there is none (`_init_device_handle` in
/// `torch/distributed/fsdp/_init_utils.py`).
const WORDS: &[&str] = &[
    "cpu", "cpus", "mps", "npu", "hpu", "tpu", "tpus", "mlu", "musa", "xla", "fsdp", "pin", "pinned", "apex",
    "bnb",
];
/// All of these, and `available`, anywhere at all.
static MAYBE: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let anywhere = PARTS.iter().chain(WORDS).chain(&["available"]);
    AhoCorasick::builder().ascii_case_insensitive(true).build(anywhere).ok()
});

/// Names of the number of a process on its machine, which is that of its GPU.
const LOCAL_NUMBERS: &[&str] = &["local_rank", "localrank"];

/// Does a test of this name ask whether a launcher has given this process a GPU of its own: `"LOCAL_RANK" in os.environ`,
/// `args.local_rank != -1`? Which number it is says nothing: `local_rank == 0` is true in one process of those on the CPU, too.
pub(crate) fn speaks_of_own_gpu(text: &str) -> bool {
    let (name, number) = text.split_once(" == ").unwrap_or((text, ""));
    let name = name.to_ascii_lowercase();
    !number.starts_with(|c: char| c.is_ascii_digit())
        && LOCAL_NUMBERS.iter().any(|known| name.contains(known))
}

/// Does a flag's name say that who sets it chooses half precision: `args.fp16`, `use_amp`?
pub(crate) fn speaks_of_precision(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|w| {
        ["amp", "fp16", "half", "float16", "autocast", "precision"].iter().any(|p| w.eq_ignore_ascii_case(p))
    })
}

/// Does a flag's name speak of devices? Then whoever sets it decides where things go.
pub(crate) fn speaks_of_devices(text: &str) -> bool {
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
