//! The messages that people search for, by the cause.
//!
//! Sources: the texts in `libc10_cuda.so`, `torch/cuda/__init__.py` and `torch/backends/cudnn/__init__.py` of PyTorch 2.15; those of
//! `cudaGetErrorString` in `libcudart.so.13`; NVIDIA/nvidia-container-toolkit#48; vLLM's `_check_if_gpu_supports_dtype`.

const NO_DRIVER: &str =
    "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver";
const NO_GPU: &str = "RuntimeError: No CUDA GPUs are available";
const BUSY: &str = "CUDA error: CUDA-capable device(s) is/are busy or unavailable";

/// The message of programs on a machine with this problem; `None` if they say something else each time, or nothing.
pub(super) fn of(id: &str) -> Option<&'static str> {
    Some(match id {
        "no-gpu"
        | "driver-not-installed"
        | "driver-library-missing"
        | "driver-library-unloadable"
        | "wsl-no-driver"
        | "wsl-library-not-found"
        | "wsl-1"
        | "container-without-gpu" => NO_DRIVER,
        "no-device" | "no-permission" | "hidden-by-visible-devices" | "mig-without-instances" => NO_GPU,
        "gpu-lost-in-container" => "Failed to initialize NVML: Unknown Error",
        "stub-library" => "Error 34: CUDA driver is a stub library",
        "device-unavailable" | "prohibited-mode" => BUSY,
        "fabric-manager" => "Error 802: system not yet initialized",
        "driver-library-mismatch" => {
            "Error 803: system has unsupported display driver / cuda driver combination"
        }
        "forward-compatibility" => "Error 804: forward compatibility was attempted on non supported HW",
        "mps-server" => "MPS client failed to connect to the MPS control daemon or the MPS server",
        "unknown-error" => {
            "CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable \
             CUDA_VISIBLE_DEVICES after program start"
        }
        "visible-devices-cut" => "CUDA error: invalid device ordinal",
        "no-pytorch" => "ModuleNotFoundError: No module named 'torch'",
        "shadowed-by-project" => "AttributeError: module 'torch' has no attribute",
        "cpu-only-build" => "AssertionError: Torch not compiled with CUDA enabled",
        "gpu-not-in-build" => "CUDA error: no kernel image is available for execution on the device",
        "low-memory" => "torch.OutOfMemoryError: CUDA out of memory",
        "memory-errors" => "CUDA error: uncorrectable ECC error encountered",
        "no-bfloat16" => "Bfloat16 is only supported on GPUs with compute capability of at least 8.0",
        _ => return None,
    })
}
