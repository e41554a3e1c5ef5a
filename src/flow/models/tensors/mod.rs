//! Models of tensors: their operators, functions and moves.

pub(crate) mod autocast;
pub(crate) mod binary;
pub(crate) mod cpu_arguments;
pub(crate) mod dims;
pub(crate) mod distributions;
pub(crate) mod effects;
pub(crate) mod factories;
pub(crate) mod fake_mode;
pub(crate) mod float64;
pub(crate) mod float64_on_mps;
pub(crate) mod functions;
pub(crate) mod gradients;
pub(crate) mod half_precision;
pub(crate) mod intrinsics;
pub(crate) mod methods;
pub(crate) mod moves;
pub(crate) mod operators;
pub(crate) mod sizes;
pub(crate) mod to_host;
pub(crate) mod type_method;

use crate::flow::domain::diagram::Dd;
use crate::flow::domain::store::Cell;
use crate::flow::domain::value::{ObjId, OuterId};
use crate::flow::models::tensors::autocast::Autocast;
use crate::span::Place;
use rustc_hash::FxHashMap;

/// Default devices, autocast, and results whose place is known by those of others.
#[derive(Default)]
pub(crate) struct Tensors {
    /// The device of factories without `device=`; a cell, so that branches join it.
    pub(crate) default_device: Cell,
    /// The device of the default tensor type, which `torch.Tensor` follows alone; a cell, too.
    pub(crate) default_type: Cell,
    /// Where numbers of 64 bits were told to come to be on what may be MPS, by the function that is interpreted for itself.
    pub(crate) doubles: Vec<crate::flow::models::tensors::float64::Doubles>,
    /// What given layers have made, and of which given tensors.
    pub(crate) near: FxHashMap<OuterId, OuterId>,
    /// Regions and decorators of CUDA autocast around what is interpreted, innermost last.
    pub(crate) autocasts: Vec<Autocast>,
    /// CUDA autocasts that were made.
    pub(crate) made_autocasts: FxHashMap<OuterId, Autocast>,
    /// What makes CUDA autocasts when it is called, with who says so.
    pub(crate) kept_autocasts: FxHashMap<ObjId, Place>,
    /// The one of them that is called.
    pub(crate) called_autocast: Option<Place>,
    /// What `accelerator.prepare(…)` has given for what came from outside, and where that is.
    pub(crate) prepared: FxHashMap<OuterId, Dd>,
}
