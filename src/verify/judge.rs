//! Findings meet the machine: does this one bite there?

use std::path::Path;

use super::machine::{Answer, Build, Device, Holds, Machine, Version};
use super::verdict;
use crate::finding::{Finding, Judgement, Verdict};
use crate::world::{Backend, Premise, World, gibibytes};

/// A machine to judge for.
#[derive(Clone, Debug)]
pub struct Judge<'a> {
    machine: &'a Machine,
    /// What messages call it.
    name: String,
    /// "here" or "there".
    place: &'static str,
}

impl<'a> Judge<'a> {
    /// For the machine that this runs on.
    pub fn here(machine: &'a Machine) -> Self {
        Self { machine, name: "this machine".to_owned(), place: "here" }
    }

    /// For the machine of a saved report.
    pub fn saved(machine: &'a Machine, file: &Path) -> Self {
        Self { machine, name: format!("the machine of `{}`", file.display()), place: "there" }
    }

    /// Confirmed if the finding's world is this machine and the path to it is possible here.
    pub fn judge(&self, finding: &Finding) -> Judgement {
        let depends = finding.world != World::Always || finding.shows_with_accelerator;
        if let Some(problem) = verdict::stops_import(&self.machine.problems).filter(|_| depends) {
            let reason = format!("on {}, `import torch` fails: {}", self.name, problem.cause);
            return judgement(Holds::Unknown, reason);
        }
        if let Some(open) = self.by_others(finding) {
            return open;
        }
        let first = self.all(self.of(finding), &finding.premises);
        if first.verdict != Verdict::Refuted || finding.world.premise().is_none() {
            return first;
        }
        // The world is the simplest machine on which it bites, not the only one.
        let mut best = first;
        for machine in &finding.also {
            let other = self.kind(machine);
            match other.verdict {
                Verdict::Confirmed => return other,
                Verdict::Open => best = other,
                Verdict::Refuted => {}
            }
        }
        best
    }

    /// The finding's world, without what its path takes for granted.
    fn of(&self, finding: &Finding) -> Judgement {
        if finding.shows_with_accelerator && finding.world == World::Always {
            return self.accelerated();
        }
        self.world(finding.world)
    }

    /// Somebody else decides about the device, the owner of a module or a caller: without CUDA it may as well be on
    /// another back end. Not where the path has asked for CUDA.
    fn by_others(&self, finding: &Finding) -> Option<Judgement> {
        let undecided = finding.on_modules().next().is_some() || finding.parameters().next().is_some();
        if !undecided || finding.behind_cuda || !finding.world.has_cuda() || self.cuda().holds != Holds::No {
            return None;
        }
        let (name, answer) = self.other_accelerator()?;
        let but = match answer.holds {
            Holds::Yes => format!("but its device may be `{name}`"),
            _ => "and whether there is another accelerator is not known".to_owned(),
        };
        let reason = format!("{}, {but}: {}", self.about_cuda(), answer.because);
        let open = judgement(Holds::Unknown, reason);
        // Of what the path takes for granted, that there is CUDA is the world itself.
        let others = finding.premises.iter().filter(|premise| !matches!(premise, Premise::AtLeastGpus(_)));
        let said = self.all(open, &others.copied().collect::<Vec<_>>());
        (said.verdict == Verdict::Open).then_some(said)
    }

    /// What goes wrong as soon as there is a second device besides the CPU.
    fn accelerated(&self) -> Judgement {
        let cuda = self.cuda();
        match (cuda.holds, self.other_accelerator()) {
            (Holds::Yes, _) => judgement(Holds::Yes, self.about_cuda()),
            (_, Some((name, answer))) if answer.holds == Holds::Yes => {
                judgement(Holds::Yes, format!("{} has `{name}`: {}", self.name, answer.because))
            }
            (Holds::Unknown, _) => judgement(Holds::Unknown, self.about_cuda()),
            (Holds::No, Some((_, answer))) => judgement(Holds::Unknown, answer.because.clone()),
            (Holds::No, None) => {
                let reason = format!("{} has only the CPU, so nothing moves: {}", self.name, cuda.because);
                judgement(Holds::No, reason)
            }
        }
    }

    /// A back end besides CUDA that is there, or else one that may be.
    fn other_accelerator(&self) -> Option<(&str, &Answer)> {
        let answers = &self.machine.worlds.backends;
        [Holds::Yes, Holds::Unknown].into_iter().find_map(|holds| {
            let found = answers.iter().find(|(_, answer)| answer.holds == holds);
            found.map(|(name, answer)| (name.as_str(), answer))
        })
    }

    /// Is this machine of that kind?
    fn kind(&self, premises: &[Premise]) -> Judgement {
        let answers: Vec<Answer> = premises.iter().map(|premise| self.premise(*premise)).collect();
        for holds in [Holds::No, Holds::Unknown] {
            if let Some(answer) = answers.iter().find(|answer| answer.holds == holds) {
                return judgement(holds, answer.because.clone());
            }
        }
        let reasons: Vec<String> = answers.into_iter().map(|answer| answer.because).collect();
        judgement(Holds::Yes, reasons.join("; "))
    }

