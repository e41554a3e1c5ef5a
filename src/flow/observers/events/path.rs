//! Turns a suspicion into the data of an event: on which machines it happens, and which conditions must hold.

use crate::flow::domain::atom::{Atom, AtomId, GPU_ATOMS};
use crate::flow::domain::diagram::{Cond, FALSE, Literal};
use crate::flow::domain::event::Bite;
use crate::flow::machine::Interp;
use crate::span::Place;
use crate::world::{Premise, World};

/// The maximum number of kinds of machines that a finding lists.
const MAX_ALSO: usize = 8;

/// One way in which the failure happens: one cube of the condition, and what it depends on.
struct Way {
    pub(crate) hardware: Vec<Literal>,
    pub(crate) conditions: Vec<String>,
    pub(crate) guesses: usize,
    /// The earlier use that raises first on this way. This way is real only if that use did not raise.
    pub(crate) shadow: Option<Place>,
    /// Whether a reported failure raises first on this way.
    pub(crate) past: bool,
}

impl Way {
    /// Messages describe the way with the lowest rank, which is the simplest.
    fn rank(&self) -> (bool, usize, usize) {
        (self.past, self.hardware.len(), self.conditions.len())
    }
}

/// A clause for messages: the condition with this text is true, or is not.
fn worded(text: &str, truth: bool) -> String {
    [if truth { "`" } else { "not `" }, text, "`"].concat()
}

/// Whether a flag's value counts as a guard, and how many guesses it takes to assume that value. No guess is needed for a default,
/// or for a flag about devices that the user can set both ways.
fn weigh_flag(about_devices: bool, settable: bool, by_default: Option<bool>, guards: bool) -> (bool, usize) {
    let unusual = by_default != Some(true);
    let settable = about_devices && !guards && settable;
    (about_devices && unusual, usize::from(unusual && !settable))
}

