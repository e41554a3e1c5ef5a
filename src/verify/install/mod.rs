//! The one place that builds commands which install something: from driver, GPUs, Python, platform and what installs packages
//! there, to one command that works. Versions are kept unless they are the cause.

mod loader;
mod tool;
pub mod wheels;

pub use loader::without_folders;
pub use tool::{How, Place, Shell, Tool};

use super::machine::{self, Family, Machine, Version};
use wheels::{Choice, Needs, Platform, choose};

/// Packages that are built for one PyTorch, and go where it goes.
pub const BESIDE: [&str; 2] = ["torchvision", "torchaudio"];

/// A package to install: its name, and its version if a certain one is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its name on PyPI: `nvidia-cudnn-cu12`.
    pub name: String,
    /// `9.10.2.21`.
    pub version: Option<String>,
}

/// Where something is to be installed, and what is there.
#[derive(Clone, Debug)]
pub struct Target {
    needs: Needs,
    place: Place,
    /// Is there an NVIDIA GPU, as far as is known?
    gpu: bool,
    /// May there be one that is not to be seen from here: in a container, in WSL, in a job of a cluster?
    hidden: bool,
    /// The index of wheels for a board that none of PyTorch's own are for.
    index: Option<&'static str>,
    /// The installed PyTorch's version, without the part after `+`.
    version: Option<String>,
    /// That part, if its record has one: where it came from.
    tag: Option<String>,
    /// The CUDA that it was built with.
    cuda: Option<Version>,
    /// Is it from conda-forge, whose versions stay there?
    forge: bool,
    /// Packages of [`BESIDE`] that are installed, with their versions.
    beside: Vec<(&'static str, String)>,
}

impl Target {
    /// What the report says. `gpu`: is there something that shows NVIDIA's hardware, whatever the driver says?
    pub fn of(machine: &Machine, gpu: bool) -> Self {
        let (python, torch) = (&machine.python, machine.torch.as_ref());
        let driver = &machine.driver;
        let record = torch.and_then(|torch| torch.record.as_deref().or(torch.version.as_deref()));
        let (version, tag) = match record.map(|record| record.split_once('+')) {
            None => (None, None),
            Some(None) => (record, None),
            Some(Some((version, tag))) => (Some(version), Some(tag)),
        };
        let by_torch = torch.and_then(|torch| torch.installer.as_deref());
        let own = Tool::named(python.installer.as_deref().unwrap_or_default());
        let packages = torch.map(|torch| &torch.packages);
        let beside = BESIDE.into_iter().filter_map(|name| Some((name, packages?.get(name)?.clone())));
        Self {
            needs: Needs {
                platform: Platform::of(&machine.system.os, &machine.system.arch),
                python: python.version.as_deref().and_then(|version| version.parse().ok()),
                driver: driver.cuda.or_else(|| driver.version.as_deref().and_then(cuda_of_driver)),
                devices: capabilities(machine),
            },
            place: Place {
                tool: tool_for(by_torch, own),
                python: python.interpreter.clone().unwrap_or_else(|| "python".to_owned()),
                prefix: python.prefix.clone(),
                shell: Shell { windows: machine.system.os == "windows" },
            },
            gpu,
            hidden: machine.system.container.is_some()
                || machine.system.wsl
                || !machine.system.surroundings.is_empty(),
            index: None,
            version: version.map(str::to_owned),
            tag: tag.map(str::to_owned),
            cuda: torch.filter(|torch| torch.build == machine::Build::Cuda).and_then(|torch| torch.cuda),
            // The channel `pytorch`, which ended with 2.5, has `py3.11_cuda12.1_cudnn8.9.2_0` there.
            forge: torch
                .and_then(|t| t.conda_build.as_deref())
                .is_some_and(|build| !build.starts_with("py3.")),
            beside: beside.collect(),
        }
    }

    /// May there be a GPU that is not to be seen from here?
    pub const fn may_have_gpu(&self) -> bool {
        self.gpu || self.hidden
    }

    /// With the index of wheels that are made for this board, if it needs some.
    pub fn with_index(self, index: Option<&'static str>) -> Self {
        // The board that has wheels of its own has a GPU, also where nothing shows it.
        Self { index, gpu: self.gpu || index.is_some(), ..self }
    }

