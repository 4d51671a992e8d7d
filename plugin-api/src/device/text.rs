//! Texts for CUDA C++: structs and functions of the device language.

use super::plain::Plain;

/// A struct that is also defined in CUDA C++.
pub trait CxxStruct {
    /// Returns the definition; a template over `real` if the Rust struct is generic.
    fn text() -> &'static DeviceText;
}

/// A struct with the same layout in Rust and in CUDA C++. Derive it.
///
/// A struct with padding is refused when it is compiled, because its bytes go to devices and checkpoints:
///
/// ```compile_fail
/// use galamost_plugin_api::prelude::*;
///
/// #[repr(C)]
/// #[derive(Clone, Copy, DeviceStruct)]
/// struct State {
///     kt: f64,
///     beads: u32, // four bytes of padding follow; add `reserved: u32`
/// }
/// ```
///
/// So is a member whose bytes are not a number:
///
/// ```compile_fail
/// use galamost_plugin_api::prelude::*;
///
/// #[repr(C)]
/// #[derive(Clone, Copy, DeviceStruct)]
/// struct State {
///     on: bool, // use u32
/// }
/// ```
///
/// # Safety
/// The C++ definition must have exactly the layout that `#[repr(C)]` gives the Rust struct.
pub unsafe trait DeviceStruct: CxxStruct + Plain {}

/// A function of the device language as a type, created by `#[device_fn]`.
pub trait DeviceFn {
    /// Returns its text.
    fn text() -> &'static DeviceText;
}

/// The CUDA C++ text of one function or struct of the device language, and its dependencies.
#[derive(Debug)]
pub struct DeviceText {
    /// Name in C++.
    pub name: &'static str,
    /// Definition.
    pub text: fn() -> String,
    /// Texts that must precede it.
    pub needs: &'static [fn() -> &'static DeviceText],
}

/// Assembles `roots` and all their dependencies: each definition once, in an order that C++ accepts.
///
/// # Errors
/// Returns an error if two different definitions have the same name, or if functions call each other recursively.
pub fn assemble(roots: &[&'static DeviceText]) -> Result<String, String> {
    fn visit(
        node: &'static DeviceText,
        seen: &mut Vec<(&'static str, String)>,
        above: &mut Vec<&'static str>,
    ) -> Result<(), String> {
        let text = (node.text)();
        if above.contains(&node.name) && seen.iter().any(|(n, t)| *n == node.name && *t == text) {
            return Err(format!(
                "`{}` calls itself through {}: recursion is not supported",
                node.name,
                above.join(", ")
            ));
        }
        match seen.iter().find(|(n, _)| *n == node.name) {
            Some((_, t)) if *t == text => return Ok(()),
            Some(_) => {
                return Err(format!("two different device definitions are named `{}`; rename one", node.name));
            }
            None => {}
        }
        let place = seen.len();
        seen.push((node.name, text));
        above.push(node.name);
        for need in node.needs {
            visit(need(), seen, above)?;
        }
        above.pop();
        let entry = seen.remove(place);
        seen.push(entry);
        Ok(())
    }
    let mut seen = vec![];
    for root in roots {
        visit(root, &mut seen, &mut vec![])?;
    }
    Ok(seen.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    static A: DeviceText = DeviceText { name: "a", text: || "A".into(), needs: &[] };
    static B: DeviceText = DeviceText { name: "b", text: || "B".into(), needs: &[|| &A] };
    static C: DeviceText = DeviceText { name: "c", text: || "C".into(), needs: &[|| &B, || &A] };
    static A2: DeviceText = DeviceText { name: "a", text: || "other".into(), needs: &[] };

    static LOOP: DeviceText = DeviceText { name: "l", text: || "L".into(), needs: &[|| &B, || &BACK] };
    static BACK: DeviceText = DeviceText { name: "m", text: || "M".into(), needs: &[|| &LOOP] };

    #[test]
    fn recursion_is_reported() {
        assert_eq!(assemble(&[&LOOP]), Err("`l` calls itself through l, m: recursion is not supported".into()));
    }

    #[test]
    fn definitions_precede_their_use_once() {
        assert_eq!(assemble(&[&C, &B]).as_deref(), Ok("A\nB\nC"));
        assert!(assemble(&[&C, &A2]).is_err());
    }
}
