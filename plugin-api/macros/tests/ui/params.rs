use galamost_plugin_macros::Params;

#[derive(Params)]
struct Unnamed(f64);

#[derive(Params)]
enum Choice {
    A,
    B,
}

#[derive(Params)]
struct UnknownKey {
    #[param(at_last = 0.0)]
    k: f64,
}

fn main() {}
