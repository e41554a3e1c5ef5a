//! Queries about the intermediate representation of one file: what it mentions, calls, binds and tests.

pub(crate) mod call_sites;
pub(crate) mod cuda_imports;
pub(crate) mod flag_words;
pub(crate) mod nodes;
pub(crate) mod path_conditions;
pub(crate) mod reaching_values;
pub(crate) mod relevance;
pub(crate) mod scripts;
pub(crate) mod statements;
pub(crate) mod type_names;
