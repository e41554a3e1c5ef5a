//! The installed PyTorch, read as files. Importing it would run it, and what is broken could not be imported.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::archs;
use super::machine::{Build, Torch};
use super::modules;
use super::preloads::entries;
use super::python::is_edited_in_place;
use super::records::{self, Companion, Distribution, Recorded};
use crate::source::read;

/// `version.py` has a few lines, and so have an installer's name and the head of a record with its requirements; in bytes.
const MAX_VERSION: u64 = 64 << 10;
/// METADATA has the text for people, too; in bytes.
const MAX_METADATA: u64 = 4 << 20;

/// What is installed in the folders of a search path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installed {
    /// The PyTorch that is imported, if there is one.
    pub torch: Option<Torch>,
    /// The other distributions that matter, by normalized name: those that begin with `nvidia-`, and plug-ins.
    pub packages: BTreeMap<String, String>,
    /// What the distribution of PyTorch asks for, by normalized name, with the version if it is a fixed one.
    pub wanted: BTreeMap<String, Option<String>>,
    /// Folders of NVIDIA's libraries in the search path, by package: `cudnn` → `…/nvidia/cudnn/lib`.
    pub libraries: BTreeMap<String, Vec<PathBuf>>,
    /// The versions in the records of PyTorch, where there is more than one in its folder.
    pub records: Vec<String>,
    /// The libraries that PyTorch and NVIDIA's packages have recorded.
    pub recorded: Vec<Recorded>,
    /// The packages that are built for one PyTorch.
    pub companions: Vec<Companion>,
    /// Packages that PyTorch asks for, imports at once, and that are not there.
    pub missing: Vec<String>,
    /// PyTorch's C extension, if it is one of this Python's.
    pub extension: Option<PathBuf>,
}

/// Other packages that are built for one PyTorch, or that people are asked for.
const BESIDE: [&str; 4] = ["torchvision", "torchaudio", "triton", "xformers"];

/// Packages that bring a back end, by the device type.
pub const PLUGINS: [(&str, &[&str]); 5] = [
    ("hpu", &["habana-torch-plugin", "habana-frameworks"]),
    ("npu", &["torch-npu"]),
    ("xla", &["torch-xla"]),
    ("mlu", &["torch-mlu"]),
    ("musa", &["torch-musa"]),
];

/// Reads what is in these folders, the first of which counts; `prefix` is where conda keeps its records, and
/// `project` what a script's own folder is.
pub fn read(search_path: &[PathBuf], prefix: &Path, project: &Path) -> Installed {
    let mut installed = Installed::default();
    let mut torches: Vec<Torch> = Vec::new();
    for site in search_path {
        let distributions = distributions(site);
        if let Some(mut torch) = torch_in(site, &distributions, prefix) {
            if torches.is_empty() {
                installed.wanted = wanted(&distributions, torch.version.as_deref());
                installed.missing = modules::missing(&site.join("torch"), search_path, &installed.wanted);
                let own = distributions.iter().filter(|one| one.name == "torch");
                let own: Vec<String> = own.map(|one| one.version.clone()).collect();
                installed.extension = extension(&mut torch, search_path, own.is_empty());
                installed.records = if own.len() > 1 { own } else { Vec::new() };
            }
            torches.push(torch);
        }
        installed.recorded.extend(records::libraries(site, &distributions));
        for companion in records::companions(&distributions) {
            if !installed.companions.iter().any(|known| known.name == companion.name) {
                installed.companions.push(companion);
            }
        }
        for distribution in &distributions {
            let name = &distribution.name;
            let matters = name.starts_with("nvidia-")
                || BESIDE.contains(&name.as_str())
                || PLUGINS.iter().any(|(_, packages)| packages.contains(&name.as_str()));
            if matters && !installed.packages.contains_key(name) {
                installed.packages.insert(name.clone(), distribution.version.clone());
            }
        }
        // Index of CUDA 12: `nvidia/cudnn/lib`; of CUDA 13: `nvidia/cu13/lib` besides.
        for entry in fs::read_dir(site.join("nvidia")).into_iter().flatten().flatten() {
            let folder = if cfg!(windows) { "bin" } else { "lib" };
            let library = entry.path().join(folder);
            if library.is_dir() {
                let name = entry.file_name().to_string_lossy().into_owned();
                installed.libraries.entry(name).or_default().push(library);
            }
        }
    }
    let mut torches = torches.into_iter();
    let Some(mut first) = torches.next() else { return installed };
    first.packages = installed.packages.clone();
    first.shadowed = torches.map(|torch| torch.path).collect();
    for name in ["torch.py", "torch/__init__.py"] {
        let own = project.join(name);
        if own.is_file() && !search_path.iter().any(|site| site.as_path() == project) {
            first.broken.push(format!("`{}` is imported instead by programs in that folder", own.display()));
        }
    }
    installed.torch = Some(first);
    installed
}

