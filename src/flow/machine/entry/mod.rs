//! Entry points: a file's body, then each of its functions; and their budget.

pub(crate) mod budget;
pub(crate) mod functions;
pub(crate) mod import_calls;
pub(crate) mod run;
pub(crate) mod undefined_names;
