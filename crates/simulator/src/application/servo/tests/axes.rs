//! Several axes on one drive.

use ethercat::cia402::object::of_axis;

use super::*;

/// A drive with two axes in Op, in CSV; both turn at a speed of their own.
struct Two {
    bench: Bench,
    words: [u16; 2],
    velocities: [i32; 2],
}

impl Two {
    fn turning() -> Self {
        let mapping = default_mapping_of(2);
        let description =
            ServoDescription { axes: 2, mapping, mode: CyclicMode::Velocity, ..description() };
        let velocities = [COUNTS as i32, -2 * COUNTS as i32];
        let mut two = Self { bench: Bench::new(&description), words: [0; 2], velocities };
        for word in [0x06, 0x07, 0x0F] {
            two.words = [word; 2];
            two.cycles(10);
        }
        two.cycles(200);
        two
    }

    fn cycles(&mut self, count: u32) -> [Inputs; 2] {
        let mut bytes = [0; 24];
        for _ in 0..count {
            let axis = |axis: usize| {
                let (controlword, velocity) = (self.words[axis], self.velocities[axis]);
                Outputs { controlword, velocity, ..Outputs::default() }.emit()
            };
            let outputs = [axis(0), axis(1)].concat();
            for _ in 0..4 {
                self.bench.now = self.bench.now + MILLISECOND / 4;
                self.bench.drive.step(self.bench.now, Some(&outputs), &mut bytes);
            }
            let mut queue = VecDeque::new();
            self.bench.drive.poll_coe(&mut Replies::new(&mut queue, 122));
            self.bench
                .emergencies
                .extend(queue.iter().filter_map(|message| Emergency::parse(message).ok()));
        }
        [inputs(&bytes[..12]), inputs(&bytes[12..])]
    }

    fn value(&self, index: u16, sub_index: u8) -> i64 {
        self.bench.drive.dictionary().value(index, sub_index).expect("the object exists")
    }
}

fn turns(inputs: &Inputs, velocity: i32) -> bool {
    inputs.state() == Some(State::OperationEnabled)
        && (inputs.velocity - velocity).abs() < velocity.abs() / 20
}

// feature(simulator): servo drive with up to eight axes: objects, motor, homing and faults of each, one error history
#[test]
fn each_axis_has_its_own_objects_motor_and_states() {
    let mut two = Two::turning();
    let both = two.cycles(1);
    assert!(turns(&both[0], two.velocities[0]) && turns(&both[1], two.velocities[1]), "{both:?}");
    two.words[1] = 0x02;
    let both = two.cycles(300);
    assert!(turns(&both[0], two.velocities[0]), "{both:?}");
    assert_eq!((both[1].state(), both[1].velocity), (Some(State::SwitchOnDisabled), 0));
    for index in
        [object::STATUSWORD, object::DIGITAL_INPUTS, object::TOUCH_PROBE_FUNCTION, object::HOMING_METHOD]
    {
        assert!(two.bench.drive.dictionary().find(of_axis(index, 1), 0).is_ok(), "{index:#06x}");
        assert!(two.bench.drive.dictionary().find(of_axis(index, 2), 0).is_err(), "{index:#06x}");
    }
    assert!(
        two.bench.drive.axes()[0].plant().position() > 1.0
            && two.bench.drive.axes()[1].plant().position() < -1.0
    );
}

// feature(simulator): servo drive with up to eight axes: objects, motor, homing and faults of each, one error history
#[test]
fn a_fault_is_of_one_axis_and_the_history_of_all() {
    let mut two = Two::turning();
    two.bench.drive.raise_fault(1, 0x2310);
    let both = two.cycles(300);
    assert!(turns(&both[0], two.velocities[0]), "{both:?}");
    assert_eq!(both[1].state(), Some(State::Fault));
    assert_eq!([0, 1].map(|axis| two.value(of_axis(object::ERROR_CODE, axis), 0)), [0, 0x2310]);
    two.bench.drive.raise_fault(0, 0x4210);
    two.cycles(300);
    assert_eq!([0, 1, 2].map(|sub_index| two.value(0x1003, sub_index)), [2, 0x4210, 0x1_2310]);
    assert_eq!(two.value(0x1001, 0), 0b1011, "current and temperature");
    // One is reset: the other's error stays.
    two.words[0] = 0x80;
    two.cycles(10);
    assert_eq!((two.value(0x603F, 0), two.value(0x1001, 0)), (0, 0b0011));
    let told: Vec<_> =
        two.bench.emergencies.iter().map(|it| (it.error_code, it.error_register, it.data[0])).collect();
    assert_eq!(told, [(0x2310, 0b0011, 1), (0x4210, 0b1011, 0), (0, 0b0011, 0)]);
}

#[test]
fn main_power_is_that_of_all_axes_and_load_of_one() {
    let mut two = Two::turning();
    two.bench.drive.set_load(1, 10_000);
    two.velocities = [COUNTS as i32; 2];
    let both = two.cycles(20);
    assert!(turns(&both[0], two.velocities[0]) && !turns(&both[1], two.velocities[1]), "{both:?}");
    two.bench.drive.set_load(1, 0);
    two.cycles(500);
    two.bench.drive.set_main_power(false);
    let both = two.cycles(300);
    assert_eq!(both.map(|it| it.state()), [Some(State::Fault); 2]);
    assert_eq!(
        [0, 1].map(|axis| two.value(of_axis(object::ERROR_CODE, axis), 0)),
        [UNDER_VOLTAGE.into(); 2]
    );
}

#[test]
fn an_axis_is_homed_and_the_other_keeps_its_place() {
    let description = ServoDescription {
        axes: 2,
        mapping: default_mapping_of(2),
        initial_position: 1.0,
        ..description()
    };
    let mut two = Two { bench: Bench::new(&description), words: [0; 2], velocities: [0; 2] };
    let [first, second] = two.cycles(1).map(|it| it.position);
    assert_eq!(first, second);
    let mode = two.bench.drive.dictionary_mut().download(
        of_axis(object::MODES_OF_OPERATION, 1),
        0,
        &[6],
        AlState::Op,
    );
    assert_eq!(mode, Ok(()));
    for word in [0x06, 0x07, 0x0F, 0x1F] {
        two.words[1] = word;
        two.cycles(10);
    }
    let both = two.cycles(50);
    assert!(both[0].position == first && both[1].position.abs() <= 1, "method 37, here: {both:?}");
    let bits = Statusword::HOMING_ATTAINED | Statusword::TARGET_REACHED;
    assert_eq!(both[1].statusword.0 & bits, bits);
}

#[test]
fn a_drive_without_axes_or_with_nine_is_refused() {
    for axes in [0, 9] {
        let refused = ServoDrive::new(&ServoDescription { axes, ..description() }).err();
        assert!(refused.is_some_and(|error| error.to_string().contains("axes is ")), "{axes}");
    }
    let eight = ServoDescription { axes: 8, mapping: default_mapping_of(8), ..description() };
    let drive = ServoDrive::new(&eight).expect("the most");
    assert_eq!(drive.process_data_lengths(), ProcessDataLengths { outputs: 96, inputs: 96 });
    assert!(drive.dictionary().find(0x9841, 0).is_ok() && drive.dictionary().find(0x1A70, 0).is_ok());
}