impl Interp<'_> {
    /// When `bad` happens on the present path. `None` if it cannot happen, or only by a guess.
    /// With `guards`, a way that depends on a flag about devices does not count.
    pub(crate) fn bite(&mut self, bad: Cond, guards: bool) -> Option<Bite> {
        let mut ways: Vec<Way> = self.ways(bad, guards).into_iter().filter(|w| w.shadow.is_none()).collect();
        let best = (0..ways.len()).min_by_key(|&i| ways[i].rank())?;
        let way = ways.remove(best);
        let world = hardware_world(&way.hardware);
        let premises = premises(&way.hardware);
        ways.retain(|other| other.hardware != way.hardware);
        let also = kinds(&ways);
        // `World` already says that there are few GPUs, except in a world with another back end.
        let few = |premise: &Premise| matches!(premise, Premise::FewerGpus(_));
        let premises = premises.into_iter().filter(|p| !few(p) || matches!(world, World::With(_))).collect();
        let behind_cuda = world.has_cuda() && self.is_behind_cuda();
        Some(Bite { world, premises, also, conditions: way.conditions, behind_cuda, past: way.past })
    }

    /// Does the path condition imply that CUDA is available?
    fn is_behind_cuda(&mut self) -> bool {
        (1..=crate::flow::domain::atom::GPU_ATOMS).any(|n| {
            let enough = self.d.atom(crate::flow::domain::atom::gpus_at_least(n));
            self.d.implies(self.path, enough)
        })
    }

    /// The kinds of machines on which `bad` happens on the present path. Each entry is the list of premises of one kind.
    pub(crate) fn machines(&mut self, bad: Cond) -> Vec<Vec<Premise>> {
        kinds(&self.ways(bad, false))
    }

    /// The use that raises before `bad` can happen here, and for the same reason. `samedevice` reports that use, so the other
    /// conditions of `bad` do not matter.
    pub(crate) fn shadow(&mut self, bad: Cond, guards: bool) -> Option<Place> {
        self.somehow(bad, guards).into_iter().find_map(|w| w.shadow)
    }

    /// Does an earlier use raise before `bad` on every path that leads here? Each path may have its own earlier use.
    pub(crate) fn only_in_shadows(&mut self, bad: Cond) -> bool {
        let both = self.d.and(self.path, bad);
        let (atoms, mut everywhere) = (&self.atoms, both != FALSE);
        self.d.cubes(both, &mut |literals| {
            let shadow = |&(atom, truth): &Literal| truth && matches!(atoms.get(atom), Atom::Shadow { .. });
            everywhere &= literals.iter().any(shadow);
        });
        everywhere
    }

    /// The ways that need no guess.
    fn ways(&mut self, bad: Cond, guards: bool) -> Vec<Way> {
        let mut ways = self.somehow(bad, guards);
        ways.retain(|way| way.guesses == 0);
        ways
    }

    /// All ways in which the failure happens, including those that need guesses.
    fn somehow(&mut self, bad: Cond, guards: bool) -> Vec<Way> {
        if self.run.muted > 0 || self.run.exhausted {
            return Vec::new();
        }
        let path = self.path;
        let both = self.d.and(path, bad);
        // If the diagram has no room for the whole of `bad`, the analysis does not know that the failure happens.
        if both == FALSE || !self.d.implies(both, bad) {
            return Vec::new();
        }
        let mut cubes: Vec<Vec<Literal>> = Vec::new();
        self.d.cubes(both, &mut |literals| {
            if cubes.len() < 64 {
                cubes.push(literals.to_vec());
            }
        });
        cubes.iter().filter_map(|cube| self.way(cube, both, guards)).collect()
    }

    /// One way in which the failure happens. It counts the guesses that the way needs: conditions with unknown meaning that
    /// the path to this point does not imply.
    fn way(&mut self, cube: &[Literal], bad: Cond, guards: bool) -> Option<Way> {
        if !self.is_possible(cube) {
            return None;
        }
        let idle = self.idle(cube);
        let mut way =
            Way { hardware: Vec::new(), conditions: Vec::new(), guesses: 0, shadow: None, past: false };
        // `usual`: literals that hold unless an exception was raised.
        // `chance`: literals that only an exception or an unknown choice makes true.
        let (mut usual, mut chance): (Vec<Literal>, Vec<Literal>) = (Vec::new(), Vec::new());
        // Literals that the user can set, with their clauses.
        let (mut set, mut set_clauses): (Vec<Literal>, Vec<String>) = (Vec::new(), Vec::new());
        for &(atom, truth) in cube {
            if self.is_ruled_out((atom, truth)) {
                return None;
            }
            if atom.is_hardware() {
                way.hardware.push((atom, truth));
                continue;
            }
            let mut by_default = None;
            let (clause, guard, guess) = match self.atoms.get(atom) {
                Atom::Flag { text, about_devices, settable, default } => {
                    by_default = default.map(|d| d == truth);
                    let (guard, guess) = weigh_flag(*about_devices, *settable, by_default, guards);
                    (Some(worded(text, truth)), guard, guess)
                }
                Atom::On { text, accelerator } => {
                    let clause = worded(text, truth);
                    (Some(clause), truth == *accelerator, 1)
                }
                // A test of the operating system is not a test of the device.
                Atom::Platform { text } => {
                    let clause = worded(text, truth);
                    set.push((atom, truth));
                    set_clauses.push(clause.clone());
                    way.conditions.push(clause);
                    continue;
                }
                Atom::Shadow { place } => {
                    if truth {
                        way.shadow = Some(*place);
                    }
                    continue;
                }
                Atom::Past => {
                    way.past |= truth;
                    continue;
                }
                // No program relies on a `try` body that raised half-way.
                Atom::Partly if truth => return None,
                Atom::Raised | Atom::Partly => (None, false, 2),
                Atom::Caught if truth => (None, false, 2),
                Atom::Caught => {
                    usual.push((atom, truth));
                    (None, false, 0)
                }
                _ => (None, false, 1),
            };
            // A condition that picks the device is a guard, too.
            let picks = self.tests.deciders.contains(&atom) && !matches!(by_default, Some(true));
            if guards && (guard || picks) {
                return None;
            }
            let open = self.is_open((atom, truth), cube);
            if !idle.contains(&atom) && open {
                way.guesses += guess;
                if guess > 1 {
                    chance.push((atom, truth));
                }
                if guess == 0
                    && let Some(clause) = &clause
                {
                    set.push((atom, truth));
                    set_clauses.push(clause.clone());
                }
                way.conditions.extend(clause);
            }
        }
        usual.extend(&way.hardware);
        self.forgive_guesses(&mut way, usual, (&set, set_clauses), &chance, bad);
        if way.guesses == 0 && way.shadow.is_none() {
            self.widen(&mut way, bad);
        }
        Some(way)
    }

    /// Does the path exclude the literal? Either another alternative is being interpreted, or the path once had the opposite
    /// literal and the diagram had no room to keep it.
    fn is_ruled_out(&self, (atom, truth): Literal) -> bool {
        self.tests.taken.contains(&(atom, !truth)) || self.d.lost_on(self.path).contains(&(atom, !truth))
    }

    /// May the literal be false on the present path? It also counts as open if it only selects the alternative that is being
    /// interpreted, or if it needs an error that may not happen.
    fn is_open(&mut self, (atom, truth): Literal, cube: &[Literal]) -> bool {
        self.tests.split.contains(&atom)
            || !self.implied(self.path, atom, truth)
            || truth && self.may_go_well(atom, cube)
    }

    /// Drops the guesses of a way that needs none. That is so if the failure happens on these machines on every path to this point,
    /// or on every such path where the literals in `set` hold. `set_clauses` has the clauses of `set`.
    fn forgive_guesses(
        &mut self,
        way: &mut Way,
        mut usual: Vec<Literal>,
        (set, set_clauses): (&[Literal], Vec<String>),
        chance: &[Literal],
        bad: Cond,
    ) {
        if way.guesses > 0 && self.certain_on(&usual, bad, chance) {
            way.guesses = 0;
            way.conditions.clear();
        }
        usual.extend(set);
        if way.guesses > 0 && !set.is_empty() && self.certain_on(&usual, bad, chance) {
            way.guesses = 0;
            way.conditions = set_clauses;
        }
    }

    /// Removes an upper limit on the number of GPUs if the failure also happens with more of them.
    fn widen(&mut self, way: &mut Way, bad: Cond) {
        let few = |&(atom, truth): &Literal| atom.0 < GPU_ATOMS && !truth;
        let several = way.hardware.iter().any(|&(atom, truth)| atom.0 < GPU_ATOMS && truth);
        if !several || !way.hardware.iter().any(few) {
            return;
        }
        let rest: Vec<Literal> = way.hardware.iter().copied().filter(|l| !few(l)).collect();
        if self.certain_on(&rest, bad, &[]) {
            way.hardware = rest;
        }
    }

    /// Does the failure happen on such a machine on every path that reaches this point? A use that was already reported has raised,
    /// so a path past it counts only if such a machine can reach this point without it. The answer is no if only `chance`
    /// gets past the reported use: after that use is fixed, the usual path reaches this point, too.
    fn certain_on(&mut self, machine: &[Literal], bad: Cond, chance: &[Literal]) -> bool {
        let atoms = &self.atoms;
        let gone = |a| matches!(atoms.get(a), Atom::Past | Atom::Shadow { .. });
        let reached = match self.d.without(self.path, &gone) {
            FALSE => self.path,
            path => path,
        };
        let without = self.d.without(bad, &gone);
        self.goes_wrong(machine, reached, without, chance).unwrap_or_else(|| {
            let atoms = &self.atoms;
            let shadow = |a| matches!(atoms.get(a), Atom::Shadow { .. });
            let (path, bad) = (self.d.without(self.path, &shadow), self.d.without(bad, &shadow));
            let stays = |a| !matches!(atoms.get(a), Atom::Past);
            let (reached, bad) = (self.d.forget(path, &stays), self.d.forget(bad, &stays));
            self.goes_wrong(machine, reached, bad, chance) == Some(true)
        })
    }

    /// Does every path of such a machine to this point fail? `None` if no such machine reaches this point.
    fn goes_wrong(
        &mut self,
        machine: &[Literal],
        mut reached: Cond,
        mut bad: Cond,
        chance: &[Literal],
    ) -> Option<bool> {
        if !self.tests.split.is_empty() {
            // The alternative that is being interpreted is one of several that reach this point.
            bad = self.d.and(bad, reached);
            let split = &self.tests.split;
            reached = self.d.forget(reached, &|atom| !split.contains(&atom));
        }
        let mut path = self.path;
        for &(atom, truth) in machine {
            let mut c = self.d.atom(atom);
            if !truth {
                c = self.d.not(c);
            }
            reached = self.d.and(reached, c);
            path = self.d.and(path, c);
        }
        if reached == FALSE {
            return None;
        }
        // An exception that such a machine always raises is no chance. If the `try` body may also succeed there, it is one:
        // only a test of what the body would have changed leads here.
        let by_chance = chance.iter().any(|&(atom, truth)| {
            self.implied(reached, atom, truth)
                && (self.may_go_well(atom, machine) || !self.implied(path, atom, truth))
        });
        // It is also a chance if one of several exceptions may have been raised.
        let by_chance = by_chance || !chance.is_empty() && self.only_caught(reached, path, machine);
        Some(!by_chance && self.d.implies(reached, bad))
    }

    /// Do only paths through an exception handler lead here? An exception that such hardware always raises on the way does
    /// not count.
    fn only_caught(&mut self, reached: Cond, path: Cond, machine: &[Literal]) -> bool {
        let mut caught = Vec::new();
        self.d.support(reached, &mut caught);
        caught.retain(|&atom| {
            matches!(self.atoms.get(atom), Atom::Caught)
                && (self.may_go_well(atom, machine) || !self.implied(path, atom, true))
        });
        !caught.is_empty() && self.d.without(reached, &|atom| caught.contains(&atom)) == FALSE
    }

    /// Can the body of the `try` statement that this atom belongs to also succeed on such a machine?
    fn may_go_well(&mut self, atom: AtomId, machine: &[Literal]) -> bool {
        let Some(&unraised) = self.tests.unraised.get(&atom) else { return false };
        let mut well = unraised;
        for &(atom, truth) in machine.iter().filter(|(atom, _)| atom.is_hardware()) {
            let mut c = self.d.atom(atom);
            if !truth {
                c = self.d.not(c);
            }
            well = self.d.and(well, c);
        }
        well != FALSE
    }

    pub(crate) fn implied(&mut self, path: Cond, atom: AtomId, truth: bool) -> bool {
        let mut c = self.d.atom(atom);
        if !truth {
            c = self.d.not(c);
        }
        self.d.implies(path, c)
    }
}

