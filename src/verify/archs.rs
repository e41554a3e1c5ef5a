//! The GPU architectures that a PyTorch has code for, read from its library.

use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use memchr::memmem;

use super::elf::Library;
use super::machine::Version;
use crate::source::read::{open, text};

/// Reading in pieces of this size keeps a library of 500 MB out of memory.
const CHUNK: usize = 1 << 20;
/// No list is longer, in bytes. Pieces overlap by this much.
const MAX_LIST: usize = 512;

/// No more than this is read of a library, in bytes: its constants take 1 MB.
const MAX_READ: u64 = 64 << 20;

/// The list that `torch.cuda.get_arch_list()` gives: one string among the constants of `libtorch_python`, `sm_75 sm_80
/// compute_90`. Empty if there is none.
pub fn of(torch: &Path) -> Vec<String> {
    let lib = torch.join("lib");
    let names = ["libtorch_python.so", "torch_python.dll", "libtorch_python.dylib"];
    let Some((path, mut file)) =
        names.iter().map(|name| lib.join(name)).find_map(|path| Some((path.clone(), open(&path).ok()?.0)))
    else {
        return Vec::new();
    };
    // What is no ELF file is read from its beginning.
    let constants = Library::open(&path).map(|library| library.constants()).unwrap_or_default();
    let pieces = if constants.is_empty() { vec![(0, MAX_READ)] } else { constants };
    let mut best = Vec::new();
    let mut left = MAX_READ;
    for (offset, length) in pieces {
        let length = length.min(left);
        left -= length;
        if length > 0 && file.seek(SeekFrom::Start(offset)).is_ok() {
            let found = longest(&mut file.by_ref().take(length));
            if found.len() > best.len() {
                best = found;
            }
        }
    }
    best
}

/// The longest list in what is read.
fn longest(source: &mut impl Read) -> Vec<String> {
    let finder = memmem::Finder::new("sm_");
    let mut best = Vec::new();
    let mut window: Vec<u8> = Vec::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        let Ok(read) = source.read(&mut chunk) else { return best };
        window.extend_from_slice(&chunk[..read]);
        // What begins in the last bytes is looked at with the next piece.
        let complete = if read == 0 { window.len() } else { window.len().saturating_sub(MAX_LIST) };
        for at in finder.find_iter(&window[..]).take_while(|at| *at < complete) {
            let list = list(&window[at..]);
            if list.len() > best.len() {
                best = list;
            }
        }
        if read == 0 {
            return best;
        }
        window.drain(..complete);
    }
}

/// What PyTorch's own releases for this CUDA have code for, by the table that newer versions carry in
/// `torch/cuda/__init__.py`: for a library that has no list. Empty if there is no such table.
pub fn of_release(torch: &Path, cuda: Version) -> Vec<String> {
    let text = text(&torch.join("cuda").join("__init__.py")).unwrap_or_default();
    let after = |text: &str, mark: &str| text.find(mark).map(|at| text[at + mark.len()..].to_owned());
    let release =
        after(&text, "PYTORCH_RELEASES_CODE_CC").and_then(|rest| after(&rest, &format!("\"{cuda}\": {{")));
    let codes = release
        // The next release begins after a closing brace on a line of its own.
        .and_then(|rest| rest.split("\n    }").next().map(str::to_owned))
        .and_then(|rest| after(&rest, &format!("\"{}\": {{", std::env::consts::ARCH)))
        .and_then(|rest| rest.split('}').next().map(str::to_owned));
    let names = codes.unwrap_or_default();
    let names = names.split(',').map(|code| format!("sm_{}", code.trim()));
    names.filter(|name| parse(name).is_some()).collect()
}

/// The architectures at the beginning of these bytes: `sm_80 sm_90a compute_90`.
fn list(bytes: &[u8]) -> Vec<String> {
    let end =
        bytes.iter().take(MAX_LIST).position(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'_' | b' ')));
    let text = String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len().min(MAX_LIST))]);
    text.split(' ').take_while(|word| parse(word).is_some()).map(str::to_owned).collect()
}

/// What an architecture's name means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arch {
    version: Version,
    /// Intermediate code, which the driver compiles for newer devices.
    ptx: bool,
    /// `sm_90a`: for this device alone.
    specific: bool,
}

