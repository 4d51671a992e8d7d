//! The frames of a file.

use crate::gromacs::fields::{Fault, Source};
use crate::positions;
use galamost_plugin_api::prelude::*;
use galamost_text::Shape;
use std::path::Path;

/// Header of a frame.
#[derive(Debug, PartialEq)]
pub struct Head<H> {
    /// Offset of the byte after the frame.
    pub end: u64,
    /// Number of particles.
    pub n: u64,
    /// Step.
    pub step: u64,
    /// Whether the frame has positions.
    pub has_positions: bool,
    /// What the format needs to read the rest of the frame.
    pub rest: H,
}

/// Contents of a frame.
#[derive(Debug, PartialEq)]
pub struct FrameData {
    /// The box, if present.
    pub shape: Option<Shape>,
    /// Positions.
    pub position: Vec<[f64; 3]>,
    /// Velocities, if present.
    pub velocity: Option<Vec<[f64; 3]>>,
}

/// A format with frames of their own lengths.
pub trait Format {
    /// Its name in messages.
    const NAME: &'static str;
    /// What a header has beyond [`Head`].
    type Rest;
    /// Reads the header of the frame at a byte offset.
    ///
    /// # Errors
    /// Returns an error with the byte offset if it is damaged or unsupported.
    fn head(source: &mut Source, at: u64) -> Result<Head<Self::Rest>, Fault>;
    /// Reads the frame with this header, which is complete and has positions.
    ///
    /// # Errors
    /// Returns an error if it is damaged or unsupported.
    fn data(source: &mut Source, head: &Head<Self::Rest>) -> Result<FrameData, Fault>;
}

/// A file open for reading.
#[derive(Debug)]
pub struct FrameIndex<F> {
    source: Source,
    /// Byte offsets of the frames.
    begins: Vec<u64>,
    /// The incomplete frame at the end, if there is one: its byte offset, and that of its end if the header is complete.
    incomplete: Option<(u64, Option<u64>)>,
    /// Number of frames without positions.
    bare: u64,
    format: std::marker::PhantomData<F>,
}

impl<F: Format> FrameIndex<F> {
    /// Opens a file and finds its frames.
    ///
    /// # Errors
    /// Returns a message with the byte offset if the file is damaged or unsupported.
    pub fn open(path: &Path) -> Result<Self, String> {
        let source = Source::open(path)?;
        let mut index = Self { source, begins: vec![], incomplete: None, bare: 0, format: std::marker::PhantomData };
        let mut at = 0;
        while at < index.source.length {
            match F::head(&mut index.source, at) {
                Ok(head) if head.end <= index.source.length => {
                    if head.has_positions {
                        index.begins.push(at);
                    } else {
                        index.bare += 1;
                    }
                    at = head.end;
                }
                Ok(head) => {
                    index.incomplete = Some((at, Some(head.end)));
                    break;
                }
                Err(Fault::Incomplete) => {
                    index.incomplete = Some((at, None));
                    break;
                }
                Err(wrong) => return Err(wrong.into()),
            }
        }
        Ok(index)
    }

    /// Returns the number of complete frames with positions.
    pub fn frames(&self) -> u64 {
        self.begins.len() as u64
    }

    /// Returns what was left out.
    pub fn notices(&self) -> Vec<String> {
        let frame = self.frames();
        let incomplete = self
            .truncation()
            .map(|part| format!("frame {frame} is incomplete and was ignored: it has {part}; the file is truncated"));
        let bare = (self.bare > 0).then(|| format!("left out frames without positions: {}", self.bare));
        incomplete.into_iter().chain(bare).collect()
    }

    /// Returns how many bytes the incomplete frame has, and where it begins.
    fn truncation(&self) -> Option<String> {
        self.incomplete.map(|(at, end)| match (self.source.length - at, end) {
            (has, Some(end)) => format!("{has} of {} bytes, from byte {at}", end - at),
            (has, None) => format!("{has} bytes of its header, from byte {at}"),
        })
    }

    /// Reads a frame of `n` particles. Returns it with its step.
    ///
    /// # Errors
    /// Returns a message if the frame does not exist, is damaged, or has another number of particles.
    pub fn frame(&mut self, number: i64, n: u64) -> Result<(u64, FrameData), String> {
        let k = positions::frame_number(number, self.frames()).map_err(|m| match self.truncation() {
            Some(part) => format!("{m} and is truncated: frame {} has {part}", self.frames()),
            None => m,
        })?;
        let at = self.begins[k as usize];
        let head = F::head(&mut self.source, at)?;
        positions::require_count(head.n, n).map_err(|m| format!("frame {k} {m}"))?;
        let data = F::data(&mut self.source, &head).map_err(|e| match e {
            Fault::Wrong(m) if !m.starts_with("byte ") => format!("byte {at}: frame {k}: {m}"),
            e => e.into(),
        })?;
        Ok((head.step, data))
    }
}

/// The file of a generator, opened on first use.
#[derive(Debug)]
pub struct FramesOf<F>(Option<FrameIndex<F>>);

impl<F> Default for FramesOf<F> {
    fn default() -> Self {
        Self(None)
    }
}

impl<F: Format> FramesOf<F> {
    /// Returns the open file.
    ///
    /// # Errors
    /// Returns an error if it cannot be opened or is damaged.
    pub fn open(&mut self, path: &Path) -> Result<&mut FrameIndex<F>> {
        if self.0.is_none() {
            self.0 = Some(FrameIndex::open(path).map_err(|m| InputError::in_file(path, None, m))?);
        }
        self.0.as_mut().ok_or_else(|| Error::Run("the file is not open".into()))
    }

    /// Moves the particles of a state to the positions of a frame, and sets the step, `step` if given.
    ///
    /// # Errors
    /// Returns an error if there are no particles, or the frame cannot be read or does not fit them.
    pub fn place(&mut self, path: &Path, number: i64, step: Option<u64>, s: &mut Snapshot) -> Result<()> {
        let wrong = |message: String| Error::from(InputError::in_file(path, None, message));
        positions::require_particles(F::NAME, s).map_err(wrong)?;
        let (found, data) = self.open(path)?.frame(number, s.len() as u64).map_err(wrong)?;
        let position = data.position.iter().copied();
        positions::place(s, data.shape, false, position, data.velocity.as_deref()).map_err(wrong)?;
        s.step = step.unwrap_or(found);
        Ok(())
    }

    /// Returns warnings about the file.
    pub fn notices(&self, file: &str) -> Vec<String> {
        let all = self.0.as_ref().map(FrameIndex::notices).unwrap_or_default();
        all.into_iter().map(|what| format!("{file}: {what}")).collect()
    }
}
