//! The registry: what a call of a function outside the project does, by the function's path.
//!
//! Each folder of models has a list of intrinsics. A function that no list names is looked up in the tables of `data/`.
//! No two lists name the same function, so that their order means nothing.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::models::{devices, libraries, python, tensors, training};
use crate::ir::ExprId;
use crate::sym::Sym;
use crate::torch;

/// A call of a function outside the project.
#[derive(Clone, Copy)]
pub(crate) struct Called<'a> {
    /// The function, as it is imported: `torch.device`.
    pub(crate) path: Sym,
    /// What it is given.
    pub(crate) args: &'a Args,
    /// The call.
    pub(crate) at: ExprId,
}

/// What the function gives; `None` if the tables are to say it. The call may have changed the state in either case.
pub(crate) type Intrinsic = fn(&mut Interp<'_>, Called<'_>) -> Option<Value>;

/// Functions with what each does.
pub(crate) type Intrinsics = &'static [(&'static str, Intrinsic)];

/// Tests of a path, with what the functions do that pass.
pub(crate) type Families = &'static [(fn(&str) -> bool, Intrinsic)];

/// All lists.
const LISTS: &[Intrinsics] = &[
    devices::intrinsics::INTRINSICS,
    libraries::intrinsics::INTRINSICS,
    python::standard_library::INTRINSICS,
    tensors::intrinsics::INTRINSICS,
    training::intrinsics::INTRINSICS,
];

/// What is not named one by one.
const FAMILIES: &[Families] = &[libraries::intrinsics::FAMILIES, training::intrinsics::FAMILIES];

static BY_PATH: LazyLock<FxHashMap<Sym, Intrinsic>> = LazyLock::new(|| {
    LISTS.iter().copied().flatten().map(|&(path, intrinsic)| (Sym::new(path), intrinsic)).collect()
});

/// What the function does, by its path or by the name that PyTorch's documentation has for it.
pub(crate) fn intrinsic(path: Sym) -> Option<Intrinsic> {
    let named = BY_PATH.get(&path).or_else(|| BY_PATH.get(&torch::canonical(path)));
    named.copied().or_else(|| {
        let text = torch::canonical(path).as_str();
        FAMILIES.iter().copied().flatten().find(|(is_one, _)| is_one(text)).map(|&(_, intrinsic)| intrinsic)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::LISTS;

    #[test]
    fn no_function_is_listed_twice() {
        let mut seen = HashSet::new();
        for (path, _) in LISTS.iter().copied().flatten() {
            assert!(seen.insert(path), "{path} is listed twice");
        }
    }
}
