//! Values of variables, short enough to be read.

/// No value is shown that is longer, in characters.
const LONGEST: usize = 80;

/// The value, or its first elements and `…`. Elements stay whole if they are not longer than that themselves.
pub fn cut(value: &str, separator: char) -> String {
    if value.chars().count() <= LONGEST {
        return value.to_owned();
    }
    let mut short = String::new();
    for element in value.split(separator) {
        let length = short.chars().count() + element.chars().count() + 1;
        if length > LONGEST {
            break;
        }
        short.push_str(element);
        short.push(separator);
    }
    if short.is_empty() {
        short = value.chars().take(LONGEST).collect();
    }
    short + "…"
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn elements_stay_whole() {
        assert_eq!(cut("0,1", ','), "0,1");
        let long: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        let short = cut(&long.join(","), ',');
        assert!(short.starts_with("0,1,2,") && short.ends_with(",29,…"), "{short}");
        assert_eq!(cut(&"x".repeat(200), ','), "x".repeat(80) + "…");
    }
}
