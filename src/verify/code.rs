//! The driver's error codes. Numbers, not the enum of the bindings: a code that the enum does not know would be
//! undefined behavior there, and drivers are newer than programs.

/// The names that `cuda.h` gives them, without `CUDA_ERROR_`.
const NAMES: &[(i32, &str)] = &[
    (0, "SUCCESS"),
    (1, "INVALID_VALUE"),
    (2, "OUT_OF_MEMORY"),
    (3, "NOT_INITIALIZED"),
    (4, "DEINITIALIZED"),
    (34, "STUB_LIBRARY"),
    (36, "CALL_REQUIRES_NEWER_DRIVER"),
    (46, "DEVICE_UNAVAILABLE"),
    (100, "NO_DEVICE"),
    (101, "INVALID_DEVICE"),
    (102, "DEVICE_NOT_LICENSED"),
    (200, "INVALID_IMAGE"),
    (201, "INVALID_CONTEXT"),
    (209, "NO_BINARY_FOR_GPU"),
    (214, "ECC_UNCORRECTABLE"),
    (217, "PEER_ACCESS_UNSUPPORTED"),
    (218, "INVALID_PTX"),
    (222, "UNSUPPORTED_PTX_VERSION"),
    (304, "OPERATING_SYSTEM"),
    (400, "INVALID_HANDLE"),
    (500, "NOT_FOUND"),
    (700, "ILLEGAL_ADDRESS"),
    (702, "LAUNCH_TIMEOUT"),
    (719, "LAUNCH_FAILED"),
    (800, "NOT_PERMITTED"),
    (801, "NOT_SUPPORTED"),
    (802, "SYSTEM_NOT_READY"),
    (803, "SYSTEM_DRIVER_MISMATCH"),
    (804, "COMPAT_NOT_SUPPORTED_ON_DEVICE"),
    (805, "MPS_CONNECTION_FAILED"),
    (806, "MPS_RPC_FAILURE"),
    (807, "MPS_SERVER_NOT_READY"),
    (808, "MPS_MAX_CLIENTS_REACHED"),
    (809, "MPS_MAX_CONNECTIONS_REACHED"),
    (810, "MPS_CLIENT_TERMINATED"),
    (999, "UNKNOWN"),
];

/// The code's name; `UNLISTED` for one that is in no table of ours.
pub fn name(code: i32) -> &'static str {
    NAMES.iter().find(|(number, _)| *number == code).map_or("UNLISTED", |(_, name)| name)
}

/// "803 (SYSTEM_DRIVER_MISMATCH)".
pub fn in_words(code: i32) -> String {
    format!("{code} ({})", name(code))
}
