//! What `torch/__init__.py` loads before `torch._C`, as far as its text tells. Every release since 1.13 has a table of NVIDIA's
//! libraries, `"cublas": "libcublas.so.*[0-9]"`, and loads them from the packages beside it where the loader does not find
//! them, or always: `_preload_cuda_deps` and `_load_global_deps`.

use std::fs;
use std::path::{Path, PathBuf};

use globset::Glob;

/// A library that is loaded by its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preload {
    /// The folder of its package in `nvidia`.
    folder: String,
    /// The pattern of its file's name.
    pub pattern: String,
    /// Is it an error if there is none?
    pub required: bool,
}

/// What is loaded, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preloads {
    /// Is `libtorch_global_deps.so` loaded first?
    pub global_deps: bool,
    /// Are names bound when they are called? So it is in releases that load `torch._C` directly, until 1.4.
    pub lazy: bool,
    /// What is loaded after it.
    pub after: Vec<Preload>,
    /// Only if a library with these words in its path is loaded.
    pub only_with: Option<String>,
    /// What is loaded where that failed, before it is tried again.
    pub fallback: Vec<Preload>,
    /// Is a library that is not there told as "not found in the system path", a `ValueError`?
    pub value_error: bool,
    /// Is `nvidia/cu13/lib` looked into as well?
    shared_folder: bool,
    /// Is the folder looked for beside `nvidia` as well?
    without_nvidia: bool,
}

impl Preloads {
    /// Reads it from the text of `torch/__init__.py`.
    pub fn of(text: &str) -> Self {
        let mut preloads = Self {
            value_error: text.contains("not found in the system path"),
            shared_folder: text.contains("f\"cu{"),
            without_nvidia: text.contains("_get_cuda_dep_paths"),
            ..Self::default()
        };
        let (mut loaded, mut whole_table) = (false, None);
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            preloads.global_deps |= line.contains("libtorch_global_deps");
            if line.starts_with("ctypes.CDLL(") && line.contains("RTLD_GLOBAL") {
                loaded = true;
            } else if line.starts_with("except OSError") {
                loaded = false;
            }
            let quoted: Vec<&str> = line.split(['"', '\'']).skip(1).step_by(2).collect();
            if line.contains("not in _maps") && loaded {
                preloads.only_with = quoted.first().map(|&words| words.to_owned());
            } else if loaded && line.starts_with("_preload_cuda_deps(") && quoted.is_empty() {
                whole_table = Some(!line.contains("required=False"));
            }
            let (Some(&folder), Some(&pattern), 2..) = (quoted.first(), quoted.last(), quoted.len()) else {
                continue;
            };
            if pattern.starts_with("lib") && pattern.contains(".so.") {
                let required = !line.contains("required=False");
                let preload = Preload { folder: folder.to_owned(), pattern: pattern.to_owned(), required };
                if loaded { &mut preloads.after } else { &mut preloads.fallback }.push(preload);
            }
        }
        preloads.lazy = !preloads.global_deps && text.contains("RTLD_LAZY");
        if let Some(required) = whole_table {
            let all = preloads.fallback.iter().cloned();
            preloads.after = all.map(|one| Preload { required: one.required && required, ..one }).collect();
        }
        preloads
    }

    /// The file that is taken, of those on Python's search path.
    pub fn find(&self, preload: &Preload, search_path: &[PathBuf], cuda: Option<u32>) -> Option<PathBuf> {
        let pattern = Glob::new(&preload.pattern).ok()?.compile_matcher();
        let folders = search_path.iter().flat_map(|site| {
            let shared =
                cuda.filter(|_| self.shared_folder).map(|major| site.join(format!("nvidia/cu{major}")));
            let alone = self.without_nvidia.then(|| site.join(&preload.folder));
            [Some(site.join("nvidia").join(&preload.folder)), shared, alone]
        });
        folders.flatten().find_map(|folder| {
            let mut files: Vec<PathBuf> = entries(&folder.join("lib"));
            files.retain(|file| file.file_name().is_some_and(|name| pattern.is_match(name)));
            files.into_iter().next()
        })
    }

    /// The package that PyTorch's table has for this library: `cuda_runtime` for `libcudart.so.13`.
    pub fn folder_of(&self, library: &str) -> Option<&str> {
        let all = self.fallback.iter().chain(&self.after);
        all.filter(|one| one.stem() == library.split(".so").next().unwrap_or_default())
            .map(|one| one.folder.as_str())
            .next()
    }
}

impl Preload {
    /// `libcublas` of `libcublas.so.*[0-9]`: the words that PyTorch looks for in the loader's error.
    pub fn stem(&self) -> &str {
        self.pattern.split('.').next().unwrap_or_default()
    }
}

/// What is in a folder, in the order of names.
pub fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort_unstable();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(preloads: &[Preload]) -> Vec<(&str, &str, bool)> {
        preloads.iter().map(|one| (one.folder.as_str(), one.pattern.as_str(), one.required)).collect()
    }

    #[test]
    fn releases_load_other_things() {
        assert_eq!(Preloads::of("from torch._C import *\n"), Preloads::default());
        assert!(
            Preloads::of(
                "sys.setdlopenflags(_dl_flags.RTLD_GLOBAL | _dl_flags.RTLD_LAZY)\nfrom torch._C import *\n"
            )
            .lazy
        );
        let table = "        cuda_libs = {\n            'cublas': 'libcublas.so.*[0-9]',\n            # 'x': 'libx.so.1',\n        }\n";
        let first = "lib_name = 'libtorch_global_deps' + '.so'\ntry:\n    ctypes.CDLL(lib_path, mode=ctypes.RTLD_GLOBAL)\n";
        let cublas = ("cublas", "libcublas.so.*[0-9]", true);
        let preloads = Preloads::of(&format!("{first}except OSError as err:\n{table}"));
        assert!(preloads.global_deps && preloads.after.is_empty() && preloads.only_with.is_none());
        assert_eq!(names(&preloads.fallback), [cublas]);
        let some = "        if \"nvidia/cuda_runtime/lib/libcudart.so\" not in _maps:\n            return\n        \
                    _preload_cuda_deps(\"nvjitlink\", \"libnvJitLink.so.*[0-9]\")\n";
        let preloads = Preloads::of(&format!("{first}{some}except OSError as err:\n{table}"));
        assert_eq!(preloads.only_with.as_deref(), Some("nvidia/cuda_runtime/lib/libcudart.so"));
        assert_eq!(names(&preloads.after), [("nvjitlink", "libnvJitLink.so.*[0-9]", true)]);
        assert_eq!(names(&preloads.fallback), [cublas]);
        let all = "        _preload_cuda_deps(required=False)\n";
        let nvtx = "_preload_cuda_lib(\"nvtx\", \"libnvToolsExt.so.*[0-9]\", required=False)\n";
        let preloads = Preloads::of(&format!("{table}{nvtx}{first}{all}except OSError as err:\n"));
        let nvtx = ("nvtx", "libnvToolsExt.so.*[0-9]", false);
        assert_eq!(names(&preloads.after), [("cublas", "libcublas.so.*[0-9]", false), nvtx]);
        assert_eq!(names(&preloads.fallback), [cublas, nvtx]);
        assert_eq!(preloads.folder_of("libcublas.so.12"), Some("cublas"));
        assert_eq!(preloads.folder_of("libcublasLt.so.12"), None);
    }
}
