//! What a native module for Node needs from its linker.

fn main() {
    napi_build::setup();
}
