//! Instances that are made before a function refuses to go on without CUDA, and used after it.
//!
//! `model = Model(); model.set(optimizer)`, then `if not torch.cuda.is_available(): raise …`, then `model.train()`: what is not
//! called before the refusal only runs where CUDA is, as far as this function goes. So it is with what the constructor of another
//! object keeps, and with the variables of a script. What a function gives back as it has made it is used where its callers use it.

use std::cell::RefCell;

use rustc_hash::{FxHashMap, FxHashSet};

use super::filled::own_attribute;
use super::refuses::{Point, Points, run_by_body};
use crate::flow::nodes::{Node, Target, named};
use crate::flow::site::argument;
use crate::ir::{CallId, Expr, ExprId, FuncId, FuncKind, Module, Slot, Stmt, Var};
use crate::link::{ClassKey, ModIdx, Program, Resolved};
use crate::span::Span;
use crate::sym::Sym;

/// So many functions that an instance is handed to, one by the other, are looked at.
const MAX_HANDS: u32 = 3;

/// Classes with such instances.
#[derive(Debug, Default)]
pub(super) struct Late {
    /// The mentions that make them.
    mentions: FxHashSet<(ModIdx, ExprId)>,
    /// The mentions that make what a function gives back, each with that function.
    given: FxHashMap<(ModIdx, ExprId), Target>,
    /// What of them may be called before.
    called: FxHashMap<ClassKey, FxHashSet<Sym>>,
    /// The same of what functions give back.
    called_of: FxHashMap<Target, FxHashSet<Sym>>,
}

/// What makes an instance: the expression that names a class, or a function that gives one back, and what is called of it at once.
struct Maker {
    mention: ExprId,
    made_by: Node,
    names: Vec<Sym>,
}

/// Where an instance is kept.
#[derive(Clone, Copy)]
enum Kept {
    Variable(Slot),
    /// An attribute of the object whose method it is.
    Own(Slot, Sym),
}

impl Late {
    /// Those of these files that functions make before they refuse. With `itself`, only those that are in what refuses: a module that
    /// is brought to the current GPU itself may count on that one.
    pub(super) fn of(program: &Program, files: &[ModIdx], points: &Points, itself: bool) -> Self {
        let (mut late, known) = (Self::default(), Known::default());
        for (&(m, f), point) in points {
            if files.contains(&m) {
                late.made(program, (m, f), point, itself, &known);
            }
        }
        for &m in files {
            for n in 1..program.get(m).ir.functions.len() {
                late.given_by(program, m, FuncId(u32::try_from(n).unwrap_or(u32::MAX)), &known);
            }
        }
        late.hand_on(program);
        for (&class, names) in &mut late.called {
            names.insert(Sym::new("__init__"));
            close(program, class, names);
        }
        late
    }

    fn made(&mut self, program: &Program, (m, f): Target, point: &Point, itself: bool, known: &Known) {
        let ir = &program.get(m).ir;
        // What its other branches do comes after the question.
        let Some(refuses) = point.at else { return };
        if let Stmt::Assign { value, .. } | Stmt::Return(Some(value)) | Stmt::Expr(value) = *ir.stmt(refuses)
        {
            let moved = makers(program, m, value).into_iter().filter(|maker| !maker.names.is_empty());
            moved.for_each(|maker| self.note(m, maker));
        }
        let until = ir.stmt_span(refuses).start;
        let mut globals: Option<FxHashSet<Slot>> = None;
        for n in ir.stmts_of(ir.function(f)) {
            let at = ir.stmt_spans[n];
            let Some((target, values)) = kept_by(ir, &ir.stmts[n]).filter(|_| at.end <= until) else {
                continue;
            };
            if ir.function_around(target) != f {
                continue;
            }
            let makers: Vec<Maker> = values.into_iter().flat_map(|value| makers(program, m, value)).collect();
            let Some(kept) = kept(ir, f, target).filter(|_| !makers.is_empty()) else { continue };
            let reader = Reader { program, module: m, func: f, depth: MAX_HANDS, known };
            if itself && !reader.mentions(kept, ir.stmt_span(refuses)) {
                continue;
            }
            // Functions of the file that have run before may have read its variable.
            if let (FuncId(0), Kept::Variable(slot)) = (f, kept)
                && globals.get_or_insert_with(|| read_by_then(program, m, until)).contains(&slot)
            {
                continue;
            }
            let Some(names) = reader.between(kept, Span::new(at.end, until)) else { continue };
            for mut maker in makers {
                maker.names.extend(names.iter().copied());
                self.note(m, maker);
            }
        }
    }

