//! `with FakeTensorMode():` tensors without storage, on devices that need not exist.

use crate::flow::domain::value::Value;
use crate::flow::machine::Interp;
use crate::ir::{Block, Expr, ExprId};

/// The class, and common names of variables with an instance of it.
const MODES: &[&str] = &["FakeTensorMode", "fake_mode", "fake_tensor_mode"];

impl Interp<'_> {
    /// Is it such a block? In it, factories and transfers make tensors that only name their device. They use no driver
    /// (torch/_subclasses/fake_tensor.py), so the code after the block knows nothing about the machine.
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

    /// Interprets such a block. The engine reports nothing in it, and no use in it shows that a device is available.
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
