//! The analyzers that measure distributions, as pipeline text.

use super::spec::{InteractionSpec, Method, Spec};
use galamost_engine::pipeline::Only;
use galamost_tables::Kind;
use std::fmt::Write as _;

/// Returns the restrictions of pairs: `, exclude: […], only: …`.
fn pair_filter(spec: &Spec) -> String {
    let e = spec.exclude.unwrap_or_default();
    let names = [(e.bonds, "Bonds"), (e.angles, "Angles"), (e.dihedrals, "Dihedrals"), (e.impropers, "Impropers")];
    let list: Vec<&str> = names.iter().filter(|n| n.0).map(|n| n.1).collect();
    let only = match spec.only {
        None => "",
        Some(Only::SameMolecule) => ", only: SameMolecule",
        Some(Only::OtherMolecules) => ", only: OtherMolecules",
    };
    format!(", exclude: [{}]{only}", list.join(", "))
}

/// Returns the file with the distribution of an interaction.
pub(super) fn file_of(i: &InteractionSpec) -> String {
    format!("{}.dist.csv", i.stem())
}

/// Returns the column of the distribution in this file.
pub(super) fn column_of(i: &InteractionSpec) -> &str {
    &i.types
}

/// Returns the components that measure the distributions of all interactions every `every` steps.
pub(super) fn distributions(spec: &Spec, every: u64) -> Vec<String> {
    let mut list = vec![];
    for i in &spec.interactions.value {
        let (file, bins) = (file_of(i), i.common.bins);
        list.push(match (i.kind, &i.pair) {
            (Kind::Pair, Some([a, b])) => format!(
                "Rdf(every: {every}, file: {file:?}, r_max: {:?}, bins: {bins}, pairs: [({a:?}, {b:?})]{})",
                i.last,
                pair_filter(spec)
            ),
            (Kind::Angle, _) => format!("AngleDistribution(every: {every}, file: {file:?}, bins: {bins})"),
            (Kind::Dihedral, _) => format!("DihedralDistribution(every: {every}, file: {file:?}, bins: {bins})"),
            _ => format!(
                "BondDistribution(every: {every}, file: {file:?}, min: {:?}, max: {:?}, bins: {bins})",
                i.first, i.last
            ),
        });
    }
    list
}

/// The file with the covariances.
pub(super) const COVARIANCE: &str = "covariance.csv";
/// The file with pressure and temperature.
pub(super) const THERMO: &str = "thermo.ibi.csv";

/// Returns the analyzers of the last stage of an iteration.
pub(super) fn of_iteration(spec: &Spec, every: u64) -> Vec<String> {
    let mut list = distributions(spec, every);
    list.push(format!("Thermo(every: {every}, file: {THERMO:?})"));
    if let Method::Imc { .. } = spec.method {
        let mut text = format!("BinCovariance(every: {every}, file: {COVARIANCE:?}{}", pair_filter(spec));
        for (kind, field) in
            [(Kind::Pair, "pairs"), (Kind::Bond, "bonds"), (Kind::Angle, "angles"), (Kind::Dihedral, "dihedrals")]
        {
            let rows: Vec<String> = spec
                .interactions
                .value
                .iter()
                .filter(|i| i.kind == kind)
                .map(|i| {
                    let key = match &i.pair {
                        Some([a, b]) => format!("({a:?}, {b:?})"),
                        None => format!("{:?}", i.types),
                    };
                    format!("{key}: (min: {:?}, max: {:?}, bins: {})", i.first, i.last, i.common.bins)
                })
                .collect();
            if !rows.is_empty() {
                let _ = write!(text, ", {field}: {{ {} }}", rows.join(", "));
            }
        }
        list.push(text + ")");
    }
    list
}
