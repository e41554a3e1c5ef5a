//! Calls: of functions, classes and methods of the project, and what binds their arguments.

pub(crate) mod abstract_methods;
pub(crate) mod args;
pub(crate) mod call;
pub(crate) mod classes;
pub(crate) mod decorators;
pub(crate) mod forwarded_calls;
pub(crate) mod function_values;
pub(crate) mod generator_managers;
pub(crate) mod getattr_calls;
pub(crate) mod iterators;
pub(crate) mod methods;
pub(crate) mod missing_arguments;
pub(crate) mod parameter_defaults;
pub(crate) mod returned_functions;
pub(crate) mod special_methods;
pub(crate) mod visible_callers;
pub(crate) mod wrappers;
