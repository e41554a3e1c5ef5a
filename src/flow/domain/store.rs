//! The mutable state: numbered cells with an undo log.
//!
//! Variables and attributes are cells. A branch is interpreted in place. [`Store::take`] then reverts the branch's writes and returns
//! them. So a join of two branches looks only at the cells that they wrote.

use crate::flow::domain::value::Value;

/// Number of a cell.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Cell(pub u32);

/// A point in the undo log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mark(usize);

/// The writes of an interpreted stretch of code: the last value of each written cell, sorted by cell.
pub type Changes = Vec<(Cell, Value)>;

/// The cells.
#[derive(Default)]
pub struct Store {
    cells: Vec<Value>,
    trail: Vec<(Cell, Value)>,
}

impl Store {
    /// Allocates `n` cells that hold [`Value::Absent`], and returns the first.
    pub fn alloc(&mut self, n: usize) -> Cell {
        let first = Cell(u32::try_from(self.cells.len()).unwrap_or(u32::MAX));
        self.cells.resize(self.cells.len() + n, Value::Absent);
        first
    }

    /// Allocates a cell that holds a value. The undo log has no entry for it.
    pub fn alloc_with(&mut self, value: Value) -> Cell {
        let cell = self.alloc(1);
        self.cells[cell.0 as usize] = value;
        cell
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// The value of a cell.
    pub fn get(&self, cell: Cell) -> Value {
        self.cells[cell.0 as usize]
    }

    /// Writes a cell.
    pub fn set(&mut self, cell: Cell, value: Value) {
        let old = std::mem::replace(&mut self.cells[cell.0 as usize], value);
        if old != value {
            self.trail.push((cell, old));
        }
    }

    /// The current point in the undo log.
    pub fn mark(&self) -> Mark {
        Mark(self.trail.len())
    }

    /// The value that a cell had at the mark.
    pub fn at(&self, mark: Mark, cell: Cell) -> Value {
        let written = self.trail[mark.0..].iter().find(|&&(c, _)| c == cell);
        written.map_or_else(|| self.get(cell), |&(_, old)| old)
    }

    /// The writes since the mark. Does not revert them.
    pub fn changes(&self, since: Mark) -> Changes {
        let written = &self.trail[since.0..];
        match written {
            [] => Vec::new(),
            [(cell, _)] => vec![(*cell, self.get(*cell))],
            _ => {
                let mut cells: Vec<Cell> = written.iter().map(|&(c, _)| c).collect();
                cells.sort_unstable();
                cells.dedup();
                cells.into_iter().map(|c| (c, self.get(c))).collect()
            }
        }
    }

    /// Reverts all writes since the mark and returns them.
    pub fn take(&mut self, since: Mark) -> Changes {
        let changes = self.changes(since);
        self.undo(since);
        changes
    }

    /// Reverts all writes since the mark.
    pub fn undo(&mut self, since: Mark) {
        while self.trail.len() > since.0 {
            if let Some((cell, old)) = self.trail.pop() {
                self.cells[cell.0 as usize] = old;
            }
        }
    }

    /// Reverts all writes since the mark and drops all cells after the first `cells`.
    pub fn reset(&mut self, since: Mark, cells: usize) {
        self.undo(since);
        self.cells.truncate(cells);
    }
}

/// Merges the writes of two branches: each cell with the value that each branch wrote, if it did.
pub fn pair(a: &Changes, b: &Changes) -> impl Iterator<Item = (Cell, Option<Value>, Option<Value>)> {
    let (mut a, mut b) = (a.iter(), b.iter());
    std::iter::from_fn(move || {
        let (x, y) = (a.as_slice().first(), b.as_slice().first());
        let cell = match (x, y) {
            (Some(x), Some(y)) => x.0.min(y.0),
            (Some(one), None) | (None, Some(one)) => one.0,
            (None, None) => return None,
        };
        let x = x.filter(|x| x.0 == cell).and_then(|_| a.next()).map(|&(_, v)| v);
        let y = y.filter(|y| y.0 == cell).and_then(|_| b.next()).map(|&(_, v)| v);
        Some((cell, x, y))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_of_two_branches_are_paired_by_cell() {
        let (x, y) = (Value::Int(1), Value::Int(2));
        let a = vec![(Cell(1), x), (Cell(4), x)];
        let b = vec![(Cell(2), y), (Cell(4), y), (Cell(7), y)];
        let pairs = [
            (Cell(1), Some(x), None),
            (Cell(2), None, Some(y)),
            (Cell(4), Some(x), Some(y)),
            (Cell(7), None, Some(y)),
        ];
        assert!(pair(&a, &b).eq(pairs));
    }

    #[test]
    fn a_branch_is_taken_back_and_handed_out() {
        let mut s = Store::default();
        let a = s.alloc(2);
        s.set(a, Value::Int(1));
        let mark = s.mark();
        s.set(a, Value::Int(2));
        s.set(a, Value::Int(3));
        s.set(Cell(a.0 + 1), Value::None);
        assert_eq!((s.at(mark, a), s.at(mark, Cell(a.0 + 1))), (Value::Int(1), Value::Absent));
        assert_eq!(s.take(mark), vec![(a, Value::Int(3)), (Cell(a.0 + 1), Value::None)]);
        assert_eq!((s.get(a), s.get(Cell(a.0 + 1))), (Value::Int(1), Value::Absent));
    }
}
