//! Relevance: which functions can report anything when they are interpreted on their own.

pub(crate) mod assigned_attributes;
pub(crate) mod external_mentions;
pub(crate) mod file_scan;
pub(crate) mod functions;
pub(crate) mod graph;
pub(crate) mod import_effects;
pub(crate) mod import_helpers;
pub(crate) mod layout;
pub(crate) mod mentions;
pub(crate) mod moved_by_others;
pub(crate) mod registered;
pub(crate) mod setup_methods;
