//! Classes and instances: attributes, methods, and methods that Python calls implicitly.

pub(crate) mod abstract_methods;
pub(crate) mod attributes;
pub(crate) mod define;
pub(crate) mod getattr_calls;
pub(crate) mod instances;
pub(crate) mod iterators;
pub(crate) mod methods;
pub(crate) mod special_methods;
