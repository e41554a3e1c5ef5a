//! The number of dimensions of a tensor and their sizes, as far as the source determines them.
//!
//! PyTorch lets a zero-dimensional CPU tensor take part in arithmetic with CUDA tensors, and rejects all other CPU tensors. So this
//! number often decides whether two tensors may meet.

/// An interval for the number of dimensions of a tensor. Both bounds are sound: the actual number lies between them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Dims {
    min: u8,
    max: u8,
    /// The tensor was indexed with an integer out of a tensor of unknown rank. It may be a single number or have dimensions.
    picked: bool,
    /// The size of each dimension, if the source states it and all are the same: 0 for `torch.zeros(0, 0)`.
    size: Option<u16>,
}

/// The value of `max` for "no upper bound".
const MANY: u8 = u8::MAX;

impl Dims {
    /// No dimensions: a single number.
    pub const ZERO: Self = Self::between(0, 0);
    /// At least one dimension.
    pub const SOME: Self = Self::between(1, MANY);
    /// Unknown.
    pub const ANY: Self = Self::between(0, MANY);

    const fn between(min: u8, max: u8) -> Self {
        Self { min, max, picked: false, size: None }
    }

    /// The same, with `n` as the size of each dimension. Without effect if the number of dimensions is unknown.
    pub fn of_size(self, n: usize) -> Self {
        Self { size: u16::try_from(n).ok().filter(|_| self.known().is_some()), ..self }
    }

    /// The same, with unknown sizes.
    pub const fn of_any_size(self) -> Self {
        Self { size: None, ..self }
    }

    /// The size of dimension `number`, which may count from the end, if known.
    pub fn size(self, number: i64) -> Option<usize> {
        let count = i64::from(self.known()?);
        self.size.filter(|_| (-count..count).contains(&number)).map(usize::from)
    }

    /// Exactly `n` dimensions.
    pub fn exactly(n: usize) -> Self {
        let n = u8::try_from(n).unwrap_or(MANY - 1).min(MANY - 1);
        Self::between(n, n)
    }

    /// At least `n` dimensions.
    pub fn at_least(n: usize) -> Self {
        Self { max: MANY, ..Self::exactly(n) }
    }

    /// The number of dimensions, if only one is possible.
    pub const fn known(self) -> Option<u8> {
        if self.min == self.max { Some(self.min) } else { None }
    }

    /// Whether the tensor has no dimensions. `None` if both are possible.
    pub const fn none(self) -> Option<bool> {
        match (self.min, self.max) {
            (_, 0) => Some(true),
            (0, _) => None,
            _ => Some(false),
        }
    }

    /// Whether the tensor certainly has dimensions.
    pub const fn some(self) -> bool {
        self.min > 0
    }

    /// The smallest possible number of dimensions.
    pub const fn least(self) -> usize {
        self.min as usize
    }

    /// Narrows the interval for a tensor that has the dimension `number`, which may count from the end. A tensor without dimensions also
    /// accepts 0 and -1 (c10/core/WrapDimMinimal.h, `maybe_wrap_dim`).
    pub fn with_dimension(self, number: i64) -> Self {
        let least = match number {
            -1 | 0 => return self,
            1.. => number.saturating_add(1),
            _ => number.saturating_neg(),
        };
        let min = u8::try_from(least).unwrap_or(MANY - 1).min(MANY - 1).max(self.min);
        Self { max: self.max.max(min), ..Self::between(min, MANY) }
    }

    /// The dimensions of an element that an integer index takes out of such a tensor.
    pub fn picked(self) -> Self {
        let one = self.minus(1);
        Self { picked: one.none().is_none(), ..one }
    }

    /// Whether the value was indexed out of a tensor of unknown rank, so that it may be a single number.
    pub const fn perhaps_a_number(self) -> bool {
        self.picked
    }

    /// The join: the value is one of the two.
    pub fn join(self, other: Self) -> Self {
        let picked = self.picked || other.picked;
        Self { picked, ..Self::between(self.min.min(other.min), self.max.max(other.max)) }
    }

    /// The dimensions of two tensors after broadcasting: the greater number.
    pub fn broadcast(self, other: Self) -> Self {
        let both = Self::between(self.min.max(other.min), self.max.max(other.max));
        Self { picked: both.none().is_none() && (self.picked || other.picked), ..both }
    }

    /// With `n` more dimensions.
    pub fn plus(self, n: u8) -> Self {
        let add = |x: u8| if x == MANY { MANY } else { x.saturating_add(n).min(MANY - 1) };
        Self { picked: self.picked && n == 0, ..Self::between(add(self.min), add(self.max)) }
    }

    /// With `n` fewer dimensions.
    pub fn minus(self, n: u8) -> Self {
        let take = |x: u8| if x == MANY { MANY } else { x.saturating_sub(n) };
        Self { picked: self.picked, ..Self::between(take(self.min), take(self.max)) }
    }

    /// The dimensions of `a @ b`: a vector's dimension disappears; matrices and stacks of matrices are broadcast
    /// (<https://docs.pytorch.org/docs/stable/generated/torch.matmul.html>).
    pub fn matmul(self, other: Self) -> Self {
        match (self.known(), other.known()) {
            (Some(a), Some(b)) => Self::exactly(match (a, b) {
                (0 | 1, 0 | 1) => 0,
                (1, b) => b - 1,
                (a, 1) => a - 1,
                (a, b) => a.max(b),
            } as usize),
            // A stack of matrices times a vector keeps all dimensions but one.
            _ => Self { max: MANY, ..self.broadcast(other).minus(1) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Dims;

    /// All intervals with bounds up to four, each with the numbers in it.
    fn all() -> Vec<(Dims, Vec<u8>)> {
        let ends = (0..5_u8).flat_map(|min| (min..5).map(move |max| (min, max)));
        ends.map(|(min, max)| (Dims::between(min, max), (min..=max).collect())).collect()
    }

    fn holds(d: Dims, n: u8) -> bool {
        d.min <= n && n <= d.max
    }

    /// The number of dimensions that PyTorch gives the product of tensors with `x` and `y` dimensions.
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
    fn a_size_is_known_for_the_dimensions_that_are_there() {
        let empty = Dims::exactly(2).of_size(0);
        assert_eq!([-3, -2, 0, 1, 2].map(|n| empty.size(n)), [None, Some(0), Some(0), Some(0), None]);
        assert_eq!(Dims::SOME.of_size(0).size(0), None);
        for other in [empty.plus(1), empty.minus(1), empty.join(Dims::exactly(2)), empty.of_any_size()] {
            assert_eq!(other.size(0), None, "{other:?}");
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
