//! Names of devices.

/// `device`, `dev`, `main_device`: is it a name for a device?
pub fn is_device_name(name: &str) -> bool {
    name == "device" || name.ends_with("_device") || name == "dev"
}
