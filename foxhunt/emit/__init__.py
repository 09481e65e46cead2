"""From a schedule to files: templates, C++ text, the generated trainer, and writing only what changed."""
