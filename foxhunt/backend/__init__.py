"""What runs a plan: the backends `host` and `cuda`, and how emitted kernels are built for them."""
