//! The protocol: its example, and images of real devices.

#[allow(dead_code, reason = "a program whose main is not called")]
#[path = "../examples/sans_io.rs"]
mod sans_io;
mod sii_images;

use onbeat_ethercat::cia402::State;

// feature(main-device): bring-up, an SDO and cycles without any I/O: a program against the simulator
#[test]
fn sans_io_reads_an_object_and_exchanges_process_data() {
    let seen = sans_io::sans_io().expect("a bus that comes up");
    assert_eq!(seen.vendor, 0x4F4E);
    // It follows the controlword that the cycles brought, and stays there.
    assert_eq!(seen.states.first(), Some(&Some(State::SwitchOnDisabled)), "{:?}", seen.states);
    assert_eq!(seen.states.last(), Some(&Some(State::ReadyToSwitchOn)), "{:?}", seen.states);
}
