use galamost_plugin_macros::PairParams;

#[derive(PairParams)]
struct NotGeneric {
    k: f64,
}

#[derive(PairParams)]
struct OtherType<real> {
    k: real,
    n: u32,
}

#[derive(PairParams)]
struct UnknownKey<real> {
    #[param(minimum = 0.0)]
    k: real,
}

fn main() {}
