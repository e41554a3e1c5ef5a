//! What the constructs become, and what is left of broken ones.

use insta::assert_snapshot;

use super::{ir, lowered};
