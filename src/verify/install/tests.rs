//! What commands there are for which machine. The facts about wheels are written down here a second time, as the indexes list them.

use super::wheels::{Needs, Platform};
use super::*;

/// A machine to install on.
#[derive(Clone, Debug)]
struct On {
    platform: Platform,
    driver: Option<(u32, u32)>,
    devices: Vec<(u32, u32)>,
    python: Option<(u32, u32)>,
    tool: Tool,
    torch: Option<&'static str>,
    beside: Vec<(&'static str, &'static str)>,
}

impl On {
    fn linux() -> Self {
        Self {
            platform: Platform::LinuxX86,
            driver: Some((12, 4)),
            devices: vec![(8, 0)],
            python: Some((3, 12)),
            tool: Tool::Pip,
            torch: Some("2.9.1+cpu"),
            beside: Vec::new(),
        }
    }

    fn target(&self) -> Target {
        let version = |(major, minor)| Version::new(major, minor);
        let (torch, tag) = match self.torch.map(|torch| torch.split_once('+')) {
            Some(Some((torch, tag))) => (Some(torch.to_owned()), Some(tag.to_owned())),
            _ => (self.torch.map(str::to_owned), None),
        };
        let windows = self.platform == Platform::Windows;
        Target {
            needs: Needs {
                platform: self.platform,
                python: self.python.map(version),
                driver: self.driver.map(version),
                devices: self.devices.iter().copied().map(version).collect(),
            },
            place: Place {
                tool: self.tool,
                python: if windows { r"C:\a\python.exe" } else { "/a/bin/python" }.to_owned(),
                prefix: Some(if windows { r"C:\a" } else { "/a" }.to_owned()),
                shell: Shell { windows },
            },
            gpu: !self.devices.is_empty(),
            hidden: false,
            index: None,
            version: torch,
            cuda: tag.as_deref().and_then(|tag| tag.strip_prefix("cu")).and_then(|digits| {
                let (major, minor) = digits.split_at(2);
                Some(Version::new(major.parse().ok()?, minor.parse().ok()?))
            }),
            tag,
            forge: true,
            beside: self.beside.iter().map(|(name, version)| (*name, (*version).to_owned())).collect(),
        }
    }
}

const CUDA: &str = "--index-url https://download.pytorch.org/whl";

