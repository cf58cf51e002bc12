//! Error codes of drives, as object 0x603F and emergencies carry them (IEC 61800-7-201, 6.9 and
//! Annex A; classes by CiA 301, Table 26; ETG.1000.6, 5.6.4).

use core::fmt;

use crate::table::codes;

/// An error code: 0x603F, or the code of an emergency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode(pub u16);

/// The code in words; an undefined code by its nearest class.
impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let own = if self.is_defined() { "" } else { ", the device's own code" };
        write!(f, "{:#06x}: {}{own}", self.0, self.text())
    }
}

impl ErrorCode {
    /// True if the standard defines the code; otherwise [`Self::text`] names its class.
    #[must_use]
    pub fn is_defined(self) -> bool {
        Self::all().binary_search_by_key(&self, |(code, _)| *code).is_ok()
    }

    /// Advice on where to look next; empty where there is no error.
    #[must_use]
    pub fn remedy(self) -> &'static str {
        match self.0 {
            0x0000..=0x00FF => "",
            0x2100..=0x21FF => "check the supply's wiring for a short circuit",
            0x2350..=0x235F => "let it cool, then load it less: lower the torque or acceleration limits",
            0x2000..=0x2FFF => {
                "disconnect the motor and look for a short circuit or an earth fault in it and its cable"
            }
            0x3100..=0x31FF => "check the mains: voltage, phases, fuses, contactor",
            0x3210..=0x321F => "brake more gently, or check the braking resistor",
            0x3220..=0x322F => {
                "switch the main power on, or check its supply and the emergency stop circuit"
            }
            0x3000..=0x3FFF => "check the supply and the motor cable",
            0x4110..=0x411F | 0x4210..=0x421F | 0x4310..=0x431F | 0x4410..=0x441F => {
                "let it cool; check fans, air and load"
            }
            0x4000..=0x4FFF => "check the temperature around it and its sensors",
            0x5110..=0x511F => "check its 24 V supply",
            0x5120..=0x512F => "switch the main power on, or check its supply",
            0x5000..=0x5FFF => "switch it off and on; if it comes again, replace the device",
            0x6300..=0x63FF => "write its parameters again, or restore its defaults",
            0x6000..=0x6FFF => "switch it off and on; if it comes again, update its firmware",
            0x7110..=0x711F => "check the braking resistor, and brake more gently",
            0x7120..=0x712F => "check that the motor turns freely, its phases and its commutation",
            0x7300..=0x73FF => "check the encoder, its plug and its cable",
            0x7500..=0x75FF => "check the device's communication module and its cables",
            0x7000..=0x7FFF => "check the module the drive's manual names for this code",
            0x8100..=0x82FF => "check the cable, the cycle's lost frames and the device's process data",
            0x8300..=0x83FF => "check the load, the brake and the torque limit",
            0x8400..=0x84FF => "check the load, the encoder and the speed limit",
            0x8500..=0x86FF => "check that the axis moves freely, its limits and the drive's tuning",
            0x8700..=0x87FF => "check distributed clocks and SYNC0 of this device",
            0x8000..=0x8FFF => "look the code up in the drive's manual",
            0x9000..=0x9FFF => "check what is wired to its inputs: limit switches, emergency stop, enable",
            0xA000..=0xAFFF => "check its AL status code, process data and clocks",
            _ => "look the code up in the drive's manual",
        }
    }
}

/// The text of the nearest class that the standard defines.
fn class(code: u16) -> &'static str {
    if code <= 0x00FF {
        return ErrorCode::NO_ERROR.text();
    }
    let classes = [code & 0xFFF0, code & 0xFF00, code & 0xF000];
    let class = classes.into_iter().map(ErrorCode).find(|class| class.is_defined());
    class.map_or("an error", ErrorCode::text)
}

