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

#[derive(Params)]
struct OutOfRange {
    #[param(default = 0, at_least = 1)]
    every: u64,
}

#[derive(Params)]
struct OneOutOfRange {
    #[param(default = [0.5, 1.5], below = 1.0)]
    parts: [f64; 2],
}

#[derive(Params)]
struct EmptyName {
    #[param(name = "")]
    k: f64,
}

#[derive(Params)]
struct Twice {
    #[param(name = "a")]
    k: f64,
    a: f64,
}

fn main() {}
