"""What generated trainers stand on: signals, checkpoints, data, telemetry. Imports numpy and safetensors only."""
