//! Expressions in double precision, and the same in single precision.

/// `torch.zeros(3, dtype=torch.float64)` → `torch.zeros(3, dtype=torch.float32)`, `x.double()` → `x.float()`,
/// `torch.from_numpy(a).to(device)` → `torch.from_numpy(a).to(device, dtype=torch.float32)`
pub fn in_float32(text: &str) -> Option<String> {
    if text.matches("torch.float64").count() == 1 {
        return Some(text.replace("torch.float64", "torch.float32"));
    }
    if let Some(tensor) = text.strip_suffix(".double()") {
        return Some(format!("{tensor}.float()"));
    }
    let (tensor, device) = text.strip_suffix(')')?.rsplit_once(".to(")?;
    let given = device.strip_prefix("device=").unwrap_or(device);
    let plain = !given.is_empty() && !given.contains([',', '(', ')', '=', '*']);
    plain.then(|| format!("{tensor}.to({device}, dtype=torch.float32)"))
}

#[cfg(test)]
mod tests {
    use super::in_float32;

    #[test]
    fn the_type_is_replaced_where_it_is_written() {
        for (double, single) in [
            ("torch.zeros(3, dtype=torch.float64)", "torch.zeros(3, dtype=torch.float32)"),
            ("x.double()", "x.float()"),
            ("torch.from_numpy(a).to(device)", "torch.from_numpy(a).to(device, dtype=torch.float32)"),
        ] {
            assert_eq!(in_float32(double).as_deref(), Some(single));
        }
        assert_eq!(
            in_float32("x.to(device=device)").as_deref(),
            Some("x.to(device=device, dtype=torch.float32)")
        );
        assert_eq!(in_float32("x.to(device, True)"), None);
        assert_eq!(in_float32("model(x)"), None);
    }
}
