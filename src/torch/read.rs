//! Reads the operator table: lines of `data/operators.txt` → [`Op`] and [`ModuleOp`]. The format is in its header.

use super::operators::{
    Accepts, ArgRule, ConstructorParameter, Distribution, Elsewhere, Kind, ModuleOp, Op, ResultRule, Share,
    State,
};
use crate::sym::Sym;
use crate::world::Backend;

/// One line of the table.
#[derive(Debug)]
pub enum Entry {
    /// Anything but a module.
    Op(Op),
    /// A module.
    Module(ModuleOp),
}

/// The lines that carry data.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Is it about a module, by what follows the name in its line?
pub fn is_module(facts: &str) -> bool {
    facts.split(' ').next().and_then(kind) == Some(Kind::Module)
}

/// The entry of one line; `None` where the line is malformed.
pub fn entry(line: &str) -> Option<Entry> {
    let mut words = line.split(' ');
    let name = words.next()?;
    let kind = kind(words.next()?)?;
    let result = result(words.next()?)?;
    let flags = Flags::read(words.next()?)?;
    let accepts = flags.accepts;
    if kind == Kind::Module {
        let (state, constructor) = words.next()?.split_once(':')?;
        return Some(Entry::Module(ModuleOp {
            name: Sym::new(name),
            state: state_of(state)?,
            constructor: constructor.split(',').filter(|p| !p.is_empty()).map(parameter).collect(),
            forward: words.map(argument).collect::<Option<_>>()?,
            result,
            accepts,
        }));
    }
    let mut args = Vec::new();
    let mut fails_at_construction = false;
    let mut value = (Elsewhere::Unknown, Elsewhere::Unknown);
    for word in words {
        if word == "fails=construct" {
            fails_at_construction = true;
        } else if let Some(codes) = word.strip_prefix("value=") {
            let mut codes = codes.chars();
            value = (elsewhere(codes.next()?)?, elsewhere(codes.next()?)?);
        } else {
            args.push(argument(word)?);
        }
    }
    let in_place = changes_its_argument(name);
    Some(Entry::Op(Op {
        name: Sym::new(name),
        kind,
        args: args.into(),
        result: if in_place && result == ResultRule::Follows { ResultRule::Receiver } else { result },
        honours_default: flags.honours_default,
        accepts,
        out_must_match: flags.out_must_match,
        in_place,
        distribution: (kind == Kind::Distribution).then_some(Distribution {
            fails_at_construction,
            cpu_value: value.0,
            cuda_value: value.1,
        }),
    }))
}

/// `add_` and `__iadd__`, not `__add__`.
fn changes_its_argument(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    if let Some(inner) = last.strip_prefix("__").and_then(|l| l.strip_suffix("__")) {
        return inner.starts_with('i') && !matches!(inner, "int" | "index" | "invert" | "iter");
    }
    last.ends_with('_')
}

fn kind(word: &str) -> Option<Kind> {
    Kind::ALL.iter().find(|(_, name)| *name == word).map(|&(kind, _)| kind)
}

fn result(word: &str) -> Option<ResultRule> {
    Some(match word {
        "follows" => ResultRule::Follows,
        "receiver" => ResultRule::Receiver,
        "device" => ResultRule::DeviceArgument,
        "data" => ResultRule::Data,
        "each" => ResultRule::Each,
        "other" => ResultRule::OtherArgument,
        "to" => ResultRule::To,
        "type" => ResultRule::TypeArgument,
        "params" => ResultRule::Parameters,
        "cpu" => ResultRule::Cpu,
        "cuda" => ResultRule::Cuda,
        "host" => ResultRule::Host,
        "torch-device" => ResultRule::Device,
        "-" => ResultRule::Unknown,
        backend => ResultRule::Backend(Backend::from_name(backend)?),
    })
}

fn state_of(word: &str) -> Option<State> {
    Some(match word {
        "yes" => State::Yes,
        "no" => State::No,
        "sometimes" => State::Sometimes,
        "unknown" => State::Unknown,
        _ => return None,
    })
}

#[derive(Default)]
struct Flags {
    accepts: Accepts,
    honours_default: bool,
    out_must_match: bool,
}

impl Flags {
    fn read(word: &str) -> Option<Self> {
        let mut flags = Self::default();
        if word == "-" {
            return Some(flags);
        }
        for letter in word.chars() {
            match letter {
                'd' => flags.honours_default = true,
                'D' => flags.accepts.device = true,
                'g' => flags.accepts.generator = true,
                'p' => flags.accepts.pin_memory = true,
                't' => flags.accepts.dtype = true,
                'f' => flags.accepts.force = true,
                'k' => flags.accepts.check_device = true,
                'o' => flags.accepts.out = true,
                'O' => {
                    flags.accepts.out = true;
                    flags.out_must_match = true;
                }
                _ => return None,
            }
        }
        Some(flags)
    }
}

fn parameter(word: &str) -> ConstructorParameter {
    let name = word.trim_end_matches(['!', '?']);
    ConstructorParameter { name: Sym::new(name), tensor: word.ends_with('!'), switch: word.ends_with('?') }
}

/// `NAME@POSITION[*][+]:CCC`
fn argument(word: &str) -> Option<ArgRule> {
    let (name, rest) = word.split_once('@')?;
    let (place, codes) = rest.split_once(':')?;
    let list = place.contains('*');
    let variadic = place.contains('+');
    let position = place.trim_end_matches(['*', '+']);
    let mut codes = codes.chars();
    let rule = ArgRule {
        name: Sym::new(name),
        position: if position == "-" { None } else { Some(position.parse().ok()?) },
        list,
        variadic,
        share: match codes.next()? {
            '!' => Share::Must,
            '~' => Share::Free,
            'c' => Share::Cpu,
            '?' => Share::Unknown,
            _ => return None,
        },
        cpu_ok: elsewhere(codes.next()?)?,
        cuda_ok: elsewhere(codes.next()?)?,
    };
    codes.next().is_none().then_some(rule)
}

fn elsewhere(code: char) -> Option<Elsewhere> {
    Some(match code {
        'n' => Elsewhere::No,
        'y' => Elsewhere::Yes,
        'z' => Elsewhere::ZeroDim,
        'a' => Elsewhere::AllZeroDim,
        'm' => Elsewhere::MaybeZeroDim,
        '?' => Elsewhere::Unknown,
        _ => return None,
    })
}
