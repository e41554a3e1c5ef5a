//! Random numbers that data utilities draw without an explicit generator (`torch/utils/data/sampler.py`).

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::dims::Dims;
use crate::flow::domain::event::Meeting;
use crate::flow::domain::value::{Device, NO_ORIGIN, Reason, Value};
use crate::flow::machine::Interp;
use crate::flow::machine::arguments::args::Args;
use crate::flow::observers::mismatch::meet::{Party, Rule};
use crate::ir::ExprId;

impl Interp<'_> {
    /// The sampler of a shuffling loader makes a CPU generator and uses it to draw on the default device.
    pub(crate) fn check_shuffling(&mut self, args: &Args, e: ExprId) {
        let shuffles =
            args.get(2, "shuffle").is_some_and(|(v, _)| v == Value::Bool(crate::flow::domain::diagram::TRUE));
        let given = |position, name| args.get(position, name).is_some_and(|(v, _)| v != Value::None);
        if !shuffles || args.open || given(3, "sampler") || given(4, "batch_sampler") {
            return;
        }
        match args.keyword("generator") {
            None | Some((Value::None, _)) => self.draws_by_default(e, "DataLoader(shuffle=True)"),
            Some((generator, at)) => {
                let cpu = self.host(e);
                let device = self.default_device_or(cpu);
                self.generator_meets(generator, at, device, e, "DataLoader");
            }
        }
    }

    /// The CPU, with the default as its origin.
    fn host(&mut self, e: ExprId) -> Dd {
        let place = self.place(e);
        let origin = self.origin(place, Reason::Default, NO_ORIGIN);
        self.at(Device::Cpu, origin)
    }

    /// An implicit CPU generator draws numbers on the default device.
    pub(crate) fn draws_by_default(&mut self, e: ExprId, what: &str) {
        let generator = self.host(e);
        let device = self.default_device_or(generator);
        let party = |device| Party { expr: e, device, dims: Dims::SOME, rule: Rule::STRICT };
        let parties = [party(generator), party(device)];
        self.meet(Meeting::Generator, &format!("`{what}`"), e, &parties);
    }
}
