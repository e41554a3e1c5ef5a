//! The rules: facts from the flow engine become findings.
//!
//! A rule is a page in `rules/`, a file in this folder with the same name, and a line in the list below. Its file contains everything about
//! the rule: what it looks at, its message, its help, its remedy, and its assumptions. Code that several rules share is in `shared/`, by
//! topic. No rule looks at syntax trees.

mod causes;
mod check;
mod confidence;
pub mod example;
pub mod explain;
mod judge;
mod one_line;
mod order;
pub mod page;
pub mod registry;
mod shared;

mod sd101_unguarded_cuda;
mod sd102_unguarded_accelerator;
mod sd103_uncalled_availability_check;
mod sd104_inverted_availability_check;
mod sd105_load_without_map_location;
mod sd106_legacy_cuda_tensor_type;
mod sd107_hard_coded_autocast_device;
mod sd108_unguarded_nccl;
mod sd201_mixed_device_operation;
mod sd202_module_input_mismatch;
mod sd203_discarded_transfer;
mod sd204_default_device_tensor;
mod sd205_cuda_tensor_to_numpy;
mod sd206_generator_device_mismatch;
mod sd207_cpu_only_argument;
mod sd208_cpu_tensor_in_collective;
mod sd209_data_assigned_across_devices;
mod sd210_ignored_device_parameter;
mod sd301_unregistered_tensor;
mod sd302_unregistered_submodule;
mod sd303_non_leaf_parameter;
mod sd304_optimizer_before_transfer;
mod sd305_hard_coded_device_in_module;
mod sd306_data_parallel_before_transfer;
mod sd307_stale_device_attribute;
mod sd401_hard_coded_device_index;
mod sd402_hard_coded_device_list;
mod sd403_visible_devices_set_too_late;
mod sd404_device_index_outside_visible_devices;
mod sd405_global_rank_as_device_index;
mod sd406_missing_set_device;
mod sd407_cuda_in_forked_worker;
mod sd408_hard_coded_visible_devices;
mod sd501_missing_oom_handling;
mod sd502_oom_matched_by_message;
mod sd503_swallowed_oom;
mod sd504_oom_retry_inside_handler;
mod sd505_graph_retained_by_accumulation;
mod sd506_inference_without_no_grad;
mod sd507_impossible_allocation;
mod sd508_empty_cache_in_loop;
mod sd509_device_results_accumulated;
mod sd601_created_then_moved;
mod sd602_non_blocking_without_pinned_memory;
mod sd603_unsynchronized_copy_to_cpu;
mod sd604_redundant_transfer;
mod sd605_loop_invariant_transfer;
mod sd606_sync_in_training_loop;
mod sd607_timing_without_synchronize;
mod sd701_float64_on_mps;
mod sd702_half_on_cpu;
mod sd703_bfloat16_without_support_check;
mod sd704_float64_on_gpu;
mod sd801_invalid_device_string;
mod sd802_device_compared_with_string;
mod sd803_device_overwritten;
mod sd804_module_has_no_device;

pub(crate) use causes::merge_worlds;
pub use causes::{Found, refers_to, told_once};
pub use check::{Check, Context, Limits};
pub use judge::judge;
pub use one_line::one_on_a_line;

use crate::finding::Code;

/// Takes the rules, each by the stem of its page's file name and the module that finds it. A page that is named here and missing
/// does not compile, nor does a module whose code is not its page's.
macro_rules! rules {
    ($($slug:literal $($module:ident)?;)*) => {
        /// The pages' texts, with the stems of their file names.
        const PAGES: &[(&str, &str)] =
            &[$(($slug, include_str!(concat!("../../rules/", $slug, ".md")))),*];

        /// A new one of every rule, with its code, in the order in which they are asked.
        fn checks() -> Vec<(Code, Box<dyn Check>)> {
            vec![$($(($module::CODE, Box::new($module::Rule)),)?)*]
        }

        $($(const _: () = assert!(is_code_of($module::CODE, $slug), "the page has another code");)?)*
    };
}

/// Does the stem of a page's file name begin with this code?
const fn is_code_of(code: Code, slug: &str) -> bool {
    let [b'S', b'D', a, b, c, b'-', ..] = *slug.as_bytes() else { return false };
    let digits = (a - b'0') as u16 * 100 + (b - b'0') as u16 * 10 + (c - b'0') as u16;
    code.0 == digits
}