    fn note(&mut self, m: ModIdx, maker: Maker) {
        self.mentions.insert((m, maker.mention));
        self.before(&maker);
    }

    /// Remembers what is called of an instance before the refusal.
    fn before(&mut self, maker: &Maker) {
        let names = match maker.made_by {
            Node::Class(class) => self.called.entry(class).or_default(),
            Node::Function(m, f) => self.called_of.entry((m, f)).or_default(),
        };
        names.extend(maker.names.iter().copied());
    }

    /// What a function gives back as it has made it.
    fn given_by(&mut self, program: &Program, m: ModIdx, f: FuncId, known: &Known) {
        let ir = &program.get(m).ir;
        let function = ir.function(f);
        if function.kind != FuncKind::Function || function.is_generator || function.is_async {
            return;
        }
        let range = ir.stmts_of(function);
        let (mut returned, mut found) = (FxHashSet::default(), Vec::new());
        for s in &ir.stmts[range.clone()] {
            let Stmt::Return(Some(value)) = *s else { continue };
            if ir.function_around(value) != f {
                continue;
            }
            match ir.expr(value) {
                Expr::Var(Var::Local(slot)) => {
                    returned.insert((slot, value));
                }
                _ => found.extend(makers(program, m, value)),
            }
        }
        if !returned.is_empty() {
            for s in &ir.stmts[range] {
                let Stmt::Assign { targets, value } = *s else { continue };
                let &[target] = ir.list(targets) else { continue };
                let Expr::Var(Var::Local(slot)) = ir.expr(target) else { continue };
                if !returned.iter().any(|&(given, _)| given == slot) || ir.function_around(value) != f {
                    continue;
                }
                let made = makers(program, m, value);
                let reader = Reader { program, module: m, func: f, depth: MAX_HANDS, known };
                let fine = |e: ExprId| e == target || returned.contains(&(slot, e));
                if !made.is_empty()
                    && let Some(names) = reader.read(slot, function.span, &fine)
                {
                    let all = |maker: Maker| Maker { names: [&maker.names[..], &names].concat(), ..maker };
                    found.extend(made.into_iter().map(all));
                }
            }
        }
        for maker in found {
            if !self.mentions.contains(&(m, maker.mention)) {
                self.given.insert((m, maker.mention), (m, f));
                self.before(&maker);
            }
        }
    }

    /// What is called of what functions give back is called of what they have made.
    fn hand_on(&mut self, program: &Program) {
        let edges: Vec<(Node, Target)> =
            self.given.iter().filter_map(|(&(m, e), &giver)| Some((named(program, m, e)?, giver))).collect();
        loop {
            let mut changed = false;
            for &(made, giver) in &edges {
                let Some(names) = self.called_of.get(&giver).cloned() else { continue };
                let known = match made {
                    Node::Class(class) => self.called.entry(class).or_default(),
                    Node::Function(m, f) => self.called_of.entry((m, f)).or_default(),
                };
                let before = known.len();
                known.extend(names);
                changed |= known.len() > before;
            }
            if !changed {
                return;
            }
        }
    }

    /// Is an instance made here that is used later?
    pub(super) fn is_made_at(&self, m: ModIdx, e: ExprId) -> bool {
        self.mentions.contains(&(m, e))
    }

    /// The function that gives back what is made here.
    pub(super) fn giver_at(&self, m: ModIdx, e: ExprId) -> Option<Target> {
        self.given.get(&(m, e)).copied()
    }

    /// Is the class one of them?
    pub(super) fn holds(&self, class: ClassKey) -> bool {
        self.called.contains_key(&class)
    }

    /// The classes, each with the names of what may be called before.
    pub(super) fn classes(&self) -> impl Iterator<Item = (ClassKey, &FxHashSet<Sym>)> {
        self.called.iter().map(|(&class, names)| (class, names))
    }
}

/// `Model()`, `Model().eval()`, `torch.nn.ModuleList([Model() for _ in range(n)])`
fn makers(program: &Program, m: ModIdx, value: ExprId) -> Vec<Maker> {
    let ir = &program.get(m).ir;
    let (mut found, mut open) = (Vec::new(), vec![(value, Vec::new())]);
    while let Some((at, mut names)) = open.pop() {
        match ir.expr(at) {
            Expr::Call(id) => {
                let call = ir.call(id);
                match (named(program, m, call.func), ir.expr(call.func)) {
                    (Some(made_by), _) => found.push(Maker { mention: call.func, made_by, names }),
                    (None, _) if wraps(program, m, call.func) => {
                        open.extend(call.args.iter().map(|a| (a.value, names.clone())));
                    }
                    (None, Expr::Attr { base, name }) => {
                        names.push(name);
                        open.push((base, names));
                    }
                    _ => {}
                }
            }
            // What is in a list is called through it.
            Expr::List(list) | Expr::Tuple(list) if names.is_empty() => {
                open.extend(ir.list(list).iter().map(|&e| (e, Vec::new())));
            }
            Expr::Comp(id) if names.is_empty() => open.push((ir.comp(id).element, names)),
            _ => {}
        }
    }
    found
}

