//! Facts about names: base classes, test guards, imports that only make sense with CUDA, aliases. Read from
//! `data/classes.txt`, `data/marks.txt` and `data/aliases.txt`; each file's header describes its format.

use rustc_hash::FxHashMap;

use super::read::lines;
use super::table::Table;
use crate::sym::Sym;
use crate::world::Backend;

/// What a base class makes of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BaseFact {
    /// The kind of class.
    pub kind: Base,
    /// The framework behind it moves modules and batches for the user.
    pub moves_for_user: bool,
    /// It only makes sense where there are accelerators.
    pub accelerators: bool,
    /// Its parts may be offloaded: they run on its `_execution_device`, which its `device` then is not.
    pub offloads: bool,
}

/// Kinds of base classes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Base {
    /// A subclass of `torch.nn.Module`.
    Module,
    /// A data set: its items are made on the host, perhaps in worker processes.
    Dataset,
    /// Collates or transforms host data.
    HostData,
    /// An optimizer or a scheduler.
    Optimizer,
    /// A `torch.autograd.Function`: its methods get tensors, it has no state.
    Function,
    /// A test case.
    TestCase,
    /// A trainer or engine that owns the loop.
    Trainer,
}

impl Base {
    fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "module" => Self::Module,
            "dataset" => Self::Dataset,
            "host-data" => Self::HostData,
            "optimizer" => Self::Optimizer,
            "function" => Self::Function,
            "test" => Self::TestCase,
            "trainer" => Self::Trainer,
            _ => return None,
        })
    }
}

/// What a test that carries a mark needs, and so may take for granted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TestGuard {
    /// A CUDA device, or so many of them.
    Cuda(u32),
    /// Some accelerator.
    Accelerator,
    /// A CUDA device if the call has this keyword: `RunIf(min_cuda_gpus=1)`.
    CudaIfKeyword(Sym),
}

/// Base classes by path.
#[derive(Debug, Default)]
pub struct Classes(Table<BaseFact>);

impl Classes {
    /// Takes the lines of `data/classes.txt`. Malformed ones say nothing.
    pub fn read(text: &'static str) -> Self {
        let mut table = Table::default();
        for line in lines(text) {
            if let Some((path, _)) = line.split_once(' ') {
                table.add(path, line);
            }
        }
        Self(table)
    }

    /// The fact of a path.
    pub fn get(&self, path: Sym) -> Option<BaseFact> {
        self.0.get(path.as_str(), |lines| lines.filter_map(class).last().map(|(_, fact)| fact)).copied()
    }
}

/// `PATH KIND [moves|accelerators|offloads]`; what offloads moves as well
pub fn class(line: &str) -> Option<(Sym, BaseFact)> {
    let mut words = line.split(' ');
    let path = Sym::new(words.next()?);
    let kind = Base::from_name(words.next()?)?;
    let word = words.next();
    if !matches!(word, None | Some("moves" | "accelerators" | "offloads")) {
        return None;
    }
    let says = |what: &str| word == Some(what);
    let (accelerators, offloads) = (says("accelerators"), says("offloads"));
    let moves_for_user = offloads || says("moves");
    Some((path, BaseFact { kind, moves_for_user, accelerators, offloads }))
}

