"""What a device does and takes: launches, time, bytes and operations."""
