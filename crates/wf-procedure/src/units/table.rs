//! Every unit there is, in order of quantity. Factors are exact: a fraction of integers, computed from the defining
//! constants named beside each group.
//!
//! Sources: SI brochure, 9th edition (BIPM 2019, version 3.02); NIST Special Publication 811 (2008), appendix B.

use super::{Quantity, Unit};

const fn unit(
    symbol: &'static str,
    (one, many): (&'static str, &'static str),
    quantity: Quantity,
    factor: (i128, i128),
    aliases: &'static [&'static str],
) -> Unit {
    Unit { symbol, one, many, aliases, quantity, factor, offset: (0, 1) }
}

const fn shifted(unit: Unit, offset: (i128, i128)) -> Unit {
    Unit { offset, ..unit }
}

use Quantity::*;

/// The units.
pub(super) const UNITS: &[Unit] = &[
    // Pressure; base Pa. SI brochure 9th ed. table 4 (Pa = N/m²); NIST SP 811 appendix B.8 for bar, atm, Torr; psi = lbf/in² with the
    // exact pound (0.453 592 37 kg), standard gravity (9.806 65 m/s²) and inch (0.0254 m) of NIST SP 811 appendix B; mmHg = 133.322 387 415 Pa (BS 350).
    unit("Pa", ("pascal", "pascals"), Pressure, (1, 1), &["pa"]),
    unit("hPa", ("hectopascal", "hectopascals"), Pressure, (100, 1), &["hpa"]),
    unit("kPa", ("kilopascal", "kilopascals"), Pressure, (1000, 1), &["kpa"]),
    unit("MPa", ("megapascal", "megapascals"), Pressure, (1000000, 1), &[]),
    unit("mbar", ("millibar", "millibar"), Pressure, (100, 1), &["mbar", "millibars"]),
    unit("bar", ("bar", "bar"), Pressure, (100000, 1), &["bars"]),
    unit(
        "psi",
        ("pound per square inch", "pounds per square inch"),
        Pressure,
        (8896443230521, 1290320000),
        &["psi", "lbf/in²", "pounds per sq inch", "pound-force per square inch"],
    ),
    unit(
        "atm",
        ("atmosphere", "atmospheres"),
        Pressure,
        (101325, 1),
        &["atm", "standard atmosphere", "standard atmospheres"],
    ),
    unit("Torr", ("torr", "torr"), Pressure, (20265, 152), &["torrs"]),
    unit(
        "mmHg",
        ("millimeter of mercury", "millimeters of mercury"),
        Pressure,
        (26664477483, 200000000),
        &["mmhg"],
    ),
    // Temperature; base K. SI brochure 2.3.4 (°C), NIST SP 811 appendix B.8 (°F). The offset is what 0 of the unit is in kelvin.
    unit("K", ("kelvin", "kelvins"), Temperature, (1, 1), &["k"]),
    shifted(
        unit(
            "°C",
            ("degree Celsius", "degrees Celsius"),
            Temperature,
            (1, 1),
            &[
                "c",
                "celsius",
                "deg c",
                "degc",
                "degree c",
                "degrees c",
                "centigrade",
                "degrees centigrade",
            ],
        ),
        (5463, 20),
    ),
    shifted(
        unit(
            "°F",
            ("degree Fahrenheit", "degrees Fahrenheit"),
            Temperature,
            (5, 9),
            &["f", "fahrenheit", "deg f", "degf", "degree f", "degrees f"],
        ),
        (45967, 180),
    ),
    // Length; base m. SI brochure table 7 (prefixes), NIST SP 811 appendix B.6 (inch = 0.0254 m, foot = 0.3048 m).
    unit("nm", ("nanometer", "nanometers"), Length, (1, 1000000000), &[]),
    unit("µm", ("micrometer", "micrometers"), Length, (1, 1000000), &["micron", "microns", "um"]),
    unit("mm", ("millimeter", "millimeters"), Length, (1, 1000), &[]),
    unit("cm", ("centimeter", "centimeters"), Length, (1, 100), &["cm"]),
    unit("m", ("meter", "meters"), Length, (1, 1), &[]),
    unit("km", ("kilometer", "kilometers"), Length, (1000, 1), &["km"]),
    unit("in", ("inch", "inches"), Length, (127, 5000), &["in", "\""]),
    unit("ft", ("foot", "feet"), Length, (381, 1250), &["ft"]),
    // Area; base m².
    unit("mm²", ("square millimeter", "square millimeters"), Area, (1, 1000000), &["mm2"]),
    unit("cm²", ("square centimeter", "square centimeters"), Area, (1, 10000), &["cm2"]),
    unit("m²", ("square meter", "square meters"), Area, (1, 1), &["m2"]),
    // Volume; base m³. SI brochure table 8 (L = dm³), NIST SP 811 appendix B.8 (US gallon = 231 in³).
    unit("µL", ("microliter", "microliters"), Volume, (1, 1000000000), &["ul"]),
    unit("mL", ("milliliter", "milliliters"), Volume, (1, 1000000), &[]),
    unit("L", ("liter", "liters"), Volume, (1, 1000), &["l"]),
    unit("m³", ("cubic meter", "cubic meters"), Volume, (1, 1), &["m3"]),
    unit(
        "gal",
        ("gallon", "gallons"),
        Volume,
        (473176473, 125000000000),
        &["gal", "us gallon", "us gallons"],
    ),
    // Mass; base kg. SI brochure table 8 (t), NIST SP 811 appendix B.8 (avoirdupois pound = 0.453 592 37 kg, ounce = 1/16 lb).
    unit("µg", ("microgram", "micrograms"), Mass, (1, 1000000000), &["ug"]),
    unit("mg", ("milligram", "milligrams"), Mass, (1, 1000000), &[]),
    unit("g", ("gram", "grams"), Mass, (1, 1000), &["g", "gr"]),
    unit("kg", ("kilogram", "kilograms"), Mass, (1, 1), &["kg", "kilo", "kilos"]),
    unit(
        "t",
        ("metric ton", "metric tons"),
        Mass,
        (1000, 1),
        &["t", "ton", "tons", "tonne", "tonnes"],
    ),
    unit("lb", ("pound", "pounds"), Mass, (45359237, 100000000), &["lb", "lbs"]),
    unit("oz", ("ounce", "ounces"), Mass, (45359237, 1600000000), &["oz"]),
    // Force; base N. lbf = 0.453 592 37 kg × 9.806 65 m/s² (NIST SP 811 appendix B.8).
    unit("N", ("newton", "newtons"), Force, (1, 1), &["n"]),
    unit("kN", ("kilonewton", "kilonewtons"), Force, (1000, 1), &["kn"]),
    unit(
        "lbf",
        ("pound-force", "pounds-force"),
        Force,
        (8896443230521, 2000000000000),
        &["lbf", "pound force", "pounds force", "pounds of force"],
    ),
    // Torque; base N·m.
    unit(
        "Nm",
        ("newton meter", "newton meters"),
        Torque,
        (1, 1),
        &["nm", "n·m", "n m", "n*m", "newton-meter", "newton-meters"],
    ),
    unit("kNm", ("kilonewton meter", "kilonewton meters"), Torque, (1000, 1), &["knm", "kn·m"]),
    unit(
        "lbf·ft",
        ("pound-foot", "pound-feet"),
        Torque,
        (3389544870828501, 2500000000000000),
        &["lb-ft", "ft-lb", "ft lb", "foot pound", "foot pounds", "pound foot", "pound feet"],
    ),
    unit(
        "lbf·in",
        ("pound-inch", "pound-inches"),
        Torque,
        (1129848290276167, 10000000000000000),
        &["lb-in", "in-lb", "inch pound", "inch pounds"],
    ),
    // Energy; base J. kWh = 3.6 MJ (NIST SP 811 appendix B.8).
    unit("J", ("joule", "joules"), Energy, (1, 1), &["j"]),
    unit("kJ", ("kilojoule", "kilojoules"), Energy, (1000, 1), &["kj"]),
    unit("kWh", ("kilowatt hour", "kilowatt hours"), Energy, (3600000, 1), &["kwh"]),
    // Power; base W. hp = 550 ft·lbf/s (NIST SP 811 appendix B.8).
    unit("mW", ("milliwatt", "milliwatts"), Power, (1, 1000), &[]),
    unit("W", ("watt", "watts"), Power, (1, 1), &["w"]),
    unit("kW", ("kilowatt", "kilowatts"), Power, (1000, 1), &["kw"]),
    unit("MW", ("megawatt", "megawatts"), Power, (1000000, 1), &[]),
    unit("hp", ("horsepower", "horsepower"), Power, (37284993579113511, 50000000000000), &["hp"]),
    // Speed; base m/s.
    unit(
        "mm/s",
        ("millimeter per second", "millimeters per second"),
        Speed,
        (1, 1000),
        &["mm per second"],
    ),
    unit("m/s", ("meter per second", "meters per second"), Speed, (1, 1), &[]),
    unit(
        "km/h",
        ("kilometer per hour", "kilometers per hour"),
        Speed,
        (5, 18),
        &["km/h", "kph", "kmh"],
    ),
    unit("in/s", ("inch per second", "inches per second"), Speed, (127, 5000), &["in/s", "ips"]),
    // Acceleration; base m/s².
    unit(
        "m/s²",
        ("meter per second squared", "meters per second squared"),
        Acceleration,
        (1, 1),
        &["m/s2"],
    ),
    // Volume flow; base m³/s.
    unit("mL/min", ("milliliter per minute", "milliliters per minute"), Flow, (1, 60000000), &[]),
    unit("L/min", ("liter per minute", "liters per minute"), Flow, (1, 60000), &["l/min", "lpm"]),
    unit("L/h", ("liter per hour", "liters per hour"), Flow, (1, 3600000), &["l/h"]),
    unit("L/s", ("liter per second", "liters per second"), Flow, (1, 1000), &["l/s"]),
    unit("m³/h", ("cubic meter per hour", "cubic meters per hour"), Flow, (1, 3600), &["m3/h"]),
    unit(
        "gal/min",
        ("gallon per minute", "gallons per minute"),
        Flow,
        (157725491, 2500000000000),
        &["gpm", "us gallons per minute"],
    ),
    // Mass flow; base kg/s.
    unit("kg/h", ("kilogram per hour", "kilograms per hour"), MassFlow, (1, 3600), &["kg/h"]),
    unit("kg/s", ("kilogram per second", "kilograms per second"), MassFlow, (1, 1), &["kg/s"]),
    // Time; base s. SI brochure table 8.
    unit("ms", ("millisecond", "milliseconds"), Time, (1, 1000), &["msec"]),
    unit("s", ("second", "seconds"), Time, (1, 1), &["s", "sec", "secs"]),
    unit("min", ("minute", "minutes"), Time, (60, 1), &["min", "mins"]),
    unit("h", ("hour", "hours"), Time, (3600, 1), &["h", "hr", "hrs"]),
    unit("d", ("day", "days"), Time, (86400, 1), &["d"]),
    // Frequency and rotation; base Hz. A revolution a minute is 1/60 Hz.
    unit("Hz", ("hertz", "hertz"), Frequency, (1, 1), &["hz"]),
    unit("kHz", ("kilohertz", "kilohertz"), Frequency, (1000, 1), &["khz"]),
    unit("MHz", ("megahertz", "megahertz"), Frequency, (1000000, 1), &[]),
    unit(
        "rpm",
        ("revolution per minute", "revolutions per minute"),
        Frequency,
        (1, 60),
        &["rpm", "r/min", "rev/min"],
    ),
    // Plane angle; base °. No radian: its factor is not rational.
    unit("°", ("degree", "degrees"), Angle, (1, 1), &["deg"]),
    // Electricity. SI brochure tables 4 and 7.
    unit("µV", ("microvolt", "microvolts"), Voltage, (1, 1000000), &["uv"]),
    unit("mV", ("millivolt", "millivolts"), Voltage, (1, 1000), &["mv"]),
    unit("V", ("volt", "volts"), Voltage, (1, 1), &["v"]),
    unit("kV", ("kilovolt", "kilovolts"), Voltage, (1000, 1), &["kv"]),
    unit(
        "µA",
        ("microampere", "microamperes"),
        Current,
        (1, 1000000),
        &["ua", "microamp", "microamps"],
    ),
    unit(
        "mA",
        ("milliampere", "milliamperes"),
        Current,
        (1, 1000),
        &["ma", "milliamp", "milliamps"],
    ),
    unit("A", ("ampere", "amperes"), Current, (1, 1), &["a", "amp", "amps"]),
    unit("mΩ", ("milliohm", "milliohms"), Resistance, (1, 1000), &[]),
    unit("Ω", ("ohm", "ohms"), Resistance, (1, 1), &[]),
    unit(
        "kΩ",
        ("kilohm", "kilohms"),
        Resistance,
        (1000, 1),
        &["kohm", "kilo-ohm", "kilo-ohms", "kiloohm", "kiloohms"],
    ),
    unit("MΩ", ("megohm", "megohms"), Resistance, (1000000, 1), &["megaohm", "megaohms"]),
    unit("GΩ", ("gigohm", "gigohms"), Resistance, (1000000000, 1), &["gigaohm", "gigaohms"]),
    unit("pF", ("picofarad", "picofarads"), Capacitance, (1, 1000000000000), &[]),
    unit("nF", ("nanofarad", "nanofarads"), Capacitance, (1, 1000000000), &[]),
    unit("µF", ("microfarad", "microfarads"), Capacitance, (1, 1000000), &["uf"]),
    unit("F", ("farad", "farads"), Capacitance, (1, 1), &[]),
    unit(
        "Ah",
        ("ampere hour", "ampere hours"),
        Charge,
        (3600, 1),
        &["ah", "amp hour", "amp hours"],
    ),
    unit(
        "mAh",
        ("milliampere hour", "milliampere hours"),
        Charge,
        (18, 5),
        &["mah", "milliamp hours"],
    ),
    unit(
        "µS/cm",
        ("microsiemens per centimeter", "microsiemens per centimeter"),
        Conductivity,
        (1, 10000),
        &["us/cm"],
    ),
    unit(
        "mS/cm",
        ("millisiemens per centimeter", "millisiemens per centimeter"),
        Conductivity,
        (1, 10),
        &["ms/cm"],
    ),
    unit("S/m", ("siemens per meter", "siemens per meter"), Conductivity, (1, 1), &[]),
    // Ratios; base 1.
    unit("%", ("percent", "percent"), Ratio, (1, 100), &["per cent", "pct"]),
    unit("‰", ("per mille", "per mille"), Ratio, (1, 1000), &["permille"]),
    unit("ppm", ("part per million", "parts per million"), Ratio, (1, 1000000), &["ppm"]),
    unit("ppb", ("part per billion", "parts per billion"), Ratio, (1, 1000000000), &["ppb"]),
    // Concentration and density. g/L and kg/m³ are one quantity by size, two by use: a solute and a substance.
    unit(
        "µg/L",
        ("microgram per liter", "micrograms per liter"),
        Concentration,
        (1, 1000000),
        &["ug/l"],
    ),
    unit(
        "mg/L",
        ("milligram per liter", "milligrams per liter"),
        Concentration,
        (1, 1000),
        &["mg/l"],
    ),
    unit("g/L", ("gram per liter", "grams per liter"), Concentration, (1, 1), &["g/l"]),
    unit(
        "mmol/L",
        ("millimole per liter", "millimoles per liter"),
        Molarity,
        (1, 1000),
        &["mmol/l"],
    ),
    unit("mol/L", ("mole per liter", "moles per liter"), Molarity, (1, 1), &["mol/l"]),
    unit(
        "kg/m³",
        ("kilogram per cubic meter", "kilograms per cubic meter"),
        Density,
        (1, 1),
        &["kg/m3"],
    ),
    unit(
        "g/cm³",
        ("gram per cubic centimeter", "grams per cubic centimeter"),
        Density,
        (1000, 1),
        &["g/cm3"],
    ),
    unit("g/mL", ("gram per milliliter", "grams per milliliter"), Density, (1000, 1), &["g/ml"]),
    // Viscosity; base Pa·s and m²/s. cP and cSt: NIST SP 811 appendix B.8.
    unit("mPa·s", ("millipascal second", "millipascal seconds"), Viscosity, (1, 1000), &["mpas"]),
    unit("Pa·s", ("pascal second", "pascal seconds"), Viscosity, (1, 1), &["pas"]),
    unit("cP", ("centipoise", "centipoise"), Viscosity, (1, 1000), &["cp"]),
    unit(
        "mm²/s",
        ("square millimeter per second", "square millimeters per second"),
        KinematicViscosity,
        (1, 1000000),
        &["mm2/s"],
    ),
    unit("cSt", ("centistokes", "centistokes"), KinematicViscosity, (1, 1000000), &["cst"]),
    // Alone of their kind.
    unit("lx", ("lux", "lux"), Illuminance, (1, 1), &["lx"]),
    unit("dB", ("decibel", "decibels"), SoundLevel, (1, 1), &["db"]),
    unit("pH", ("pH", "pH"), Acidity, (1, 1), &["ph"]),
];
