//! Torque limit of a drive (0x6072), where it is in the process data.

use ethercat::pdo::PdoField;
use motion::{AxisScale, NewtonMetres};

/// Values that the cycle sends, in thousandths of the rated torque.
#[derive(Clone, Copy, Debug)]
pub(super) struct TorqueLimit {
    field: PdoField,
    usual: u16,
    /// During a jog and in set-up mode; never above the usual one.
    jog: u16,
}

impl TorqueLimit {
    /// The limit of the axis, and the limit of a jog.
    pub(super) fn new(field: PdoField, scale: &AxisScale, limit: NewtonMetres, jog: NewtonMetres) -> Self {
        let usual = units(scale, limit).max(1);
        let nearest = units(scale, jog);
        let is_above = torque(scale, nearest).0 > jog.0;
        let jog = (nearest - u16::from(is_above && nearest > 0)).clamp(1, usual);
        Self { field, usual, jog }
    }

    /// The limit of a jog, as the drive takes it.
    pub(super) fn of_jog(&self, scale: &AxisScale) -> NewtonMetres {
        torque(scale, self.jog)
    }

    pub(super) const fn field(&self) -> PdoField {
        self.field
    }

    /// The robot file gives the usual value.
    pub(super) fn keep(&mut self, usual: u16) {
        self.usual = usual;
        self.jog = self.jog.min(usual);
    }

    pub(super) const fn value(&self, is_low: bool) -> u16 {
        if is_low { self.jog } else { self.usual }
    }
}

/// The nearest value of the object.
fn units(scale: &AxisScale, torque: NewtonMetres) -> u16 {
    scale.torque_units(torque).map_or(0, |units| units.value.saturating_abs().unsigned_abs())
}

fn torque(scale: &AxisScale, units: u16) -> NewtonMetres {
    scale.torque(i16::try_from(units).unwrap_or(i16::MAX)).abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_a_jog_is_rounded_down() {
        let field = PdoField { bit_offset: 48, bit_length: 16 };
        for gear in [1.0, -1.0] {
            let scale = AxisScale::new(1e6, gear, NewtonMetres(2.0)).unwrap();
            let of = |limit, jog| {
                let it = TorqueLimit::new(field, &scale, NewtonMetres(limit), NewtonMetres(jog));
                (it.value(false), it.value(true))
            };
            assert_eq!(of(3.0, 0.5), (1500, 250));
            assert_eq!(of(3.0, 0.5019), (1500, 250), "250.95 is not rounded up");
            assert_eq!(of(0.1, 5.0), (50, 50));
            assert_eq!(of(3.0, 1e-6), (1500, 1));
            assert_eq!(of(1e9, 0.5), (0x7FFF, 250));
            let mut it = TorqueLimit::new(field, &scale, NewtonMetres(3.0), NewtonMetres(0.5));
            it.keep(100);
            assert_eq!((it.value(false), it.value(true)), (100, 100));
        }
    }
}
