"""The spec language: YAML files to frozen models with positions."""
