//! NumPy arrays: which of them are 64-bit floating point, the default of most functions.

use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::ir::{Expr, ExprId, UnaryOp};
use crate::sym::Sym;
use crate::words::Words;

/// NumPy functions that give `float64` by default, with the position of `dtype`.
const CREATES: &[(&str, usize)] = &[
    ("zeros", 1),
    ("ones", 1),
    ("empty", 1),
    ("eye", 3),
    ("identity", 1),
    ("linspace", 5),
    ("logspace", 5),
    ("geomspace", 4),
    ("hanning", 9),
    ("hamming", 9),
    ("blackman", 9),
    ("bartlett", 9),
    ("kaiser", 9),
    ("interp", 9),
    ("random.rand", 9),
    ("random.randn", 9),
    ("random.random", 9),
    ("random.random_sample", 9),
    ("random.uniform", 9),
    ("random.normal", 9),
    ("random.standard_normal", 9),
    ("random.exponential", 9),
    ("random.beta", 9),
    ("random.gamma", 9),
];
/// NumPy functions and methods that give `float64` if an argument is `float64`.
static ARRAYS_KEEP: Words = Words::of("keep float64");
/// NumPy functions and methods that give one number, unless an axis is given.
static REDUCE: Words = Words::of("reduce an array");
/// NumPy functions that give a number if the arguments are numbers.
static OF_NUMBERS: Words = Words::of("functions of numbers");
/// Methods after which an array has dimensions.
static SHAPES: Words = Words::of("give an array dimensions");
static GIVE_A_NUMBER: Words = Words::of("give a number for some shapes");
static GIVE_A_NUMBER_OF_ALL: Words = Words::of("give a number without an axis");
static DOUBLE: Words = Words::of("classes of float64");
static DOUBLE_NAMES: Words = Words::of("names of float64");

impl Interp<'_> {
    /// The result of a NumPy function: 64-bit by default, by `dtype`, or by its arguments.
    pub(crate) fn array_of(&self, name: &str, args: &Args) -> Value {
        let name = name.strip_prefix("numpy.").unwrap_or(name);
        let created = CREATES.iter().find(|c| c.0 == name);
        let dtype = args.keyword("dtype").or_else(|| {
            let position = match name {
                "full" => 2,
                "array" | "asarray" => 1,
                _ => created?.1,
            };
            args.positional.get(position).copied()
        });
        let doubles = match dtype {
            Some((v, _)) => self.is_numpy_double(v),
            None if args.open => false,
            None if created.is_some() => true,
            None if ARRAYS_KEEP.has(name) => args.positional.iter().take(2).any(|&(v, at)| {
                v == Self::DOUBLES
                    || self.holds_doubles(v)
                    || matches!(name, "array" | "asarray") && self.writes_floats(at)
            }),
            None => false,
        };
        match Self::array_or_number(doubles, Self::gives_number(name, args, 1)) {
            Self::ARRAY if self.may_give_number(name, args) => Self::NUMBERS,
            v => v,
        }
    }

    const fn array_or_number(doubles: bool, number: bool) -> Value {
        match (doubles, number) {
            (true, _) => Self::DOUBLES,
            (false, true) => Self::NUMBER,
            (false, false) => Self::ARRAY,
        }
    }

    /// Whether the result may be a number. Examples: `np.log(a / b)` where neither is known to be an array, a product
    /// of two arrays, a random draw without a size.
    fn may_give_number(&self, name: &str, args: &Args) -> bool {
        let axis = args.keyword("axis").is_some() || args.open;
        if OF_NUMBERS.has(name) {
            return !args.positional.is_empty()
                && !args.open
                && args.positional.iter().take(2).all(|&(v, _)| !self.has_elements(v));
        }
        let sized = args.keyword("size").is_some() || args.open;
        match name {
            _ if GIVE_A_NUMBER.has(name) => true,
            "linalg.norm" => args.positional.len() < 3 && !axis,
            _ if GIVE_A_NUMBER_OF_ALL.has(name) => !axis,
            "random.randint" => args.positional.len() < 3 && !sized,
            "random.choice" => args.positional.len() < 2 && !sized,
            _ => false,
        }
    }

    /// Whether the value is certainly an array or a list.
    fn has_elements(&self, v: Value) -> bool {
        match v {
            Self::ARRAY | Self::DOUBLES | Value::Seq(_) | Value::Many(_) | Value::Object(_) => true,
            Value::Tensor(id) => self.get_tensor(id).dims.some(),
            _ => false,
        }
    }

    /// A method of an array that has 64-bit numbers, or may have them.
    pub(crate) fn array_method(&self, array: Value, name: Sym, args: &Args) -> Value {
        let doubles = match name.as_str() {
            "astype" => args.get(0, "dtype").is_some_and(|(v, _)| self.is_numpy_double(v)),
            name => array == Self::DOUBLES && ARRAYS_KEEP.has(name),
        };
        match Self::array_or_number(doubles, Self::gives_number(name.as_str(), args, 0)) {
            // The result of a method that sets the shape has a shape, so it is an array.
            Self::ARRAY if array == Self::NUMBERS && !SHAPES.has(name.as_str()) => Self::NUMBERS,
            v => v,
        }
    }

    /// Whether the function gives one number: a reduction of a whole array, or a function of numbers only. `arrays` is
    /// the number of positional arguments before the axis.
    fn gives_number(name: &str, args: &Args, arrays: usize) -> bool {
        let axis = args.positional.len() > arrays || !args.keywords.is_empty() || args.open;
        let number = |v: Value| matches!(v, Value::Int(_) | Self::NUMBER);
        let only = |mut values: std::slice::Iter<'_, (Value, ExprId)>| values.all(|&(v, _)| number(v));
        REDUCE.has(name) && !axis
            || OF_NUMBERS.has(name) && !args.positional.is_empty() && only(args.positional.iter())
    }

    fn is_numpy_double(&self, dtype: Value) -> bool {
        match dtype {
            Value::External(path) => DOUBLE.has(path.as_str()),
            Value::Str(s, _) => DOUBLE_NAMES.has(s.as_str()),
            _ => false,
        }
    }

    /// Whether the value is a list that contains a 64-bit array.
    fn holds_doubles(&self, v: Value) -> bool {
        matches!(v, Value::Object(_) | Value::Seq(_) | Value::Many(_))
            && match v {
                Value::Many(m) => *self.t.values.get(m) == Self::DOUBLES,
                Value::Object(id) if matches!(self.own(id), Value::Many(_)) => {
                    self.holds_doubles(self.own(id))
                }
                v => self.exact_elements(v).is_some_and(|items| items.contains(&Self::DOUBLES)),
            }
    }

    /// Whether the expression is a list of number literals, at least one of them a float.
    fn writes_floats(&self, e: ExprId) -> bool {
        fn all(i: &Interp<'_>, e: ExprId, float: &mut bool) -> bool {
            let ir = &i.linked().ir;
            match ir.expr(e) {
                Expr::Float(_) => {
                    *float = true;
                    true
                }
                Expr::Int(_) => true,
                Expr::Unary { op: UnaryOp::Neg, operand } => all(i, operand, float),
                Expr::List(list) | Expr::Tuple(list) => ir.list(list).iter().all(|&x| all(i, x, float)),
                _ => false,
            }
        }
        let mut float = false;
        all(self, e, &mut float) && float
    }
}
