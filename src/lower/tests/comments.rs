//! Which comments are found, and the lines that they speak of.