/// Names that mark tests, and packages that only make sense with CUDA.
#[derive(Debug, Default)]
pub struct Marks {
    guards: Vec<(&'static str, TestGuard)>,
    imports: Vec<(&'static str, Reach)>,
    plugins: Vec<(&'static str, Backend)>,
    tensorless: Vec<&'static str>,
}

/// For which files an import says that they are for CUDA alone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Reach {
    /// The one that has it.
    Alone,
    /// All that cannot be imported without that one.
    Importers,
}

/// One line of `data/marks.txt`.
pub enum Mark {
    /// A decorator's last name, `*` standing for anything, and what it implies.
    Guard(&'static str, TestGuard),
    /// A module that a CUDA-only file imports; `*` at the end stands for anything.
    Import(&'static str, Reach),
    /// A module that brings a back end.
    Plugin(&'static str, Backend),
    /// A class whose state holds no tensors.
    Tensorless(&'static str),
}

impl Marks {
    /// Reads `data/marks.txt`; malformed lines are skipped.
    pub fn read(text: &'static str) -> Self {
        let mut marks = Self::default();
        for mark in lines(text).filter_map(mark) {
            match mark {
                Mark::Guard(pattern, guard) => marks.guards.push((pattern, guard)),
                Mark::Import(pattern, reach) => marks.imports.push((pattern, reach)),
                Mark::Plugin(pattern, backend) => marks.plugins.push((pattern, backend)),
                Mark::Tensorless(pattern) => marks.tensorless.push(pattern),
            }
        }
        marks
    }

    /// What the mark with this last name implies.
    pub fn guard(&self, name: &str) -> Option<TestGuard> {
        self.guards.iter().find(|(pattern, _)| matches(pattern, name)).map(|&(_, guard)| guard)
    }

    /// The back end that importing this dotted path brings.
    pub fn plugin(&self, path: &str) -> Option<Backend> {
        let below = |pattern: &str| {
            path.strip_prefix(pattern).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.plugins.iter().find(|(pattern, _)| below(pattern)).map(|&(_, b)| b)
    }

    /// Does the state of the class's objects hold no tensors?
    pub fn tensorless(&self, class: &str) -> bool {
        self.tensorless.iter().any(|pattern| matches(pattern, class))
    }

    /// Whether importing this dotted path makes a module plainly CUDA-only, and which others.
    pub fn cuda_only_import(&self, path: &str) -> Option<Reach> {
        let found = self.imports.iter().find(|(pattern, _)| {
            matches(pattern, path) || path.strip_prefix(pattern).is_some_and(|rest| rest.starts_with('.'))
        });
        found.map(|&(_, reach)| reach)
    }
}

/// `guard PATTERN cuda|gpus=N|accelerator|keyword=NAME`, `import PATTERN` and so on
pub fn mark(line: &'static str) -> Option<Mark> {
    let mut words = line.split(' ');
    let mark = match (words.next()?, words.next()?, words.next()) {
        ("import", pattern, None) => Mark::Import(pattern, Reach::Importers),
        ("import", pattern, Some("alone")) => Mark::Import(pattern, Reach::Alone),
        ("tensorless", pattern, None) => Mark::Tensorless(pattern),
        ("plugin", pattern, Some(name)) => Mark::Plugin(pattern, Backend::from_name(name)?),
        ("guard", pattern, Some(need)) => {
            let guard = match need.split_once('=') {
                None if need == "cuda" => TestGuard::Cuda(1),
                None if need == "accelerator" => TestGuard::Accelerator,
                Some(("gpus", n)) => TestGuard::Cuda(n.parse().ok()?),
                Some(("keyword", name)) => TestGuard::CudaIfKeyword(Sym::new(name)),
                _ => return None,
            };
            Mark::Guard(pattern, guard)
        }
        _ => return None,
    };
    words.next().is_none().then_some(mark)
}

/// Whether `text` matches `pattern`, in which `*` stands for anything.
fn matches(pattern: &str, text: &str) -> bool {
    // Most differ from the first letter on.
    let first = pattern.as_bytes().first();
    if first != Some(&b'*') && first != text.as_bytes().first() {
        return false;
    }
    let Some((head, tail)) = pattern.split_once('*') else { return pattern == text };
    let Some(rest) = text.strip_prefix(head) else { return false };
    if tail.is_empty() {
        return true;
    }
    (0..=rest.len()).filter(|&at| rest.is_char_boundary(at)).any(|at| matches(tail, &rest[at..]))
}

/// Private or second homes of public names: prefixes and what they stand for, `*` being one component. By the
/// first component, as most names begin with none of these.
#[derive(Debug, Default)]
pub struct Aliases(FxHashMap<&'static str, Vec<Alias>>);

/// The rest of a prefix, and the public name.
type Alias = (Vec<&'static str>, &'static str);

impl Aliases {
    /// Reads `data/aliases.txt`; malformed lines are skipped.
    pub fn read(text: &'static str) -> Self {
        let mut aliases = Self::default();
        for (mut prefix, public) in lines(text).filter_map(alias) {
            let first = prefix.remove(0);
            aliases.0.entry(first).or_default().push((prefix, public));
        }
        aliases
    }

    /// The public path of `path`, if it is another; applied until nothing changes.
    pub fn canonical(&self, path: &str) -> Option<String> {
        let mut current = self.step(path)?;
        for _ in 0..4 {
            match self.step(&current) {
                Some(next) => current = next,
                None => break,
            }
        }
        Some(current)
    }

    fn step(&self, path: &str) -> Option<String> {
        let (first, below) = path.split_once('.').map_or((path, None), |(first, below)| (first, Some(below)));
        self.0.get(first)?.iter().find_map(|(prefix, public)| {
            let mut rest = below;
            for want in prefix {
                let (have, after) = match rest?.split_once('.') {
                    Some((have, after)) => (have, Some(after)),
                    None => (rest?, None),
                };
                if *want != "*" && *want != have {
                    return None;
                }
                rest = after;
            }
            match rest {
                None if prefix.last() == Some(&"*") => None,
                None => Some((*public).to_owned()),
                Some(rest) => Some(format!("{public}.{rest}")),
            }
        })
    }
}

/// `PREFIX PUBLIC`
pub fn alias(line: &'static str) -> Option<(Vec<&'static str>, &'static str)> {
    let (prefix, public) = line.split_once(' ')?;
    (!public.is_empty() && !public.contains(' ')).then(|| (prefix.split('.').collect(), public))
}
