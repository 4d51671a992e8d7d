use galamost_plugin_macros::component;

#[component(Pair, "Potential")]
struct Potential {
    k: f64,
}

#[component(Analyzer)]
struct NoName {
    k: f64,
}

#[component(Analyzer, "")]
struct EmptyName {
    k: f64,
}

#[component(Analyzer, "Thermo", former = "Thermo-dynamics")]
struct FormerName {
    k: f64,
}

fn main() {}
