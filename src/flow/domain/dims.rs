//! How many dimensions a tensor has, as far as the source says it.
//!
//! PyTorch lets a zero-dimensional CPU tensor join CUDA ones in arithmetic and refuses any other, so whether two
//! tensors may meet often hangs on this number alone.

/// From how many to how many dimensions a tensor has. Both ends are sound: the real number lies between them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Dims {
    min: u8,
    max: u8,
    /// It was picked by a number out of a tensor of unknown size: as likely one number as several.
    picked: bool,
    /// How many numbers a vector has, as far as the source writes them down.
    length: Option<u16>,
}

/// There is no upper end.
const MANY: u8 = u8::MAX;

impl Dims {
    /// A number in a tensor.
    pub const ZERO: Self = Self::between(0, 0);
    /// At least one.
    pub const SOME: Self = Self::between(1, MANY);
    /// Not known.
    pub const ANY: Self = Self::between(0, MANY);

    const fn between(min: u8, max: u8) -> Self {
        Self { min, max, picked: false, length: None }
    }

    /// If it is a vector, of that many numbers.
    pub fn of_length(self, n: usize) -> Self {
        Self { length: u16::try_from(n).ok().filter(|_| self.known() == Some(1)), ..self }
    }

    /// Of any length.
    pub const fn of_any_length(self) -> Self {
        Self { length: None, ..self }
    }

    /// The number of numbers in it, if the source says it.
    pub fn length(self) -> Option<usize> {
        self.length.map(usize::from)
    }

    /// That many.
    pub fn exactly(n: usize) -> Self {
        let n = u8::try_from(n).unwrap_or(MANY - 1).min(MANY - 1);
        Self::between(n, n)
    }

    /// That many, or more.
    pub fn at_least(n: usize) -> Self {
        Self { max: MANY, ..Self::exactly(n) }
    }

    /// The number, if there is but one that it can be.
    pub const fn known(self) -> Option<u8> {
        if self.min == self.max { Some(self.min) } else { None }
    }

    /// Has the tensor no dimensions? `None`: it may have some.
    pub const fn none(self) -> Option<bool> {
        match (self.min, self.max) {
            (_, 0) => Some(true),
            (0, _) => None,
            _ => Some(false),
        }
    }

    /// Does the tensor have dimensions for certain?
    pub const fn some(self) -> bool {
        self.min > 0
    }

    /// The fewest that it can be.
    pub const fn least(self) -> usize {
        self.min as usize
    }

    /// Of a tensor that has the dimension with this number, which may count from the end. One without any has 0 and -1, too
    /// (c10/core/WrapDimMinimal.h, `maybe_wrap_dim`).
    pub fn with_dimension(self, number: i64) -> Self {
        let least = match number {
            -1 | 0 => return self,
            1.. => number.saturating_add(1),
            _ => number.saturating_neg(),
        };
        let min = u8::try_from(least).unwrap_or(MANY - 1).min(MANY - 1).max(self.min);
        Self { max: self.max.max(min), ..Self::between(min, MANY) }
    }

    /// What a number picks out of such a tensor.
    pub fn picked(self) -> Self {
        let one = self.minus(1);
        Self { picked: one.none().is_none(), ..one }
    }

    /// May it just as well be a number, for it was picked out of a tensor?
    pub const fn perhaps_a_number(self) -> bool {
        self.picked
    }

    /// Of two values, one is meant.
    pub fn join(self, other: Self) -> Self {
        let picked = self.picked || other.picked;
        Self { picked, ..Self::between(self.min.min(other.min), self.max.max(other.max)) }
    }

    /// Of two tensors that are broadcast, the greater number.
    pub fn broadcast(self, other: Self) -> Self {
        let both = Self::between(self.min.max(other.min), self.max.max(other.max));
        Self { picked: both.none().is_none() && (self.picked || other.picked), ..both }
    }

    /// With so many more.
    pub fn plus(self, n: u8) -> Self {
        let add = |x: u8| if x == MANY { MANY } else { x.saturating_add(n).min(MANY - 1) };
        Self { picked: self.picked && n == 0, ..Self::between(add(self.min), add(self.max)) }
    }

    /// With so many less.
    pub fn minus(self, n: u8) -> Self {
        let take = |x: u8| if x == MANY { MANY } else { x.saturating_sub(n) };
        Self { picked: self.picked, ..Self::between(take(self.min), take(self.max)) }
    }

