use galamost_plugin_macros::device_fn;

#[device_fn]
fn if_let(x: (real, real)) -> real {
    if let (0.0, y) = x { y } else { 1.0 }
}

#[device_fn]
fn choice(n: u32) -> real {
    match n {
        0 => 1.0,
        _ => 2.0,
    }
}

#[device_fn]
fn let_else(x: (real, real)) -> real {
    let (0.0, y) = x else { return 1.0 };
    y
}

fn main() {}
