//! Linux under Windows, whose driver it uses, and containers in it.

use super::library::NO_DRIVER;
use super::{Case, Draft};
use crate::verify::machine::NodeState;
use crate::verify::system::WSL_NODE;

/// Gets the newest WSL, and starts it again.
pub(super) const RESTART: &str = "wsl --update; wsl --shutdown    # in Windows";

fn in_container(case: &Case) -> bool {
    case.machine.system.wsl && case.machine.system.container.is_some()
}

/// Does WSL, or the container in it, have the GPU's file?
fn has_gpu(case: &Case) -> bool {
    case.node(|path, state| path == WSL_NODE && state != NodeState::Missing)
}

/// A container is given the GPU by its engine, not by Windows.
pub(super) fn container(case: &Case) -> Option<Draft> {
    let silent = case.no_library() || case.no_reason();
    (in_container(case) && silent && !has_gpu(case)).then(|| {
        Draft::error("wsl-container-without-gpu", "the container was started without the GPU of WSL")
            .seen(format!("{WSL_NODE}, the device file of the GPU in WSL, is missing"))
            .says(NO_DRIVER)
            .remedy(
                "start it with the GPU; where Docker runs in WSL itself and not as Docker Desktop, install \
                 nvidia-container-toolkit there",
            )
            .command("docker run --gpus all …")
    })
}

/// Drivers from 555 on need a library more in the container (nvidia-container-toolkit#520): 1.14.4, 1.15.0 and Docker
/// Desktop 4.31 put it there.
pub(super) fn toolkit(case: &Case) -> Option<Draft> {
    (in_container(case) && case.code() == Some(500)).then(|| {
        Draft::error(
            "wsl-container-toolkit",
            "the container tools are older than NVIDIA's driver in Windows",
        )
        .seen("drivers from 555 on need `libnvdxgdmal.so.1` in the container")
        .says("Error 500: named symbol not found")
        .remedy("update Docker Desktop (4.31 or later); where Docker runs in WSL itself, the toolkit (1.15 or later)")
        .command("sudo apt install --only-upgrade nvidia-container-toolkit    # in WSL")
    })
}

/// The kernel of WSL 1 is none of Linux's, and has no GPU. It calls itself `4.4.0-19041-Microsoft`, that of WSL 2
/// `5.15.90.1-microsoft-standard-WSL2`.
pub(super) fn first(case: &Case) -> Option<Draft> {
    let version = case.files.text("/proc/version");
    let first = version.contains("-Microsoft") && !version.to_ascii_lowercase().contains("wsl2");
    let silent = case.no_library() || case.no_reason();
    (case.machine.system.wsl && first && silent).then(|| {
        let name = std::env::var("WSL_DISTRO_NAME").unwrap_or_else(|_| "NAME".to_owned());
        Draft::error("wsl-1", "this is WSL 1, which has no GPU")
            .seen("/proc/version is that of its kernel")
            .says(NO_DRIVER)
            .remedy("convert it to WSL 2")
            .command(format!("wsl --set-version {name} 2    # in Windows"))
    })
}

pub(super) fn library_not_found(case: &Case) -> Option<Draft> {
    let there = || case.files.at("/usr/lib/wsl/lib/libcuda.so.1").exists();
    (case.machine.system.wsl && case.no_library() && there()).then(|| {
        Draft::error("wsl-library-not-found", "the loader does not find WSL's `libcuda.so.1`")
            .seen("/usr/lib/wsl/lib/libcuda.so.1 is there")
            .says(NO_DRIVER)
            .remedy("add the folder to the search path of the loader")
            .command("echo /usr/lib/wsl/lib | sudo tee /etc/ld.so.conf.d/wsl.conf && sudo ldconfig")
    })
}

pub(super) fn no_driver(case: &Case) -> Option<Draft> {
    let system = &case.machine.system;
    let seen = if case.no_library() {
        "/usr/lib/wsl/lib/libcuda.so.1 is not there"
    } else if case.no_device() {
        "WSL's own library finds no device"
    } else {
        return None;
    };
    system.wsl.then(|| {
        Draft::error("wsl-no-driver", "Windows gives WSL no GPU")
            .seen(seen)
            .says(NO_DRIVER)
            .remedy("install NVIDIA's newest driver in Windows, none in Linux, and use WSL 2")
            .command(RESTART)
    })
}

/// WSL with another driver than the one that Windows gives it. What puts the GPU into a container copies it elsewhere.
pub(super) fn linux_driver(case: &Case) -> Option<Draft> {
    let path = case.machine.driver.loaded_from.as_deref()?;
    let system = &case.machine.system;
    if !system.wsl || system.container.is_some() || case.files.below(path, "/usr/lib/wsl") {
        return None;
    }
    Some(
        Draft::error(
            "wsl-linux-driver",
            "a Linux driver is installed in WSL and hides the driver of Windows",
        )
        .seen("WSL's own is in /usr/lib/wsl/lib")
        .remedy("remove the packages of the Linux driver, or put /usr/lib/wsl/lib first")
        .command("export LD_LIBRARY_PATH=/usr/lib/wsl/lib:$LD_LIBRARY_PATH"),
    )
}
