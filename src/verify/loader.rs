//! What the dynamic loader of glibc would load, and from where: the order of `ld.so(8)`, by the files alone.
//!
//! A library that is needed is looked for in the `DT_RPATH` of the one that needs it and of those that loaded that one
//! (unless the one that needs it has a `DT_RUNPATH`), in `LD_LIBRARY_PATH`, in its `DT_RUNPATH`, in
//! `/etc/ld.so.cache` and in the system's folders. What is loaded already under that name is not looked for.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use object::elf;

use super::elf::{Defect, Library};
use super::system::Files;
use crate::source::read;

/// Where a library was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is the one that was asked for by its path.
    Asked,
    /// In a `DT_RPATH`.
    Rpath,
    /// In `LD_LIBRARY_PATH`.
    Variable,
    /// In a `DT_RUNPATH`.
    Runpath,
    /// In the loader's cache or the system's folders.
    System,
}

/// A library in the process.
#[derive(Debug)]
pub struct Loaded {
    /// Its headers.
    pub library: Library,
    /// The name that it was asked for by.
    pub name: String,
    /// Where it was found.
    pub found: Found,
    /// The number of the one that needed it first.
    by: Option<usize>,
}

/// Why a library is not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It is nowhere.
    Missing {
        /// Its name.
        name: String,
        /// The library that needs it; none if it was asked for by its path.
        by: Option<PathBuf>,
    },
    /// It is there, and is none.
    Defective {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        defect: Defect,
    },
}

/// A process, and what it has loaded.
#[derive(Debug)]
pub struct Process {
    /// What is loaded, in this order.
    pub loaded: Vec<Loaded>,
    machine: u16,
    variable: Vec<PathBuf>,
    cache: BTreeMap<String, Vec<PathBuf>>,
    folders: Vec<PathBuf>,
}

/// The processor that this program is for, as ELF numbers them.
const MACHINE: Option<u16> = if cfg!(target_arch = "x86_64") {
    Some(elf::EM_X86_64)
} else if cfg!(target_arch = "aarch64") {
    Some(elf::EM_AARCH64)
} else {
    None
};

impl Process {
    /// The process of this Python. Nothing where the loader is not glibc's, or the interpreter is a script that may
    /// change the variables of the environment: then it is not known what is loaded.
    pub fn of(interpreter: Option<&Path>, files: &Files) -> Option<Self> {
        let machine = MACHINE.filter(|_| cfg!(target_os = "linux"))?;
        let program = interpreter.and_then(|path| path.canonicalize().ok());
        if program.as_ref().is_some_and(|path| read::head(path, 2).is_ok_and(|head| head == b"#!")) {
            return None;
        }
        let program = program.and_then(|path| Library::open(&path).ok()).filter(|it| it.machine == machine);
        let loader = program.as_ref().and_then(|program| program.interpreter.clone());
        if loader.as_ref().is_some_and(|loader| !loader.contains("/ld-linux")) {
            return None;
        }
        let (cache, folders) = system(loader.as_deref().map(Path::new), files);
        let mut process = Self { loaded: Vec::new(), machine, variable: variable(), cache, folders };
        if let Some(library) = program {
            let name = library.path.display().to_string();
            process.loaded.push(Loaded { library, name, found: Found::Asked, by: None });
            process.load_needed(0);
        }
        Some(process)
    }

    /// Opens a library by its path, with all that it needs: `dlopen`. What fails is told in the loader's order; the
    /// first is the one that it reports. Then nothing of it stays loaded unless `keep` is set.
    pub fn open(&mut self, path: &Path, keep: bool) -> Vec<Failure> {
        if self.loaded.iter().any(|loaded| loaded.library.path == path) {
            return Vec::new();
        }
        let before = self.loaded.len();
        let failures = match Library::open(path) {
            Ok(library) if library.machine == self.machine => {
                let name = path.display().to_string();
                let by = (before > 0).then_some(0);
                self.loaded.push(Loaded { library, name, found: Found::Asked, by });
                self.load_needed(before)
            }
            Ok(_) => vec![Failure::Defective { path: path.to_owned(), defect: Defect::OtherMachine }],
            Err(Defect::Unreadable(_)) => {
                vec![Failure::Missing { name: path.display().to_string(), by: None }]
            }
            Err(defect) => vec![Failure::Defective { path: path.to_owned(), defect }],
        };
        if !failures.is_empty() && !keep {
            self.loaded.truncate(before);
        }
        failures
    }

    /// Loads what the library of this number needs, and what that needs, each level before the next one.
    fn load_needed(&mut self, first: usize) -> Vec<Failure> {
        let mut failures = Vec::new();
        let mut failed = BTreeSet::new();
        let mut queue = VecDeque::from([first]);
        while let Some(at) = queue.pop_front() {
            for name in self.loaded[at].library.needed.clone() {
                if self.has(&name) || failed.contains(&name) {
                    continue;
                }
                match self.search(at, &name) {
                    Ok((library, found)) => {
                        // The same file under another name is not loaded twice.
                        if !self.loaded.iter().any(|loaded| loaded.library.path == library.path) {
                            queue.push_back(self.loaded.len());
                            self.loaded.push(Loaded { library, name, found, by: Some(at) });
                        }
                    }
                    Err(failure) => {
                        failed.insert(name);
                        failures.push(failure);
                    }
                }
            }
        }
        failures
    }

    fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// What is loaded under this name.
    pub fn get(&self, name: &str) -> Option<&Loaded> {
        self.loaded
            .iter()
            .find(|loaded| loaded.name == name || loaded.library.soname.as_deref() == Some(name))
    }

