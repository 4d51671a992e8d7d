//! Objects as the engine uses them: through their tables, from several threads.

use super::object::{ComponentInterface, Exclusive};
use super::simple::{AnalyzerAdapter, GeneratorAdapter};
use super::tables::analyzer_table;
use crate::abi::views::{LinkView, ListView, StateView};
use crate::abi::{Analyzer1, Component1, Object, Opaque, ROption, RSlice, TablePointer};
use crate::analyzer::{Analyzer, Frame, FrameArray, FrameCall, FrameColumn};
use crate::component::{Needs, SystemInfo};
use crate::error::Result;
use crate::generator::{Generator, GeneratorContext};
use crate::snapshot::{Link, Snapshot};
use crate::wire::from_wire;
use std::sync::atomic::{AtomicBool, Ordering};

/// Adds positions and charges; its state is the sum.
#[derive(Default)]
struct Adder {
    sum: f64,
    bonds: usize,
    /// Flags of two threads: `analyze` sets the first one and waits for the second one.
    flags: Option<&'static [AtomicBool; 2]>,
}

impl Analyzer for Adder {
    fn bind(&mut self, _: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.period = 1;
        Ok(())
    }
    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        if let Some([entered, left]) = self.flags {
            entered.store(true, Ordering::Release);
            while !left.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        }
        let (width, charges) = frame.array("charge").expect("an array");
        assert_eq!((width, frame.int_array("charge")), (1, None));
        assert!(frame.array("mass").is_none() && frame.thermo().is_err());
        self.sum += frame.position().iter().flatten().sum::<f64>() + charges.iter().sum::<f64>();
        self.bonds += frame.bonds().len();
        Ok(())
    }
    fn save(&mut self) -> Result<Vec<u8>> {
        Ok(format!("{} {}", self.sum, self.bonds).into_bytes())
    }
    fn finish(&mut self) -> Result<()> {
        panic!("no results")
    }
}

/// The object of a component; the tests play the engine.
struct Engine {
    object: Object,
    base: &'static Component1,
    table: &'static Analyzer1,
}

// SAFETY: functions of the tables may be called from any thread (`object.rs`)
unsafe impl Sync for Engine {}

impl Engine {
    fn new(component: Adder) -> Self {
        let object = Object::new("Adder", AnalyzerAdapter(Exclusive::new(component)));
        let table = |name: &str| -> TablePointer {
            let found: ROption<TablePointer> = (object.0.interface)(object.0.this, name.into());
            found.into_option().expect("a table")
        };
        let (base, table) = (table("component/1").get().expect("this"), table("analyzer/1").get().expect("this"));
        Self { object, base, table }
    }
    fn this(&self) -> *mut Opaque {
        self.object.0.this
    }
    fn analyze(&self, call: &FrameCall<'_>) -> Result<()> {
        from_wire((self.table.analyze)(self.this(), std::ptr::from_ref(call).cast()))
    }
    fn save(&self) -> String {
        String::from_utf8(from_wire((self.base.save)(self.this())).expect("saved").into_vec()).expect("text")
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        (self.object.0.drop)(self.this());
    }
}

/// Calls `f` with a frame of two particles, whose columns live only that long.
fn with_frame<T>(f: impl FnOnce(&FrameCall<'_>) -> T) -> T {
    let (position, charge) = (vec![[1.0, 2.0, 3.0], [4.0, 0.0, 0.0]], vec![0.5, 0.25]);
    let (arrays, bonds) = ([FrameArray::reals("charge", 1, &charge)], [Link { kind: 0, tags: [0, 1] }]);
    f(&FrameCall {
        size: size_of::<FrameCall<'_>>() as u32,
        dimensions: 3,
        step: 0,
        time: 0.0,
        box_length: [10.0; 3],
        tilt: [0.0; 3],
        thermo: None,
        energies: FrameColumn::EMPTY,
        energy_names: FrameColumn::EMPTY,
        position: FrameColumn::new(&position),
        image: FrameColumn::EMPTY,
        velocity: FrameColumn::EMPTY,
        type_id: FrameColumn::EMPTY,
        mass: FrameColumn::EMPTY,
        arrays: FrameColumn::new(&arrays),
        bonds: FrameColumn::new(&bonds),
        angles: FrameColumn::EMPTY,
        dihedrals: FrameColumn::EMPTY,
        impropers: FrameColumn::EMPTY,
        state: StateView::empty(),
        list: ListView::empty(),
        bond_view: LinkView::empty(2),
        shear_offset: 0.0,
        reserved: Default::default(),
    })
}

#[test]
fn an_analyzer_reads_frames_and_keeps_its_state() {
    let engine = Engine::new(Adder::default());
    let bound = (engine.base.bind)(engine.this(), "(n: 2)".into());
    assert!(from_wire(bound).expect("bound").contains("period:1"));
    with_frame(|call| engine.analyze(call).expect("analyzed"));
    with_frame(|call| engine.analyze(call).expect("analyzed"));
    assert_eq!(engine.save(), "21.5 2");
    let refused = from_wire((engine.base.load)(engine.this(), RSlice::from_slice(&[])));
    assert!(refused.is_ok(), "an analyzer accepts any state by default");
}

#[test]
fn a_second_call_at_the_same_time_is_an_error() {
    static FLAGS: [AtomicBool; 2] = [AtomicBool::new(false), AtomicBool::new(false)];
    let engine = Engine::new(Adder { flags: Some(&FLAGS), ..Adder::default() });
    std::thread::scope(|s| {
        let first = s.spawn(|| with_frame(|call| engine.analyze(call)));
        while !FLAGS[0].load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        // without the check, two `&mut Adder` would exist here
        let second = with_frame(|call| engine.analyze(call)).expect_err("refused");
        assert_eq!(second.to_string(), "a method was called before the previous call returned");
        FLAGS[1].store(true, Ordering::Release);
        first.join().expect("no panic").expect("analyzed");
    });
    assert_eq!(engine.save(), "10.75 1");
}

#[test]
fn a_panic_is_an_error_and_leaves_the_component_usable() {
    let engine = Engine::new(Adder::default());
    let error = from_wire((engine.base.finish)(engine.this())).expect_err("a panic").to_string();
    assert!(error.contains("no results"), "{error}");
    assert_eq!(engine.save(), "0 0");
}

struct Nothing;
impl Generator for Nothing {
    fn generate(&mut self, _: &GeneratorContext, _: &mut Snapshot) -> Result<()> {
        Ok(())
    }
}

/// Every component can be called from several threads.
#[test]
fn components_are_sync() {
    fn is_sync<T: ComponentInterface + Sync>(_: &T) {}
    is_sync(&GeneratorAdapter(Exclusive::new(Nothing)));
    is_sync(&AnalyzerAdapter(Exclusive::new(Adder::default())));
    assert!(GeneratorAdapter::<Nothing>::table("analyzer/1").is_none());
    assert!(analyzer_table::<Adder>().get::<Component1>().is_err(), "another table");
}
