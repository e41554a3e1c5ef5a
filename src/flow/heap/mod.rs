//! Collections and strings: elements, keys, items that are stored and removed.

pub(crate) mod collection_classes;
pub(crate) mod containers;
pub(crate) mod default_values;
pub(crate) mod dict_rows;
pub(crate) mod indexing;
pub(crate) mod item_stores;
pub(crate) mod key_tests;
pub(crate) mod records;
pub(crate) mod removed_items;
pub(crate) mod string_templates;
pub(crate) mod strings;
pub(crate) mod unknown_elements;
