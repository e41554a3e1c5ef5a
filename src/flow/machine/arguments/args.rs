//! Arguments: evaluated at the call, bound to parameters.

use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::ir::{ArgKind, Call, ExprId};
use crate::sym::Sym;

/// How many dicts are tried one by one where one of them is unpacked.
const MAX_DICTS: usize = 3;

/// The evaluated arguments of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Args {
    pub(crate) positional: Vec<(Value, ExprId)>,
    pub(crate) keywords: Vec<(Sym, Value, ExprId)>,
    /// There is a `*args` or `**kwargs` whose content is not known.
    pub(crate) open: bool,
    /// There is a `**kwargs` whose content is not known.
    pub(crate) open_names: bool,
    /// One such.
    pub(crate) unnamed: Option<Value>,
    /// What each element is of the `*args` of which nobody knows how many there are.
    pub(crate) spread: Option<(Value, ExprId)>,
    /// What comes behind such a `*args`, nobody knows at which position.
    pub(crate) behind: Vec<(Value, ExprId)>,
    /// A `**kwargs` that is one of several dicts, which are known.
    pub(crate) either: Option<(Value, ExprId)>,
}

impl Args {
    /// The argument at a position or by keyword.
    pub(crate) fn get(&self, position: usize, name: &str) -> Option<(Value, ExprId)> {
        self.keyword(name).or_else(|| self.positional.get(position).copied())
    }

    /// Just this argument, by position.
    pub(crate) fn only(&self, position: usize, name: &str) -> Self {
        Self { positional: self.get(position, name).into_iter().collect(), ..Self::default() }
    }

    /// The same with `v` for this argument, if it is given.
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

    /// Names and values come that nobody here knows.
    const fn open_keywords(&mut self) {
        self.open = true;
        self.open_names = true;
    }

    /// Puts `v` in the place of one of the [`Args::values`].
    pub(crate) fn replace(&mut self, n: usize, v: Value) {
        let positional = self.positional.iter_mut().map(|(v, _)| v);
        let keywords = self.keywords.iter_mut().map(|(_, v, _)| v);
        let mut all = positional.chain(keywords).chain(self.behind.iter_mut().map(|(v, _)| v));
        if let Some(place) = all.nth(n) {
            *place = v;
        }
    }

    /// All values.
    pub(crate) fn values(&self) -> impl Iterator<Item = (Value, ExprId)> + '_ {
        let keywords = self.keywords.iter().map(|&(_, v, e)| (v, e));
        self.positional.iter().copied().chain(keywords).chain(self.behind.iter().copied())
    }
}

/// Does a parameter or attribute of this name hold a device?
pub(crate) fn names_device(name: &str) -> bool {
    // Nearly none does.
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

    /// `**v`
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

    /// `{"device": device} if on_device else {}`
    fn is_one_of_dicts(&self, v: Value) -> bool {
        let Value::Choice(d) = v else { return false };
        let mut leaves = Vec::new();
        self.d.leaves(d, &mut leaves);
        leaves.len() <= MAX_DICTS
            && leaves.iter().all(|&leaf| self.dict_items(*self.t.values.get(leaf)).is_some())
    }

    /// Calls `f` with the arguments, with each of the dicts in turn where one of several is unpacked. What is itself one
    /// of several goes with one of the dicts, nobody remembers with which.
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
