//! What helpers give that files call as they are imported: `logger = get_logger(__name__)`.
//!
//! Many files call the same ones with the same arguments. Where a call leaves nothing behind, what it gives is worked out once for
//! all files (`interp/recalled.rs`).

use std::sync::{Arc, PoisonError, RwLock};

use rustc_hash::FxHashMap;

use crate::flow::domain::value::Value;
use crate::ir::{ExprId, FuncId};
use crate::link::ModIdx;
use crate::sym::Sym;

/// A call: of which function, and with what. The values mean the same in all files; those without a name have the empty one.
pub(crate) type Call = (ModIdx, FuncId, Vec<(Sym, Value)>);

/// What a helper gives, whoever calls it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Gives {
    /// This, which means the same in all files.
    This(Value),
    /// What an unknown function gives that is called there.
    Outside(ModIdx, FuncId, ExprId),
    /// True or false, and nobody knows which.
    Either,
}

/// What is known of a call.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// What it gives.
    pub(crate) gives: Gives,
    /// The files whose functions it runs.
    pub(crate) files: Arc<[ModIdx]>,
}

/// See the module. Nothing is known of a call that leaves something behind.
#[derive(Debug, Default)]
pub(crate) struct Helpers(RwLock<FxHashMap<Call, Option<Known>>>);

impl Helpers {
    /// What is known of the call; `find` says so when it is asked for the first time.
    pub(crate) fn ask(&self, call: Call, find: impl FnOnce() -> Option<Known>) -> Option<Known> {
        if let Some(known) = self.0.read().unwrap_or_else(PoisonError::into_inner).get(&call) {
            return known.clone();
        }
        let found = find();
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(call, found.clone());
        found
    }
}
