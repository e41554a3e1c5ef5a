//! Arguments: evaluated at the call, bound to parameters.

use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::ir::{ArgKind, Call, ExprId};
use crate::sym::Sym;

/// The maximum number of alternative dicts for `**kwargs` that are interpreted one by one.
const MAX_DICTS: usize = 3;

/// The evaluated arguments of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Args {
    pub(crate) positional: Vec<(Value, ExprId)>,
    pub(crate) keywords: Vec<(Sym, Value, ExprId)>,
    /// Whether there is a `*args` or `**kwargs` of unknown content.
    pub(crate) open: bool,
    /// Whether there is a `**kwargs` of unknown content.
    pub(crate) open_names: bool,
    /// The value of one such `**kwargs`.
    pub(crate) unnamed: Option<Value>,
    /// The value of each element of a `*args` of unknown length.
    pub(crate) spread: Option<(Value, ExprId)>,
    /// The arguments after such a `*args`, whose positions are unknown.
    pub(crate) behind: Vec<(Value, ExprId)>,
    /// A `**kwargs` that is one of several known dicts.
    pub(crate) either: Option<(Value, ExprId)>,
}

impl Args {
    /// The argument at a position or by keyword.
    pub(crate) fn get(&self, position: usize, name: &str) -> Option<(Value, ExprId)> {
        self.keyword(name).or_else(|| self.positional.get(position).copied())
    }

    /// Only this argument, by position.
    pub(crate) fn only(&self, position: usize, name: &str) -> Self {
        Self { positional: self.get(position, name).into_iter().collect(), ..Self::default() }
    }

    /// The same arguments with `v` for this one, if it is given.
    pub(crate) fn with(&self, position: usize, name: &str, v: Value) -> Self {
        let mut args = self.clone();
        let keyword = args.keywords.iter_mut().find(|(n, ..)| n.as_str() == name).map(|(_, v, _)| v);
        if let Some(place) = keyword.or_else(|| args.positional.get_mut(position).map(|(v, _)| v)) {
            *place = v;
        }
        args
    }

    /// The argument by keyword.
    pub(crate) fn keyword(&self, name: &str) -> Option<(Value, ExprId)> {
        self.keywords.iter().find(|(n, ..)| n.as_str() == name).map(|&(_, v, e)| (v, e))
    }

    /// Records that unknown names and values are passed.
    const fn open_keywords(&mut self) {
        self.open = true;
        self.open_names = true;
    }

    /// Replaces the `n`th of the [`Args::values`] by `v`.
    pub(crate) fn replace(&mut self, n: usize, v: Value) {
        let positional = self.positional.iter_mut().map(|(v, _)| v);
        let keywords = self.keywords.iter_mut().map(|(_, v, _)| v);
        let mut all = positional.chain(keywords).chain(self.behind.iter_mut().map(|(v, _)| v));
        if let Some(place) = all.nth(n) {
            *place = v;
        }
    }

    /// All argument values, with their expressions.
    pub(crate) fn values(&self) -> impl Iterator<Item = (Value, ExprId)> + '_ {
        let keywords = self.keywords.iter().map(|&(_, v, e)| (v, e));
        self.positional.iter().copied().chain(keywords).chain(self.behind.iter().copied())
    }
}

/// Whether a parameter or attribute of this name holds a device.
pub(crate) fn names_device(name: &str) -> bool {
    // Fast path: few names contain one of these.
    let may = |w: &[u8]| w.eq_ignore_ascii_case(b"dev") || w.eq_ignore_ascii_case(b"map");
    if !name.as_bytes().windows(3).any(may) {
        return false;
    }
    let name = name.to_ascii_lowercase();
    let name = name.rsplit('.').next().unwrap_or(&name);
    name.contains("device")
        && !name.contains("device_map")
        && !name.contains("devices")
        && !name.contains("device_count")
        && !name.contains("device_id")
        || matches!(name, "dev" | "map_location")
}

impl Interp<'_> {
    pub(crate) fn arguments(&mut self, call: Call<'_>) -> Args {
        let mut args = Args { positional: Vec::with_capacity(call.args.len()), ..Args::default() };
        for arg in call.args {
            let v = self.eval(arg.value);
            match arg.kind {
                ArgKind::Positional if args.spread.is_some() => args.behind.push((v, arg.value)),
                ArgKind::Positional => args.positional.push((v, arg.value)),
                ArgKind::Keyword(name) => args.keywords.push((name, v, arg.value)),
                ArgKind::Star => match self.exact_elements(v) {
                    Some(items) => args.positional.extend(items.into_iter().map(|v| (v, arg.value))),
                    None => {
                        args.open = true;
                        let one = self.each(v, &mut |i, v| i.some_element(v, arg.value));
                        args.spread = Some((one, arg.value));
                    }
                },
                ArgKind::DoubleStar if args.either.is_none() && self.is_one_of_dicts(v) => {
                    args.either = Some((v, arg.value));
                }
                ArgKind::DoubleStar => self.add_named(&mut args, v, arg.value),
            }
        }
        args
    }

    /// Adds the items of `**v`.
    fn add_named(&self, args: &mut Args, v: Value, at: ExprId) {
        let Some(items) = self.dict_items(v) else {
            args.unnamed = Some(v);
            return args.open_keywords();
        };
        for pair in items.chunks(2) {
            match pair {
                &[Value::Str(k, _), v] => args.keywords.push((k, v, at)),
                _ => args.open_keywords(),
            }
        }
    }

    /// Whether the value is one of several known dicts: `{"device": device} if on_device else {}`.
    fn is_one_of_dicts(&self, v: Value) -> bool {
        let Value::Choice(d) = v else { return false };
        let mut leaves = Vec::new();
        self.d.leaves(d, &mut leaves);
        leaves.len() <= MAX_DICTS
            && leaves.iter().all(|&leaf| self.dict_items(*self.t.values.get(leaf)).is_some())
    }

    /// Calls `f` with the arguments, once for each dict if `**kwargs` is one of several. If the callee itself is one of
    /// several, the names count as unknown, because the link between callee and dict is lost.
    pub(crate) fn with_either(
        &mut self,
        f: Value,
        args: &Args,
        called: &mut dyn FnMut(&mut Self, &Args) -> Value,
    ) -> Value {
        let Some((dicts, at)) = args.either else { return called(self, args) };
        if matches!(f, Value::Choice(_)) {
            let mut args = Args { either: None, ..args.clone() };
            args.open_keywords();
            return called(self, &args);
        }
        self.each(dicts, &mut |i, dict| {
            let mut args = Args { either: None, ..args.clone() };
            i.add_named(&mut args, dict, at);
            called(i, &args)
        })
    }
}
