//! Comprehensions, and the rounds of an iterable.

use crate::flow::domain::diagram::{Cond, Dd, FALSE, TRUE};
use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::flow::machine::statements::loops::Iteration;
use crate::ir::{Comp, CompId, CompKind, ExprId, Generator};

impl<'p> Interp<'p> {
    pub(crate) fn comprehension(&mut self, id: CompId, at: ExprId) -> Value {
        let linked = self.linked();
        let comp: &'p Comp = linked.ir.comp(id);
        let (mut made, mut when) = (Vec::new(), FALSE);
        let exact = self.generators(comp, &comp.generators, &mut made, &mut when);
        let before = self.path;
        let value = self.gathered(comp, made, exact, at);
        self.path = before;
        let mut runs = comp.generators.first().map_or(TRUE, |first| self.runs(first.iter));
        // `[i for i in wanted if i < torch.cuda.device_count()]`: a non-empty list implies a GPU.
        let some = self.at_least(1);
        if when != FALSE && !self.d.implies(before, some) && self.d.implies(when, some) {
            runs = self.d.and(runs, some);
        }
        // Conditions on the machine matter beyond this list. Other reasons for an empty list are not worth a condition.
        if comp.kind == CompKind::Generator || !self.hangs_on_machine(runs) {
            return value;
        }
        let nothing = self.gathered(comp, Vec::new(), true, at);
        self.ite(runs, value, nothing)
    }

    /// Whether the condition depends on the machine.
    pub(crate) fn hangs_on_machine(&self, d: Dd) -> bool {
        let mut atoms = Vec::new();
        self.d.support(d, &mut atoms);
        atoms.iter().any(|a| a.is_hardware())
    }

    /// Interprets the loops of a comprehension. Elements go to `made`. `when` is the condition under which there are
    /// any. Whether their number is known.
    fn generators(
        &mut self,
        comp: &'p Comp,
        rest: &'p [Generator],
        made: &mut Vec<(Value, Value)>,
        when: &mut Cond,
    ) -> bool {
        let Some((generator, inner)) = rest.split_first() else {
            *when = self.d.or(*when, self.path);
            let k = self.eval(comp.element);
            let v = comp.value.map_or(Value::Absent, |e| self.eval(e));
            made.push((k, v));
            return true;
        };
        let linked = self.linked();
        let iterable = self.eval(generator.iter);
        let runs = self.runs(generator.iter);
        let (items, mut exact) = match self.rounds(iterable, generator.target, generator.iter).0 {
            Iteration::Exact(items) if items.len() <= 12 => (items, true),
            Iteration::Exact(items) => (vec![self.joined(&items)], false),
            Iteration::Any(item) => (vec![item], false),
        };
        for item in items {
            let before = self.path;
            self.path = self.d.and(before, runs);
            self.run.pass += 1;
            let item = self.next_round(item);
            self.assign(generator.target, item);
            for &c in linked.ir.list(generator.conditions) {
                let cond = self.test(c);
                exact &= cond == TRUE || cond == FALSE;
                self.path = self.d.and(self.path, cond);
            }
            if self.path != FALSE {
                exact &= self.generators(comp, inner, made, when);
            }
            self.path = before;
        }
        exact
    }

    fn gathered(&mut self, comp: &Comp, made: Vec<(Value, Value)>, exact: bool, _at: ExprId) -> Value {
        if comp.kind == CompKind::Dict {
            let content = if exact {
                let flat: Vec<Value> = made.iter().flat_map(|&(k, v)| [k, v]).collect();
                self.seq(&flat)
            } else {
                let values: Vec<Value> = made.iter().map(|&(_, v)| v).collect();
                self.many_of(&values)
            };
            return Value::Object(self.object(
                crate::flow::machine::frame::ObjKind::Dict { module: false },
                None,
                content,
            ));
        }
        let items: Vec<Value> = made.iter().map(|&(k, _)| k).collect();
        let content = if exact { self.seq(&items) } else { self.many_of(&items) };
        match comp.kind {
            CompKind::List => self.true_list(content),
            _ => content,
        }
    }

    /// The items of a loop, and whether it certainly has a round. Many rounds that differ only by a number are not kept
    /// separately.
    pub(crate) fn rounds(&mut self, iterable: Value, target: ExprId, at: ExprId) -> (Iteration, bool) {
        if self.goes_over_keys(iterable, target, at) {
            return (Iteration::Any(Self::TEXT), false);
        }
        match self.iteration(iterable, at) {
            Iteration::Exact(items)
                if items.len() > 4 && items.iter().all(|v| matches!(v, Value::Int(_))) =>
            {
                (Iteration::Any(Self::NUMBER), true)
            }
            Iteration::Exact(items) => {
                let sure = !items.is_empty();
                (Iteration::Exact(items), sure)
            }
            any @ Iteration::Any(_) => (any, false),
        }
    }

    fn joined(&mut self, items: &[Value]) -> Value {
        let mut v = Value::Absent;
        for &i in items {
            v = self.blend(v, i);
        }
        v
    }
}