    /// The file that a library of this name would be.
    fn search(&self, by: usize, name: &str) -> Result<(Library, Found), Failure> {
        if name.contains('/') {
            let path = Path::new(name);
            return self
                .candidate(path)
                .map(|library| library.map(|library| (library, Found::Asked)))
                .unwrap_or_else(|| {
                    Err(Failure::Missing {
                        name: name.to_owned(),
                        by: Some(self.loaded[by].library.path.clone()),
                    })
                });
        }
        let needs = &self.loaded[by].library;
        let mut places: Vec<(PathBuf, Found)> = Vec::new();
        if needs.runpath.is_none() {
            let mut next = Some(by);
            while let Some(at) = next {
                let loaded = &self.loaded[at];
                if let Some(rpath) =
                    loaded.library.rpath.as_deref().filter(|_| loaded.library.runpath.is_none())
                {
                    places.extend(folders(rpath, &loaded.library.path).map(|folder| (folder, Found::Rpath)));
                }
                next = loaded.by;
            }
        }
        places.extend(self.variable.iter().map(|folder| (folder.clone(), Found::Variable)));
        if let Some(runpath) = &needs.runpath {
            places.extend(folders(runpath, &needs.path).map(|folder| (folder, Found::Runpath)));
        }
        let files = places.into_iter().map(|(folder, found)| (folder.join(name), found));
        let cached = self.cache.get(name).into_iter().flatten().cloned();
        let system = cached.chain(self.folders.iter().map(|folder| folder.join(name)));
        for (path, found) in files.chain(system.map(|path| (path, Found::System))) {
            if let Some(library) = self.candidate(&path) {
                return library.map(|library| (library, found));
            }
        }
        Err(Failure::Missing { name: name.to_owned(), by: Some(needs.path.clone()) })
    }

    /// The library that this file is. Nothing if the loader would go on looking: where there is no file, or one for
    /// another processor.
    fn candidate(&self, path: &Path) -> Option<Result<Library, Failure>> {
        match Library::open(path) {
            Ok(library) if library.machine == self.machine => Some(Ok(library)),
            Ok(_) | Err(Defect::Unreadable(_) | Defect::OtherMachine) => None,
            Err(Defect::NotRegular) if path.is_dir() => None,
            Err(defect) => Some(Err(Failure::Defective { path: path.to_owned(), defect })),
        }
    }
}

/// The folders of a `DT_RPATH`. Entries that are not absolute are left out: they depend on the working directory.
fn folders<'a>(path: &'a str, library: &Path) -> impl Iterator<Item = PathBuf> + use<'a> {
    let origin = library.parent().map(|folder| folder.display().to_string()).unwrap_or_default();
    path.split(':')
        .map(move |folder| folder.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin))
        .map(PathBuf::from)
        .filter(|folder| folder.is_absolute())
}

/// `LD_LIBRARY_PATH`, in which an empty entry is the working directory. nix-ld has a variable of its own for it.
fn variable() -> Vec<PathBuf> {
    let of = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let values = [of("LD_LIBRARY_PATH"), of("NIX_LD_LIBRARY_PATH")];
    let folder = |folder: &str| PathBuf::from(if folder.is_empty() { "." } else { folder });
    values.iter().flatten().flat_map(|value| value.split([':', ';'])).map(folder).collect()
}

/// The cache, and the folders that are looked into without being named, of a program's loader. One that is not in the
/// system's folders, as in the store of Nix, has its own beside itself.
fn system(loader: Option<&Path>, files: &Files) -> (BTreeMap<String, Vec<PathBuf>>, Vec<PathBuf>) {
    let usual = |folder: &Path| {
        folder.starts_with("/lib") || folder.starts_with("/lib64") || folder.starts_with("/usr")
    };
    if let Some(own) = loader.and_then(Path::parent).filter(|folder| !usual(folder)) {
        let cache = own.parent().map(|prefix| cached(&prefix.join("etc/ld.so.cache")));
        return (cache.unwrap_or_default(), vec![own.to_owned()]);
    }
    let arch = std::env::consts::ARCH;
    let names = [
        format!("/lib/{arch}-linux-gnu"),
        format!("/usr/lib/{arch}-linux-gnu"),
        "/lib64".to_owned(),
        "/usr/lib64".to_owned(),
        "/lib".to_owned(),
        "/usr/lib".to_owned(),
    ];
    (cached(&files.at("/etc/ld.so.cache")), names.iter().map(|name| files.at(name)).collect())
}

/// The loader's cache: libraries by name. Its format is `struct cache_file_new` in glibc's `dl-cache.h`; an older one
/// may come before it. Empty if it is not that.
fn cached(path: &Path) -> BTreeMap<String, Vec<PathBuf>> {
    const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
    const HEADER: usize = 48;
    const ENTRY: usize = 24;
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    let bytes = read::head(path, 16 << 20).unwrap_or_default();
    let Some(begin) = memchr::memmem::find(&bytes, MAGIC) else { return found };
    let table = &bytes[begin..];
    let number = |at: usize| {
        let four: [u8; 4] = table.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_ne_bytes(four)).ok()
    };
    let text = |at: usize| {
        let rest = table.get(at..)?;
        std::str::from_utf8(&rest[..memchr::memchr(0, rest)?]).ok()
    };
    for index in 0..number(MAGIC.len()).unwrap_or_default() {
        let at = HEADER + index * ENTRY;
        let Some((name, path)) = (|| Some((text(number(at + 4)?)?, text(number(at + 8)?)?)))() else { break };
        found.entry(name.to_owned()).or_default().push(PathBuf::from(path));
    }
    found
}
