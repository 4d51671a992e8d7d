use galamost_plugin_macros::device_fn;

#[device_fn]
fn unknown(x: real) -> real {
    x.tanh()
}

#[device_fn]
fn arguments(x: real) -> real {
    x.powf()
}

#[device_fn]
fn type_argument(random: &mut Random) -> real {
    random.uniform::<f32>()
}

fn main() {}