    /// A PyTorch that runs on this machine's GPUs with this driver, torchvision and torchaudio with it if they are there.
    /// `None` if there is none: the driver is too old, the GPU is, Python is too new, or there is no GPU.
    pub fn for_gpu(&self) -> Option<String> {
        if !self.gpu {
            return None;
        }
        if let Some(index) = self.index {
            let mut packages = vec!["torch".to_owned()];
            packages.extend(self.beside.iter().map(|(name, _)| (*name).to_owned()));
            return Some(self.place.pip(
                &packages,
                How { again: self.version.is_some(), alone: false },
                Some(index),
            ));
        }
        let keep = self.version.as_deref().and_then(release);
        let choice = choose(&self.needs, keep)?;
        let kept = self.version.as_deref().filter(|_| keep == Some(choice.release));
        Some(match self.place.tool {
            Tool::Conda | Tool::Pixi => self.by_conda("pytorch-gpu", kept, choice.index.cuda.major),
            Tool::UvProject | Tool::Poetry => {
                self.place.project(&self.packages(choice, kept, false), choice.index)
            }
            _ => {
                let url = choice.index.url();
                self.place.pip(&self.packages(choice, kept, true), How::default(), Some(&url))
            }
        })
    }

    /// A PyTorch for this machine where there is none: for its GPU, or, if it has none, for the processor.
    pub fn new_one(&self) -> Option<String> {
        if self.gpu {
            return self.for_gpu();
        }
        let python = self.needs.python;
        let fits = |first, last| python.is_none_or(|p| p.major == 3 && (first..=last).contains(&p.minor));
        if matches!(self.place.tool, Tool::Conda | Tool::Pixi) {
            return Some(self.place.conda(&["pytorch".to_owned()], None));
        }
        let torch = ["torch".to_owned()];
        // Who mends that shall not have a PyTorch that cannot use it.
        let for_cpu = !self.hidden && !matches!(self.place.tool, Tool::UvProject | Tool::Poetry);
        match self.needs.platform {
            // What PyPI has for it is built for CUDA, and takes gigabytes.
            Platform::LinuxX86 if fits(8, 15) && for_cpu => {
                Some(self.place.pip(&torch, How::default(), Some("https://download.pytorch.org/whl/cpu")))
            }
            Platform::LinuxX86 | Platform::LinuxArm | Platform::Windows | Platform::MacArm if fits(8, 15) => {
                Some(self.by_pypi(&torch))
            }
            // The last one for it is 2.2.
            Platform::MacX86 if fits(8, 12) => Some(self.by_pypi(&torch)),
            _ => None,
        }
    }

    /// The installed PyTorch once more, from where it came, over what is left of it; another one if this driver and these GPUs cannot
    /// run it.
    pub fn again(&self) -> Option<String> {
        let Some(version) = self.version.as_deref() else { return self.new_one() };
        let too_old = |cuda: Version| self.needs.driver.is_some_and(|driver| driver.major < cuda.major);
        if self.gpu && self.cuda.is_some_and(too_old) {
            return self.for_gpu();
        }
        if matches!(self.place.tool, Tool::Conda | Tool::Pixi) {
            let (place, kept) = (&self.place, if self.forge { format!("={version}") } else { String::new() });
            return Some(place.conda(&[format!("pytorch{kept}")], None).replacen(
                "install",
                "install --force-reinstall",
                1,
            ));
        }
        let (package, index) = match &self.tag {
            Some(tag) => (format!("torch=={version}+{tag}"), is_index(tag).then(|| index_url(tag))),
            None => (format!("torch=={version}"), None),
        };
        if self.tag.is_some() && index.is_none() {
            // Built by somebody else: it is on no index.
            return self.new_one();
        }
        Some(self.place.pip(&[package], How { again: true, alone: true }, index.as_deref()))
    }

