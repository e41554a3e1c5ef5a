//! Environment variables that select GPUs.

use crate::flow::domain::diagram::{Cond, Dd, FALSE, TRUE};
use crate::flow::domain::event::Kind;
use crate::flow::domain::value::{Device, Host, OuterId, OuterKey, Value};
use crate::flow::machine::Interp;
use crate::flow::models::devices::processes::{GLOBAL_RANKS, READ_ONCE, VISIBLE};
use crate::ir::{Expr, ExprId};
use crate::link::Target;
use crate::sym::Sym;

impl Interp<'_> {
    /// `os.environ[key] = value`
    pub(crate) fn set_environment(&mut self, key: Value, value: Value, at: ExprId) {
        let Value::Str(key, _) = key else { return };
        if !READ_ONCE.contains(&key.as_str()) {
            self.put_into_environment(key, value);
            return;
        }
        self.check_set_too_late(key, value, at);
        if key.as_str() == VISIBLE {
            self.remember_number(at);
            self.hide_all(value);
            let literal = match value {
                Value::Str(s, _) => Value::Str(s, crate::flow::domain::value::NO_ORIGIN),
                _ => Value::Unknown,
            };
            self.devices.selected = true;
            self.devices.visible_at = Some(self.place(at));
            self.store.set(self.devices.visible, literal);
        }
    }

    fn put_into_environment(&mut self, key: Sym, value: Value) {
        let mut items = self.put_before().to_vec();
        let is_it = |v: &Value| matches!(v, Value::Str(name, _) if *name == key);
        match items.iter().step_by(2).position(is_it) {
            Some(n) => items[2 * n + 1] = value,
            None => items.extend([Value::Str(key, crate::flow::domain::value::NO_ORIGIN), value]),
        }
        let all = self.seq(&items);
        self.store.set(self.devices.environment, all);
    }

    /// The names and values that the program has put into the environment on every path to this point.
    fn put_before(&self) -> &[Value] {
        match self.store.get(self.devices.environment) {
            Value::Seq(s) => self.t.seqs.get(s.0),
            _ => &[],
        }
    }

    /// The string that the program has put into the variable on every path to this point.
    pub(crate) fn put_text(&self, key: Value) -> Option<Value> {
        let Value::Str(key, _) = key else { return None };
        let mut pairs = self.put_before().chunks_exact(2);
        let pair = pairs.find(|pair| matches!(pair[0], Value::Str(name, _) if name == key))?;
        matches!(pair[1], Value::Str(..)).then_some(pair[1])
    }

    /// Does `torch.cuda.is_available()` ask NVML and leave CUDA alone (<https://docs.pytorch.org/docs/stable/notes/cuda.html>,
    /// "Environment variables")? Lightning sets that variable when it is imported (`lightning_fabric/__init__.py`).
    pub(crate) fn asks_through_nvml(&self) -> bool {
        const VARIABLE: &str = "PYTORCH_NVML_BASED_CUDA_CHECK";
        let set = self.put_text(Value::Str(Sym::new(VARIABLE), crate::flow::domain::value::NO_ORIGIN));
        let imported = |target: &Target| {
            matches!(target, Target::External(path)
                if matches!(path.as_str().split('.').next(), Some("lightning" | "lightning_fabric" | "pytorch_lightning")))
        };
        matches!(set, Some(Value::Str(value, _)) if value.as_str() == "1")
            || self.linked().targets.values().any(imported)
    }

    /// The condition under which the program itself has set the variable, as far as the engine follows that.
    pub(crate) fn has_put(&mut self, variable: Sym) -> Cond {
        if variable.as_str() != VISIBLE {
            return FALSE;
        }
        match self.store.get(self.devices.visible) {
            Value::Absent => FALSE,
            Value::Choice(d) => {
                let values = &self.t.values;
                self.d.where_leaf(d, &mut |leaf| *values.get(leaf) != Value::Absent)
            }
            _ => TRUE,
        }
    }

    /// Reports a literal list of visible GPUs that is no default, because a machine with fewer GPUs does not have them.
    pub(crate) fn check_fixed_visible(&mut self, key: Value, value: Value, at: ExprId) {
        let (Value::Str(key, _), Value::Str(text, _)) = (key, value) else { return };
        if key.as_str() != VISIBLE {
            return;
        }
        let Ok(indices) =
            text.as_str().split(',').map(|part| part.trim().parse::<u32>()).collect::<Result<Vec<_>, _>>()
        else {
            return;
        };
        // CUDA ignores the rest of the list from the first number that no GPU has.
        let (Some(&first), Some(&highest)) = (indices.first(), indices.iter().max()) else { return };
        if highest == 0 || self.caught_around() {
            return;
        }
        let needed = if first > 0 { first } else { highest } + 1;
        let (there, enough) =
            (self.available(None), self.d.atom(crate::flow::domain::atom::gpus_at_least(needed)));
        let fewer = self.d.not(enough);
        let missing = self.d.and(there, fewer);
        if let Some(bite) = self.bite(missing, true) {
            let place = self.place(at);
            let kind = Kind::FixedVisible { text: text.to_string(), needed, none_left: first > 0 };
            self.emit(kind, place, bite, Vec::new());
        }
    }

    fn check_set_too_late(&mut self, key: Sym, value: Value, at: ExprId) {
        let place = self.place(at);
        let (Value::Bool(ready), Some(first)) = (self.store.get(self.devices.ready), self.devices.ready_at)
        else {
            self.devices.in_time.entry(place).or_insert(value);
            return;
        };
        // When the same line runs again, it probably sets the value that the variable already has.
        if let Some(&before) = self.devices.in_time.get(&place)
            && (before == value || !matches!((before, value), (Value::Str(..), Value::Str(..))))
        {
            return;
        }
        // The program restores the variable, or sets it for other processes.
        if matches!(value, Value::Outer(o) if self.environment_variable(o).is_some())
            || self.starts_processes()
        {
            return;
        }
        let there = self.available(None);
        let bad = self.d.and(ready, there);
        if let Some(bite) = self.bite(bad, false) {
            self.emit(Kind::EnvironmentTooLate { variable: key.as_str(), first }, place, bite, Vec::new());
        }
    }

    /// The name of the environment variable that the outside value contains, or is a part of.
    pub(crate) fn environment_variable(&self, mut o: OuterId) -> Option<&'static str> {
        for _ in 0..6 {
            if let Some(&name) = self.devices.from_environment.get(&o) {
                return Some(name);
            }
            match self.t.get_outer(o).key {
                OuterKey::External(path) => {
                    return path.as_str().strip_prefix("os.environ[").and_then(|s| s.strip_suffix(']'));
                }
                OuterKey::Item { base, key } => {
                    let environ = matches!(self.t.get_outer(base).key, OuterKey::External(p) if p.as_str() == "os.environ");
                    if let (true, Some(Value::Str(s, _))) = (environ, key) {
                        return Some(s.as_str());
                    }
                    o = base;
                }
                _ => return None,
            }
        }
        None
    }

    /// `os.environ["CUDA_VISIBLE_DEVICES"].split(",")`: the result still comes from the variable.
    pub(crate) fn environment_method(&mut self, o: OuterId, name: Sym, e: ExprId) -> Option<Value> {
        if !matches!(name.as_str(), "split" | "strip" | "rsplit" | "replace") {
            return None;
        }
        let variable = self.environment_variable(o).filter(|v| *v == VISIBLE)?;
        let result = self.result_of(e);
        if let Value::Outer(r) = result {
            self.devices.from_environment.insert(r, variable);
        }
        Some(result)
    }

    /// The result of `int(…)` for a part of an environment variable.
    pub(crate) fn number_from_environment(&self, o: OuterId) -> Value {
        match self.environment_variable(o) {
            Some(VISIBLE) => Value::Host(Host::PhysicalGpu),
            Some(name) if GLOBAL_RANKS.contains(&name) => Value::Host(Host::Rank),
            _ => Self::NUMBER,
        }
    }

    /// `os.environ["CUDA_VISIBLE_DEVICES"] = "-1"` or `""`: from here on there is no GPU. CUDA ignores the list from the first
    /// invalid number on (CUDA C++ Programming Guide, "CUDA Environment Variables").
    fn hide_all(&mut self, value: Value) {
        let Value::Str(s, _) = value else { return };
        if s.as_str().is_empty() || s.as_str().trim_start().starts_with("-1") {
            let there = self.available(None);
            let hidden = self.d.not(there);
            self.path = self.d.and(self.path, hidden);
        }
    }

    /// `os.environ["CUDA_VISIBLE_DEVICES"] = str(args.gpu)`: from here on, `args.gpu` is not a valid device index any more.
    fn remember_number(&mut self, target: ExprId) {
        self.devices.physical = None;
        let ir = &self.linked().ir;
        let assigned = ir.stmts.iter().find_map(|s| match s {
            crate::ir::Stmt::Assign { targets, value } => {
                ir.list(*targets).contains(&target).then_some(*value)
            }
            _ => None,
        });
        let Some(mut value) = assigned else { return };
        if let Expr::Call(call) = ir.expr(value) {
            let call = ir.call(call);
            match (ir.expr(call.func), call.args) {
                (Expr::Var(crate::ir::Var::Unbound(n)), [a]) if n.as_str() == "str" => value = a.value,
                _ => return,
            }
        }
        self.run.muted += 1;
        let v = self.eval(value);
        self.run.muted -= 1;
        if let Value::Outer(o) = v {
            self.devices.physical = Some((o, self.path));
        }
    }

    /// Has the program put this value into `CUDA_VISIBLE_DEVICES`, on every path to this point?
    pub(crate) fn is_physical(&mut self, o: OuterId) -> bool {
        match self.devices.physical {
            Some((number, when)) => number == o && self.d.implies(self.path, when),
            None => false,
        }
    }

    /// Are the visible devices the first ones in order, so that their indices do not change?
    pub(crate) fn visible_in_order(&self) -> bool {
        let Value::Str(s, _) = self.store.get(self.devices.visible) else { return false };
        s.as_str().split(',').enumerate().all(|(n, part)| part.trim().parse() == Ok(n))
    }

    /// Reports a fixed device index beyond the literal list of visible devices. True if it is reported.
    pub(crate) fn check_visible(&mut self, device: Dd, e: ExprId) -> bool {
        let Value::Str(visible, _) = self.store.get(self.devices.visible) else { return false };
        let text = visible.as_str().trim();
        let count = if text.is_empty() || text == "-1" { 0 } else { text.split(',').count() };
        for (leaf, d, origin) in self.device_leaves(device) {
            let Device::Cuda(Some(index)) = d else { continue };
            // If no device is visible, another rule reports the missing check.
            if count == 0 || (index as usize) < count {
                continue;
            }
            let here = self.d.where_leaf(device, &mut |p| p == leaf);
            let there = self.available(None);
            let bad = self.d.and(here, there);
            let Some(bite) = self.bite(bad, false) else { continue };
            let literal = self
                .chain(origin)
                .into_iter()
                .find(|s| s.reason == crate::flow::domain::value::Reason::Literal);
            let place = literal.map_or_else(|| self.place(e), |s| s.place);
            let set = self.devices.visible_at;
            let kind = Kind::OutsideVisible { index: Some(index), visible: Some(text.to_owned()), set };
            self.emit(kind, place, bite, Vec::new());
            return true;
        }
        false
    }
}
