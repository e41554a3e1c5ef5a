//! `CUDA_VISIBLE_DEVICES`: which devices a value shows. The driver has the last word; this explains it, and answers
//! where there is no driver to ask.
//!
//! Sources: CUDA programming guide, "CUDA Environment Variables"; PyTorch's `_parse_visible_devices` and
//! `_transform_uuid_to_ordinals` in `torch/cuda/__init__.py`.

/// What a value shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The physical numbers of the devices, in the order in which they are renumbered from 0.
    pub devices: Vec<usize>,
    /// Where the list ends before its end, and why, as a clause.
    pub cut: Option<String>,
}

/// Applies the value to devices with these UUIDs (`GPU-…`), by physical number; `None` for one that is not known.
pub fn shown(value: Option<&str>, uuids: &[Option<String>]) -> Shown {
    let Some(value) = value else {
        return Shown { devices: (0..uuids.len()).collect(), cut: None };
    };
    if value.trim().is_empty() {
        return Shown { devices: Vec::new(), cut: Some("it is set and empty".to_owned()) };
    }
    let mut devices: Vec<usize> = Vec::new();
    let by_uuid = is_uuid(value.trim_start());
    for element in value.split(',').map(str::trim) {
        let cut = |devices: Vec<usize>, reason: String| Shown { devices, cut: Some(reason) };
        if element.starts_with("MIG-") {
            // Only the first instance is enumerated, and which device it is on is not in its name.
            let reason = format!("`{element}` is a MIG instance, and at most one of those is visible");
            return cut(devices, reason);
        }
        if is_uuid(element) != by_uuid {
            return cut(devices, format!("`{element}` has another form than the elements before it"));
        }
        let device = if by_uuid { unique(element, uuids) } else { number(element) };
        match device {
            Ok(device) if device >= uuids.len() => {
                return cut(devices, format!("there is no device {device}, only {}", counted(uuids.len())));
            }
            Ok(device) if devices.contains(&device) => {
                return cut(Vec::new(), format!("`{element}` names a device twice, which hides all of them"));
            }
            Ok(device) => devices.push(device),
            Err(reason) => return cut(devices, reason),
        }
    }
    Shown { devices, cut: None }
}

fn is_uuid(element: &str) -> bool {
    element.starts_with("GPU-") || element.starts_with("MIG-")
}

/// As C's `strtoul` reads it: what follows the digits does not count.
fn number(element: &str) -> Result<usize, String> {
    if element.starts_with('-') {
        return Err(format!("`{element}` is negative, which ends the list"));
    }
    let digits = element.strip_prefix('+').unwrap_or(element);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    match &digits[..end] {
        "" => Err(format!("`{element}` is not a number, which ends the list")),
        number => Ok(number.parse().unwrap_or(usize::MAX)),
    }
}

fn unique(prefix: &str, uuids: &[Option<String>]) -> Result<usize, String> {
    let fits = |uuid: &Option<String>| uuid.as_ref().is_some_and(|uuid| uuid.starts_with(prefix));
    let mut fitting = uuids.iter().enumerate().filter(|(_, uuid)| fits(uuid)).map(|(i, _)| i);
    match (fitting.next(), fitting.next()) {
        (Some(device), None) => Ok(device),
        (Some(_), Some(_)) => Err(format!("`{prefix}` matches several devices")),
        _ => Err(format!("no device has the UUID `{prefix}`")),
    }
}

fn counted(n: usize) -> String {
    match n {
        0 => "none at all".to_owned(),
        1 => "device 0".to_owned(),
        n => format!("devices 0 to {}", n - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn four() -> Vec<Option<String>> {
        ["GPU-8932f937", "GPU-8932aaaa", "GPU-11112222", "GPU-33334444"].map(|u| Some(u.to_owned())).into()
    }

    #[test]
    fn the_table_of_values() {
        let all = [0, 1, 2, 3].as_slice();
        for (value, devices, cut) in [
            (None, all, None),
            (Some(""), [].as_slice(), Some("empty")),
            (Some(" "), &[], Some("empty")),
            (Some("2,1"), &[2, 1], None),
            (Some(" 2 , 1"), &[2, 1], None),
            (Some("0,2,-1,1"), &[0, 2], Some("negative")),
            (Some("-1"), &[], Some("negative")),
            (Some("none"), &[], Some("is not a number")),
            (Some("NoDevFiles"), &[], Some("is not a number")),
            (Some("1gpu2,2ampere"), &[1, 2], None),
            (Some("+3"), &[3], None),
            (Some("0,0"), &[], Some("twice")),
            (Some("0,4,1"), &[0], Some("no device 4, only devices 0 to 3")),
            (Some("99999999999999999999999"), &[], Some("no device")),
            (Some("0,"), &[0], Some("is not a number")),
            (Some("GPU-8932f"), &[0], None),
            (Some("GPU-1111,GPU-3333"), &[2, 3], None),
            (Some("GPU-8932"), &[], Some("several")),
            (Some("GPU-77"), &[], Some("no device has")),
            (Some("0,GPU-1111"), &[0], Some("another form")),
            (Some("GPU-1111,0"), &[2], Some("another form")),
            (Some("MIG-11e6"), &[], Some("MIG instance")),
            (Some("MIG-GPU-8932f937/1/0"), &[], Some("MIG instance")),
        ] {
            let shown = shown(value, &four());
            assert_eq!(shown.devices, devices, "{value:?}");
            match (cut, &shown.cut) {
                (None, None) => {}
                (Some(part), Some(reason)) if reason.contains(part) => {}
                (_, reason) => panic!("{value:?}: {reason:?}"),
            }
        }
    }

    #[test]
    fn without_devices_nothing_is_shown() {
        assert_eq!(shown(None, &[]).devices, [] as [usize; 0]);
        assert!(shown(Some("0"), &[]).cut.is_some());
    }
}
