//! A container that was not given the GPU, or has lost it.

use super::library::{NO_DRIVER, is_gpu};
use super::{Case, Draft};
use crate::verify::machine::NodeState;
use crate::verify::surroundings::JETSON;

/// The variable by which the GPU of a pod is chosen.
const CHOSEN: &str = "NVIDIA_VISIBLE_DEVICES";

pub(super) fn without_gpu(case: &Case) -> Option<Draft> {
    let kind = case.machine.system.container.as_deref()?;
    // An image may bring a library, for a newer CUDA. In WSL and on a Jetson GPUs have other files.
    let other_files = case.machine.system.wsl || case.is_in(JETSON);
    let silent = case.no_device() || case.no_reason() && !other_files && !case.has_nodes();
    let seen = if case.no_library() {
        "there is no `libcuda.so.1`"
    } else if silent && !case.node(|path, _| is_gpu(path)) {
        "the driver's library is there, and no /dev/nvidia0"
    } else {
        return None;
    };
    let draft =
        Draft::error("container-without-gpu", format!("the container ({kind}) was started without the GPU"))
            .seen_all((!case.has_nodes()).then(|| "there is no /dev/nvidiactl".to_owned()))
            .seen(seen)
            .says(NO_DRIVER);
    Some(match kind {
        "kubernetes" | "kubepods" => {
            draft.remedy("request a GPU in the resources of the pod: `limits: {nvidia.com/gpu: 1}`")
        }
        "apptainer" | "singularity" => {
            draft.remedy("start it with `--nv`").command(format!("{kind} exec --nv IMAGE …"))
        }
        "podman" | "libpod" => draft
            .remedy("install nvidia-container-toolkit on the host, write its CDI file, and start the container with it")
            .command("podman run --device nvidia.com/gpu=all …"),
        // Its engine has no `--gpus`: the GPU is on no bus that could be counted.
        _ if case.is_in(JETSON) => draft
            .remedy("install nvidia-container-toolkit on the Jetson and start the container with NVIDIA's runtime")
            .command("docker run --runtime nvidia …"),
        _ => draft
            .remedy(
                "install nvidia-container-toolkit on the host and start the container with `--gpus all`; during \
                 `docker build` there is no GPU",
            )
            .command("docker run --gpus all …"),
    })
}

/// A pod that was given a GPU, in words, and is not run by the runtime that puts it in: k3s, k0s and others have
/// `nvidia` as one runtime of several (k8s-device-plugin#406).
pub(super) fn runtime_class(case: &Case) -> Option<Draft> {
    let kind = case.machine.system.container.as_deref()?;
    if !case.no_library() || !matches!(kind, "kubernetes" | "kubepods") {
        return None;
    }
    // The device plugin names the GPU; images have `all` in them.
    let chosen =
        std::env::var(CHOSEN).ok().filter(|value| value.starts_with("GPU-") || value.starts_with("MIG-"));
    if chosen.is_none() && !case.has_nodes() {
        return None;
    }
    let nodes = case.has_nodes().then(|| "the pod has the GPU's device files".to_owned());
    Some(
        Draft::error("runtime-class", "the pod has a GPU, but does not run with NVIDIA's container runtime")
            .seen_all(chosen.map(|_| format!("`{CHOSEN}` names a GPU")))
            .seen_all(nodes)
            .seen("there is no `libcuda.so.1`")
            .says(NO_DRIVER)
            .remedy("set `runtimeClassName: nvidia` in the pod, or make that runtime the default of the node")
            .command(
                "kubectl patch deployment NAME -p '{\"spec\":{\"template\":{\"spec\":{\"runtimeClassName\":\"nvidia\"}}}}'",
            ),
    )
}

/// The container's device rules were loaded anew: NVIDIA's notice in nvidia-container-toolkit#48.
pub(super) fn lost(case: &Case) -> Option<Draft> {
    let mut nodes =
        case.machine.system.device_nodes.iter().filter(|node| node.state == NodeState::Forbidden).peekable();
    nodes.peek()?;
    Some(
        Draft::error("gpu-lost-in-container", "the container has lost the GPU that it was started with")
            .seen_all(nodes.map(|node| format!("{} exists but cannot be opened (EPERM)", node.path)))
            .seen_all(case.smi_error())
            .says("Failed to initialize NVML: Unknown Error")
            .remedy(
                "restart the container; to keep it, use CDI or `\"exec-opts\": [\"native.cgroupdriver=cgroupfs\"]` in \
                 /etc/docker/daemon.json",
            )
            .command("docker restart CONTAINER"),
    )
}
