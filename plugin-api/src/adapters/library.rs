//! The library of a plugin: root module, list of components, creation of components.

use crate::abi::panic::guard;
use crate::abi::wire::{to_ron, to_wire};
use crate::abi::{
    Layouts1, Library1, PrefixTypeTrait, ROption, RResult, RStr, RString, Root, RootRef, TablePointer, Wire, WireError,
    WireObject,
};
use crate::error::{Error, Position};
use crate::kinds::component::{Kind, Registration};
use crate::params::Source;

/// Returns the root module of a plugin.
pub fn root() -> RootRef {
    Root { interface: library_interface }.leak_into_prefix()
}

extern "C" fn library_interface(name: RStr<'_>) -> ROption<TablePointer> {
    const LIBRARY: &Library1 = &Library1 { describe, create };
    const LAYOUTS: &Layouts1 = &Layouts1 { structs };
    match name.as_str() {
        "layouts/1" => ROption::RSome(TablePointer::new(LAYOUTS)),
        "library/1" => ROption::RSome(TablePointer::new(LIBRARY)),
        _ => ROption::RNone,
    }
}

extern "C" fn structs() -> RString {
    to_ron(&crate::abi::layout::crossing()).into()
}

extern "C" fn describe() -> Wire<RString> {
    to_wire(guard("the plugin", || Ok(to_ron(&Registration::all().iter().map(|r| r.info()).collect::<Vec<_>>()))))
}

extern "C" fn create(kind: u32, name: RStr<'_>, text: RStr<'_>, line: u32, column: u32) -> Wire<WireObject> {
    let name = name.as_str();
    let made = guard(name, || {
        let kind = Kind::from_u32(kind).ok_or_else(|| Error::Run(format!("unknown kind number {kind}")))?;
        let found = Registration::all().into_iter().find(|r| r.name == name && r.kind == kind);
        let r = found.ok_or_else(|| Error::Run(format!("this library has no {kind} `{name}`")))?;
        let source = Source { text: text.as_str(), start: Position { line, column } };
        (r.create)(r.name, source.value())
    });
    match made {
        Ok(object) => RResult::ROk(object.0),
        Err(e) => RResult::RErr(WireError::from(e)),
    }
}
