//! The fields `device` and `precision` of a pipeline.

use galamost_plugin_api::error::Errors;
use galamost_plugin_api::params::{FromValue, Value};
use galamost_plugin_api::precision::Precision;

/// The device that the user requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum DeviceChoice {
    /// A GPU if one works, otherwise the CPU; the log states the choice and its reason.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// This GPU.
    Cuda(u32),
    /// The CUDA kernels on the CPU, compiled by g++; slow, for tests of kernels.
    Emulated,
}

impl DeviceChoice {
    /// Parses the command-line form: `auto`, `cpu`, `cuda`, `cuda:1`, `emulated`.
    ///
    /// # Errors
    /// Returns an error that lists the valid forms.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lower = text.to_lowercase();
        match lower.as_str() {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            "emulated" => Ok(Self::Emulated),
            other => other
                .strip_prefix("cuda:")
                .and_then(|n| n.parse().ok())
                .map(Self::Cuda)
                .ok_or_else(|| format!("`{text}` is not a device; use auto, cpu, cuda:0 or emulated")),
        }
    }
}

impl FromValue for DeviceChoice {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        match (value.name(), value.after_name()) {
            (Some("Auto"), None) => Some(Self::Auto),
            (Some("Cpu"), None) => Some(Self::Cpu),
            (Some("Emulated"), None) => Some(Self::Emulated),
            (Some("Cuda"), Some(inner)) => match errors.absorb(inner.elements())?.as_slice() {
                [n] => u32::from_value(*n, errors).map(Self::Cuda),
                _ => {
                    errors.push(value.error("expected `Cuda(0)`"));
                    None
                }
            },
            _ => {
                errors.push(value.error(format!("expected {}, found `{}`", Self::describe(), value.text())));
                None
            }
        }
    }
    fn describe() -> String {
        "`Auto`, `Cpu` or `Cuda(0)`".into()
    }
}

/// The field `precision`.
pub(super) struct PrecisionField(pub Precision);

impl FromValue for PrecisionField {
    fn from_value(value: Value<'_>, errors: &mut Errors) -> Option<Self> {
        let all = [Precision::Single, Precision::Mixed, Precision::Double];
        let found = all.into_iter().find(|p| p.name() == value.text()).map(Self);
        if found.is_none() {
            errors.push(value.error(format!("expected {}, found `{}`", Self::describe(), value.text())));
        }
        found
    }
    fn describe() -> String {
        "`Single`, `Mixed` or `Double`".into()
    }
}
