//! Refutes findings about process groups that other files of the project make.

use rustc_hash::FxHashSet;

use super::project::{Reading, mentions, projects};
use crate::assumption::Assumption;
use crate::flow::nccl_where_cuda_is;
use crate::rules::Found;
use crate::span::FileId;
use crate::torch::GROUP_MAKER;

/// Removes findings that assume an NCCL group, except in projects that always make an NCCL group where CUDA is available. `found` has the
/// findings of linted files, `others` those of files that are only compared with them.
pub(super) fn of_nccl(found: &mut Found, others: &mut Found, reading: &mut Reading<'_>) {
    let is_nccl = |a: &Assumption| *a == Assumption::GroupIsNccl;
    let supposes = |all: &Found| all.values().flatten().any(|f| f.assumes(is_nccl));
    if !supposes(found) && !supposes(others) {
        return;
    }
    let mut sure: FxHashSet<FileId> = FxHashSet::default();
    let inputs = reading.inputs;
    for project in projects(found.keys().copied(), reading) {
        project.complete(reading, &|text| mentions(text, &[GROUP_MAKER]));
        let files = project.modules(reading);
        if nccl_where_cuda_is(&reading.program, &files) {
            sure.extend(found.keys().filter(|&&file| project.holds(file, inputs)));
            sure.extend(project.files().iter().filter_map(|path| reading.intake.file(path)));
        }
    }
    for (file, findings) in found.iter_mut().chain(others) {
        findings.retain(|f| !f.assumes(is_nccl) || sure.contains(file));
    }
}
