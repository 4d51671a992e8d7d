//! Checks that look at several stages.

pub mod constraints;
pub mod samples;
pub mod walls;

use super::{Check, StagePlan, stage};