/// The C extension `torch._C` that this Python imports, and what is wrong if there is none. A tree of sources (`built_in_place`)
/// may have it elsewhere.
fn extension(torch: &mut Torch, search_path: &[PathBuf], built_in_place: bool) -> Option<PathBuf> {
    let folder = Path::new(&torch.path);
    let named = |path: &PathBuf| {
        let name = path.file_name()?.to_str()?;
        let tag = name.strip_prefix("_C.")?.strip_suffix(".so")?;
        Some(tag.to_owned())
    };
    let all: Vec<(PathBuf, String)> =
        entries(folder).into_iter().filter_map(|path| Some((path.clone(), named(&path)?))).collect();
    // `…/lib/python3.11/site-packages` is of `cpython-311`; until 3.7 an `m` follows.
    let version = search_path.iter().flat_map(|site| site.iter()).find_map(|part| {
        let version = part.to_str()?.strip_prefix("python3.")?;
        version.starts_with(|c: char| c.is_ascii_digit()).then(|| format!("cpython-3{version}"))
    });
    let fits = |tag: &str| match &version {
        Some(version) => {
            let rest = tag.strip_prefix(version.as_str()).map(|rest| rest.strip_prefix('m').unwrap_or(rest));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
                || tag.starts_with("abi3")
                || tag == "so"
        }
        None => true,
    };
    let found = all.iter().find(|(_, tag)| fits(tag)).map(|(path, _)| path.clone());
    let whole = folder.join("__init__.py").is_file() && folder.join("lib").is_dir();
    if found.is_none() && whole && !built_in_place && cfg!(target_os = "linux") {
        torch.broken.push(match all.first() {
            Some((path, _)) => format!(
                "its C extension {} is not for this Python: \"Failed to load PyTorch C extensions\"",
                path.file_name().unwrap_or_default().display()
            ),
            None => "its C extension `_C` is missing: \"No module named 'torch._C'\"".to_owned(),
        });
    }
    found
}

/// PEP 503.
fn normalized(name: &str) -> String {
    name.to_ascii_lowercase().replace(['_', '.'], "-")
}

