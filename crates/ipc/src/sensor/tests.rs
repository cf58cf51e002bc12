use super::*;

fn head() -> Head {
    Head { sequence: 7, stamp_ns: 1_000, sent_ns: 2_000, stale: true }
}

fn scan() -> Scan {
    let head = ScanHead {
        head: head(),
        angle_min: -2.0,
        angle_increment: 0.1,
        time_increment: 1e-4,
        scan_time: 0.1,
        range_min: 0.02,
        range_max: 5.6,
        obstacle_distance: 1.5,
        obstacle_angle: 0.2,
    };
    Scan { head, ranges: vec![1.0, f32::INFINITY, f32::NEG_INFINITY, 2.5] }
}

#[test]
fn written_measurements_are_read() {
    let mut bytes = [0xee; 512];
    let imu = Imu {
        head: head(),
        orientation: [0.0, 0.1, 0.2, 0.97],
        angular_velocity: [1.0, 2.0, 3.0],
        linear_acceleration: [4.0, 5.0, 9.8],
        tilt_variance: 1e-4,
        yaw_variance: 2e-2,
        angular_velocity_variance: 3e-6,
        linear_acceleration_variance: 4e-3,
        temperature: 300.0,
    };
    let length = imu.encode(&mut bytes).unwrap();
    assert_eq!((length, bytes[length]), (Imu::SIZE, 0xee));
    assert_eq!(Imu::decode(&bytes[..length]), Ok(imu));

    let sonar = Sonar {
        head: head(),
        range: 1.0,
        last: f64::INFINITY,
        field_of_view: 0.26,
        range_min: 0.02,
        range_max: 4.0,
    };
    let length = sonar.encode(&mut bytes).unwrap();
    assert_eq!(Sonar::decode(&bytes[..length]), Ok(sonar));

    let led = Led { head: head(), pattern: Pattern::Chase, colour: [1, 2, 3], leds: 30, frames: 9 };
    let length = led.encode(&mut bytes).unwrap();
    assert_eq!(Led::decode(&bytes[..length]), Ok(led));

    let request = LedRequest { pattern: Pattern::Blink, colour: [4, 5, 6], round_ms: 500 };
    let length = request.encode(&mut bytes).unwrap();
    assert_eq!(LedRequest::decode(&bytes[..length]), Ok(request));

    let wheels =
        Wheels { head: head(), positions: [1.0, -1.0], velocities: [2.0, -2.0], commanded: [3.0, -3.0] };
    let length = wheels.encode(&mut bytes).unwrap();
    assert_eq!(Wheels::decode(&bytes[..length]), Ok(wheels));
    let request = WheelRequest { velocities: [0.5, f64::INFINITY], holds_ms: 100 };
    let length = request.encode(&mut bytes).unwrap();
    assert_eq!(WheelRequest::decode(&bytes[..length]), Ok(request));

    let scan = scan();
    let length = scan.head.encode(&scan.ranges, &mut bytes).unwrap();
    assert_eq!(length, ScanHead::size(4));
    assert_eq!(Scan::decode(&bytes[..length]), Ok(scan));
}

#[test]
fn the_layout_is_the_documented_one() {
    let mut bytes = [0; Sonar::SIZE];
    let sonar = Sonar { head: head(), range: 1.0, ..Sonar::default() };
    sonar.encode(&mut bytes).unwrap();
    assert_eq!(bytes[..8], [3, 1, 1, 0, 7, 0, 0, 0]);
    assert_eq!(bytes[8..16], 1_000_u64.to_le_bytes());
    assert_eq!(bytes[16..24], 2_000_u64.to_le_bytes());
    assert_eq!(bytes[24..32], 1.0_f64.to_le_bytes());
}

#[test]
fn wrong_port_version_or_length_is_refused() {
    let mut bytes = [0; ScanHead::LARGEST];
    let length = scan().head.encode(&scan().ranges, &mut bytes).unwrap();
    assert_eq!(Imu::decode(&bytes[..Imu::SIZE]), Err(SensorError::Kind { expected: 1, found: 2 }));
    for cut in 0..length {
        assert!(matches!(Scan::decode(&bytes[..cut]), Err(SensorError::Length { .. })), "{cut}");
    }
    assert!(matches!(Scan::decode(&bytes[..length + 1]), Err(SensorError::Length { .. })));
    let points = 24 + 64;
    bytes[points..points + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(matches!(Scan::decode(&bytes[..length]), Err(SensorError::Value { value: u32::MAX, .. })));
    bytes[1] = 2;
    assert_eq!(Scan::decode(&bytes[..length]), Err(SensorError::Version { found: 2 }));

    let length = Sonar::default().encode(&mut bytes).unwrap();
    for found in [length - 1, length + 1] {
        let wrong = Err(SensorError::Length { expected: Sonar::SIZE, found });
        assert_eq!(Sonar::decode(&bytes[..found]), wrong, "of one length only");
    }
    let led = Led::default().encode(&mut bytes).unwrap();
    bytes[24] = 9;
    let error = Led::decode(&bytes[..led]).unwrap_err();
    assert_eq!(error.to_string(), "found 9 as the pattern: no such value is known");
}

#[test]
fn what_does_not_fit_is_not_written() {
    assert_eq!(Imu::default().encode(&mut [0; Imu::SIZE - 1]), None);
    let many = vec![0.0; MOST_POINTS + 1];
    assert_eq!(ScanHead::default().encode(&many, &mut [0; ScanHead::LARGEST + 4]), None);
}
