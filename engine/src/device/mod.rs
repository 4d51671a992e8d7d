//! Devices: which there are, and the one a run uses.

use crate::pipeline::DeviceChoice;

/// The device of a run, with the reason for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// The CPU.
    Cpu {
        /// Why.
        reason: String,
    },
    /// A GPU.
    Cuda {
        /// Its number.
        ordinal: u32,
        /// Why.
        reason: String,
    },
    /// The CUDA kernels on the CPU.
    Emulated,
}

impl Chosen {
    /// What components are told: `cpu` or `cuda`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Cpu { .. } => "cpu",
            _ => "cuda",
        }
    }
}

/// Takes the device the user asks for.
///
/// # Errors
/// It is not there; with the driver's words.
pub fn choose(choice: DeviceChoice) -> Result<Chosen, String> {
    Ok(match choice {
        DeviceChoice::Cpu => Chosen::Cpu { reason: "the pipeline asks for it".into() },
        DeviceChoice::Auto => Chosen::Cpu { reason: "no GPU".into() },
        DeviceChoice::Cuda(_) => return Err("no GPU".into()),
        DeviceChoice::Emulated => Chosen::Emulated,
    })
}