fn distributions(site: &Path) -> Vec<Distribution> {
    let mut found: Vec<_> = fs::read_dir(site)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let file = entry.file_name().into_string().ok()?;
            let (name, version) = file.strip_suffix(".dist-info")?.split_once('-')?;
            Some(Distribution { name: normalized(name), version: version.to_owned(), path: entry.path() })
        })
        .collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn torch_in(site: &Path, distributions: &[Distribution], prefix: &Path) -> Option<Torch> {
    let folder = site.join("torch");
    let own: Vec<_> = distributions.iter().filter(|d| d.name == "torch").collect();
    // The folder of one that is edited in place is elsewhere on the search path.
    if !folder.is_dir() && own.iter().all(|record| is_edited_in_place(&record.path)) {
        return None;
    }
    let mut torch = Torch { path: folder.display().to_string(), ..Torch::default() };
    let closed = [folder.clone(), folder.join("lib")].into_iter().find(|folder| is_closed(folder));
    if let Some(closed) = closed {
        torch.broken.push(format!("{MAY_NOT_READ} {}", closed.display()));
    } else if !folder.is_dir() {
        torch.broken.push("its record is there and its folder is not".to_owned());
    } else if !folder.join("__init__.py").is_file() {
        torch
            .broken
            .push("its folder has no `__init__.py`, so that `import torch` gives an empty module".to_owned());
    }
    match read::short_text(&folder.join("version.py"), MAX_VERSION) {
        Some(text) => read_version(&text, &folder, &mut torch),
        None if is_closed(&folder) => {}
        None if folder.join("version.py").symlink_metadata().is_ok() => {
            torch.broken.push("its `version.py` is not the text that PyTorch's build writes".to_owned());
        }
        None => torch.broken.push("it has no `version.py`".to_owned()),
    }
    if let Some(first) = record_of(distributions, torch.version.as_deref()) {
        torch.installer =
            read::short_text(&first.path.join("INSTALLER"), MAX_VERSION).map(|t| t.trim().to_owned());
        torch.record = Some(first.version.clone());
        torch.version.get_or_insert_with(|| first.version.clone());
    }
    if let Some((version, build)) = conda_record(prefix) {
        if torch.installer.as_deref().is_none_or(|installer| installer == "conda") {
            torch.installer = Some("conda".to_owned());
            torch.version.get_or_insert(version);
        }
        torch.conda_build = Some(build);
    }
    torch.archs = archs::of(&folder);
    if let Some(cuda) = torch.cuda.filter(|_| torch.archs.is_empty()) {
        torch.archs = archs::of_release(&folder, cuda);
    }
    Some(torch)
}

/// What [`Torch::broken`] says of a folder that is there and cannot be read; its path comes after it.
pub const MAY_NOT_READ: &str = "the user may not read";

fn is_closed(folder: &Path) -> bool {
    fs::read_dir(folder).is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
}

/// `version.py` is written by PyTorch's build: assignments of strings and `None`, with or without annotations.
fn read_version(text: &str, folder: &Path, torch: &mut Torch) {
    let values: BTreeMap<&str, Option<&str>> = text.lines().filter_map(assignment).collect();
    let value = |name: &str| values.get(name).copied().flatten().map(str::to_owned);
    torch.version = value("__version__");
    torch.cuda = value("cuda").and_then(|text| text.parse().ok());
    torch.hip = value("hip").or_else(|| value("rocm"));
    torch.xpu = value("xpu");
    torch.build = match (value("cuda"), &torch.hip) {
        (_, Some(_)) => Build::Rocm,
        (Some(_), None) => Build::Cuda,
        (None, None) if values.contains_key("cuda") => Build::Cpu,
        (None, None) => Build::Unknown,
    };
    if torch.build == Build::Unknown {
        torch.broken.push("its `version.py` does not say what it was built for".to_owned());
    }
    let library = ["libtorch_cuda.so", "torch_cuda.dll"];
    let lib = folder.join("lib");
    if torch.build == Build::Cuda
        && lib.is_dir()
        && !is_closed(&lib)
        && !library.iter().any(|name| lib.join(name).is_file())
    {
        torch.broken.push("it was built for CUDA, and its `libtorch_cuda.so` is missing".to_owned());
    }
}

/// `cuda: Optional[str] = '13.2'` → ("cuda", Some("13.2")).
fn assignment(line: &str) -> Option<(&str, Option<&str>)> {
    let (target, value) = line.split_once('=')?;
    let name = target.split(':').next()?.trim();
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return None;
    }
    let value = value.split('#').next()?.trim();
    if value == "None" {
        return Some((name, None));
    }
    let quote = value.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    Some((name, value.strip_prefix(quote)?.strip_suffix(quote)))
}

/// PyTorch's record: of several, the one of the version that its files are of. PyPI's records have no part after `+`.
fn record_of<'a>(distributions: &'a [Distribution], version: Option<&str>) -> Option<&'a Distribution> {
    let public = |version: &str| version.split('+').next().unwrap_or_default().to_owned();
    let own = || distributions.iter().filter(|one| one.name == "torch");
    let is = |one: &&Distribution| Some(one.version.as_str()) == version;
    let is_public = |one: &&Distribution| version.is_some_and(|it| public(it) == public(&one.version));
    own().find(is).or_else(|| own().find(is_public)).or_else(|| own().next())
}

