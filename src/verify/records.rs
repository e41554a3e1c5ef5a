//! What the records of installed packages say: which package a library is of and how long it ought to be, and which packages
//! ask for a certain PyTorch.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::source::read;

/// The list of PyTorch's files has 1.2 MB; in bytes.
const MAX_RECORD: u64 = 32 << 20;
/// Requirements come before the text for people; in bytes.
const METADATA_HEAD: u64 = 32 << 10;

/// A `*.dist-info` folder.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// Its normalized name (PEP 503).
    pub name: String,
    /// Its version.
    pub version: String,
    /// The folder.
    pub path: PathBuf,
}

/// A package that has recorded a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its name.
    pub package: String,
    /// Its version.
    pub version: String,
    /// How long the file ought to be, in bytes.
    pub size: Option<u64>,
}

/// A shared library that packages have recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The file.
    pub path: PathBuf,
    /// How long it is, in bytes; none if it is not there.
    pub size: Option<u64>,
    /// Who has recorded it.
    pub owners: Vec<Owner>,
}

impl Recorded {
    /// Is it the file of this package, as far as its length tells?
    pub fn is_of(&self, owner: &Owner) -> bool {
        self.size.is_some() && owner.size.is_none_or(|size| Some(size) == self.size)
    }
}

/// A package that asks for a certain PyTorch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Companion {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The version of PyTorch, as it is written: `2.5.1`, `2.5.*`.
    pub wants: Option<String>,
}

/// The shared libraries of PyTorch and of NVIDIA's packages in this folder, as they are recorded (`RECORD`, PEP 376). conda
/// changes files after they are recorded, and is left out.
pub fn libraries(site: &Path, distributions: &[Distribution]) -> Vec<Recorded> {
    let mut owners: BTreeMap<String, Vec<Owner>> = BTreeMap::new();
    for one in distributions.iter().filter(|one| one.name == "torch" || one.name.starts_with("nvidia-")) {
        let installer = read::short_text(&one.path.join("INSTALLER"), 4096).unwrap_or_default();
        if installer.trim() == "conda" {
            continue;
        }
        let record = read::short_text(&one.path.join("RECORD"), MAX_RECORD).unwrap_or_default();
        for line in record.lines().filter(|line| memchr::memmem::find(line.as_bytes(), b".so").is_some()) {
            // PATH,HASH,SIZE: neither of the last two has a comma in it.
            let mut parts = line.rsplitn(3, ',');
            let (Some(size), Some(_), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
                continue;
            };
            let name = path.rsplit('/').next().unwrap_or_default();
            if name.ends_with(".so") || name.contains(".so.") {
                let owner = Owner {
                    package: one.name.clone(),
                    version: one.version.clone(),
                    size: size.trim().parse().ok(),
                };
                owners.entry(path.trim_matches('"').to_owned()).or_default().push(owner);
            }
        }
    }
    let recorded = owners.into_iter().map(|(path, owners)| {
        let path = site.join(path);
        let size = fs::metadata(&path).ok().filter(fs::Metadata::is_file).map(|metadata| metadata.len());
        Recorded { path, size, owners }
    });
    recorded.collect()
}

/// The packages here that are built for one PyTorch: those that ask for a certain version of it, and those with a part after
/// `+` in their own that speaks of CUDA.
pub fn companions(distributions: &[Distribution]) -> Vec<Companion> {
    let companions = distributions.iter().filter(|one| one.name != "torch").filter_map(|one| {
        let wants = wanted_torch(&one.path.join("METADATA"));
        let built = one.name.starts_with("torch") && one.version.contains('+');
        let companion =
            || Companion { name: one.name.clone(), version: one.version.clone(), wants: wants.clone() };
        (wants.is_some() || built).then(companion)
    });
    companions.collect()
}

/// `Requires-Dist: torch==2.5.1`, `Requires-Dist: torch (==2.5.1)`: the version. Extras ask for nothing.
fn wanted_torch(metadata: &Path) -> Option<String> {
    let (file, _) = read::open(metadata).ok()?;
    let mut head = Vec::new();
    file.take(METADATA_HEAD).read_to_end(&mut head).ok()?;
    // Most packages do not speak of it.
    memchr::memmem::find(&head, b"Requires-Dist: torch")?;
    let head = String::from_utf8_lossy(&head);
    let lines = head.lines().take_while(|line| !line.trim().is_empty());
    lines.filter_map(|line| line.strip_prefix("Requires-Dist: torch")).find_map(|rest| {
        let (rest, marker) = rest.split_once(';').unwrap_or((rest, ""));
        let version = rest.trim_matches([' ', '(', ')']).strip_prefix("==")?.trim();
        (!marker.contains("extra") && !version.contains(',')).then(|| version.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_a_certain_pytorch() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("METADATA");
        for (line, version) in [
            ("Requires-Dist: torch==2.5.1", Some("2.5.1")),
            ("Requires-Dist: torch (==1.13.1)", Some("1.13.1")),
            ("Requires-Dist: torch==2.5.1+cu124", Some("2.5.1+cu124")),
            ("Requires-Dist: torch>=2.0", None),
            ("Requires-Dist: torch", None),
            ("Requires-Dist: torchvision==0.20.1", None),
            ("Requires-Dist: torch==2.0; extra == 'test'", None),
            ("\nRequires-Dist: torch==2.0", None),
        ] {
            fs::write(&file, format!("Metadata-Version: 2.1\nName: x\n{line}\n")).unwrap();
            assert_eq!(wanted_torch(&file).as_deref(), version, "{line}");
        }
    }
}
