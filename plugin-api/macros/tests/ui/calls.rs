use galamost_plugin_macros::device_fn;

#[device_fn]
fn recursion(x: real) -> real {
    recursion(x - 1.0)
}

#[device_fn]
fn function_of_a_type(x: real) -> real {
    f64::sqrt(x)
}

#[device_fn]
fn type_argument(x: real) -> real {
    helper::<f64>(x)
}

#[device_fn]
fn function_pointer(x: real) -> real {
    (helper)(x)
}

#[device_fn]
fn closure(x: real) -> real {
    let twice = |y| 2.0 * y;
    twice(x)
}

fn main() {}
