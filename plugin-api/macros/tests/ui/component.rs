use galamost_plugin_macros::component;

#[component(Pair, "Potential")]
struct Potential {
    k: f64,
}

#[component(Analyzer)]
struct NoName {
    k: f64,
}

fn main() {}
