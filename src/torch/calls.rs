//! Facts about callables that the operator table does not hold: back ends, host conversions, wrappers, decorators,
//! frameworks. Read from `data/calls.txt`, whose header describes the format.

use super::read::lines;
use super::table::Table;
use crate::sym::Sym;
use crate::world::Backend;

/// What is known of one callable. Fields are independent: `torch.compile` wraps its argument and is a decorator.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct CallFact {
    /// What happens where the accelerator it belongs to is absent.
    pub accelerator: Option<AcceleratorCall>,
    /// It neither moves, changes the place of, nor keeps its arguments in a way that matters.
    pub leaves_arguments: bool,
    /// What it gives.
    pub returns: Returns,
    /// Which positional arguments it turns into NumPy arrays, which raises `TypeError` for CUDA tensors.
    pub to_numpy: Numpy,
    /// What it does as a decorator.
    pub decorator: Option<Decorator>,
    /// The tensor, or list of tensors, that a collective of `torch.distributed` sends or receives.
    pub collective: Vec<Arg>,
    /// It moves modules, batches or tensors for the user: what goes in or comes out has an unknown place.
    pub moves_for_user: bool,
    /// It takes whatever accelerator the machine has, and the CPU where there is none.
    pub chooses_device: bool,
    /// It makes something that keeps tensors where this argument says, on the CPU unless told.
    pub keeps_at: Option<Arg>,
    /// What that is called with, and must be there.
    pub meets: Option<Arg>,
    /// What it makes brings together those that it is called with: they must be in one place.
    pub mixes: Vec<Arg>,
    /// It makes something that calls each of these with what it is called with.
    pub calls_each: Option<Arg>,
    /// It fetches a file that is published, for everyone: the argument that says under which name.
    pub published_as: Option<Arg>,
    /// It raises without CUDA, and is there for nothing else.
    pub for_cuda_alone: bool,
}

/// A parameter, by name and position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arg {
    /// Its keyword.
    pub name: Sym,
    /// Its position (a method's receiver does not count here).
    pub position: u8,
}

/// A callable of `torch.cuda` or of another back end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AcceleratorCall {
    /// Whose.
    pub accelerator: Accelerator,
    /// What it does without that accelerator.
    pub without: Without,
    /// The argument that is a device, a device index or a list of them.
    pub device: Option<Arg>,
    /// A negative index or `None` as that device makes it do nothing.
    pub none_is_harmless: bool,
    /// It refuses a device without an index, instead of taking the current one.
    pub wants_index: bool,
    /// A context manager: nothing happens before the `with` statement enters it.
    pub context: bool,
}

/// Whose callable it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Accelerator {
    /// CUDA.
    Cuda,
    /// Another back end.
    Backend(Backend),
    /// Whichever is there: `torch.accelerator`.
    Any,
}

impl Accelerator {
    /// Whether `torch.<name>` is missing unless a plug-in was imported, so that even asking
    /// `torch.npu.is_available()` raises.
    pub const fn needs_plugin(self) -> bool {
        matches!(self, Self::Backend(Backend::Npu | Backend::Hpu | Backend::Mlu | Backend::Musa))
    }
}

/// What a callable does without its accelerator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Without {
    /// It works, or does nothing.
    Safe,
    /// It raises.
    Raises,
    /// It says whether the accelerator is there.
    Availability,
    /// It counts the devices.
    Count,
    /// It says yes only where the accelerator is there, and no for other reasons as well.
    Implied,
    /// It says something that is no guard: that support is compiled in, say.
    NoGuard,
    /// It says how PyTorch was built: where it says yes, the accelerator may be missing all the same.
    Built,
}

/// What a call gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Returns {
    /// Not known.
    #[default]
    Unknown,
    /// The argument itself, perhaps wrapped: it lives where the argument lives.
    Argument(Arg),
    /// An iterable over what it was given; its items are `data[i]`, collated on the CPU.
    CpuBatches(Arg),
    /// What this method of its first argument gives: `abs(x)` is `x.__abs__()`.
    Method(Sym),
    /// A device.
    Device,
    /// Host data: no tensor and no module.
    Host,
    /// Amounts of device memory.
    Memory,
    /// The number of the CUDA device in use.
    CurrentGpu,
    /// The number of this process among those of all machines, unless asked about a group.
    Rank,
    /// Tensors on the CPU.
    Cpu,
    /// A data set that reads its items from files.
    Items,
}

