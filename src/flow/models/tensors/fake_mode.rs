//! `with FakeTensorMode():` tensors without storage, on devices that nobody asks for.

use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::ir::{Block, Expr, ExprId};

/// The class, and the names under which what it makes is handed around.
const MODES: &[&str] = &["FakeTensorMode", "fake_mode", "fake_tensor_mode"];

impl Interp<'_> {
    /// In such a block factories and transfers give tensors that have a device by name only: no driver is asked for it
    /// (torch/_subclasses/fake_tensor.py), so what comes after knows nothing of the machine.
    pub(crate) fn is_fake(&self, manager: Value, context: ExprId) -> bool {
        let ir = &self.linked().ir;
        let named = match ir.expr(context) {
            Expr::Call(id) => ir.call(id).func,
            _ => context,
        };
        let text = match manager {
            Value::Outer(id) => self.t.outers[id.0 as usize].text.as_str(),
            _ => "",
        };
        let last = text.split('(').next().and_then(|t| t.rsplit('.').next());
        last.into_iter().chain(self.last_name(named)).any(|n| MODES.contains(&n))
    }

    /// Such a block: nothing in it is told of, and nothing in it says that a device is there.
    pub(crate) fn fake_block(&mut self, body: Block) {
        let before = self.path;
        self.run.muted += 1;
        self.block(body);
        self.run.muted -= 1;
        if self.live() {
            self.path = before;
        }
    }
}
