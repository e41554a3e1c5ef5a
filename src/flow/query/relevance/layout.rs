//! Dense numbers for the nodes of the relevance graph, and propagation over its edges.

use crate::flow::query::relevance::graph::{Found, Node, number};
use crate::link::{ModIdx, Program};

/// The upper limit for call counts.
const MAX_CALLS: u32 = 10_000;

/// The depth to which nested calls are counted.
const CALL_DEPTH: usize = 6;

/// Dense numbers of nodes: for each file its functions, then its module-level variables.
pub(super) struct Layout {
    pub(super) starts: Vec<u32>,
    functions: Vec<u32>,
    len: usize,
}

/// The callers of each node, in compressed sparse rows.
pub(super) struct Callers {
    pub(super) starts: Vec<u32>,
    callers: Vec<u32>,
}

impl Callers {
    fn of(&self, node: u32) -> &[u32] {
        &self.callers[self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize]
    }
}

impl Layout {
    pub(super) fn new(program: &Program) -> Self {
        let (mut starts, mut functions, mut len) = (Vec::new(), Vec::new(), 0);
        for linked in program.all() {
            starts.push(number(len));
            functions.push(number(linked.ir.functions.len()));
            len += linked.ir.functions.len() + linked.bindings.len();
        }
        Self { starts, functions, len }
    }

    pub(super) fn number(&self, node: Node) -> u32 {
        match node {
            Node::Function(m, f) => self.starts[m.0 as usize] + f.0,
            Node::Variable(m, slot) => {
                self.starts[m.0 as usize] + self.functions[m.0 as usize] + u32::from(slot)
            }
        }
    }

    /// Marks these nodes and all nodes that mention them within `hops` hops. A table of functions counts as two hops: which function is
    /// meant is usually known only at run time.
    pub(super) fn reach(
        &self,
        from: &mut dyn Iterator<Item = &Node>,
        callers: &Callers,
        hops: u32,
    ) -> Vec<bool> {
        let mut reached = vec![false; self.len];
        let mut rounds: Vec<Vec<u32>> = vec![from.map(|&node| self.number(node)).collect(), Vec::new()];
        for hop in 0..=hops {
            rounds.push(Vec::new());
            for at in rounds.remove(0) {
                if std::mem::replace(&mut reached[at as usize], true) {
                    continue;
                }
                let later = usize::from(hop > 0 && self.is_variable(at));
                rounds[later].extend(callers.of(at).iter().filter(|&&c| !reached[c as usize]));
            }
            if rounds.iter().all(Vec::is_empty) {
                break;
            }
        }
        reached
    }

    fn is_variable(&self, at: u32) -> bool {
        let m = self.starts.partition_point(|&start| start <= at).saturating_sub(1);
        at - self.starts[m] >= self.functions[m]
    }

    /// The number of calls in each node and in the nodes that it mentions.
    pub(super) fn calls(&self, found: &[Found]) -> Vec<u32> {
        let mut own = vec![0; self.len];
        for (m, f) in found.iter().enumerate() {
            let start = self.starts[m] as usize;
            own[start..start + f.calls.len()].copy_from_slice(&f.calls);
        }
        let edges: Vec<(u32, u32)> = found
            .iter()
            .flat_map(|f| &f.edges)
            .map(|&(from, to)| (self.number(from), self.number(to)))
            .collect();
        let mut all = own.clone();
        for _ in 1..CALL_DEPTH {
            let mut next = own.clone();
            for &(from, to) in &edges {
                let sum = &mut next[from as usize];
                *sum = (*sum + all[to as usize]).min(MAX_CALLS);
            }
            all = next;
        }
        all
    }

    /// For each node, the nodes of its own file that it mentions.
    pub(super) fn callees_in_files(&self, found: &[Found]) -> Vec<Vec<u32>> {
        let mut callees: Vec<Vec<u32>> = vec![Vec::new(); self.len];
        for &(from, to) in
            found.iter().flat_map(|f| &f.edges).filter(|(from, to)| from.module() == to.module())
        {
            callees[self.number(from) as usize].push(self.number(to));
        }
        callees
    }

    /// Propagates queries from callers to callees of the same file. The result must not depend on which other files are linted.
    pub(super) fn asked_before(&self, found: &[Found], callees: &[Vec<u32>]) -> Vec<bool> {
        let asking = found
            .iter()
            .enumerate()
            .flat_map(|(m, f)| f.asking.iter().map(move |&func| Node::Function(index(m), func)));
        let mut work: Vec<u32> = asking.map(|node| self.number(node)).collect();
        let mut asked = vec![false; self.len];
        while let Some(at) = work.pop() {
            for &callee in &callees[at as usize] {
                if !std::mem::replace(&mut asked[callee as usize], true) {
                    work.push(callee);
                }
            }
        }
        asked
    }

    pub(super) fn callers(&self, found: &[Found]) -> Callers {
        let edges = || found.iter().flat_map(|f| &f.edges);
        let mut starts = vec![0_u32; self.len + 1];
        for &(_, to) in edges() {
            starts[self.number(to) as usize + 1] += 1;
        }
        for n in 0..self.len {
            starts[n + 1] += starts[n];
        }
        let mut next = starts.clone();
        let mut callers = vec![0; starts[self.len] as usize];
        for &(from, to) in edges() {
            let at = &mut next[self.number(to) as usize];
            callers[*at as usize] = self.number(from);
            *at += 1;
        }
        Callers { starts, callers }
    }
}

pub(super) fn index(n: usize) -> ModIdx {
    ModIdx(number(n))
}