/// What the distribution of PyTorch here asks for: `Requires-Dist: nvidia-cudnn-cu13==9.19.0.56; platform_system
/// == "Linux"`. Extras are left out.
fn wanted(distributions: &[Distribution], version: Option<&str>) -> BTreeMap<String, Option<String>> {
    let Some(torch) = record_of(distributions, version) else { return BTreeMap::new() };
    let metadata = read::short_text(&torch.path.join("METADATA"), MAX_METADATA).unwrap_or_default();
    // A blank line ends the headers.
    let headers = metadata.lines().take_while(|line| !line.trim().is_empty());
    let mut wanted = BTreeMap::new();
    for requirement in headers.filter_map(|line| line.strip_prefix("Requires-Dist:")) {
        let (requirement, marker) = requirement.split_once(';').unwrap_or((requirement, ""));
        if marker.contains("extra ") || marker.contains("extra==") || !applies(marker) {
            continue;
        }
        let requirement = requirement.trim();
        let end = requirement.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c));
        let (name, rest) = requirement.split_at(end.unwrap_or(requirement.len()));
        let version = rest.split("==").nth(1).map(|v| v.trim_end_matches([')', ' ']).trim().to_owned());
        // Since CUDA 13: `cuda-toolkit[cublas,cudart]==13.2.2`, an empty package that asks for `nvidia-cublas`.
        if let Some((_, extras)) = rest.split_once('[').filter(|_| normalized(name) == "cuda-toolkit") {
            let extras = extras.split(']').next().unwrap_or_default();
            wanted.extend(extras.split(',').map(|extra| (format!("nvidia-{}", extra.trim()), None)));
        }
        wanted.insert(normalized(name), version);
    }
    wanted
}

/// Does the marker speak of this platform? The wheels only ask for the system and the processor.
fn applies(marker: &str) -> bool {
    let says = |key: &str, value: &str| {
        let quoted = marker.split(key).nth(1).and_then(|rest| rest.split(['"', '\'']).nth(1));
        quoted.is_none_or(|quoted| quoted == value)
    };
    let system = match std::env::consts::OS {
        "macos" => "Darwin",
        "windows" => "Windows",
        _ => "Linux",
    };
    says("platform_system", system)
        && says("sys_platform", if cfg!(windows) { "win32" } else { std::env::consts::OS })
}

/// conda's record of PyTorch: version and build string.
fn conda_record(prefix: &Path) -> Option<(String, String)> {
    let mut files: Vec<_> = fs::read_dir(prefix.join("conda-meta"))
        .ok()?
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter_map(|name| Some(name.strip_suffix(".json")?.to_owned()))
        .collect();
    files.sort_unstable();
    files.iter().find_map(|stem| {
        // NAME-VERSION-BUILD, and names may have hyphens in them.
        let mut parts = stem.rsplitn(3, '-');
        let (build, version, name) = (parts.next()?, parts.next()?, parts.next()?);
        matches!(name, "pytorch" | "pytorch-cpu" | "pytorch-gpu" | "libtorch")
            .then(|| (version.to_owned(), build.to_owned()))
    })
}

#[cfg(test)]
mod tests {
    use super::assignment;

    #[test]
    fn lines_of_version_py() {
        for (line, read) in [
            ("__version__ = '2.15.0+cu132'", Some(("__version__", Some("2.15.0+cu132")))),
            ("cuda: Optional[str] = '13.2'", Some(("cuda", Some("13.2")))),
            ("hip: str | None = None", Some(("hip", None))),
            ("debug = False", None),
            ("__all__ = ['__version__', 'debug', 'cuda']", None),
            ("from typing import Optional", None),
            ("cuda = \"12.4\"  # the toolkit", Some(("cuda", Some("12.4")))),
        ] {
            assert_eq!(assignment(line), read, "{line}");
        }
    }
}