    /// torchvision and torchaudio for the installed PyTorch: those of `names` that are installed. `None` if none is, or if
    /// it is not known which version that would be.
    pub fn beside_torch(&self, names: &[&str]) -> Option<String> {
        let release = self.version.as_deref().and_then(release)?;
        let wanted = |name: &str| self.beside.iter().any(|(n, _)| *n == name) && names.contains(&name);
        let mut packages = Vec::new();
        for name in BESIDE.into_iter().filter(|name| wanted(name)) {
            packages.push(self.companion(name, release, Build::Any));
        }
        if packages.is_empty() {
            return None;
        }
        if matches!(self.place.tool, Tool::Conda | Tool::Pixi) {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            return Some(self.place.conda(&names, None));
        }
        let index = self.tag.as_deref().filter(|tag| is_index(tag)).map(index_url);
        Some(self.place.pip(&packages, How { again: true, alone: true }, index.as_deref()))
    }

    /// NVIDIA's libraries that PyTorch asks for, in one command, without touching anything else. `toolkit` is the version of
    /// `cuda-toolkit` that it asks for, by whose extras those without a version of their own are named.
    pub fn libraries(&self, wanted: &[Wanted], toolkit: Option<&str>) -> String {
        let (by_extra, by_name): (Vec<&Wanted>, Vec<&Wanted>) = wanted.iter().partition(|wanted| {
            toolkit.is_some() && wanted.version.is_none() && wanted.name.starts_with("nvidia-")
        });
        let pinned = |wanted: &&Wanted| match &wanted.version {
            Some(version) => format!("{}=={version}", wanted.name),
            None => wanted.name.clone(),
        };
        let mut packages: Vec<String> = by_name.iter().map(pinned).collect();
        // An extra is nothing but what it asks for.
        let alone = by_extra.is_empty();
        if let Some(version) = toolkit.filter(|_| !alone) {
            let extras: Vec<&str> = by_extra.iter().map(|wanted| extra(&wanted.name)).collect();
            packages.push(format!("cuda-toolkit[{}]=={version}", extras.join(",")));
        }
        self.place.pip(&packages, How { again: true, alone }, None)
    }

    /// The command that takes packages out, all at once.
    pub fn uninstall(&self, packages: &[&str]) -> String {
        self.place.uninstall(packages)
    }

    fn by_pypi(&self, packages: &[String]) -> String {
        match self.place.tool {
            Tool::UvProject => format!("uv add {}", packages.join(" ")),
            Tool::Poetry => format!("poetry add {}", packages.join(" ")),
            _ => self.place.pip(packages, How::default(), None),
        }
    }

    fn by_conda(&self, name: &str, kept: Option<&str>, cuda: u32) -> String {
        let torch = kept
            .filter(|_| self.forge)
            .map_or_else(|| name.to_owned(), |version| format!("{name}={version}"));
        let beside = self.beside.iter().map(|(name, _)| (*name).to_owned());
        let packages: Vec<String> = std::iter::once(torch).chain(beside).collect();
        self.place.conda(&packages, Some(cuda))
    }

    /// PyTorch and what goes with it. `local`: with `+cu126`, without which pip takes what is installed for right.
    fn packages(&self, choice: Choice, kept: Option<&str>, local: bool) -> Vec<String> {
        let tag = local.then_some(choice.index.tag);
        let torch = match (kept, tag) {
            (Some(version), Some(tag)) => format!("torch=={version}+{tag}"),
            (Some(version), None) => format!("torch=={version}"),
            // Nothing is installed that could be taken for right.
            (None, _) if self.version.is_none() => "torch".to_owned(),
            (None, _) => format!("torch==2.{}.*", choice.release),
        };
        let newest = |(name, _): &(&'static str, String)| match (self.version.is_none(), kept) {
            (true, _) => (*name).to_owned(),
            (false, None) => self.companion(name, choice.release, Build::Another(tag.is_some())),
            (false, Some(_)) => self.companion(name, choice.release, tag.map_or(Build::Any, Build::Tagged)),
        };
        std::iter::once(torch).chain(self.beside.iter().map(newest)).collect()
    }