/// The distinct kinds of machines of these ways, as lists of premises.
fn kinds(ways: &[Way]) -> Vec<Vec<Premise>> {
    let mut kinds: Vec<Vec<Premise>> = Vec::new();
    for way in ways {
        let kind = premises(&way.hardware);
        if !kinds.contains(&kind) && kinds.len() < MAX_ALSO {
            kinds.push(kind);
        }
    }
    kinds
}

fn hardware_world(literals: &[Literal]) -> World {
    // "Another back end is there" says more than "CUDA is not".
    if let Some(b) = literals.iter().filter(|(_, t)| *t).find_map(|&(a, _)| backend_of(a)) {
        return World::With(b);
    }
    let gpus: Vec<(u32, bool)> =
        literals.iter().filter(|(a, _)| a.0 < 8).map(|&(a, t)| (a.0 + 1, t)).collect();
    if let Some(&(n, _)) = gpus.iter().filter(|(_, t)| !t).min_by_key(|(n, _)| *n) {
        return if n == 1 { World::NoCuda } else { World::FewerGpus(n) };
    }
    if let Some(least) = gpus.iter().filter(|(_, t)| *t).map(|&(n, _)| n).max() {
        return if least > 1 { World::Gpus(least) } else { World::Cuda };
    }
    match literals.first() {
        Some(&(atom, truth)) => match backend_of(atom) {
            Some(b) if truth => World::With(b),
            Some(b) => World::No(b),
            None => World::Always,
        },
        None => World::Always,
    }
}

/// What the literals say about the machine.
fn premises(literals: &[Literal]) -> Vec<Premise> {
    let gpus = |wanted: bool| {
        literals
            .iter()
            .filter(move |(atom, truth)| atom.0 < 8 && *truth == wanted)
            .map(|(atom, _)| atom.0 + 1)
    };
    let (least, fewer) =
        (gpus(true).max().map(Premise::AtLeastGpus), gpus(false).min().map(Premise::FewerGpus));
    let others = literals.iter().filter_map(|&(atom, truth)| {
        let backend = backend_of(atom)?;
        Some(if truth { Premise::With(backend) } else { Premise::Without(backend) })
    });
    least.into_iter().chain(fewer).chain(others).collect()
}

fn backend_of(atom: AtomId) -> Option<crate::world::Backend> {
    use crate::world::Backend::{Hpu, Mlu, Mps, Musa, Npu, Xla, Xpu};
    [Mps, Xpu, Hpu, Npu, Xla, Mlu, Musa].into_iter().find(|&b| crate::flow::domain::atom::backend(b) == atom)
}