    /// What is said, if these hold, too.
    fn all(&self, mut said: Judgement, premises: &[Premise]) -> Judgement {
        for premise in premises {
            if said.verdict == Verdict::Refuted {
                return said;
            }
            let answer = self.premise(*premise);
            match answer.holds {
                Holds::Yes => {}
                Holds::No => {
                    said = judgement(
                        Holds::No,
                        format!("the program does not reach this line {}: {}", self.place, answer.because),
                    )
                }
                Holds::Unknown => said = judgement(Holds::Unknown, answer.because),
            }
        }
        said
    }

    fn world(&self, world: World) -> Judgement {
        let (holds, reason) = match world {
            World::Always => (Holds::Yes, "it does not depend on the machine".to_owned()),
            World::Cuda => return self.cuda_meets(),
            World::NoCuda => self.no_cuda(),
            World::FewerGpus(n) => self.fewer_meets(n),
            World::Gpus(n) => return self.as_many(n),
            World::With(backend) => {
                let answer = self.backend(backend);
                (answer.holds, answer.because)
            }
            World::No(backend) => {
                let answer = self.backend(backend);
                (opposite(answer.holds), answer.because)
            }
            World::FreeBelow(bytes) => self.free(bytes),
            World::CapabilityBelow(major, minor) => {
                self.capability(Version::new(u32::from(major), u32::from(minor)))
            }
        };
        judgement(holds, reason)
    }

    fn premise(&self, premise: Premise) -> Answer {
        match premise {
            Premise::AtLeastGpus(n) => {
                let (holds, reason) = self.fewer(n);
                Answer::new(opposite(holds), reason)
            }
            Premise::FewerGpus(n) => {
                let (holds, reason) = self.fewer(n);
                Answer::new(holds, reason)
            }
            Premise::With(backend) => self.backend(backend),
            Premise::Without(backend) => {
                let answer = self.backend(backend);
                Answer::new(opposite(answer.holds), answer.because)
            }
        }
    }

    fn cuda(&self) -> &Answer {
        &self.machine.worlds.cuda
    }

    /// The devices that PyTorch calls `cuda`, as far as they are described: AMD's are not.
    fn devices(&self) -> &[Device] {
        match &self.machine.torch {
            Some(torch) if torch.build == Build::Rocm => &[],
            _ => &self.machine.devices,
        }
    }

    /// Why a program on a device fails before it gets to the finding, if it does: PyTorch has no code for the devices.
    fn unusable(&self) -> Option<String> {
        let devices = self.devices();
        let all = devices.iter().all(|device| device.in_build == Some(false));
        let first = devices.first().filter(|_| all && self.cuda().holds == Holds::Yes)?;
        Some(format!(
            "CUDA is available on {}, but its PyTorch has no code for cuda:{} ({}): the program fails before this line",
            self.name, first.index, first.name
        ))
    }

    fn cuda_meets(&self) -> Judgement {
        match self.unusable() {
            Some(reason) => judgement(Holds::Unknown, reason),
            None => judgement(self.cuda().holds, self.about_cuda()),
        }
    }

    /// Are there that many GPUs, and can they be used?
    fn as_many(&self, n: u32) -> Judgement {
        let said = self.cuda_meets();
        match self.machine.worlds.gpus {
            Some(gpus) if gpus > 0 && gpus < n => {
                judgement(Holds::No, format!("{} has {gpus} of the {n} GPUs that this line needs", self.name))
            }
            _ => said,
        }
    }

    fn no_cuda(&self) -> (Holds, String) {
        (opposite(self.cuda().holds), self.about_cuda())
    }

    fn about_cuda(&self) -> String {
        let answer = self.cuda();
        match answer.holds {
            Holds::Yes => match self.machine.devices.first() {
                Some(device) => format!("{} has CUDA: {} ({})", self.name, answer.because, device.name),
                None => format!("{} has CUDA: {}", self.name, answer.because),
            },
            Holds::No => format!("{} has no CUDA: {}", self.name, answer.because),
            Holds::Unknown => format!("whether {} has CUDA is not known: {}", self.name, answer.because),
        }
    }

    /// Is one of the first `n` GPUs used that is not there? Where the others cannot be used, it does not come to that.
    fn fewer_meets(&self, n: u32) -> (Holds, String) {
        let (holds, reason) = self.fewer(n);
        match self.unusable() {
            Some(reason) if holds == Holds::Yes => (Holds::Unknown, reason),
            _ => (holds, reason),
        }
    }