codes! {
    ErrorCode, class;
    NO_ERROR = 0x0000, "no error";
    GENERIC = 0x1000, "generic error";
    CURRENT = 0x2000, "current";
    INPUT_CURRENT = 0x2100, "current on the input side";
    INPUT_SHORT_CIRCUIT_OR_EARTH = 0x2110, "short circuit or earth leakage on the input side";
    INPUT_EARTH = 0x2120, "earth leakage on the input side";
    INPUT_EARTH_L1 = 0x2121, "earth leakage of input phase L1";
    INPUT_EARTH_L2 = 0x2122, "earth leakage of input phase L2";
    INPUT_EARTH_L3 = 0x2123, "earth leakage of input phase L3";
    INPUT_SHORT_CIRCUIT = 0x2130, "short circuit on the input side";
    INPUT_SHORT_CIRCUIT_L1_L2 = 0x2131, "short circuit of input phases L1 and L2";
    INPUT_SHORT_CIRCUIT_L2_L3 = 0x2132, "short circuit of input phases L2 and L3";
    INPUT_SHORT_CIRCUIT_L3_L1 = 0x2133, "short circuit of input phases L3 and L1";
    INTERNAL_CURRENT = 0x2200, "current inside the device";
    INTERNAL_CURRENT_1 = 0x2211, "current 1 inside the device";
    INTERNAL_CURRENT_2 = 0x2212, "current 2 inside the device";
    INTERNAL_OVERCURRENT_RAMP = 0x2213, "overcurrent while ramping";
    INTERNAL_OVERCURRENT_SEQUENCE = 0x2214, "overcurrent in the sequence";
    INTERNAL_CONTINUOUS_OVERCURRENT = 0x2220, "continuous overcurrent inside the device";
    INTERNAL_CONTINUOUS_OVERCURRENT_1 = 0x2221, "continuous overcurrent 1 inside the device";
    INTERNAL_CONTINUOUS_OVERCURRENT_2 = 0x2222, "continuous overcurrent 2 inside the device";
    INTERNAL_SHORT_CIRCUIT_OR_EARTH = 0x2230, "short circuit or earth leakage inside the device";
    INTERNAL_EARTH = 0x2240, "earth leakage inside the device";
    INTERNAL_SHORT_CIRCUIT = 0x2250, "short circuit inside the device";
    OUTPUT_CURRENT = 0x2300, "current on the motor side";
    OUTPUT_CONTINUOUS_OVERCURRENT = 0x2310, "continuous overcurrent on the motor side";
    OUTPUT_CONTINUOUS_OVERCURRENT_1 = 0x2311, "continuous overcurrent 1 on the motor side";
    OUTPUT_CONTINUOUS_OVERCURRENT_2 = 0x2312, "continuous overcurrent 2 on the motor side";
    OUTPUT_SHORT_CIRCUIT_OR_EARTH = 0x2320, "short circuit or earth leakage on the motor side";
    OUTPUT_EARTH = 0x2330, "earth leakage on the motor side";
    OUTPUT_EARTH_U = 0x2331, "earth leakage of motor phase U";
    OUTPUT_EARTH_V = 0x2332, "earth leakage of motor phase V";
    OUTPUT_EARTH_W = 0x2333, "earth leakage of motor phase W";
    OUTPUT_SHORT_CIRCUIT = 0x2340, "short circuit on the motor side";
    OUTPUT_SHORT_CIRCUIT_U_V = 0x2341, "short circuit of motor phases U and V";
    OUTPUT_EARTH_V_W = 0x2342, "earth leakage of motor phases V and W";
    OUTPUT_EARTH_W_U = 0x2343, "earth leakage of motor phases W and U";
    LOAD_LEVEL = 0x2350, "overload (I2t)";
    LOAD_LEVEL_WARNING = 0x2351, "overload warning (I2t)";
    VOLTAGE = 0x3000, "voltage";
    MAINS_VOLTAGE = 0x3100, "mains voltage";
    MAINS_OVERVOLTAGE = 0x3110, "mains overvoltage";
    MAINS_OVERVOLTAGE_L1 = 0x3111, "mains overvoltage, phase L1";
    MAINS_OVERVOLTAGE_L2 = 0x3112, "mains overvoltage, phase L2";
    MAINS_OVERVOLTAGE_L3 = 0x3113, "mains overvoltage, phase L3";
    MAINS_UNDERVOLTAGE = 0x3120, "mains undervoltage";
    MAINS_UNDERVOLTAGE_L1 = 0x3121, "mains undervoltage, phase L1";
    MAINS_UNDERVOLTAGE_L2 = 0x3122, "mains undervoltage, phase L2";
    MAINS_UNDERVOLTAGE_L3 = 0x3123, "mains undervoltage, phase L3";
    MAINS_PHASE = 0x3130, "mains phase failure";
    MAINS_PHASE_L1 = 0x3131, "mains phase failure, phase L1";
    MAINS_PHASE_L2 = 0x3132, "mains phase failure, phase L2";
    MAINS_PHASE_L3 = 0x3133, "mains phase failure, phase L3";
    MAINS_PHASE_SEQUENCE = 0x3134, "mains phase sequence";
    MAINS_FREQUENCY = 0x3140, "mains frequency";
    MAINS_FREQUENCY_HIGH = 0x3141, "mains frequency too high";
    MAINS_FREQUENCY_LOW = 0x3142, "mains frequency too low";
    DC_LINK_VOLTAGE = 0x3200, "DC link voltage";
    DC_LINK_OVERVOLTAGE = 0x3210, "DC link overvoltage";
    DC_LINK_OVERVOLTAGE_1 = 0x3211, "DC link overvoltage 1";
    DC_LINK_OVERVOLTAGE_2 = 0x3212, "DC link overvoltage 2";
    DC_LINK_UNDERVOLTAGE = 0x3220, "DC link undervoltage";
    DC_LINK_UNDERVOLTAGE_1 = 0x3221, "DC link undervoltage 1";
    DC_LINK_UNDERVOLTAGE_2 = 0x3222, "DC link undervoltage 2";
    LOAD_ERROR = 0x3230, "load error";
    OUTPUT_VOLTAGE = 0x3300, "output voltage";
    OUTPUT_OVERVOLTAGE = 0x3310, "output overvoltage";
    OUTPUT_OVERVOLTAGE_U = 0x3311, "output overvoltage, phase U";
    OUTPUT_OVERVOLTAGE_V = 0x3312, "output overvoltage, phase V";
    OUTPUT_OVERVOLTAGE_W = 0x3313, "output overvoltage, phase W";
    ARMATURE_CIRCUIT = 0x3320, "armature circuit";
    ARMATURE_INTERRUPTED = 0x3321, "armature circuit interrupted";
    FIELD_CIRCUIT = 0x3330, "field circuit";
    FIELD_INTERRUPTED = 0x3331, "field circuit interrupted";
    TEMPERATURE = 0x4000, "temperature";
    AMBIENT_TEMPERATURE = 0x4100, "ambient temperature";
    AMBIENT_HOT = 0x4110, "ambient temperature too high";
    AMBIENT_COLD = 0x4120, "ambient temperature too low";
    SUPPLY_AIR = 0x4130, "temperature of the supply air";
    OUTLET_AIR = 0x4140, "temperature of the outlet air";
    DEVICE_TEMPERATURE = 0x4200, "device temperature";
    DEVICE_HOT = 0x4210, "device temperature too high";
    DEVICE_COLD = 0x4220, "device temperature too low";
    DRIVE_TEMPERATURE = 0x4300, "drive temperature";
    DRIVE_HOT = 0x4310, "drive temperature too high";
    DRIVE_COLD = 0x4320, "drive temperature too low";
    SUPPLY_TEMPERATURE = 0x4400, "supply temperature";
    SUPPLY_HOT = 0x4410, "supply temperature too high";
    SUPPLY_COLD = 0x4420, "supply temperature too low";
    HARDWARE = 0x5000, "device hardware";
    SUPPLY = 0x5100, "supply";
    SUPPLY_LOW = 0x5110, "low supply voltage";
    SUPPLY_15V = 0x5111, "15 V supply";
    SUPPLY_24V = 0x5112, "24 V supply";
    SUPPLY_5V = 0x5113, "5 V supply";
    SUPPLY_U4 = 0x5114, "supply U4, which the device defines";
    SUPPLY_U5 = 0x5115, "supply U5, which the device defines";
    SUPPLY_U6 = 0x5116, "supply U6, which the device defines";
    SUPPLY_U7 = 0x5117, "supply U7, which the device defines";
    SUPPLY_U8 = 0x5118, "supply U8, which the device defines";
    SUPPLY_U9 = 0x5119, "supply U9, which the device defines";
    SUPPLY_INTERMEDIATE = 0x5120, "supply of the intermediate circuit";
    CONTROL = 0x5200, "control hardware";
    MEASUREMENT_CIRCUIT = 0x5210, "measurement circuit";
    COMPUTING_CIRCUIT = 0x5220, "computing circuit";
    OPERATING_UNIT = 0x5300, "operating unit";
    POWER_SECTION = 0x5400, "power section";
    OUTPUT_STAGES = 0x5410, "output stages";
    CHOPPER = 0x5420, "chopper";
    INPUT_STAGES = 0x5430, "input stages";
    CONTACTS = 0x5440, "contacts";
    CONTACT_1 = 0x5441, "contact 1, which the device defines";
    CONTACT_2 = 0x5442, "contact 2, which the device defines";
    CONTACT_3 = 0x5443, "contact 3, which the device defines";
    CONTACT_4 = 0x5444, "contact 4, which the device defines";
    CONTACT_5 = 0x5445, "contact 5, which the device defines";
    FUSES = 0x5450, "fuses";
    FUSE_L1 = 0x5451, "fuse of phase L1";
    FUSE_L2 = 0x5452, "fuse of phase L2";
    FUSE_L3 = 0x5453, "fuse of phase L3";
    FUSE_4 = 0x5454, "fuse 4, which the device defines";
    FUSE_5 = 0x5455, "fuse 5, which the device defines";
    FUSE_6 = 0x5456, "fuse 6, which the device defines";
    FUSE_7 = 0x5457, "fuse 7, which the device defines";
    FUSE_8 = 0x5458, "fuse 8, which the device defines";
    FUSE_9 = 0x5459, "fuse 9, which the device defines";
    MEMORY = 0x5500, "memory hardware";
    RAM = 0x5510, "RAM";
    ROM = 0x5520, "ROM";
    EEPROM = 0x5530, "EEPROM";
    SOFTWARE = 0x6000, "device software";
    SOFTWARE_WATCHDOG = 0x6010, "software reset by its watchdog";
    INTERNAL_SOFTWARE = 0x6100, "internal software";
    USER_SOFTWARE = 0x6200, "user software";
    DATA_RECORD = 0x6300, "data record";
    DATA_RECORD_1 = 0x6301, "data record 1";
    DATA_RECORD_2 = 0x6302, "data record 2";
    DATA_RECORD_3 = 0x6303, "data record 3";
    DATA_RECORD_4 = 0x6304, "data record 4";
    DATA_RECORD_5 = 0x6305, "data record 5";
    DATA_RECORD_6 = 0x6306, "data record 6";
    DATA_RECORD_7 = 0x6307, "data record 7";
    DATA_RECORD_8 = 0x6308, "data record 8";
    DATA_RECORD_9 = 0x6309, "data record 9";
    DATA_RECORD_10 = 0x630A, "data record 10";
    DATA_RECORD_11 = 0x630B, "data record 11";
    DATA_RECORD_12 = 0x630C, "data record 12";
    DATA_RECORD_13 = 0x630D, "data record 13";
    DATA_RECORD_14 = 0x630E, "data record 14";
    DATA_RECORD_15 = 0x630F, "data record 15";
    PARAMETERS_LOST = 0x6310, "loss of parameters";
    PARAMETERS = 0x6320, "parameter error";
    MODULES = 0x7000, "additional modules";
    POWER_MODULE = 0x7100, "power module";
    BRAKE_CHOPPER = 0x7110, "brake chopper";
    BRAKE_CHOPPER_FAILURE = 0x7111, "failure of the brake chopper";
    BRAKE_CHOPPER_OVERCURRENT = 0x7112, "overcurrent in the brake chopper";
    BRAKE_CHOPPER_PROTECTION = 0x7113, "protective circuit of the brake chopper";
    MOTOR = 0x7120, "motor";
    MOTOR_BLOCKED = 0x7121, "motor blocked";
    MOTOR_COMMUTATION = 0x7122, "motor error or wrong commutation";
    MOTOR_TILTED = 0x7123, "motor tilted";
    MEASUREMENT_MODULE = 0x7200, "measurement module";
    SENSOR = 0x7300, "sensor";
    TACHO = 0x7301, "tacho fault";
    TACHO_POLARITY = 0x7302, "tacho with wrong polarity";
    RESOLVER_1 = 0x7303, "resolver 1 fault";
    RESOLVER_2 = 0x7304, "resolver 2 fault";
    ENCODER_1 = 0x7305, "incremental encoder 1 fault";
    ENCODER_2 = 0x7306, "incremental encoder 2 fault";
    ENCODER_3 = 0x7307, "incremental encoder 3 fault";
    SPEED_SENSOR = 0x7310, "speed sensor";
    POSITION_SENSOR = 0x7320, "position sensor";
    COMPUTATION_MODULE = 0x7400, "computation module";
    COMMUNICATION_MODULE = 0x7500, "communication module";
    SERIAL_1 = 0x7510, "serial interface 1";
    SERIAL_2 = 0x7520, "serial interface 2";
    STORAGE_MODULE = 0x7600, "data storage module";
    MONITORING = 0x8000, "monitoring";
    COMMUNICATION = 0x8100, "communication";
    PROTOCOL = 0x8200, "protocol error";
    PDO_LENGTH = 0x8210, "PDO not processed, its length is wrong";
    PDO_TOO_LONG = 0x8220, "PDO longer than expected";
    TORQUE_CONTROL = 0x8300, "torque control";
    EXCESS_TORQUE = 0x8311, "excess torque";
    DIFFICULT_START = 0x8312, "difficult start";
    STANDSTILL_TORQUE = 0x8313, "standstill torque";
    INSUFFICIENT_TORQUE = 0x8321, "insufficient torque";
    TORQUE_FAULT = 0x8331, "torque fault";
    VELOCITY_CONTROL = 0x8400, "velocity controller";
    POSITION_CONTROL = 0x8500, "position controller";
    POSITIONING_CONTROL = 0x8600, "positioning controller";
    FOLLOWING_ERROR = 0x8611, "following error";
    REFERENCE_LIMIT = 0x8612, "reference limit";
    SYNC_CONTROL = 0x8700, "synchronisation controller";
    WINDING_CONTROL = 0x8800, "winding controller";
    PROCESS_DATA_MONITORING = 0x8900, "process data monitoring";
    CONTROL_MONITORING = 0x8A00, "control monitoring";
    EXTERNAL = 0x9000, "external error";
    STATE_MACHINE = 0xA000, "EtherCAT state machine, PreOp to SafeOp";
    STATE_MACHINE_OP = 0xA001, "EtherCAT state machine, SafeOp to Op";
    ADDITIONAL_FUNCTIONS = 0xF000, "additional functions";
    DECELERATION = 0xF001, "deceleration";
    SUB_SYNCHRONOUS = 0xF002, "sub-synchronous run";
    STROKE = 0xF003, "stroke operation";
    ADDITIONAL_CONTROL = 0xF004, "control function";
    DEVICE_SPECIFIC = 0xFF00, "device-specific error";
}

