//! From a suspicion to an event: is there a machine on which it happens, and what else must hold?

use crate::flow::domain::atom::{Atom, AtomId, GPU_ATOMS};
use crate::flow::domain::diagram::{Cond, FALSE, Literal};
use crate::flow::domain::event::Bite;
use crate::flow::machine::Interp;
use crate::span::Place;
use crate::world::{Premise, World};

/// More kinds of machines than this are not told apart.
const MAX_ALSO: usize = 8;

/// What the program may depend on in one way in which something goes wrong.
struct Way {
    pub(crate) hardware: Vec<Literal>,
    pub(crate) conditions: Vec<String>,
    pub(crate) guesses: usize,
    /// Only had this use not raised before.
    pub(crate) shadow: Option<Place>,
}

impl Way {
    /// The simplest way is the one to tell of.
    fn rank(&self) -> (usize, usize) {
        (self.hardware.len(), self.conditions.len())
    }
}

impl Interp<'_> {
    /// The machines and flags with which the failure condition `bad` is true on the current path. `None` if it cannot be true, if it
    /// depends on a test that the engine does not understand, or if an earlier use raises first for the same reason. With `guards`,
    /// ways that depend on a flag about devices do not count.
    pub(crate) fn bite(&mut self, bad: Cond, guards: bool) -> Option<Bite> {
        let mut ways: Vec<Way> = self.ways(bad, guards).into_iter().filter(|w| w.shadow.is_none()).collect();
        let best = (0..ways.len()).min_by_key(|&i| ways[i].rank())?;
        let way = ways.remove(best);
        let world = hardware_world(&way.hardware);
        let premises = premises(&way.hardware);
        ways.retain(|other| other.hardware != way.hardware);
        let also = kinds(&ways);
        // That GPUs are few is the world itself, unless another back end is.
        let few = |premise: &Premise| matches!(premise, Premise::FewerGpus(_));
        let premises = premises.into_iter().filter(|p| !few(p) || matches!(world, World::With(_))).collect();
        let behind_cuda = world.has_cuda() && self.is_behind_cuda();
        Some(Bite { world, premises, also, conditions: way.conditions, behind_cuda })
    }

    /// Is the present point only reached where there is CUDA?
    fn is_behind_cuda(&mut self) -> bool {
        (1..=crate::flow::domain::atom::GPU_ATOMS).any(|n| {
            let enough = self.d.atom(crate::flow::domain::atom::gpus_at_least(n));
            self.d.implies(self.path, enough)
        })
    }

    /// The machines on which `bad` happens on the present path: all premises of one of them.
    pub(crate) fn machines(&mut self, bad: Cond) -> Vec<Vec<Premise>> {
        kinds(&self.ways(bad, false))
    }

    /// The use that raises before `bad` can happen here, and for the same reason. It is told of, so that what this hangs on
    /// besides is no question.
    pub(crate) fn shadow(&mut self, bad: Cond, guards: bool) -> Option<Place> {
        self.somehow(bad, guards).into_iter().find_map(|w| w.shadow)
    }

    /// Does one of several uses raise before `bad` can happen here, whichever way was taken? Each branch before has its own.
    pub(crate) fn only_in_shadows(&mut self, bad: Cond) -> bool {
        let both = self.d.and(self.path, bad);
        let (atoms, mut everywhere) = (&self.atoms, both != FALSE);
        self.d.cubes(both, &mut |literals| {
            let shadow = |&(atom, truth): &Literal| truth && matches!(atoms.get(atom), Atom::Shadow { .. });
            everywhere &= literals.iter().any(shadow);
        });
        everywhere
    }

    /// The ways that need no coincidence.
    fn ways(&mut self, bad: Cond, guards: bool) -> Vec<Way> {
        let mut ways = self.somehow(bad, guards);
        ways.retain(|way| way.guesses == 0);
        ways
    }

    /// All ways in which it goes wrong, coincidences among them.
    fn somehow(&mut self, bad: Cond, guards: bool) -> Vec<Way> {
        if self.run.muted > 0 || self.run.exhausted {
            return Vec::new();
        }
        let path = self.path;
        let both = self.d.and(path, bad);
        // Without room for all that makes it bad, it is not known to be.
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

    /// One way in which it goes wrong, with the coincidences that it would need: conditions that nobody here understands,
    /// besides those under which this point is reached at all.
    fn way(&mut self, cube: &[Literal], bad: Cond, guards: bool) -> Option<Way> {
        if !self.is_possible(cube) {
            return None;
        }
        let idle = self.idle(cube);
        let path = self.path;
        let mut way = Way { hardware: Vec::new(), conditions: Vec::new(), guesses: 0, shadow: None };
        // What is so unless something was raised, and what only an exception or a choice that nobody knows brings about.
        let (mut usual, mut chance): (Vec<Literal>, Vec<Literal>) = (Vec::new(), Vec::new());
        // What somebody can set, and its clauses.
        let (mut set, mut set_clauses): (Vec<Literal>, Vec<String>) = (Vec::new(), Vec::new());
        for &(atom, truth) in cube {
            // Another alternative than the one that is looked at.
            if self.tests.taken.contains(&(atom, !truth)) {
                return None;
            }
            // The path once said otherwise, and had no room for it.
            if self.d.lost_on(path).contains(&(atom, !truth)) {
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
                    let by_default = by_default == Some(true);
                    let clause = [if truth { "`" } else { "not `" }, text.as_str(), "`"].concat();
                    // Who sets a flag that speaks of devices sets it one way and the other.
                    let settable = *about_devices && !guards && *settable;
                    let guess = usize::from(!by_default && !settable);
                    (Some(clause), *about_devices && !by_default, guess)
                }
                Atom::On { text, accelerator } => {
                    let clause = if truth { format!("`{text}`") } else { format!("not `{text}`") };
                    (Some(clause), truth == *accelerator, 1)
                }
                // Nobody who asks for the system has asked for the device.
                Atom::Platform { text } => {
                    let clause = if truth { format!("`{text}`") } else { format!("not `{text}`") };
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
                Atom::Past => continue,
                // No program counts on that.
                Atom::Partly if truth => return None,
                Atom::Raised | Atom::Partly => (None, false, 2),
                Atom::Caught if truth => (None, false, 2),
                Atom::Caught => {
                    usual.push((atom, truth));
                    (None, false, 0)
                }
                _ => (None, false, 1),
            };
            // Whatever picks the device knows about devices.
            let picks = self.tests.deciders.contains(&atom) && !matches!(by_default, Some(true));
            if guards && (guard || picks) {
                return None;
            }
            let open = self.tests.split.contains(&atom)
                || !self.implied(path, atom, truth)
                || truth && self.may_go_well(atom, cube);
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
        if way.guesses > 0 && self.certain_on(&usual, bad, &chance) {
            way.guesses = 0;
            way.conditions.clear();
        }
        usual.extend(&set);
        if way.guesses > 0 && !set.is_empty() && self.certain_on(&usual, bad, &chance) {
            way.guesses = 0;
            way.conditions = set_clauses;
        }
        if way.guesses == 0 && way.shadow.is_none() {
            self.widen(&mut way, bad);
        }
        Some(way)
    }

    /// Leaves out that GPUs are few where it goes wrong with more of them, too.
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

    /// Does it go wrong on such a machine however this point is reached? What has been reported before has raised, so
    /// that counts only if some such machine gets here without. Nor does it count where only `chance` gets past what has
    /// been reported: with that mended, the usual path gets here, too.
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

    /// Does reaching this point on such a machine mean that it goes wrong? Nothing if no such machine gets here.
    fn goes_wrong(
        &mut self,
        machine: &[Literal],
        mut reached: Cond,
        mut bad: Cond,
        chance: &[Literal],
    ) -> Option<bool> {
        if !self.tests.split.is_empty() {
            // The alternative that is looked at is one of several that get here.
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
        // What must have been raised on such a machine is no chance. Where the `try` may go well there, too, nothing must:
        // only a test of what it would have changed leads here.
        let by_chance = chance.iter().any(|&(atom, truth)| {
            self.implied(reached, atom, truth)
                && (self.may_go_well(atom, machine) || !self.implied(path, atom, truth))
        });
        // Nor is it any less of a chance where several may have been raised.
        let by_chance = by_chance || !chance.is_empty() && self.only_caught(reached, path, machine);
        Some(!by_chance && self.d.implies(reached, bad))
    }

    /// Does only one of the exceptions that handlers catch lead here? Not one that must have been raised on the way, on
    /// such hardware.
    fn only_caught(&mut self, reached: Cond, path: Cond, machine: &[Literal]) -> bool {
        let mut caught = Vec::new();
        self.d.support(reached, &mut caught);
        caught.retain(|&atom| {
            matches!(self.atoms.get(atom), Atom::Caught)
                && (self.may_go_well(atom, machine) || !self.implied(path, atom, true))
        });
        !caught.is_empty() && self.d.without(reached, &|atom| caught.contains(&atom)) == FALSE
    }

    /// Does the body of the `try` whose handler this atom is about get past it on such a machine, too?
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

/// The kinds of machines that these ways are about.
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

/// What the literals say of the machine.
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