/// What a statement keeps, and where: `net = Net()`, `self.layers.append(Layer())`
fn kept_by(ir: &Module, s: &Stmt) -> Option<(ExprId, Vec<ExprId>)> {
    match *s {
        Stmt::Assign { targets, value } => match *ir.list(targets) {
            [target] => Some((target, vec![value])),
            _ => None,
        },
        Stmt::Expr(e) => {
            let Expr::Call(id) = ir.expr(e) else { return None };
            let call = ir.call(id);
            match ir.expr(call.func) {
                Expr::Attr { base, name } if name.as_str() == "append" => {
                    Some((base, call.args.iter().map(|a| a.value).collect()))
                }
                _ => None,
            }
        }
        _ => None,
    }
}

fn wraps(program: &Program, m: ModIdx, callee: ExprId) -> bool {
    matches!(program.resolve_expr(m, callee), Some(Resolved::External(path)) if is_wrapper(path))
}

/// What keeps a module or its parameters, and calls nothing of it yet.
fn is_wrapper(path: Sym) -> bool {
    ["torch.nn.", "torch.optim."].iter().any(|start| path.as_str().starts_with(start))
        && path.as_str().rsplit('.').next().is_some_and(|last| last.starts_with(char::is_uppercase))
}

fn kept(ir: &Module, f: FuncId, target: ExprId) -> Option<Kept> {
    if let Expr::Var(Var::Local(slot)) = ir.expr(target) {
        return Some(Kept::Variable(slot));
    }
    let function = ir.function(f);
    let own = own_attribute(ir, f, target).filter(|_| function.class.is_some())?;
    Some(Kept::Own(function.params.first()?.slot, own))
}

/// What functions read of what they are given for a parameter, by how many more functions have been looked at.
type Known = RefCell<FxHashMap<(ModIdx, FuncId, Slot, u32), Option<Vec<Sym>>>>;

/// The variables of a file that its functions read which its body has run by then.
fn read_by_then(program: &Program, m: ModIdx, until: u32) -> FxHashSet<Slot> {
    let ir = &program.get(m).ir;
    let run = run_by_body(program, m, until);
    let read = |g: FuncId| {
        let own = &ir.function(g).exprs;
        ir.exprs[own.start as usize..own.end as usize].iter()
    };
    let slot = |e: &Expr| if let Expr::Var(Var::Global(slot)) = *e { Some(slot) } else { None };
    run.into_iter().flat_map(read).filter_map(slot).collect()
}

/// What looks for what is done with an instance in one function.
#[derive(Clone, Copy)]
struct Reader<'a> {
    program: &'a Program,
    module: ModIdx,
    func: FuncId,
    /// So many more functions that it is handed to are looked at.
    depth: u32,
    known: &'a Known,
}

