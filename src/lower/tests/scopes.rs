//! Which slot a name means.

use insta::assert_snapshot;

use super::ir;
