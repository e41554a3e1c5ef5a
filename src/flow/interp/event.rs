//! From a suspicion to an event: is there a machine on which it happens, and what else must hold?

use super::super::atom::{Atom, AtomId};
use super::super::diagram::{Cond, FALSE, Literal};
use super::super::event::{Bite, DeviceName, Event, Kind, Operand};
use super::super::value::{Device, OriginId, OuterId};
use super::{Interp, Pending};
use crate::ir::ExprId;
use crate::span::Place;
use crate::world::{Premise, World};

/// How many conditions that nobody understands a finding may depend on.
const MAX_GUESSES: usize = 1;

/// What the program may depend on in one way in which something goes wrong.
struct Way {
    hardware: Vec<Literal>,
    conditions: Vec<String>,
    guesses: usize,
}

impl Interp<'_> {
    /// When `bad` happens on the present path; `None` when it cannot, or only by coincidences.
    /// With `guards`, a way that depends on a flag that speaks of devices does not count.
    pub(super) fn bite(&mut self, bad: Cond, guards: bool) -> Option<Bite> {
        if self.muted > 0 || self.exhausted {
            return None;
        }
        let path = self.path;
        let both = self.d.and(path, bad);
        if both == FALSE {
            return None;
        }
        let mut cubes: Vec<Vec<Literal>> = Vec::new();
        self.d.cubes(both, &mut |literals| {
            if cubes.len() < 64 {
                cubes.push(literals.to_vec());
            }
        });
        let mut best: Option<Way> = None;
        for cube in cubes {
            let Some(way) = self.way(&cube, path, guards) else { continue };
            let better = best.as_ref().is_none_or(|b| {
                (way.guesses, way.hardware.len(), way.conditions.len())
                    < (b.guesses, b.hardware.len(), b.conditions.len())
            });
            if better {
                best = Some(way);
            }
        }
        let way = best?;
        Some(Bite {
            world: hardware_world(&way.hardware),
            premises: premises(&way.hardware),
            conditions: way.conditions,
        })
    }

    fn way(&mut self, cube: &[Literal], path: Cond, guards: bool) -> Option<Way> {
        let mut way = Way { hardware: Vec::new(), conditions: Vec::new(), guesses: 0 };
        for &(atom, truth) in cube {
            if atom.is_hardware() {
                way.hardware.push((atom, truth));
                continue;
            }
            let (clause, guard, guess) = match self.atoms.get(atom) {
                Atom::Flag { text, about_devices, default } => {
                    let by_default = *default == Some(truth);
                    let clause = if truth { format!("`{text}`") } else { format!("not `{text}`") };
                    (Some(clause), *about_devices && !by_default, usize::from(!by_default))
                }
                Atom::Raised => (None, false, 2),
                _ => (None, false, 1),
            };
            if guard && guards {
                return None;
            }
            if !self.implied(path, atom, truth) {
                way.guesses += guess;
                way.conditions.extend(clause);
            }
        }
        (way.guesses <= MAX_GUESSES).then_some(way)
    }

    fn implied(&mut self, path: Cond, atom: AtomId, truth: bool) -> bool {
        let mut c = self.d.atom(atom);
        if !truth {
            c = self.d.not(c);
        }
        self.d.implies(path, c)
    }

    /// Tells the rules, unless the outside things in `needs` turn out to be no tensors.
    pub(super) fn emit(&mut self, kind: Kind, place: Place, bite: Bite, needs: Vec<OuterId>) {
        let event = Event {
            kind,
            place,
            bite,
            stack: self.call_stack(),
            entered: self.module_calls(),
            in_module: self.in_module(),
            speculative: self.speculative,
            symbolic: self.symbolic,
            asked_for: self.asked_for(),
        };
        self.events.push(Pending { event, needs });
    }

    /// Does the name of a function around say that the caller wants an accelerator?
    fn asked_for(&self) -> bool {
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            let name =
                self.program.get(frame.module).ir.function(frame.func).name.as_str().to_ascii_lowercase();
            if frame.func.0 != 0 && ["cuda", "gpu", "pin_memory", "nccl"].iter().any(|w| name.contains(w)) {
                return true;
            }
            at = frame.caller;
        }
        false
    }

    /// The calls of modules that lead here without anything else in between.
    fn module_calls(&self) -> Box<[(Place, Place)]> {
        let mut calls = Vec::new();
        let mut at = Some(self.frame);
        while let Some(f) = at {
            let frame = &self.frames[f.0 as usize];
            let Some(site) = frame.site else { break };
            if !frame.class.is_some_and(|k| self.is_module_class(k)) {
                break;
            }
            if frame.module_call {
                let ir = &self.program.get(frame.module).ir;
                calls.push((site, Place { file: ir.file, span: ir.function(frame.func).span }));
            }
            at = frame.caller;
        }
        calls.into()
    }

    fn call_stack(&self) -> Box<[Place]> {
        let mut sites = Vec::new();
        let mut i = self.frame.0 as usize;
        while let Some(site) = self.frames[i].site {
            sites.push(site);
            let Some(caller) = self.caller_of(i) else { break };
            i = caller;
        }
        sites.reverse();
        sites.into()
    }

    /// The activation that called this one: calls nest, so it is the newest one that is still open below.
    fn caller_of(&self, frame: usize) -> Option<usize> {
        self.frames[frame].caller.map(|f| f.0 as usize)
    }

    /// Is a method of an `nn.Module` being interpreted right here?
    pub(super) fn in_module(&self) -> bool {
        let mut frame = self.here();
        loop {
            if let Some(class) = frame.class {
                return self.is_module_class(class);
            }
            match frame.parent {
                Some(p) => frame = &self.frames[p.0 as usize],
                None => return false,
            }
        }
    }

    /// One side of a meeting, for messages.
    pub(super) fn operand(&self, e: ExprId, device: Device, origin: OriginId) -> Operand {
        let device = match device {
            Device::Cpu => DeviceName::Known("cpu".into()),
            Device::Cuda(None) | Device::CudaSome => DeviceName::Known("cuda".into()),
            Device::Cuda(Some(i)) => DeviceName::Known(format!("cuda:{i}")),
            Device::Meta => DeviceName::Known("meta".into()),
            Device::Other(b) => DeviceName::Known(b.name().into()),
            Device::Named(o) => DeviceName::Varies(self.t.get_outer(o).text.clone()),
            Device::Of(o) => {
                let outer = self.t.get_outer(o);
                if outer.with.is_some() || matches!(outer.key, super::OuterKey::Receiver { .. }) {
                    DeviceName::WithModule
                } else {
                    DeviceName::Varies(outer.text.clone())
                }
            }
            Device::Unknown => DeviceName::Known("unknown".into()),
        };
        Operand { place: self.place(e), device, chain: self.chain(origin) }
    }
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
    if gpus.iter().any(|&(_, t)| t) {
        return World::Cuda;
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

/// What the literals say of the machine, but for what makes it a world of its own: that GPUs are few.
fn premises(literals: &[Literal]) -> Vec<Premise> {
    let gpus = literals.iter().filter(|(atom, truth)| atom.0 < 8 && *truth).map(|(atom, _)| atom.0 + 1).max();
    let others = literals.iter().filter_map(|&(atom, truth)| {
        let backend = backend_of(atom)?;
        Some(if truth { Premise::With(backend) } else { Premise::Without(backend) })
    });
    gpus.map(Premise::AtLeastGpus).into_iter().chain(others).collect()
}

fn backend_of(atom: AtomId) -> Option<crate::world::Backend> {
    use crate::world::Backend::{Hpu, Mlu, Mps, Musa, Npu, Xla, Xpu};
    [Mps, Xpu, Hpu, Npu, Xla, Mlu, Musa].into_iter().find(|&b| super::super::atom::backend(b) == atom)
}
