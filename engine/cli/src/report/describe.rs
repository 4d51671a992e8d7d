//! What a table's columns mean, from the page of the component that writes it.

use galamost_engine::plugins::Registry;
use galamost_plugin_api::component::Kind;

/// Words of units in the pages of components.
const UNITS: [&str; 8] = ["length", "time", "velocity", "volume", "energy", "mass", "pressure", "density"];

/// The page of a component, as far as it describes its output.
#[derive(Debug, Default)]
pub struct Description {
    /// First sentence of the page.
    pub summary: String,
    /// Names of columns and their meaning, as in the page's tables.
    columns: Vec<(String, String)>,
}

impl Description {
    /// Reads the page of a component; empty if no plugin has it.
    pub fn of(component: &str, registry: &Registry) -> Self {
        let kinds = [Kind::Analyzer, Kind::Updater, Kind::Sampler, Kind::Force];
        let found = kinds.into_iter().find_map(|k| registry.find(k, component));
        found.map_or_else(Self::default, |(_, info)| Self::parse(&info.doc))
    }

    fn parse(doc: &str) -> Self {
        let row = |line: &str| {
            let (names, meaning) = line.trim().strip_prefix('|')?.strip_suffix('|')?.split_once('|')?;
            let meaning = meaning.trim().replace("\\|", "|");
            let names = names.split([',', '…']).map(|n| n.trim().trim_matches('`').to_string()).collect::<Vec<_>>();
            names.iter().all(|n| !n.is_empty() && !n.starts_with('-')).then_some((names, meaning))
        };
        let rows = doc.lines().filter_map(row);
        Self {
            // tables may also be Parquet
            summary: crate::plugins::first_sentence(doc).trim_end_matches('.').replace("a CSV table", "a table"),
            columns: rows.flat_map(|(names, meaning)| names.into_iter().map(move |n| (n, meaning.clone()))).collect(),
        }
    }

    /// Returns the meaning of a column. `msd_B` is described by `msd_A`, the column of another type.
    pub fn meaning(&self, column: &str) -> Option<&str> {
        let stem = |n: &str| n.rsplit_once('_').map_or(n.to_string(), |(s, _)| s.to_string());
        let exact = self.columns.iter().find(|c| c.0 == column);
        let similar = || self.columns.iter().find(|c| c.0.contains('_') && stem(&c.0) == stem(column));
        exact.or_else(similar).map(|c| c.1.as_str())
    }

    /// Returns the unit of a column: the words in parentheses in its meaning, such as length².
    pub fn unit(&self, column: &str) -> Option<String> {
        let meaning = self.meaning(column)?;
        let inside = meaning.split('(').skip(1).filter_map(|rest| rest.split_once(')').map(|r| r.0.trim()));
        let is_unit = |text: &&str| text.chars().count() <= 24 && UNITS.iter().any(|u| text.contains(u));
        inside.into_iter().find(is_unit).map(String::from)
    }

    /// Returns the name of a column as the page writes it: Rg² for `Rg2`, α₂ A for `alpha2_A`. That is a word of the column's
    /// meaning that spells the same.
    pub fn typeset(&self, column: &str) -> String {
        let words = || self.meaning(column).into_iter().flat_map(|m| m.split([' ', ',', ';', '(', ')']));
        let find = |name: &str| words().find(|w| *w != name && spelled(w) == name);
        let of_type = || column.rsplit_once('_').and_then(|(stem, t)| Some(format!("{} {t}", find(stem)?)));
        find(column).map(String::from).or_else(of_type).unwrap_or_else(|| column.into())
    }

    /// Returns the symbol of the function that the component measures, such as g(r).
    pub fn symbol(&self) -> Option<&str> {
        let is_symbol = |w: &&str| {
            let short = w.ends_with(')') && w.chars().count() <= 8;
            short && w.split_once('(').is_some_and(|(f, _)| !f.is_empty() && f.chars().count() <= 3)
        };
        self.summary.split(' ').map(|w| w.trim_matches([',', ';', ':'])).find(is_symbol)
    }
}

/// Spells a symbol in plain letters and digits, as names of columns are.
fn spelled(word: &str) -> String {
    const PLAIN: [(char, &str); 12] = [
        ('²', "2"),
        ('³', "3"),
        ('₁', "1"),
        ('₂', "2"),
        ('₃', "3"),
        ('α', "alpha"),
        ('γ', "gamma"),
        ('η', "eta"),
        ('κ', "kappa"),
        ('ρ', "rho"),
        ('σ', "sigma"),
        ('τ', "tau"),
    ];
    let one = |c: char| PLAIN.iter().find(|p| p.0 == c).map_or_else(|| c.to_string(), |p| p.1.into());
    word.chars().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_meaning_unit_and_symbol() {
        let doc = "Measures radial distribution functions g(r) of pairs. More.\n\n| column | meaning |\n|---|---|\n\
                   | `Rg2`, `Rg2_error` | squared radius Rg² = ⟨λ₁ + λ₂⟩ (length²) |\n| `msd_A` | displacement |\n\
                   | `p_x` … `p_z` | tensor (energy/volume) |\n| `alpha2_A` | α₂ = d |\n| `R2/n` | R²/n |\n| `n` | number (of all) |\n";
        let d = Description::parse(doc);
        assert_eq!(d.summary, "Measures radial distribution functions g(r) of pairs");
        assert_eq!((d.symbol(), d.unit("Rg2").as_deref()), (Some("g(r)"), Some("length²")));
        assert_eq!(["p_x", "p_y", "p_z"].map(|c| d.unit(c).is_some()), [true; 3]);
        assert_eq!(
            ["Rg2", "alpha2_B", "R2/n", "msd_A", "kT"].map(|c| d.typeset(c)),
            ["Rg²", "α₂ B", "R²/n", "msd_A", "kT"]
        );
        assert_eq!((d.meaning("msd_B"), d.meaning("kT"), d.unit("n")), (Some("displacement"), None, None));
    }
}