#[test]
fn commands_by_machine() {
    let linux = On::linux;
    let both = vec![("torchvision", "0.24.1"), ("torchaudio", "2.9.1")];
    for (on, expected) in [
        // The version is kept, and what goes with it.
        (linux(), format!("/a/bin/python -m pip install torch==2.9.1+cu126 {CUDA}/cu126")),
        (
            On { beside: both.clone(), ..linux() },
            format!("/a/bin/python -m pip install torch==2.9.1+cu126 torchvision==0.24.1+cu126 torchaudio==2.9.1+cu126 {CUDA}/cu126"),
        ),
        (On { torch: Some("2.6.0+cpu"), ..linux() }, format!("/a/bin/python -m pip install torch==2.6.0+cu124 {CUDA}/cu124")),
        (On { driver: Some((13, 0)), ..linux() }, format!("/a/bin/python -m pip install torch==2.9.1+cu130 {CUDA}/cu130")),
        // The version is the cause: 2.15 has no wheels for CUDA 12.
        (
            On { torch: Some("2.15.0"), beside: vec![("torchvision", "0.29.2"), ("torchaudio", "2.11.1")], ..linux() },
            format!("/a/bin/python -m pip install \"torch==2.14.*\" \"torchvision==0.29.*,!=0.29.2\" torchaudio==2.11.1 {CUDA}/cu126"),
        ),
        // An RTX 50xx with a driver of 570 to 579, and with an older PyTorch than has code for it.
        (
            On { driver: Some((12, 8)), devices: vec![(12, 0)], torch: Some("2.6.0+cu124"), beside: vec![("torchvision", "0.21.0+cu124")], ..linux() },
            format!("/a/bin/python -m pip install \"torch==2.11.*\" \"torchvision==0.26.*\" {CUDA}/cu128"),
        ),
        (
            On { driver: Some((12, 8)), devices: vec![(12, 0)], torch: Some("2.7.1+cu118"), ..linux() },
            format!("/a/bin/python -m pip install torch==2.7.1+cu128 {CUDA}/cu128"),
        ),
        // Pascal under a driver that runs CUDA 13, which has no code for it.
        (
            On { driver: Some((13, 0)), devices: vec![(6, 1)], torch: Some("2.9.1"), ..linux() },
            format!("/a/bin/python -m pip install torch==2.9.1+cu126 {CUDA}/cu126"),
        ),
        (
            On { driver: Some((11, 4)), torch: Some("2.15.0"), python: Some((3, 13)), ..linux() },
            format!("/a/bin/python -m pip install \"torch==2.7.*\" {CUDA}/cu118"),
        ),
        // Other platforms.
        (
            On { platform: Platform::Windows, driver: Some((12, 7)), beside: vec![("torchvision", "0.24.1+cpu")], ..linux() },
            format!(r"C:\a\python.exe -m pip install torch==2.9.1+cu126 torchvision==0.24.1+cu126 {CUDA}/cu126"),
        ),
        (
            On { platform: Platform::LinuxArm, driver: Some((13, 0)), devices: vec![(12, 1)], beside: both, ..linux() },
            format!("/a/bin/python -m pip install torch==2.9.1+cu130 torchvision==0.24.1 torchaudio==2.9.1 {CUDA}/cu130"),
        ),
        // Other tools.
        (On { tool: Tool::Uv, ..linux() }, format!("uv pip install --python /a/bin/python torch==2.9.1+cu126 {CUDA}/cu126")),
        (
            On { tool: Tool::UvProject, ..linux() },
            "uv add torch==2.9.1 --index pytorch-cu126=https://download.pytorch.org/whl/cu126".to_owned(),
        ),
        (
            On { tool: Tool::Poetry, ..linux() },
            "poetry source add --priority=explicit pytorch-cu126 https://download.pytorch.org/whl/cu126 && poetry add \
             --source pytorch-cu126 torch==2.9.1"
                .to_owned(),
        ),
        (On { tool: Tool::Conda, ..linux() }, "conda install -p /a -c conda-forge pytorch-gpu=2.9.1".to_owned()),
        (
            On { tool: Tool::Pixi, ..linux() },
            "pixi workspace system-requirements add cuda 12 && pixi add pytorch-gpu=2.9.1".to_owned(),
        ),
        (
            On { tool: Tool::EnsurePip, ..linux() },
            format!("/a/bin/python -m ensurepip && /a/bin/python -m pip install torch==2.9.1+cu126 {CUDA}/cu126"),
        ),
        (
            On { tool: Tool::Venv, ..linux() },
            format!("/a/bin/python -m venv .venv && .venv/bin/python -m pip install torch==2.9.1+cu126 {CUDA}/cu126"),
        ),
        (On { torch: None, ..linux() }, format!("/a/bin/python -m pip install torch {CUDA}/cu126")),
        // A nightly build is in no index for long.
        (On { torch: Some("2.16.0.dev20261101+cpu"), ..linux() }, format!("/a/bin/python -m pip install \"torch==2.14.*\" {CUDA}/cu126")),
    ] {
        assert_eq!(on.target().for_gpu(), Some(expected), "{on:?}");
    }
}

#[test]
fn where_there_is_no_wheel_there_is_no_command() {
    let linux = On::linux;
    for on in [
        On { driver: Some((10, 2)), ..linux() },
        On { driver: Some((11, 4)), python: Some((3, 14)), ..linux() },
        On { devices: vec![(3, 0)], ..linux() },
        On { devices: vec![(12, 0)], driver: Some((11, 4)), ..linux() },
        // One for both is in no wheel.
        On { devices: vec![(6, 1), (12, 0)], driver: Some((13, 0)), ..linux() },
        On { python: Some((3, 7)), ..linux() },
        // Jetson.
        On { platform: Platform::LinuxArm, devices: vec![(8, 7)], driver: Some((13, 0)), ..linux() },
        On { platform: Platform::MacArm, ..linux() },
        On { platform: Platform::Other, ..linux() },
        // Without a GPU nobody is told to install CUDA.
        On { devices: Vec::new(), ..linux() },
    ] {
        assert_eq!(on.target().for_gpu(), None, "{on:?}");
    }
}

type Listed = (&'static str, u32, (u32, u32), (u32, u32), &'static [u32]);

