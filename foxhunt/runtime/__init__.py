"""What generated trainers stand on: signals, checkpoints, data, telemetry. Light imports."""
