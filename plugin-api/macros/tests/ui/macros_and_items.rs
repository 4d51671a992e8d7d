use galamost_plugin_macros::device_fn;

#[device_fn]
fn print(x: real) -> real {
    println!("{x}");
    x
}

#[device_fn]
fn inside_an_expression(x: real) -> real {
    x + include!("x.rs")
}

#[device_fn]
fn nested(x: real) -> real {
    fn twice(x: f64) -> f64 {
        2.0 * x
    }
    twice(x)
}

fn main() {}
