use super::*;
use crate::flow::project::facts::is_called_before;
use crate::ir::Module;
use crate::link::{ModIdx, Program};
use crate::lower::{Kind, lower};
use crate::span::FileId;

/// The program and the call graph of one file.
fn read(text: &str) -> (Program, CallGraph) {
    let module: Module = lower(FileId(0), text, Kind::Script).module;
    let program = Program::link(vec![module], &mut |_, _, _| None);
    let graph = CallGraph::of(&program, &[ModIdx(0)]);
    (program, graph)
}

/// Whether the function is only reached after `ready()`, on this route.
fn is_ready(text: &str, name: &str, route: Route) -> bool {
    let (program, graph) = read(text);
    let ir = &program.get(ModIdx(0)).ir;
    let found = (0..).map(crate::ir::FuncId).zip(&ir.functions).find(|(_, f)| f.name.as_str() == name);
    let Some((f, _)) = found else { panic!("no function {name}") };
    let node = match route {
        Route::Called => Node::Function(ModIdx(0), f),
        Route::Made => {
            super::super::call_graph::made_at(ir, ModIdx(0), f).unwrap_or(Node::Function(ModIdx(0), f))
        }
    };
    let at = |_, mention: &Mention| {
        Verdict::from(is_called_before(&program.get(mention.module).ir, mention.expr, &["ready"]))
    };
    let fact = Fact { route, at: &at, of: &|_| Verdict::Inherited };
    Context::of(&program, &graph, [node], &fact).holds(node)
}

const CHAIN: &str = "\
def low(): pass
def middle(): low()
def high(): middle()
def main():
    ready()
    high()
main()
";

#[test]
fn a_fact_goes_down_a_chain_of_callers() {
    for route in [Route::Called, Route::Made] {
        assert!(is_ready(CHAIN, "low", route));
        assert!(!is_ready(CHAIN, "main", route));
    }
}

#[test]
fn one_caller_without_it_breaks_it() {
    for other in ["middle()\n", "def other(): low()\n", "def other(): return high\n", "low()\n"] {
        let text = CHAIN.to_owned() + other;
        assert!(!is_ready(&text, "low", Route::Called), "{other}");
        assert!(!is_ready(&text, "low", Route::Made), "{other}");
    }
}

#[test]
fn what_holds_only_after_the_call_does_not_count() {
    let text = "def low(): pass\ndef main():\n    low()\n    ready()\nmain()\n";
    assert!(!is_ready(text, "low", Route::Called));
}

#[test]
fn recursive_functions_are_called_from_outside() {
    let called = "def even(n): odd(n)\ndef odd(n): even(n)\ndef own(): own()\n";
    let from = "def main():\n    ready()\n    even(3)\n    own()\nmain()\n";
    let text = called.to_owned() + from;
    for name in ["even", "odd", "own"] {
        assert!(is_ready(&text, name, Route::Called), "{name}");
    }
    let open = text + "odd(1)\n";
    assert!(!is_ready(&open, "even", Route::Called));
    // Nothing is known of a cycle without an entry, even if something holds inside it.
    let circle = "def even(n):\n    ready()\n    odd(n)\ndef odd(n): even(n)\n";
    assert!(!is_ready(circle, "odd", Route::Made));
}

const CLASS: &str = "\
class Net:
    def __init__(self): pass
    def run(self): self.step()
    def step(self): pass
class Wide(Net): pass
def main(net):
    ready()
    Net().run()
    Wide()
";

#[test]
fn methods_are_where_their_class_is_made() {
    assert!(is_ready(CLASS, "step", Route::Made));
    assert!(is_ready(CLASS, "__init__", Route::Made));
    let subclass = CLASS.to_owned() + "def other(): return Wide()\n";
    assert!(!is_ready(&subclass, "step", Route::Made));
}

#[test]
fn methods_are_called_by_name() {
    assert!(is_ready(CLASS, "step", Route::Called));
    let unknown = CLASS.to_owned() + "def other(x): x.step()\n";
    assert!(!is_ready(&unknown, "step", Route::Called));
    assert!(is_ready(&unknown, "step", Route::Made));
    let another = CLASS.to_owned()
        + "class Other:\n    def step(self): pass\ndef go():\n    x = Other()\n    x.step()\n";
    assert!(is_ready(&another, "step", Route::Called));
}

#[test]
fn who_reads_a_table_comes_to_what_is_in_it() {
    let text = "def low(): pass\nTABLE = {'low': low}\ndef main():\n    ready()\n    TABLE['low']()\n";
    assert!(is_ready(text, "low", Route::Made));
    assert!(!is_ready(&(text.to_owned() + "print(TABLE)\n"), "low", Route::Made));
}