    /// torchvision or torchaudio for PyTorch 2.`release`: the installed version if it is of those.
    fn companion(&self, name: &str, release: u32, build: Build) -> String {
        let (major, minor) = if name == "torchvision" {
            (0, wheels::torchvision(release))
        } else {
            (2, wheels::torchaudio(release))
        };
        let installed = self.beside.iter().find(|(n, _)| *n == name).map(|(_, version)| version.as_str());
        let public = installed.and_then(|version| version.split('+').next()).filter(|version| {
            version.parse() == Ok(Version::new(major, minor))
                && version.bytes().all(|b| b == b'.' || b.is_ascii_digit())
        });
        // For 64-bit ARM there are no builds of them for CUDA (pytorch/vision#9330), and torchaudio 2.11 needs none.
        let has_builds = self.needs.platform != Platform::LinuxArm && (name == "torchvision" || minor < 11);
        match (public, build) {
            (Some(version), Build::Tagged(tag)) if has_builds => format!("{name}=={version}+{tag}"),
            (Some(version), Build::Another(true)) if has_builds => {
                format!("{name}=={major}.{minor}.*,!={version}")
            }
            (Some(version), _) => format!("{name}=={version}"),
            (None, _) => format!("{name}=={major}.{minor}.*"),
        }
    }
}

/// Which build of a version is wanted.
#[derive(Clone, Copy)]
enum Build<'a> {
    /// Whichever it is.
    Any,
    /// The one with this after `+`.
    Tagged(&'a str),
    /// Another than the one that is installed, which pip would leave where it is: only if this is true.
    Another(bool),
}

/// The compute capabilities of all GPUs: as the driver says, or else as their numbers on the bus say.
fn capabilities(machine: &Machine) -> Vec<Version> {
    let by_driver: Vec<Version> = machine.devices.iter().filter_map(|device| device.capability).collect();
    if !by_driver.is_empty() {
        return by_driver;
    }
    machine.system.nvidia_gpus.iter().filter_map(|gpu| gpu.family).map(Family::capability).collect()
}

/// The extra of `cuda-toolkit` that asks for this package: `cupti` for `nvidia-cuda-cupti` (its metadata on PyPI).
pub fn extra(package: &str) -> &str {
    let name = package.strip_prefix("nvidia-").unwrap_or(package);
    match name.strip_prefix("cuda-").unwrap_or(name) {
        "runtime" => "cudart",
        name => name,
    }
}

/// The tool that installed PyTorch, or else that of the environment.
fn tool_for(by_torch: Option<&str>, own: Tool) -> Tool {
    let word =
        by_torch.and_then(|text| text.split_whitespace().next()).unwrap_or_default().to_ascii_lowercase();
    match (word.as_str(), own) {
        ("conda", Tool::Pixi) => Tool::Pixi,
        ("conda", _) => Tool::Conda,
        ("uv", Tool::UvProject) => Tool::UvProject,
        ("uv", _) => Tool::Uv,
        ("poetry", _) => Tool::Poetry,
        // Another tool's environment, where pip was used.
        ("pip", Tool::Conda | Tool::Pixi | Tool::Poetry) => Tool::Pip,
        (_, own) => own,
    }
}

/// 9 of `2.9.1`. `None` for other major versions and for what is no release: `2.16.0.dev20261101`, `2.8.0a0`.
fn release(version: &str) -> Option<u32> {
    let mut parts = version.split('.');
    let (major, minor) = (parts.next()?, parts.next()?);
    let rest: Vec<&str> = parts.collect();
    let number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    (major == "2" && rest.len() <= 2 && rest.iter().all(|part| number(part) || part.starts_with("post")))
        .then(|| minor.parse().ok())?
}

/// Is the part after `+` that of one of PyTorch's indexes?
fn is_index(tag: &str) -> bool {
    let digits = |rest: &str| (3..=4).contains(&rest.len()) && rest.bytes().all(|b| b.is_ascii_digit());
    tag == "cpu" || tag == "xpu" || tag.strip_prefix("cu").is_some_and(digits) || tag.starts_with("rocm")
}

fn index_url(tag: &str) -> String {
    format!("https://download.pytorch.org/whl/{tag}")
}

/// The major version of CUDA that a driver runs, by NVIDIA's "CUDA Compatibility".
fn cuda_of_driver(version: &str) -> Option<Version> {
    let branch: u32 = version.split('.').next()?.parse().ok()?;
    match branch {
        580.. => Some(Version::new(13, 0)),
        525..580 => Some(Version::new(12, 0)),
        450..525 => Some(Version::new(11, 0)),
        _ => Some(Version::new(10, 0)),
    }
}

#[cfg(test)]
mod tests;