#[cfg(test)]
mod tests {
    use super::*;

    // feature(main-device): error codes of drives in words, with what to do next
    #[test]
    fn standard_codes_have_a_text_and_a_remedy() {
        for (code, words, remedy) in [
            (0x8611, "0x8611: following error", "moves freely"),
            (0x7305, "0x7305: incremental encoder 1 fault", "encoder"),
            (0x3131, "0x3131: mains phase failure, phase L1", "phases"),
            (0x3220, "0x3220: DC link undervoltage", "main power"),
            (0x2350, "0x2350: overload (I2t)", "cool"),
            (0x9000, "0x9000: external error", "limit switches"),
            (0x0000, "0x0000: no error", ""),
        ] {
            assert_eq!(ErrorCode(code).to_string(), words);
            assert!(ErrorCode(code).remedy().contains(remedy), "{}", ErrorCode(code).remedy());
        }
    }

    // feature(main-device): error codes of drives in words, with what to do next
    #[test]
    fn unknown_codes_show_their_nearest_class() {
        for (code, words) in [
            (0x3139, "0x3139: mains phase failure, the device's own code"),
            (0x7399, "0x7399: sensor, the device's own code"),
            (0x2ABC, "0x2abc: current, the device's own code"),
            (0xFF42, "0xff42: device-specific error, the device's own code"),
            (0x0042, "0x0042: no error, the device's own code"),
            (0xB123, "0xb123: an error, the device's own code"),
        ] {
            assert_eq!(ErrorCode(code).to_string(), words);
        }
    }

    #[test]
    fn every_error_says_what_to_do() {
        for code in 0x0100..=u16::MAX {
            assert!(
                !ErrorCode(code).remedy().is_empty() && !ErrorCode(code).text().is_empty(),
                "{code:#06x}"
            );
        }
    }
}