/// Which positional arguments become NumPy arrays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Numpy {
    /// None.
    #[default]
    None,
    /// All of them.
    All,
    /// The first so many.
    First(u8),
    /// What is in the first one, if that is a list; of a tensor it asks the method of that name.
    Items,
}

impl Numpy {
    /// Whether the positional argument `position` is converted.
    pub const fn converts(self, position: usize) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::First(n) => position < n as usize,
            Self::Items => position == 0,
        }
    }
}

/// What a decorator, or what its call gives, does with the function it decorates.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Decorator {
    /// The function behaves as written: `torch.no_grad`, `functools.wraps(f)`.
    Keeps,
    /// `staticmethod`
    Static,
    /// `classmethod`
    Class,
    /// `property`, `functools.cached_property`
    Property,
    /// `contextlib.contextmanager`
    ContextManager,
    /// A test that is skipped if the condition in the first argument holds: `pytest.mark.skipif`.
    SkipIf,
    /// A test that is skipped unless the condition in the first argument holds: `unittest.skipUnless`.
    SkipUnless,
    /// A test that is always skipped.
    Skip,
}

/// The facts by path, and those of whole packages (`numpy.*`).
#[derive(Debug, Default)]
pub struct Calls {
    exact: Table<CallFact>,
    packages: Table<CallFact>,
}

impl Calls {
    /// Takes the lines of `data/calls.txt`. Malformed ones say nothing.
    pub fn read(text: &'static str) -> Self {
        let mut calls = Self::default();
        for line in lines(text) {
            let Some((path, facts)) = line.split_once(' ') else { continue };
            match path.strip_suffix(".*") {
                None => calls.exact.add(path, facts),
                Some(package) => calls.packages.add(package, facts),
            }
        }
        calls
    }

    /// The libraries that have something which is there for CUDA alone.
    pub fn libraries_for_cuda(&self) -> Vec<&'static str> {
        let for_cuda = |facts: &str| facts.split(' ').any(|word| word == FOR_CUDA);
        let paths = self.exact.lines().filter(|(_, facts)| for_cuda(facts)).map(|(path, _)| path);
        let mut libraries: Vec<&str> = paths.filter_map(|path| path.split('.').next()).collect();
        libraries.sort_unstable();
        libraries.dedup();
        libraries
    }

    /// The facts of a path: its own, else those of the nearest package that has some.
    pub fn get(&self, path: Sym) -> Option<&CallFact> {
        let path = path.as_str();
        fact(&self.exact, path, path).or_else(|| {
            let mut rest = path;
            while let Some((package, _)) = rest.rsplit_once('.') {
                if let Some(fact) = fact(&self.packages, package, &[package, ".*"].concat()) {
                    return Some(fact);
                }
                rest = package;
            }
            None
        })
    }
}

/// What the lines about a name say of what is at this path.
fn fact<'a>(table: &'a Table<CallFact>, name: &str, path: &str) -> Option<&'a CallFact> {
    table.get(name, |lines| {
        let mut fact = CallFact::default();
        for facts in lines {
            merge(&mut fact, path, facts);
        }
        Some(fact)
    })
}

/// The word that says so.
const FOR_CUDA: &str = "cuda";

/// Whether a line of `data/calls.txt` is well-formed.
#[cfg(test)]
pub fn is_well_formed(line: &str) -> bool {
    let mut fact = CallFact::default();
    line.split_once(' ').is_some_and(|(path, facts)| merge(&mut fact, path, facts).is_some())
}

