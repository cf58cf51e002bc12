use super::*;

fn begin(axes: usize) -> Begin {
    let axis = |axis| AxisTolerances {
        axis,
        path_position: Tolerance::Within(0.1),
        path_velocity: Tolerance::Unlimited,
        goal_position: Tolerance::Default,
        goal_velocity: Tolerance::Within(f64::MAX),
    };
    let rows: Vec<_> = (0..axes as u32).map(axis).collect();
    Begin {
        id: 3,
        points: 2,
        start_ns: Some(1 << 40),
        goal_time: GoalTime::Within(500_000_000),
        axes: Rows::from_slice(&rows).unwrap(),
    }
}

fn point(axes: usize, rows: usize) -> Point {
    let row = |number: usize| {
        let numbers: Vec<f64> = (0..axes).map(|axis| axis as f64 - number as f64).collect();
        Rows::from_slice(if number < rows { &numbers } else { &[] }).unwrap()
    };
    let (positions, velocities, accelerations) = (row(0), row(1), row(2));
    Point { id: 3, index: 1, time_from_start_ns: 1_000_000_000, positions, velocities, accelerations }
}

fn orders() -> Vec<Order> {
    let begins = [1, 6, MOST_AXES].map(|axes| Order::Begin(begin(axes)));
    let points = [1, 2, 3].map(|rows| Order::Point(point(6, rows)));
    let full = Order::Point(point(MOST_AXES, 3));
    let ends = [Order::Commit { id: 3 }, Order::Cancel { id: 0 }];
    begins.into_iter().chain(points).chain([full]).chain(ends).collect()
}

#[test]
fn what_is_written_reads_back_and_fits_the_port() {
    for order in orders() {
        let mut buffer = [0xEE; size(MOST_AXES) + 1];
        let length = order.encode(&mut buffer).unwrap();
        assert_eq!(Order::decode(&buffer[..length]), Ok(order));
        assert!(
            Order::decode(&buffer[..length - 1]).is_err() && Order::decode(&buffer[..length + 1]).is_err()
        );
        assert!(matches!(order.encode(&mut buffer[..length - 1]), Err(NoRoom { .. })));
    }
    assert!(Order::Begin(begin(6)).encode(&mut [0; size(6)]).is_ok());
    assert!(Order::Point(point(6, 3)).encode(&mut [0; size(6)]).is_ok());
    let rejections = Rejection::ALL.iter().map(|code| Outcome::Rejected(*code));
    let aborts = Abort::ALL.iter().map(|code| Outcome::Aborted(*code));
    let rest = [Outcome::Accepted, Outcome::Succeeded, Outcome::Canceled];
    for outcome in rejections.chain(aborts).chain(rest) {
        let report = Report { axis: Some(4), found: 1.5, ..Report::new(9, outcome) };
        let mut buffer = [0; REPORT_SIZE];
        report.encode(&mut buffer).unwrap();
        assert_eq!(Report::decode(&buffer), Ok(report));
    }
}

