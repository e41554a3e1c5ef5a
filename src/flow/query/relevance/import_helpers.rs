//! Results of helpers that files call on import: `logger = get_logger(__name__)`.
//!
//! Many files call the same helpers with the same arguments. If a call has no side effects, its result is computed once for all files
//! (`flow/machine/entry/import_calls.rs`).

use std::sync::{Arc, PoisonError, RwLock};

use rustc_hash::FxHashMap;

use crate::flow::domain::value::Value;
use crate::ir::{ExprId, FuncId};
use crate::link::ModIdx;
use crate::reads::{self, Reads};
use crate::sym::Sym;

/// A call: the function and its arguments. Values have the same meaning in all files. Positional arguments have an empty name.
pub(crate) type Call = (ModIdx, FuncId, Vec<(Sym, Value)>);

/// The result of a helper, for any caller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Gives {
    /// A value with the same meaning in all files.
    This(Value),
    /// The result of an unknown call at this expression in the helper.
    Outside(ModIdx, FuncId, ExprId),
    /// An unknown truth value.
    Either,
}

/// The known facts about a call.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// Its result.
    pub(crate) gives: Gives,
    /// The files whose functions it runs.
    pub(crate) files: Arc<[ModIdx]>,
}

/// The cache of helper calls, each with the files that it has read. `None` marks a call with side effects.
#[derive(Debug, Default)]
pub(crate) struct Helpers(RwLock<FxHashMap<Call, (Option<Known>, Reads)>>);

impl Helpers {
    /// The known facts about the call. `find` computes them on the first query.
    pub(crate) fn ask(&self, call: Call, find: impl FnOnce() -> Option<Known>) -> Option<Known> {
        if let Some(known) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&call) {
            let (known, reads) = known;
            reads::note_these(reads);
            return known.clone();
        }
        let (found, reads) = reads::recorded(find);
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(call, (found.clone(), reads));
        found
    }
}
