//! Screens without what differs from run to run and from host to host.

/// The lines of a screen, with the values replaced that another device or
/// another run makes different. `timed`: the iterations, too.
pub(crate) fn masked(screen: &str, timed: bool) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut rows, mut samples) = (false, false);
    let small = screen.contains("[Gb/sec]");
    for line in screen.lines() {
        if line.starts_with(" NUMA node") || line.starts_with(" GID") {
            // The device has none; it may have a GID where the recorded one has not.
            continue;
        }
        if line.starts_with("---") {
            (rows, samples) = (false, false);
        }
        lines.push(if samples && line.contains(", ") {
            // As many digits as %g shows.
            let (index, _) = line.split_once(", ").unwrap_or_default();
            format!("{index}, #")
        } else if rows && small {
            masked_small_row(line, timed)
        } else if rows || line.parse::<f64>().is_ok() {
            masked_row(line, timed)
        } else if let Some((before, _)) = line.split_once("Device         : ") {
            format!("{before}Device         : *")
        } else if let Some((_, vector)) = line.rsplit_once("_comp") {
            format!(" Test with events. Using *_comp{vector}")
        } else if line.starts_with(" Link type ") {
            " Link type *".to_owned()
        } else if line.starts_with(" Outstand reads ") {
            " Outstand reads *".to_owned()
        } else if line.contains(" address: ") {
            masked_values(line)
        } else {
            line.to_owned()
        });
        rows |= line.starts_with(" #bytes");
        samples |= line.starts_with("#, ");
    }
    // An endless run has any number of rows. A remark about the device, which
    // may differ, comes with a line of its own.
    let repeats = |line: &String| line.starts_with("---") || (timed && line.contains('<'));
    lines.dedup_by(|line, before| line == before && repeats(line));
    lines
}

/// Names stay, values go: `QPN 0x0011` becomes `QPN *`.
fn masked_values(line: &str) -> String {
    let words = line.split(' ').map(|word| {
        let value = word.starts_with("0x") || word.chars().all(|c| c.is_ascii_digit());
        if value && !word.is_empty() { "*" } else { word }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Of numbers with a point only the number of decimals stays, and blanks, which
/// pad them, go; size, iterations and tabs stay.
fn masked_row(line: &str, timed: bool) -> String {
    let mut masked = String::new();
    let mut fields = 0;
    for (number, word) in line
        .split([' ', '\t'])
        .zip(line.split_inclusive([' ', '\t']))
    {
        fields += usize::from(!number.is_empty());
        match number.split_once('.') {
            _ if number.is_empty() => {}
            Some((_, decimals)) => masked.push_str(&format!("<#.{}>", decimals.len())),
            // What stock makes of some deviations.
            None if number == "-nan" || number == "inf" => masked.push_str("<#.2>"),
            None if timed && fields == 2 => masked.push_str("<#>"),
            None => masked.push_str(&format!("<{number}>")),
        }
        if word.ends_with('\t') {
            masked.push('\t');
        }
    }
    masked
}

/// As [`masked_row`] where the value of a number decides its format.
fn masked_small_row(line: &str, timed: bool) -> String {
    let kept = if timed { 1 } else { 2 };
    let fields = line.split_whitespace().enumerate();
    let shown = fields.map(|(index, field)| if index < kept { field } else { "#" });
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn masks_values_and_keeps_layout() {
    let row = " 65536      200              31.56              25.07  \t\t     0.000401";
    assert_eq!(masked_row(row, false), "<65536><200><#.2><#.2>\t\t<#.6>");
    assert_eq!(
        masked_row(row, true),
        masked_row(&row.replace("200 ", "9123"), true)
    );
    assert_ne!(
        masked_row(row, false),
        masked_row(&row.replace("25.07", "25.070"), false)
    );
    let lines = masked(
        " Dual-port       : OFF\t\tDevice         : rxe_a\n local address: LID 0x11 QPN 0x0011\n GID: 0:1\n",
        false,
    );
    assert_eq!(
        lines,
        [
            " Dual-port       : OFF\t\tDevice         : *",
            " local address: LID * QPN *"
        ]
    );
}
