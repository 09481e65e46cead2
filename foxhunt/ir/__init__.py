"""Specs to names, ranges, positions, hazards and rules: everything before the schedule."""
