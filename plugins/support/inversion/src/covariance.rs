//! The table that the component `BinCovariance` writes.

use galamost_tables::Mistake;

/// Means and covariances of the counts of all bins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Covariance {
    /// Interaction of each bin, for example `pair A-B`.
    pub interaction: Vec<String>,
    /// ⟨S_a⟩.
    pub mean: Vec<f64>,
    /// Mean count of the bin where the distribution is 1.
    pub ideal: Vec<f64>,
    /// ⟨S_a S_b⟩ − ⟨S_a⟩⟨S_b⟩, row by row.
    pub covariance: Vec<f64>,
}

impl Covariance {
    /// Reads the table.
    ///
    /// # Errors
    /// Returns an error with the first malformed line.
    pub fn read(text: &str) -> Result<Self, Mistake> {
        let mut all = Self::default();
        let n = text.lines().count().saturating_sub(1);
        for (line, row) in text.lines().enumerate().skip(1) {
            let wrong = |what: String| Mistake::at(line as u32 + 1, what);
            let mut cells = row.split(',');
            all.interaction.push(cells.next().unwrap_or_default().into());
            let numbers = cells
                .map(|c| c.parse::<f64>().map_err(|_| wrong(format!("expected a number, found `{c}`"))))
                .collect::<Result<Vec<f64>, _>>()?;
            if numbers.len() != n + 3 {
                return Err(wrong(format!(
                    "expected {} numbers in a table of {n} bins, found {}",
                    n + 3,
                    numbers.len()
                )));
            }
            all.mean.push(numbers[1]);
            all.ideal.push(numbers[2]);
            all.covariance.extend(&numbers[3..]);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_read() {
        let text = "interaction,x,mean,ideal,c1,c2\npair A-A,0.5,3.0,4.0,1.0,0.5\nbond A-A,0.5,2.0,1.0,0.5,2.0\n";
        let c = Covariance::read(text).unwrap();
        assert_eq!((c.interaction[1].as_str(), c.mean[0], c.ideal[0]), ("bond A-A", 3.0, 4.0));
        assert_eq!(c.covariance, [1.0, 0.5, 0.5, 2.0]);
        assert_eq!(Covariance::read(&text.replace(",2.0\n", "\n")).unwrap_err().line, Some(3));
        assert_eq!(Covariance::read(&text.replace("3.0", "x")).unwrap_err().line, Some(2));
    }
}