/// An index as it was listed: its tag, the least driver, the PyTorch and Python versions, the GPUs that it has code for.
const LISTED: [Listed; 6] = [
    ("cu118", 11, (0, 7), (8, 13), &[37, 50, 52, 60, 61, 70, 75, 80, 86, 87, 89, 90]),
    ("cu121", 12, (1, 5), (8, 12), &[50, 52, 60, 61, 70, 75, 80, 86, 89, 90]),
    ("cu124", 12, (4, 6), (8, 13), &[50, 52, 60, 61, 70, 75, 80, 86, 89, 90]),
    ("cu126", 12, (6, 14), (9, 14), &[50, 52, 60, 61, 70, 75, 80, 86, 89, 90]),
    ("cu128", 12, (7, 11), (9, 14), &[70, 75, 80, 86, 89, 90, 100, 103, 120, 121]),
    ("cu130", 13, (9, 15), (10, 15), &[75, 80, 86, 89, 90, 100, 103, 110, 120, 121]),
];

/// Asserts that there is a wheel for what the command asks for.
fn is_there(command: &str, on: &On) {
    let tag = command.split("whl/").nth(1).and_then(|rest| rest.split([' ', ';']).next()).unwrap();
    let (_, driver, releases, pythons, devices) =
        *LISTED.iter().find(|(listed, ..)| *listed == tag).unwrap_or_else(|| panic!("{command}"));
    let (python, capabilities) =
        (on.python.unwrap(), on.devices.iter().map(|(major, minor)| major * 10 + minor));
    assert!(on.driver.unwrap().0 >= driver, "{command}: {on:?}");
    assert!((pythons.0..=pythons.1).contains(&python.1), "{command}: {on:?}");
    for capability in capabilities {
        assert!(devices.contains(&capability), "{command}: {on:?}");
    }
    let asked =
        command.split("torch==2.").nth(1).map(|rest| rest.split('.').next().unwrap().parse::<u32>().unwrap());
    if let Some(release) = asked {
        assert!((releases.0..=releases.1).contains(&release), "{command}: {on:?}");
        let (oldest, newest) = wheels::pythons(release);
        assert!((oldest..=newest).contains(&python.1), "{command}: {on:?}");
    }
    if on.platform == Platform::LinuxArm {
        assert!(["cu126", "cu128", "cu130"].contains(&tag), "{command}: {on:?}");
    }
}

