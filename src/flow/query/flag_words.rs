//! Words in names that say that a flag decides about accelerators.
//!
//! A flag is a guard only if it comes with a decision about devices. Distributed execution or a platform is no such decision: Gloo groups
//! run on the CPU.

use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use crate::words::Words;

/// Parts of names that refer to devices anywhere in a name: no other words contain them.
static PARTS: Words = Words::of("device words anywhere in a name");
/// A matcher for all of `PARTS`.
static DEVICE_WORDS: LazyLock<Option<AhoCorasick>> =
    LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(PARTS.all()).ok());

/// Words that refer to devices only as whole words: `input` contains `npu`, `output` contains `tpu`, `napex` contains `apex`. Pinned
/// memory is for copies to an accelerator. PyTorch's FSDP raises if there is none (`_init_device_handle` in
/// `torch/distributed/fsdp/_init_utils.py`).
static WORDS: Words = Words::of("device words on their own");
/// A matcher for all of these words, and for `available`, anywhere in a name.
static MAYBE: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let anywhere = PARTS.all().iter().chain(WORDS.all()).chain(&["available"]);
    AhoCorasick::builder().ascii_case_insensitive(true).build(anywhere).ok()
});

/// Names of the local rank, which is also the index of the process's GPU.
const LOCAL_NUMBERS: &[&str] = &["local_rank", "localrank"];

/// Whether a test of this name asks if a launcher has assigned a GPU to this process: `"LOCAL_RANK" in os.environ`,
/// `args.local_rank != -1`. A test for a specific rank says nothing: `local_rank == 0` is also true in one process of a group on CPUs.
pub(crate) fn speaks_of_own_gpu(text: &str) -> bool {
    let (name, number) = text.split_once(" == ").unwrap_or((text, ""));
    let name = name.to_ascii_lowercase();
    !number.starts_with(|c: char| c.is_ascii_digit())
        && LOCAL_NUMBERS.iter().any(|known| name.contains(known))
}

/// Words that refer to half precision.
static PRECISION: Words = Words::of("half precision");

/// Whether a flag's name says that it selects half precision: `args.fp16`, `use_amp`.
pub(crate) fn speaks_of_precision(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|w| PRECISION.all().iter().any(|p| w.eq_ignore_ascii_case(p)))
}

/// Whether a flag's name refers to devices. The user of such a flag decides where values go.
pub(crate) fn speaks_of_devices(text: &str) -> bool {
    // A quick test: most names contain none of the words.
    if MAYBE.as_ref().is_some_and(|words| !words.is_match(text)) {
        return false;
    }
    if DEVICE_WORDS.as_ref().is_some_and(|parts| parts.is_match(text)) {
        return true;
    }
    let is = |word: &[u8], known: &&str| word.eq_ignore_ascii_case(known.as_bytes());
    let mut words = text.as_bytes().split(|b| !b.is_ascii_alphanumeric());
    let mut names = text.as_bytes().split(|&b| !b.is_ascii_alphanumeric() && b != b'_');
    words.any(|word| WORDS.all().iter().any(|known| is(word, known)))
        // `is_package_available()` tests for a package and says nothing about the machine.
        || names.any(|name| ["available", "is_available"].iter().any(|known| is(name, known)))
}
