//! The output of `reveal_device(…)` and `reveal_world()`, which the engine's tests use.

use crate::flow::domain::atom::Atom;
use crate::flow::domain::diagram::Dd;
use crate::flow::domain::diagram::FALSE;
use crate::flow::domain::event::{DeviceName, Event, Kind};
use crate::flow::domain::value::{Device, OriginId, OuterKey, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::frame::ObjKind;
use crate::ir::ExprId;

/// Alternatives, as pairs of a hardware condition and a text. The last alternative is for all other machines.
type Chain = Vec<(String, String)>;

/// The device in worlds that the path excludes. Payloads of leaves are dense numbers, so this needs an entry of its own.
const NOWHERE: (Device, OriginId) = (Device::Unknown, OriginId(u32::MAX));

impl Interp<'_> {
    /// The text for `reveal_device`: `cuda`, `cpu`, … It covers only the worlds that the path allows.
    pub(crate) fn describe(&mut self, v: Value, e: ExprId) -> String {
        let d = self.revealed(v, e);
        let nowhere = self.t.places.add(NOWHERE);
        let here = self.d.zip(d, self.path, &mut |p, allowed| if allowed == 0 { nowhere } else { p });
        let chain = self.alternatives(here.unwrap_or(d)).unwrap_or_default();
        let mut text = String::new();
        for (n, (condition, device)) in chain.iter().enumerate() {
            if n > 0 {
                text.push_str(", else ");
            }
            text.push_str(device);
            if n + 1 < chain.len() {
                text.push_str(" if ");
                text.push_str(condition);
            }
        }
        text
    }

    /// The device that a value is on, or that it names.
    fn revealed(&mut self, v: Value, e: ExprId) -> Dd {
        let device = match v {
            Value::Choice(d) => {
                if let Some(payload) = self.d.as_leaf(d) {
                    let v = *self.t.values.get(payload);
                    return self.revealed(v, e);
                }
                let (atom, hi, lo) = self.d.root(d);
                let cond = self.d.atom(atom);
                let (a, b) = (self.revealed_below(hi, e), self.revealed_below(lo, e));
                return self.ite_device(cond, a, b);
            }
            Value::Object(id) if self.is_module_object(id) => Some(self.module_device(id, 0)),
            Value::Object(id) if self.obj(id).kind == ObjKind::Generator => match self.own(id) {
                Value::Device(d) => Some(d),
                _ => None,
            },
            Value::Device(d) => Some(d),
            Value::Str(..) => self.as_device(v, e),
            Value::Outer(o) if self.t.get_outer(o).device => self.as_device(v, e),
            v => self.tensor_place(v, e).map(|(d, _)| d),
        };
        device.unwrap_or_else(|| self.unknown_device())
    }

    fn revealed_below(&mut self, d: Dd, e: ExprId) -> Dd {
        match self.d.as_leaf(d) {
            Some(payload) => {
                let v = *self.t.values.get(payload);
                self.revealed(v, e)
            }
            None => self.revealed(Value::Choice(d), e),
        }
    }

    /// The alternatives by hardware. `None` if the path excludes all of them.
    fn alternatives(&self, d: Dd) -> Option<Chain> {
        if self.d.as_leaf(d).is_some() {
            return self.one_of(d).map(|text| vec![(String::new(), text)]);
        }
        let (atom, hi, lo) = self.d.root(d);
        if !atom.is_hardware() {
            return self.one_of(d).map(|text| vec![(String::new(), text)]);
        }
        let (hi, lo) = match (self.alternatives(hi), self.alternatives(lo)) {
            (Some(a), Some(b)) if a != b => (a, b),
            (a, b) => return a.or(b),
        };
        let asked = match self.atoms.get(atom) {
            Atom::Gpus(1) => "cuda".to_owned(),
            Atom::Gpus(n) => format!("gpus>={n}"),
            Atom::Backend(b) => b.name().to_owned(),
            _ => String::new(),
        };
        let both = |inner: String| match inner.as_str() {
            "" => asked.clone(),
            // At least `n` GPUs imply at least `n - 1`, so the inner condition is enough.
            i if i.starts_with("gpus>=") => inner,
            _ => format!("{asked} and {inner}"),
        };
        Some(hi.into_iter().map(|(c, t)| (both(c), t)).chain(lo).collect())
    }

    /// The text of several devices between which the hardware does not decide.
    fn one_of(&self, d: Dd) -> Option<String> {
        let mut leaves = Vec::new();
        self.d.leaves(d, &mut leaves);
        let places = leaves.into_iter().map(|p| *self.t.places.get(p));
        let mut texts: Vec<String> =
            places.filter(|&p| p != NOWHERE).map(|(d, _)| self.device_text(d)).collect();
        any_of(&mut texts)
    }

    fn device_text(&self, device: Device) -> String {
        let known = match device {
            // Only outside values that a caller or the user decides have a name.
            Device::Of(o) => {
                let outer = self.t.get_outer(o);
                outer.varies || outer.with.is_some() || matches!(outer.key, OuterKey::Receiver { .. })
            }
            Device::Named(o) => !self.t.get_outer(o).text.is_empty(),
            _ => true,
        };
        if !known {
            return "unknown".to_owned();
        }
        if let Device::Named(o) = device {
            return format!("parameter {}", self.t.get_outer(o).text);
        }
        match self.name_of_device(device) {
            DeviceName::Known(name) => name,
            DeviceName::Varies(of) => format!("device of {of}"),
            DeviceName::WithModule => "self".to_owned(),
        }
    }

    /// What the path says about the machine.
    pub(crate) fn describe_world(&mut self) -> String {
        use crate::world::Backend::{Hpu, Mlu, Mps, Musa, Npu, Xpu};
        if self.path == FALSE {
            return "never".to_owned();
        }
        let path = self.d.forget(self.path, &|a| a.is_hardware());
        let mut parts = Vec::new();
        let (cuda, mps) = (self.available(None), self.available(Some(Mps)));
        let (with_cuda, with_mps) = (self.d.implies(path, cuda), self.d.implies(path, mps));
        for n in (1..=8).rev() {
            let c = self.at_least(n);
            if self.d.implies(path, c) {
                parts.push(if n == 1 { "cuda".to_owned() } else { format!("gpus>={n}") });
                break;
            }
        }
        for n in 1..=if with_mps { 0 } else { 8 } {
            let c = self.at_least(n);
            let not = self.d.not(c);
            if self.d.implies(path, not) {
                parts.push(if n == 1 { "no cuda".to_owned() } else { format!("gpus<{n}") });
                break;
            }
        }
        for b in [Mps, Xpu, Hpu, Npu, Mlu, Musa] {
            let c = self.available(Some(b));
            let not = self.d.not(c);
            if self.d.implies(path, c) {
                parts.push(b.name().to_owned());
            } else if self.d.implies(path, not) && !(b == Mps && with_cuda) {
                parts.push(format!("no {}", b.name()));
            }
        }
        if parts.is_empty() { "always".to_owned() } else { parts.join(" and ") }
    }
}

fn any_of(texts: &mut Vec<String>) -> Option<String> {
    texts.sort();
    texts.dedup();
    match texts.as_slice() {
        [] => None,
        texts if texts.iter().any(|t| t == "unknown") => Some("unknown".to_owned()),
        texts => Some(texts.join(" or ")),
    }
}

/// Joins what one place reveals in several passes or calls into one event.
pub(crate) fn joined(events: Vec<Event>) -> Vec<Event> {
    let mut out: Vec<Event> = Vec::with_capacity(events.len());
    for event in events {
        if let Kind::Reveal(new) = &event.kind {
            let earlier = out.iter_mut().filter(|e| e.place == event.place).find_map(|e| match &mut e.kind {
                Kind::Reveal(text) => Some(text),
                _ => None,
            });
            if let Some(text) = earlier {
                if text != new {
                    let mut texts: Vec<String> =
                        text.split(" or ").chain(new.split(" or ")).map(str::to_owned).collect();
                    *text = any_of(&mut texts).unwrap_or_default();
                }
                continue;
            }
        }
        out.push(event);
    }
    out
}