impl<'a> Reader<'a> {
    fn ir(&self) -> &'a Module {
        &self.program.get(self.module).ir
    }

    /// What is read of an instance within this stretch of the function; nothing if more may happen to it.
    fn between(&self, kept: Kept, stretch: Span) -> Option<Vec<Sym>> {
        let ir = self.ir();
        match kept {
            Kept::Variable(slot) => self.read(slot, stretch, &|_| false),
            Kept::Own(this, name) => {
                let function = ir.function(self.func);
                let class = ClassKey { module: self.module, class: function.class? };
                // Who goes back earlier has kept it all the same.
                let back =
                    |n: usize| matches!(ir.stmts[n], Stmt::Return(_)) && stretch.contains(ir.stmt_spans[n]);
                if ir.stmts_of(function).any(back) {
                    return None;
                }
                let of_object = self.read(this, stretch, &|_| false)?;
                // Its other methods may do anything to it.
                let mut others: FxHashSet<Sym> = of_object.into_iter().filter(|&n| n != name).collect();
                close(self.program, class, &mut others);
                if others.contains(&name) {
                    return None;
                }
                self.read_of(stretch, &|e| own_attribute(ir, self.func, e) == Some(name), &|_| false)
            }
        }
    }

    /// Is it named in this stretch of the function?
    fn mentions(&self, kept: Kept, stretch: Span) -> bool {
        let ir = self.ir();
        let function = ir.function(self.func);
        let is = |e: ExprId| match kept {
            Kept::Variable(slot) => ir.expr(e) == Expr::Var(Var::Local(slot)),
            Kept::Own(_, name) => own_attribute(ir, self.func, e) == Some(name),
        };
        (function.exprs.start..function.exprs.end).map(ExprId).any(|e| stretch.contains(ir.span(e)) && is(e))
    }

    /// The attributes of a variable that are read in this stretch of the function; nothing if it is handed to others who may do more.
    fn read(&self, slot: Slot, stretch: Span, fine: &dyn Fn(ExprId) -> bool) -> Option<Vec<Sym>> {
        let ir = self.ir();
        let function = ir.function(self.func);
        // What functions in it do, they may do at any time.
        let within = function.exprs.start..function.exprs.end;
        let captured = within.map(ExprId).any(|e| match ir.expr(e) {
            Expr::Var(Var::Enclosing { depth, slot: s }) => {
                s == slot && ir.span(e).start < stretch.end && self.is_from_here(e, depth)
            }
            _ => false,
        });
        let is = |e| ir.expr(e) == Expr::Var(Var::Local(slot)) && ir.function_around(e) == self.func;
        (!captured).then(|| self.read_of(stretch, &is, fine))?
    }

    /// Is it a variable of this function that a function in it reads?
    fn is_from_here(&self, e: ExprId, depth: u8) -> bool {
        let ir = self.ir();
        let mut at = Some(ir.function_around(e));
        for _ in 0..depth {
            at = at.and_then(|f| ir.function(f).parent);
        }
        at == Some(self.func)
    }

    /// The same of whatever `is` says.
    fn read_of(
        &self,
        stretch: Span,
        is: &dyn Fn(ExprId) -> bool,
        fine: &dyn Fn(ExprId) -> bool,
    ) -> Option<Vec<Sym>> {
        let ir = self.ir();
        let function = ir.function(self.func);
        let own = || {
            (function.exprs.start..function.exprs.end).map(ExprId).filter(|&e| stretch.contains(ir.span(e)))
        };
        let open: FxHashSet<ExprId> = own().filter(|&e| is(e) && !fine(e)).collect();
        let (mut names, mut seen, mut kept) = (Vec::new(), FxHashSet::default(), false);
        for e in own() {
            match ir.expr(e) {
                Expr::Attr { base, name } if open.contains(&base) => {
                    names.push(name);
                    seen.insert(base);
                }
                Expr::Call(id) => {
                    let call = ir.call(id);
                    for arg in call.args.iter().filter(|a| open.contains(&a.value)) {
                        if wraps(self.program, self.module, call.func) {
                            kept = true;
                        } else {
                            let callee = self.program.resolve_expr(self.module, call.func)?;
                            names.extend(self.handed(callee, id, arg.value)?);
                        }
                        seen.insert(arg.value);
                    }
                }
                _ => {}
            }
        }
        if kept {
            // Who calls the wrapper calls what is in it.
            let all = own()
                .filter_map(|e| if let Expr::Attr { name, .. } = ir.expr(e) { Some(name) } else { None });
            names.extend(all);
        }
        (seen.len() == open.len()).then_some(names)
    }

    /// What a function of the project reads of what a call gives it.
    fn handed(&self, callee: Resolved, call: CallId, given: ExprId) -> Option<Vec<Sym>> {
        let depth = self.depth.checked_sub(1)?;
        let Resolved::Function(m, f) = callee else { return None };
        let function = self.program.get(m).ir.function(f);
        let call = self.ir().call(call);
        let takes = |n: usize| argument(call, n, function.params[n].name) == Some(given);
        let n = (0..function.params.len()).find(|&n| takes(n))?;
        let slot = function.params[n].slot;
        if let Some(known) = self.known.borrow().get(&(m, f, slot, depth)) {
            return known.clone();
        }
        let reader = Reader { module: m, func: f, depth, ..*self };
        let found = reader.read(slot, function.span, &|_| false);
        self.known.borrow_mut().insert((m, f, slot, depth), found.clone());
        found
    }
}

/// Adds what the methods of these names may call on the same object.
fn close(program: &Program, class: ClassKey, names: &mut FxHashSet<Sym>) {
    let mut open: Vec<Sym> = names.iter().copied().collect();
    while let Some(name) = open.pop() {
        let Some((m, f)) = program.find_method(class, name) else { continue };
        let ir = &program.get(m).ir;
        for n in ir.exprs_of(ir.function(f)) {
            if let Expr::Attr { name, .. } = ir.exprs[n]
                && names.insert(name)
            {
                open.push(name);
            }
        }
    }
}
