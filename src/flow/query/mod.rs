//! Questions about the intermediate representation of one file: what it mentions, calls, binds and tests.

pub(crate) mod assigned_attributes;
pub(crate) mod call_sites;
pub(crate) mod cuda_imports;
pub(crate) mod file_scan;
pub(crate) mod flag_words;
pub(crate) mod import_effects;
pub(crate) mod import_helpers;
pub(crate) mod mentions;
pub(crate) mod moved_by_others;
pub(crate) mod nodes;
pub(crate) mod path_conditions;
pub(crate) mod reaching_values;
pub(crate) mod relevance;
pub(crate) mod relevance_graph;
pub(crate) mod scripts;
pub(crate) mod setup_methods;
pub(crate) mod statements;
pub(crate) mod type_names;