#[test]
fn every_command_names_an_index_with_a_wheel() {
    let capabilities =
        [(3, 7), (5, 2), (6, 0), (6, 1), (7, 0), (7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (10, 3)];
    let capabilities: Vec<_> = capabilities.into_iter().chain([(11, 0), (12, 0), (12, 1)]).collect();
    let torches = [
        None,
        Some("1.13.1"),
        Some("2.0.1+cu118"),
        Some("2.4.1"),
        Some("2.6.0+cpu"),
        Some("2.8.0"),
        Some("2.11.0+cpu"),
    ];
    let torches: Vec<_> =
        torches.into_iter().chain([Some("2.14.1"), Some("2.15.0"), Some("2.17.0")]).collect();
    let mut commands = 0;
    for platform in [Platform::LinuxX86, Platform::LinuxArm, Platform::Windows] {
        for driver in [(10, 2), (11, 4), (11, 8), (12, 0), (12, 4), (12, 8), (13, 0), (13, 2)] {
            for python in 7..=16 {
                for capability in &capabilities {
                    for torch in &torches {
                        for tool in
                            [Tool::Pip, Tool::Uv, Tool::UvProject, Tool::Poetry, Tool::EnsurePip, Tool::Venv]
                        {
                            let on = On {
                                platform,
                                driver: Some(driver),
                                devices: vec![*capability],
                                python: Some((3, python)),
                                tool,
                                torch: *torch,
                                beside: vec![("torchvision", "0.20.1"), ("torchaudio", "2.5.1")],
                            };
                            let Some(command) = on.target().for_gpu() else { continue };
                            is_there(&command, &on);
                            commands += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(commands > 10_000, "{commands}");
}

#[test]
fn a_pytorch_where_there_is_none() {
    let bare = || On { devices: Vec::new(), driver: None, torch: None, ..On::linux() };
    let python = "/a/bin/python -m pip install torch";
    for (on, expected) in [
        (bare(), Some(format!("{python} {CUDA}/cpu"))),
        (On { platform: Platform::MacArm, ..bare() }, Some(python.to_owned())),
        (On { platform: Platform::LinuxArm, ..bare() }, Some(python.to_owned())),
        (On { platform: Platform::MacX86, ..bare() }, Some(python.to_owned())),
        (On { platform: Platform::MacX86, python: Some((3, 13)), ..bare() }, None),
        (On { tool: Tool::Conda, ..bare() }, Some("conda install -p /a -c conda-forge pytorch".to_owned())),
        (On { tool: Tool::UvProject, ..bare() }, Some("uv add torch".to_owned())),
        (On { devices: vec![(9, 0)], ..bare() }, Some(format!("{python} {CUDA}/cu130"))),
    ] {
        assert_eq!(on.target().new_one(), expected, "{on:?}");
    }
}

#[test]
fn where_a_gpu_may_be_hidden_pytorch_is_the_one_that_could_use_it() {
    let on = On { devices: Vec::new(), driver: None, torch: None, ..On::linux() };
    let target = Target { hidden: true, ..on.target() };
    assert_eq!(target.new_one().as_deref(), Some("/a/bin/python -m pip install torch"));
}

#[test]
fn what_is_broken_is_put_back() {
    let linux = On::linux;
    let again = "/a/bin/python -m pip install --force-reinstall --no-deps";
    for (on, expected) in [
        (On { torch: Some("2.9.1+cu126"), ..linux() }, format!("{again} torch==2.9.1+cu126 {CUDA}/cu126")),
        (On { torch: Some("2.9.1"), ..linux() }, format!("{again} torch==2.9.1")),
        (
            On { torch: Some("2.9.1"), tool: Tool::Uv, ..linux() },
            "uv pip install --python /a/bin/python --reinstall --no-deps torch==2.9.1".to_owned(),
        ),
        (
            On { torch: Some("2.9.1"), tool: Tool::Venv, ..linux() },
            "/a/bin/python -m pip install --break-system-packages --force-reinstall --no-deps torch==2.9.1"
                .to_owned(),
        ),
        // That one would not run.
        (
            On { torch: Some("2.9.1+cu130"), ..linux() },
            format!("/a/bin/python -m pip install torch==2.9.1+cu126 {CUDA}/cu126"),
        ),
        (On { torch: None, ..linux() }, format!("/a/bin/python -m pip install torch {CUDA}/cu126")),
    ] {
        assert_eq!(on.target().again(), Some(expected), "{on:?}");
    }
}

#[test]
fn libraries_are_one_command() {
    let target = On::linux().target();
    let wanted = |name: &str, version: Option<&str>| Wanted {
        name: name.to_owned(),
        version: version.map(str::to_owned),
    };
    let again = "/a/bin/python -m pip install --force-reinstall";
    let pinned = [wanted("nvidia-cudnn-cu12", Some("9.10.2.21")), wanted("nvidia-nccl-cu12", Some("2.27.3"))];
    assert_eq!(
        target.libraries(&pinned, None),
        format!("{again} --no-deps nvidia-cudnn-cu12==9.10.2.21 nvidia-nccl-cu12==2.27.3")
    );
    let mixed = [
        wanted("nvidia-cublas", None),
        wanted("nvidia-cuda-runtime", None),
        wanted("nvidia-nccl-cu13", Some("2.30.7")),
    ];
    assert_eq!(
        target.libraries(&mixed, Some("13.2.2")),
        format!("{again} nvidia-nccl-cu13==2.30.7 \"cuda-toolkit[cublas,cudart]==13.2.2\"")
    );
}

#[test]
fn what_goes_with_pytorch_follows_it() {
    let beside = vec![("torchvision", "0.21.0"), ("torchaudio", "2.9.1")];
    let on = On { torch: Some("2.9.1+cu126"), beside, ..On::linux() };
    let again = "/a/bin/python -m pip install --force-reinstall --no-deps";
    assert_eq!(
        on.target().beside_torch(&["torchvision"]),
        Some(format!("{again} \"torchvision==0.24.*\" {CUDA}/cu126"))
    );
    assert_eq!(on.target().beside_torch(&["torchtext"]), None);
}

#[test]
fn a_folder_is_taken_out_of_the_search_path() {
    let command = without_folders(["/usr/local/cuda/lib64", "/it's"]);
    assert!(!command.contains("unset"));
    let output = std::process::Command::new("sh")
        .args(["-c", &format!("{command}; printf %s \"$LD_LIBRARY_PATH\"")])
        .env("LD_LIBRARY_PATH", "/a:/usr/local/cuda/lib64:/usr/local/cuda/lib64/x:/it's:/b")
        .output();
    if let Ok(output) = output {
        assert_eq!(String::from_utf8_lossy(&output.stdout), "/a:/usr/local/cuda/lib64/x:/b");
    }
}