// All rules. The first rule that returns a finding gets the event, even if that rule is off. So the order matters for rules that look at
// the same kind of event. These are the first groups below, each from the most specific rule to the most general one. The others are
// sorted by code.
rules! {
    // Found while files and comments are read: no rule looks for it.
    "SD001-syntax-error";
    "SD002-unused-suppression";
    "SD003-unreadable-file";
    // Uses of an accelerator. A use on the wrong side of a check is more specific than one without a check, a GPU with an index more than
    // any GPU, and a module more than other code.
    "SD104-inverted-availability-check" sd104_inverted_availability_check;
    "SD402-hard-coded-device-list" sd402_hard_coded_device_list;
    "SD401-hard-coded-device-index" sd401_hard_coded_device_index;
    "SD102-unguarded-accelerator" sd102_unguarded_accelerator;
    "SD106-legacy-cuda-tensor-type" sd106_legacy_cuda_tensor_type;
    "SD305-hard-coded-device-in-module" sd305_hard_coded_device_in_module;
    "SD101-unguarded-cuda" sd101_unguarded_cuda;
    // Tensors that meet, from what only some operations want to what all want.
    "SD206-generator-device-mismatch" sd206_generator_device_mismatch;
    "SD207-cpu-only-argument" sd207_cpu_only_argument;
    "SD209-data-assigned-across-devices" sd209_data_assigned_across_devices;
    "SD301-unregistered-tensor" sd301_unregistered_tensor;
    "SD202-module-input-mismatch" sd202_module_input_mismatch;
    "SD204-default-device-tensor" sd204_default_device_tensor;
    "SD201-mixed-device-operation" sd201_mixed_device_operation;
    // What fits nowhere is worse than what is large.
    "SD507-impossible-allocation" sd507_impossible_allocation;
    "SD501-missing-oom-handling" sd501_missing_oom_handling;
    // Each of these has events of its own, or asks how a file is written.
    "SD103-uncalled-availability-check" sd103_uncalled_availability_check;
    "SD105-load-without-map-location" sd105_load_without_map_location;
    "SD107-hard-coded-autocast-device" sd107_hard_coded_autocast_device;
    "SD108-unguarded-nccl" sd108_unguarded_nccl;
    "SD203-discarded-transfer" sd203_discarded_transfer;
    "SD205-cuda-tensor-to-numpy" sd205_cuda_tensor_to_numpy;
    "SD208-cpu-tensor-in-collective" sd208_cpu_tensor_in_collective;
    "SD210-ignored-device-parameter" sd210_ignored_device_parameter;
    "SD302-unregistered-submodule" sd302_unregistered_submodule;
    "SD303-non-leaf-parameter" sd303_non_leaf_parameter;
    "SD304-optimizer-before-transfer" sd304_optimizer_before_transfer;
    "SD306-data-parallel-before-transfer" sd306_data_parallel_before_transfer;
    "SD307-stale-device-attribute" sd307_stale_device_attribute;
    "SD403-visible-devices-set-too-late" sd403_visible_devices_set_too_late;
    "SD404-device-index-outside-visible-devices" sd404_device_index_outside_visible_devices;
    "SD405-global-rank-as-device-index" sd405_global_rank_as_device_index;
    "SD406-missing-set-device" sd406_missing_set_device;
    "SD407-cuda-in-forked-worker" sd407_cuda_in_forked_worker;
    "SD408-hard-coded-visible-devices" sd408_hard_coded_visible_devices;
    "SD502-oom-matched-by-message" sd502_oom_matched_by_message;
    "SD503-swallowed-oom" sd503_swallowed_oom;
    "SD504-oom-retry-inside-handler" sd504_oom_retry_inside_handler;
    "SD505-graph-retained-by-accumulation" sd505_graph_retained_by_accumulation;
    "SD506-inference-without-no-grad" sd506_inference_without_no_grad;
    "SD508-empty-cache-in-loop" sd508_empty_cache_in_loop;
    "SD509-device-results-accumulated" sd509_device_results_accumulated;
    "SD601-created-then-moved" sd601_created_then_moved;
    "SD602-non-blocking-without-pinned-memory" sd602_non_blocking_without_pinned_memory;
    "SD603-unsynchronized-copy-to-cpu" sd603_unsynchronized_copy_to_cpu;
    "SD604-redundant-transfer" sd604_redundant_transfer;
    "SD605-loop-invariant-transfer" sd605_loop_invariant_transfer;
    "SD606-sync-in-training-loop" sd606_sync_in_training_loop;
    "SD607-timing-without-synchronize" sd607_timing_without_synchronize;
    "SD701-float64-on-mps" sd701_float64_on_mps;
    "SD702-half-on-cpu" sd702_half_on_cpu;
    "SD703-bfloat16-without-support-check" sd703_bfloat16_without_support_check;
    "SD704-float64-on-gpu" sd704_float64_on_gpu;
    "SD801-invalid-device-string" sd801_invalid_device_string;
    "SD802-device-compared-with-string" sd802_device_compared_with_string;
    "SD803-device-overwritten" sd803_device_overwritten;
    "SD804-module-has-no-device" sd804_module_has_no_device;
}
