//! A table of facts by name, of which each is read from its lines when it is first asked for: a run needs few of them.

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

/// The facts, each under its name.
#[derive(Debug)]
pub struct Table<T> {
    rows: FxHashMap<&'static str, Row<T>>,
}

/// The lines about one name, in order, without the name.
#[derive(Debug)]
struct Row<T> {
    first: &'static str,
    more: Vec<&'static str>,
    fact: OnceLock<Option<T>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { rows: FxHashMap::default() }
    }
}

impl<T> Table<T> {
    /// Adds a line about this name.
    pub fn add(&mut self, name: &'static str, line: &'static str) {
        let row = Row { first: line, more: Vec::new(), fact: OnceLock::new() };
        match self.rows.entry(name) {
            std::collections::hash_map::Entry::Vacant(entry) => {
                entry.insert(row);
            }
            std::collections::hash_map::Entry::Occupied(mut entry) => entry.get_mut().more.push(line),
        }
    }

    /// What `read` makes of the lines about this name, in order; it is called once for a name.
    pub fn get(
        &self,
        name: &str,
        read: impl FnOnce(&mut dyn Iterator<Item = &'static str>) -> Option<T>,
    ) -> Option<&T> {
        let row = self.rows.get(name)?;
        let lines = || std::iter::once(row.first).chain(row.more.iter().copied());
        row.fact.get_or_init(|| read(&mut lines())).as_ref()
    }

    /// The lines with their names, in no particular order.
    pub fn lines(&self) -> impl Iterator<Item = (&'static str, &'static str)> + '_ {
        self.rows.iter().flat_map(|(&name, row)| {
            std::iter::once(row.first).chain(row.more.iter().copied()).map(move |line| (name, line))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn a_fact_is_read_once_from_all_its_lines() {
        let mut table: Table<Vec<&str>> = Table::default();
        [("a", "one"), ("b", "two"), ("a", "three")]
            .into_iter()
            .for_each(|(name, line)| table.add(name, line));
        assert_eq!(table.get("a", |lines| Some(lines.collect())), Some(&vec!["one", "three"]));
        assert_eq!(table.get("a", |_| None), Some(&vec!["one", "three"]), "read before");
        assert_eq!(table.get("b", |_| None), None);
        assert_eq!(table.get("c", |lines| Some(lines.collect())), None);
        assert_eq!(table.lines().count(), 3);
    }
}
