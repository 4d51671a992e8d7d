use galamost_plugin_macros::device_fn;

#[device_fn]
fn receiver(self) -> real {
    1.0
}

#[device_fn]
fn pattern((x, y): (real, real)) -> real {
    x + y
}

#[device_fn]
fn patterns_behind_names(x @ y: real) -> real {
    x
}

fn main() {}
