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
    /// `sm_90a`: for this device alone. `sm_100f`, for a family, runs wherever `sm_100` does.
    specific: bool,
}

fn parse(word: &str) -> Option<Arch> {
    let (ptx, rest) = match word.strip_prefix("sm_") {
        Some(rest) => (false, rest),
        None => (true, word.strip_prefix("compute_")?),
    };
    let digits = rest.trim_end_matches(['a', 'f']);
    let specific = rest.ends_with('a');
    let number: u32 = digits.parse().ok().filter(|n| (20..1000).contains(n))?;
    Some(Arch { version: Version::new(number / 10, number % 10), ptx, specific })
}

/// Integrated devices: their code runs on them alone, and they run no other (`DEVICE_REQUIREMENT` in
/// `torch/cuda/__init__.py` of PyTorch 2.15, as the two lists below).
const INTEGRATED: [Version; 6] = [
    Version::new(5, 3),
    Version::new(6, 2),
    Version::new(7, 2),
    Version::new(8, 7),
    Version::new(10, 1),
    Version::new(11, 0),
];
/// Two names of one device: CUDA 13 calls 11.0 what was 10.1 before.
const RENAMED: [Version; 2] = [Version::new(10, 1), Version::new(11, 0)];
/// Integrated devices that run the code of others if it was built with CUDA 13.2 or later
/// (`DEVICE_REQUIREMENT_POST_JETSON_SBSA_UNIFICATION`).
const UNIFIED: [Version; 2] = [Version::new(7, 2), Version::new(8, 7)];
const UNIFICATION: Version = Version::new(13, 2);

/// Does code for these architectures, built with this CUDA, run on a device of this compute capability? `None` if
/// there is no list. As PyTorch compares them (`_code_compatible_with_device` there), but for two things that it
/// leaves out: `compute_90` is compiled for newer devices, and `sm_90a` runs on no other.
pub fn run_on(archs: &[String], device: Version, cuda: Option<Version>) -> Option<bool> {
    let archs: Vec<Arch> = archs.iter().filter_map(|word| parse(word)).collect();
    if archs.is_empty() {
        return None;
    }
    Some(archs.iter().any(|arch| runs(*arch, device, cuda)))
}

fn runs(arch: Arch, device: Version, cuda: Option<Version>) -> bool {
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
    if RENAMED.contains(&code) && RENAMED.contains(&device) {
        return true;
    }
    // Binary code runs on later devices of the same major version.
    let later = device.major == code.major && device.minor >= code.minor;
    let unified = cuda.is_some_and(|cuda| cuda >= UNIFICATION) && UNIFIED.contains(&device);
    later && !INTEGRATED.contains(&code) && (unified || !INTEGRATED.contains(&device))
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

    const DEVICES: [u32; 21] =
        [50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121];
    /// What PyTorch 2.15 says of each architecture: the devices of [`DEVICES`] that run its code.
    const RUN_ON: [(u32, &[u32]); 20] = [
        (50, &[50, 52]),
        (52, &[52]),
        (53, &[53]),
        (60, &[60, 61]),
        (61, &[61]),
        (62, &[62]),
        (70, &[70, 75]),
        (72, &[72]),
        (75, &[75]),
        (80, &[80, 86, 88, 89]),
        (86, &[86, 88, 89]),
        (87, &[87]),
        (89, &[89]),
        (90, &[90]),
        (100, &[100, 103]),
        (101, &[101, 110]),
        (103, &[103]),
        (110, &[101, 110]),
        (120, &[120, 121]),
        (121, &[121]),
    ];
    /// What the code of CUDA 13.2 and later runs on besides.
    const SINCE_13_2: [(u32, u32); 3] = [(70, 72), (80, 87), (86, 87)];

    fn version(number: u32) -> Version {
        Version::new(number / 10, number % 10)
    }

    #[test]
    fn every_pair_is_as_pytorch_has_it() {
        let cudas =
            [None, Some((11, 8)), Some((12, 6)), Some((13, 0)), Some((13, 2)), Some((13, 4)), Some((14, 0))];
        for (code, on) in RUN_ON {
            for device in DEVICES {
                for cuda in cudas {
                    let since = cuda >= Some((13, 2)) && SINCE_13_2.contains(&(code, device));
                    let expected = on.contains(&device) || since;
                    let cuda = cuda.map(|(major, minor)| Version::new(major, minor));
                    let found = run_on(&words(&format!("sm_{code}")), version(device), cuda);
                    assert_eq!(found, Some(expected), "sm_{code} on {device} with {cuda:?}");
                }
            }
        }
    }

    #[test]
    fn one_architecture_of_several_is_enough() {
        let cu130 = words("sm_75 sm_80 sm_86 sm_90 sm_100 sm_120");
        for (device, runs) in
            [(61, false), (70, false), (75, true), (89, true), (103, true), (110, false), (121, true)]
        {
            assert_eq!(run_on(&cu130, version(device), Some(Version::new(13, 0))), Some(runs), "{device}");
        }
        assert_eq!(run_on(&[], Version::new(9, 0), None), None);
    }

    #[test]
    fn intermediate_code_and_code_for_one_device() {
        let on = |archs: &str, device: u32| run_on(&words(archs), version(device), None);
        assert_eq!(on("sm_80 compute_90", 120), Some(true), "by compiling");
        assert_eq!(on("sm_80 compute_90", 70), Some(false));
        assert_eq!(on("compute_80", 87), Some(true), "by compiling, for an integrated device too");
        assert_eq!((on("sm_90a", 90), on("sm_100a", 103)), (Some(true), Some(false)));
        assert_eq!((on("sm_100f", 103), on("sm_100f", 101)), (Some(true), Some(false)));
    }
}
