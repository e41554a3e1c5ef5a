//! The registry: what a call of an external function does, by the function's path.
//!
//! Each folder of models has a list of intrinsics. If no list names a function, the tables of `data/` describe it.
//! No two lists name the same function, so their order does not matter.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::models::{devices, libraries, python, tensors, training};
use crate::ir::ExprId;
use crate::sym::Sym;
use crate::torch;

/// A call of an external function.
#[derive(Clone, Copy)]
pub(crate) struct Called<'a> {
    /// The function's path, as the program imports it: `torch.device`.
    pub(crate) path: Sym,
    /// The arguments.
    pub(crate) args: &'a Args,
    /// The call expression.
    pub(crate) at: ExprId,
}

/// Returns the function's result, or `None` if the tables describe it. In both cases, it may have changed the state.
pub(crate) type Intrinsic = fn(&mut Interp<'_>, Called<'_>) -> Option<Value>;

/// Functions by path, each with its intrinsic.
pub(crate) type Intrinsics = &'static [(&'static str, Intrinsic)];

/// Tests of a path, each with the intrinsic of the functions that pass.
pub(crate) type Families = &'static [(fn(&str) -> bool, Intrinsic)];

/// All lists of intrinsics.
const LISTS: &[Intrinsics] = &[
    devices::intrinsics::INTRINSICS,
    libraries::intrinsics::INTRINSICS,
    python::standard_library::INTRINSICS,
    tensors::intrinsics::INTRINSICS,
    training::intrinsics::INTRINSICS,
];

/// Families of functions that no list names one by one.
const FAMILIES: &[Families] = &[libraries::intrinsics::FAMILIES, training::intrinsics::FAMILIES];

static BY_PATH: LazyLock<FxHashMap<Sym, Intrinsic>> = LazyLock::new(|| {
    LISTS.iter().copied().flatten().map(|&(path, intrinsic)| (Sym::new(path), intrinsic)).collect()
});

/// The intrinsic of a function, found by its path or by its name in PyTorch's documentation.
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