    /// Are there fewer visible GPUs than that?
    fn fewer(&self, n: u32) -> (Holds, String) {
        let Some(gpus) = self.machine.worlds.gpus else { return (Holds::Unknown, self.about_cuda()) };
        if gpus == 0 {
            return (Holds::Yes, self.about_cuda());
        }
        let mut reason = match gpus {
            1 => format!("{} has 1 device", self.name),
            gpus => format!("{} has {gpus} devices", self.name),
        };
        if let Some(physical) = self.machine.visible.physical.filter(|physical| *physical > gpus) {
            reason.push_str(&format!(" visible of {physical}"));
        }
        let last = n.saturating_sub(1);
        if gpus < n {
            reason.push_str(&format!(": `cuda:{last}` raises {}", self.place));
            (Holds::Yes, reason)
        } else {
            reason.push_str(&format!(": `cuda:{last}` exists"));
            (Holds::No, reason)
        }
    }

    fn backend(&self, backend: Backend) -> Answer {
        let unknown =
            || Answer::new(Holds::Unknown, format!("{} was not checked for {}", self.name, backend.name()));
        self.machine.worlds.backends.get(backend.name()).cloned().unwrap_or_else(unknown)
    }

    /// Is less than that free?
    fn free(&self, bytes: u64) -> (Holds, String) {
        if self.cuda().holds != Holds::Yes {
            // Without a GPU nothing is allocated on one.
            return (self.cuda().holds, self.about_cuda());
        }
        if let Some(reason) = self.unusable() {
            return (Holds::Unknown, reason);
        }
        let needs = gibibytes(bytes);
        let answers: Vec<(Holds, String)> = self.devices().iter().map(|device| room(device, bytes)).collect();
        let all = |wanted: Holds| !answers.is_empty() && answers.iter().all(|(holds, _)| *holds == wanted);
        let holds = [Holds::Yes, Holds::No].into_iter().find(|holds| all(*holds)).unwrap_or(Holds::Unknown);
        let shown: Vec<&str> = answers.iter().map(|(_, words)| words.as_str()).collect();
        let shown = match shown.as_slice() {
            [] => "the devices are not known".to_owned(),
            // Many equal boxes in a row say no more than the first ones.
            [first, second, third, rest @ ..] if !rest.is_empty() => {
                format!("{first}, {second}, {third}, and {} more", rest.len())
            }
            some => some.join(", "),
        };
        (holds, format!("needs {needs}; {shown}"))
    }

    /// Is the compute capability below that?
    fn capability(&self, wanted: Version) -> (Holds, String) {
        if self.cuda().holds != Holds::Yes {
            return (self.cuda().holds, self.about_cuda());
        }
        if let Some(reason) = self.unusable() {
            return (Holds::Unknown, reason);
        }
        let below: Vec<Option<bool>> =
            self.devices().iter().map(|device| device.capability.map(|own| own < wanted)).collect();
        let holds = match below.as_slice() {
            [] => Holds::Unknown,
            some if some.iter().all(|below| *below == Some(true)) => Holds::Yes,
            some if some.iter().all(|below| *below == Some(false)) => Holds::No,
            _ => Holds::Unknown,
        };
        let words = self.devices().iter().filter_map(|device| {
            Some(format!("cuda:{} has compute capability {}", device.index, device.capability?))
        });
        let words = words.collect::<Vec<_>>().join(", ");
        let words = if words.is_empty() { "the devices are not known" } else { &words };
        (holds, format!("needs {wanted}; {words}"))
    }
}

/// Has the device less than that, and what is known of it?
fn room(device: &Device, bytes: u64) -> (Holds, String) {
    let index = device.index;
    if let Some(tried) = device.allocations.iter().find(|tried| tried.bytes == bytes) {
        return match tried.ok {
            true => (Holds::No, format!("GPU {index} allocated it")),
            false if tried.detail.starts_with("not tried") => with_free(device, bytes),
            false => (Holds::Yes, format!("GPU {index} could not allocate it: {}", tried.detail)),
        };
    }
    with_free(device, bytes)
}

fn with_free(device: &Device, bytes: u64) -> (Holds, String) {
    let index = device.index;
    match (device.free_bytes, device.total_bytes) {
        (Some(free), _) => {
            let holds = if free < bytes { Holds::Yes } else { Holds::No };
            (holds, format!("GPU {index} has {} free", gibibytes(free)))
        }
        (None, Some(total)) if total < bytes => {
            (Holds::Yes, format!("GPU {index} has {} in total", gibibytes(total)))
        }
        (None, _) => (
            Holds::Unknown,
            format!("the free memory of GPU {index} is not known; `--verify=run` measures it"),
        ),
    }
}

const fn opposite(holds: Holds) -> Holds {
    match holds {
        Holds::Yes => Holds::No,
        Holds::No => Holds::Yes,
        Holds::Unknown => Holds::Unknown,
    }
}

fn judgement(holds: Holds, reason: String) -> Judgement {
    let verdict = match holds {
        Holds::Yes => Verdict::Confirmed,
        Holds::No => Verdict::Refuted,
        Holds::Unknown => Verdict::Open,
    };
    Judgement { verdict, reason }
}
