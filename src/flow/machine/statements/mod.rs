//! Statements: branches, loops, handlers, `with`, definitions.

pub(crate) mod comprehensions;
pub(crate) mod definitions;
pub(crate) mod execute;
pub(crate) mod handlers;
pub(crate) mod loops;
pub(crate) mod try_blocks;
pub(crate) mod unbound_locals;
pub(crate) mod with;
