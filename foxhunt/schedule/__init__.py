"""Order, fusion, lanes and memory of the launches of each step."""

from foxhunt.schedule.build import build_schedule

__all__ = ["build_schedule"]
