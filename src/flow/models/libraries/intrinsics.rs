//! Intrinsics of other libraries, and of whole packages.

use crate::flow::machine::calls::decorators::WRAPPED;
use crate::flow::models::libraries::external_calls::MODULES_OWN;
use crate::flow::models::libraries::saved_files::is_download;
use crate::flow::models::registry::{Families, Intrinsics};

/// Intrinsics by path.
pub(crate) const INTRINSICS: Intrinsics = &[
    (WRAPPED, |i, c| {
        i.calls.probed = i.d.or(i.calls.probed, i.path);
        Some(i.result_of(c.at))
    }),
    ("reveal_device", |i, c| Some(i.reveal(c.args, c.at))),
    ("builtins.reveal_device", |i, c| Some(i.reveal(c.args, c.at))),
];

/// Families of functions, found by a test of the path.
pub(crate) const FAMILIES: Families = &[
    (|path| path.starts_with(MODULES_OWN), |i, c| i.moved_by_base(c.path.as_str(), c.args, c.at)),
    (is_download, |i, c| {
        i.remember_download(c.path.as_str(), c.args);
        None
    }),
    (|path| path.starts_with("torch.utils.data."), |i, c| i.data_utility(c.path.as_str(), c.args, c.at)),
    (|path| path.starts_with("accelerate."), |i, c| i.make_accelerator(c.path.as_str(), c.args, c.at)),
];