fn parse(word: &str) -> Option<Arch> {
    let (ptx, rest) = match word.strip_prefix("sm_") {
        Some(rest) => (false, rest),
        None => (true, word.strip_prefix("compute_")?),
    };
    let digits = rest.trim_end_matches(['a', 'f']);
    let specific = digits.len() != rest.len();
    let number: u32 = digits.parse().ok().filter(|n| (20..1000).contains(n))?;
    Some(Arch { version: Version::new(number / 10, number % 10), ptx, specific })
}

/// Integrated devices, for which other code of the same major version is not (`DEVICE_REQUIREMENT` in
/// `torch/cuda/__init__.py`), and what runs code for them.
const INTEGRATED: [Version; 5] =
    [Version::new(5, 3), Version::new(6, 2), Version::new(7, 2), Version::new(8, 7), Version::new(10, 1)];

/// Does code for these architectures run on a device of this compute capability? `None` if there is no list.
pub fn run_on(archs: &[String], device: Version) -> Option<bool> {
    let archs: Vec<Arch> = archs.iter().filter_map(|word| parse(word)).collect();
    if archs.is_empty() {
        return None;
    }
    let runs = |arch: &Arch| {
        let code = arch.version;
        if code == device {
            return true;
        }
        if arch.specific {
            return false;
        }
        if arch.ptx {
            return device >= code;
        }
        // Binary code runs on later devices of the same major version.
        device.major == code.major && device.minor >= code.minor && !INTEGRATED.contains(&code)
    };
    Some(archs.iter().any(runs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn the_list_is_found_wherever_it_lies() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("lib")).unwrap();
        for before in [0, 10, CHUNK - 20, CHUNK, CHUNK + 5, 2 * CHUNK - MAX_LIST, 2 * CHUNK - 3] {
            let mut bytes = vec![b'x'; before];
            bytes.extend(b"\0sm_\0sm_80 is a word\0sm_75 sm_80 sm_90a compute_90\0and so on");
            std::fs::write(folder.path().join("lib/libtorch_python.so"), bytes).unwrap();
            assert_eq!(of(folder.path()), words("sm_75 sm_80 sm_90a compute_90"), "{before}");
        }
        std::fs::write(folder.path().join("lib/libtorch_python.so"), "no list").unwrap();
        assert!(of(folder.path()).is_empty());
    }

    #[test]
    fn a_library_without_a_list_is_what_its_release_is() {
        let folder = tempfile::tempdir().unwrap();
        let arch = std::env::consts::ARCH;
        let table = format!(
            "import x\nPYTORCH_RELEASES_CODE_CC: dict[str, dict[str, set[int]]] = {{\n    \"12.6\": {{\n        \
             \"other\": {{80}},\n    }},\n    \"13.2\": {{\n        \"other\": {{80}},\n        \"{arch}\": {{75, 80, \
             120}},\n    }},\n}}\n"
        );
        std::fs::create_dir(folder.path().join("cuda")).unwrap();
        std::fs::write(folder.path().join("cuda/__init__.py"), table).unwrap();
        assert_eq!(of_release(folder.path(), Version::new(13, 2)), words("sm_75 sm_80 sm_120"));
        assert!(of_release(folder.path(), Version::new(12, 6)).is_empty(), "not for this processor");
        assert!(of_release(folder.path(), Version::new(11, 8)).is_empty());
        assert!(of_release(&folder.path().join("cuda"), Version::new(13, 2)).is_empty());
    }

    #[test]
    fn code_runs_on_later_devices_of_its_kind() {
        let cu130 = words("sm_75 sm_80 sm_86 sm_90 sm_100 sm_120");
        for (device, runs) in [
            ((6, 1), false),
            ((7, 0), false),
            ((7, 5), true),
            ((8, 0), true),
            ((8, 9), true),
            ((9, 0), true),
            ((10, 3), true),
            ((11, 0), false),
            ((12, 1), true),
        ] {
            assert_eq!(run_on(&cu130, Version::new(device.0, device.1)), Some(runs), "{device:?}");
        }
        assert_eq!(run_on(&words("sm_80 compute_90"), Version::new(12, 0)), Some(true), "by compiling");
        assert_eq!(run_on(&words("sm_87"), Version::new(8, 9)), Some(false), "Jetson code");
        assert_eq!(run_on(&words("sm_90a"), Version::new(9, 0)), Some(true));
        assert_eq!(run_on(&[], Version::new(9, 0)), None);
    }
}
