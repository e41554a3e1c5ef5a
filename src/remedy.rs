//! What would mend a finding, as a rule knows it: which expression, and what it should become. A rule knows what things mean
//! and nothing of syntax trees; [`crate::fix`] knows the syntax, and turns a remedy into edits.

use crate::span::Place;

/// A way to mend a finding. Places are those of expressions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Remedy {
    /// Call the function that is named here.
    Call(Place),
    /// Keep what this method call gives, in what it is called on: `x = x.to(d)`.
    Keep(Place),
    /// Add `map_location="cpu"` to this call, or put it in the place of `map_location=None`.
    MapLocation(Place),
    /// Make what this call makes on a device.
    Make {
        /// The call of a function of PyTorch.
        call: Place,
        /// The function's path, `torch.zeros`.
        function: String,
        /// The device, as an expression that means it there.
        device: String,
        /// Where the tensor meets another one that is on that device for certain.
        meets: Place,
    },
    /// Move this operand to a device, where it meets another one.
    Move {
        /// The operand.
        operand: Place,
        /// The device, as an expression that means it there.
        device: String,
    },
    /// Copy the tensor to the host that this call hands to NumPy or to what wants it on the host.
    ToHost {
        /// The call: `x.numpy()`, `np.asarray(x)`.
        call: Place,
        /// The tensor, if it is not what the method is called on.
        tensor: Option<Place>,
        /// It is a list of tensors.
        several: bool,
    },
    /// Register what this attribute of `self` is set to.
    Register(Place),
    /// Wrap the container that this attribute of `self` is set to in a class of `torch.nn`.
    Hold {
        /// The attribute.
        attribute: Place,
        /// `ModuleList`
        class: &'static str,
    },
    /// Ask for the exception's class, where its words are looked for.
    AskClass(Place),
    /// Cut the graph of what this statement adds, appends or hands over.
    Detach(Place),
    /// Cut the graphs of the parts of this tuple.
    DetachParts(Place),
    /// Make there what this transfer moves.
    MakeThere {
        /// The transfer, `torch.zeros(3).to(d)`.
        transfer: Place,
        /// The path of the function that makes it.
        function: String,
    },
    /// Compare the type of a device in this comparison.
    CompareType(Place),
    /// Name the type of this device in the call that makes autocast.
    Autocast {
        /// The call.
        call: Place,
        /// The device, as an expression that means it there.
        device: String,
    },
    /// Choose here by a check.
    Choose {
        /// The text, or the call of `torch.device` with it.
        literal: Place,
        /// The function that asks, `torch.cuda.is_available`.
        check: &'static str,
        /// What to use if it says no.
        otherwise: &'static str,
    },
    /// Take this argument out of a call.
    Without {
        /// The call.
        call: Place,
        /// The keyword.
        keyword: &'static str,
    },
}
