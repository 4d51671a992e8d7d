//! An analyzer that writes the largest speed as CSV.
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::resume::check_length;
use std::path::PathBuf;

galamost_plugin_api::plugin!();

/// Writes the largest speed of all particles as CSV.
///
/// ```ron
/// MyComponent(every: 50, file: "my-component.csv")
/// ```
#[component(Analyzer, "MyComponent")]
#[derive(Debug, Params)]
pub struct MyComponent {
    /// Steps between samples.
    #[param(at_least = 1.0)]
    every: u64,
    /// Output file.
    file: String,
    #[param(skip)]
    path: PathBuf,
    #[param(skip)]
    system: SystemInfo,
    #[param(skip)]
    kept: Option<Vec<u8>>,
    #[param(skip)]
    rows: Option<RowFile>,
}

/// Returns the length of the longest vector.
fn longest(vectors: &[[f64; 3]]) -> f64 {
    vectors.iter().map(|v| v.iter().map(|x| x * x).sum::<f64>().sqrt()).fold(0.0, f64::max)
}

impl Analyzer for MyComponent {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.period = self.every;
        needs.wants.particles = true;
        self.path = needs.output(system, &self.file, OutputKind::Growing);
        self.system = system.clone();
        Ok(())
    }

    fn start(&mut self, _: Host) -> Result<()> {
        self.rows = Some(RowFile::open(&self.system, &self.path, self.kept.as_deref())?);
        Ok(())
    }

    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let Some(rows) = &mut self.rows else { return Err(Error::Run("not started".into())) };
        rows.begin(b"step,largest_speed\n")?;
        rows.append(format!("{},{:?}\n", frame.step(), longest(frame.velocity())).as_bytes())
    }

    // a restart truncates the file to its length at the checkpoint
    fn save(&mut self) -> Result<Vec<u8>> {
        self.rows.as_mut().map_or(Ok(vec![]), RowFile::save)
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        self.kept = Some(state.to_vec());
        // before the run: the file must have the rows of the checkpoint
        check_length(&self.path, state.try_into().map_or(0, u64::from_le_bytes))
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_longest_vector_is_found() {
        assert_eq!(super::longest(&[[1.0, 0.0, 0.0], [0.0, -3.0, 4.0], [2.0, 2.0, 2.0]]), 5.0);
        assert_eq!(super::longest(&[]), 0.0);
    }
}