/// Adds the words of a line to a fact; stops at a malformed word.
fn merge(fact: &mut CallFact, path: &str, words: &str) -> Option<()> {
    for word in words.split(' ') {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        if accelerator_word(fact, path, key, value)? || result_word(fact, key, value)? {
            continue;
        }
        match key {
            "leaves" if value.is_empty() => fact.leaves_arguments = true,
            "numpy" => fact.to_numpy = numpy(value)?,
            "decorator" => fact.decorator = Some(decorator(value)?),
            "collective" => fact.collective.push(arg(value)?),
            "moves" => fact.moves_for_user = true,
            "chooses" => fact.chooses_device = true,
            "published" => fact.published_as = Some(arg(value)?),
            "keeps" => fact.keeps_at = Some(arg(value)?),
            "meets" => fact.meets = Some(arg(value)?),
            "mixes" => fact.mixes = value.split(',').map(arg).collect::<Option<_>>()?,
            FOR_CUDA if word == key => fact.for_cuda_alone = true,
            "each" => fact.calls_each = Some(arg(value)?),
            _ => return None,
        }
    }
    Some(())
}

/// The words that say what happens where the accelerator is absent.
const WITHOUT: &[(&str, Without)] = &[
    ("safe", Without::Safe),
    ("raises", Without::Raises),
    ("available", Without::Availability),
    ("count", Without::Count),
    ("implied", Without::Implied),
    ("no-guard", Without::NoGuard),
    ("built", Without::Built),
];

/// Adds a word about the accelerator that a callable belongs to; false if it is about something else.
fn accelerator_word(fact: &mut CallFact, path: &str, key: &str, value: &str) -> Option<bool> {
    if let Some(&(_, without)) = WITHOUT.iter().find(|(word, _)| *word == key) {
        accelerator(fact, path).without = without;
        return Some(true);
    }
    match key {
        "device" => accelerator(fact, path).device = Some(arg(value)?),
        "none-ok" => accelerator(fact, path).none_is_harmless = true,
        "indexed" => accelerator(fact, path).wants_index = true,
        "context" => accelerator(fact, path).context = true,
        _ => return Some(false),
    }
    Some(true)
}

/// What `gives=` may say.
const GIVES: &[(&str, Returns)] = &[
    ("device", Returns::Device),
    ("host", Returns::Host),
    ("memory", Returns::Memory),
    ("current-gpu", Returns::CurrentGpu),
    ("rank", Returns::Rank),
    ("cpu", Returns::Cpu),
    ("items", Returns::Items),
];

/// Adds a word about what a callable gives; false if it is about something else.
fn result_word(fact: &mut CallFact, key: &str, value: &str) -> Option<bool> {
    fact.returns = match key {
        "returns" => Returns::Argument(arg(value)?),
        "batches" => Returns::CpuBatches(arg(value)?),
        "method" => Returns::Method(Sym::new(value)),
        "gives" => GIVES.iter().find(|(word, _)| *word == value)?.1,
        _ => return Some(false),
    };
    Some(true)
}

/// Which arguments `numpy=` says are turned into arrays.
fn numpy(value: &str) -> Option<Numpy> {
    match value {
        "all" => Some(Numpy::All),
        "items" => Some(Numpy::Items),
        first => Some(Numpy::First(first.parse().ok()?)),
    }
}

fn accelerator<'a>(fact: &'a mut CallFact, path: &str) -> &'a mut AcceleratorCall {
    let owner = path.strip_prefix("torch.").unwrap_or(path).split('.').next().unwrap_or_default();
    fact.accelerator.get_or_insert(AcceleratorCall {
        accelerator: match Backend::from_name(owner) {
            Some(backend) => Accelerator::Backend(backend),
            None if owner == "accelerator" => Accelerator::Any,
            None if path.starts_with("torch.backends.mps") => Accelerator::Backend(Backend::Mps),
            None if owner == "torch_xla" => Accelerator::Backend(Backend::Xla),
            None => Accelerator::Cuda,
        },
        without: Without::Safe,
        device: None,
        none_is_harmless: false,
        wants_index: false,
        context: false,
    })
}

/// `NAME@POSITION`
fn arg(word: &str) -> Option<Arg> {
    let (name, position) = word.split_once('@')?;
    Some(Arg { name: Sym::new(name), position: position.parse().ok()? })
}

fn decorator(word: &str) -> Option<Decorator> {
    Some(match word {
        "keeps" => Decorator::Keeps,
        "static" => Decorator::Static,
        "class" => Decorator::Class,
        "property" => Decorator::Property,
        "contextmanager" => Decorator::ContextManager,
        "skipif" => Decorator::SkipIf,
        "skipunless" => Decorator::SkipUnless,
        "skip" => Decorator::Skip,
        _ => return None,
    })
}