#[test]
fn what_is_no_message_is_named() {
    let mut bytes = [0; size(2)];
    Order::Begin(begin(2)).encode(&mut bytes).unwrap();
    let changed = |at: usize, to: &[u8]| {
        let mut bytes = bytes;
        bytes[at..at + to.len()].copy_from_slice(to);
        Order::decode(&bytes).unwrap_err().to_string()
    };
    assert_eq!(changed(0, &[7]), "message's kind: expected 1 to 4, a trajectory's order, found 7");
    assert_eq!(changed(4, &[0]), "message's number of axes: expected 1 to 64, found 0");
    assert_eq!(changed(4, &[65]), "message's number of axes: expected 1 to 64, found 65");
    assert_eq!(
        changed(4, &[3]),
        "message's axis: expected a message long enough to hold it, found 120 bytes"
    );
    assert_eq!(
        changed(4, &[1]),
        "message's length: expected nothing after its last field, found 120 bytes"
    );
    assert_eq!(changed(8, &[0; 8]), "message's id: expected any but 0, found 0");
    // Reserved bytes of the begin, and of each of its two axes.
    for reserved in [20, 44, 84] {
        let sentence = changed(reserved, &[1]);
        assert_eq!(sentence, "message's reserved bytes: expected 0, found 1", "byte {reserved}");
    }
    assert_eq!(
        changed(48, &f64::NAN.to_le_bytes()),
        "message's path tolerance of position: expected a finite number, found NaN"
    );
    assert_eq!(
        changed(64, &(-2.0_f64).to_le_bytes()),
        "message's goal tolerance of position: expected 0 (default), -1 (unlimited) or above 0, found -2"
    );
    let mut bytes = [0; size(2)];
    let length = Order::Point(point(2, 1)).encode(&mut bytes).unwrap();
    bytes[32..40].copy_from_slice(&f64::INFINITY.to_le_bytes());
    assert_eq!(
        Order::decode(&bytes[..length]).unwrap_err().to_string(),
        "message's position: expected a finite number, found inf"
    );
    bytes[20] = 2;
    assert_eq!(
        Order::decode(&bytes[..length]).unwrap_err().to_string(),
        "message's flags: expected 0, 1 or 3, found 2"
    );
}

#[test]
fn where_a_number_means_nothing_it_is_none() {
    let none = "message's number: expected 0, for this kind, found 1";
    for order in [Order::Commit { id: 3 }, Order::Cancel { id: 3 }] {
        let mut bytes = [0; HEAD];
        order.encode(&mut bytes).unwrap();
        bytes[4] = 1;
        assert_eq!(Order::decode(&bytes).unwrap_err().to_string(), none, "{order:?}");
    }
    for outcome in [Outcome::Accepted, Outcome::Succeeded, Outcome::Canceled] {
        let mut bytes = [0; REPORT_SIZE];
        Report::new(3, outcome).encode(&mut bytes).unwrap();
        bytes[4] = 1;
        assert_eq!(Report::decode(&bytes).unwrap_err().to_string(), none, "{outcome:?}");
    }
}

#[test]
fn a_report_is_a_sentence() {
    let report = Report {
        axis: Some(2),
        found: 0.25,
        allowed: 0.1,
        ..Report::new(1, Outcome::Aborted(Abort::PathTolerance))
    };
    assert_eq!(
        report.to_string(),
        "aborted: an axis deviated too far during the motion, axis 2, found 0.25, allowed 0.1"
    );
}

/// Any bytes either decode to a message that encodes to the same bytes, or are an error.
// feature(ipc): messages of the ports `control` and `trajectory`
#[test]
fn whatever_the_bytes_there_is_a_message_or_an_error() {
    let mut random = 0x0000_0B0E_A7B0_0715_u64;
    let mut next = move || {
        random ^= random >> 12;
        random ^= random << 25;
        random ^= random >> 27;
        random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32
    };
    let seeds: Vec<Vec<u8>> = orders()
        .iter()
        .map(|order| {
            let mut bytes = vec![0; size(MOST_AXES)];
            let length = order.encode(&mut bytes).unwrap();
            bytes.truncate(length);
            bytes
        })
        .collect();
    let (mut messages, mut errors) = (0, 0);
    for round in 0..50_000 {
        let mut bytes = seeds[round % seeds.len()].clone();
        for _ in 0..next() % 3 {
            let at = next() as usize % bytes.len();
            bytes[at] = next() as u8;
        }
        if next() % 8 == 0 {
            bytes.truncate(next() as usize % (bytes.len() + 1));
        }
        let mut again = vec![0; size(MOST_AXES)];
        match Order::decode(&bytes) {
            Ok(order) => {
                let length = order.encode(&mut again).unwrap();
                assert_eq!(Order::decode(&again[..length]), Ok(order));
                messages += 1;
            }
            Err(_) => errors += 1,
        }
        let _ = (Report::decode(&bytes), super::super::control::Request::decode(&bytes));
        let _ = super::super::control::Reply::decode(&bytes);
    }
    assert!(messages > 1000 && errors > 1000, "both happen: {messages} messages, {errors} errors");
}