    /// Of `a @ b`: vectors lose theirs, matrices and stacks of them are broadcast
    /// (<https://docs.pytorch.org/docs/stable/generated/torch.matmul.html>).
    pub fn matmul(self, other: Self) -> Self {
        match (self.known(), other.known()) {
            (Some(a), Some(b)) => Self::exactly(match (a, b) {
                (0 | 1, 0 | 1) => 0,
                (1, b) => b - 1,
                (a, 1) => a - 1,
                (a, b) => a.max(b),
            } as usize),
            // A stack of matrices times a vector still has all but one.
            _ => Self { max: MANY, ..self.broadcast(other).minus(1) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Dims;

    /// All intervals up to four, each with the numbers in it.
    fn all() -> Vec<(Dims, Vec<u8>)> {
        let ends = (0..5_u8).flat_map(|min| (min..5).map(move |max| (min, max)));
        ends.map(|(min, max)| (Dims::between(min, max), (min..=max).collect())).collect()
    }

    fn holds(d: Dims, n: u8) -> bool {
        d.min <= n && n <= d.max
    }

    /// What PyTorch makes of a product of tensors with so many dimensions.
    fn product(x: u8, y: u8) -> u8 {
        match (x, y) {
            (1, 1) => 0,
            (1, y) => y - 1,
            (x, 1) => x - 1,
            (x, y) => x.max(y),
        }
    }

    #[test]
    fn a_dimension_that_is_there_tells_how_many_there_are() {
        for (dims, numbers) in all() {
            for dimension in -4..4_i64 {
                let told = dims.with_dimension(dimension);
                let has = |n: u8| {
                    let n = i64::from(n).max(1);
                    (-n..n).contains(&dimension)
                };
                for n in numbers.iter().copied().filter(|&n| has(n)) {
                    assert!(holds(told, n), "{dims:?} with {dimension} may have {n}");
                }
                assert!(told.least() >= dims.least());
            }
        }
        assert!(Dims::ANY.with_dimension(1).minus(1).some());
        assert!(!Dims::ANY.with_dimension(-1).minus(1).some());
    }

    #[test]
    fn the_real_number_stays_between_the_ends() {
        for (a, xs) in all() {
            for (b, ys) in all() {
                for (&x, &y) in xs.iter().flat_map(|x| ys.iter().map(move |y| (x, y))) {
                    assert!(holds(a.join(b), x) && holds(a.join(b), y), "{a:?} or {b:?}");
                    assert!(holds(a.broadcast(b), x.max(y)), "{a:?} + {b:?}");
                    assert!(holds(a.plus(b.min), x + b.min), "{a:?} + {}", b.min);
                    assert!(x < b.min || holds(a.minus(b.min), x - b.min), "{a:?} - {}", b.min);
                    assert!(x == 0 || y == 0 || holds(a.matmul(b), product(x, y)), "{a:?} @ {b:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_said_of_zero_is_true() {
        for (a, xs) in all() {
            for x in xs {
                assert_ne!(a.none(), Some(x != 0), "{a:?}");
                assert!(!a.some() || x > 0, "{a:?}");
            }
        }
        assert_eq!((Dims::ZERO.none(), Dims::SOME.none(), Dims::ANY.none()), (Some(true), Some(false), None));
    }

    #[test]
    fn a_number_picks_what_may_be_a_number() {
        let matrix = Dims::exactly(2);
        assert!(Dims::ANY.picked().perhaps_a_number() && Dims::SOME.picked().perhaps_a_number());
        assert!(!matrix.picked().perhaps_a_number() && !matrix.picked().picked().perhaps_a_number());
        assert_eq!(matrix.picked().picked(), Dims::ZERO);
        let element = Dims::ANY.picked();
        assert!(element.broadcast(Dims::ZERO).perhaps_a_number());
        assert!(!element.broadcast(Dims::SOME).perhaps_a_number() && !element.plus(1).perhaps_a_number());
    }

    #[test]
    fn no_upper_end_stays_none() {
        for d in [Dims::SOME.plus(3), Dims::SOME.minus(3), Dims::ANY.broadcast(Dims::exactly(2))] {
            assert_eq!(d.known(), None);
            assert!(holds(d, 200), "{d:?}");
        }
    }
}
