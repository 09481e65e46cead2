"""Evidence that an emitted program does what its specs say: orders, access, kernels, gradients, replay."""
