"""Every jitted function of the package: arrays in, arrays out, compiled on first use and cached on disk."""
